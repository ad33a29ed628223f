"""What can go wrong, one class per remedy. Every message says what, the numbers, and what to do."""

from __future__ import annotations

from typing import Any


class OocGraphError(Exception):
    """Base of all errors that oocgraph raises on purpose; the command line turns it into exit code 2.

    Subclasses also derive from the built-in exceptions that users catch: ValueError, TypeError, FileNotFoundError, MemoryError and others.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from its arguments: the way of those built-ins (MemoryError, OSError) does not work for workers of a cluster."""
        return type(self), self.args, self.__dict__

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ArgumentError(OocGraphError, ValueError):
    """An argument is invalid, or contradicts another; the message names it, its value and what is valid."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has the wrong type, or there is no such parameter."""


class NoPathError(ArgumentError):
    """No path leads from one vertex to another, or the search that was asked for has found none."""


class InputError(OocGraphError):
    """An edge list cannot be read: the message names the file, the place in it and the remedy."""


class InputNotFoundError(InputError, FileNotFoundError):
    """There is no edge list at a path."""


class DuplicateEdgeError(InputError):
    """An edge occurs more than once and the build has ``duplicates="error"``."""


class OutputError(OocGraphError):
    """An output exists already, cannot be written, or the disk is full."""


class OutputExistsError(OutputError, FileExistsError):
    """An output exists already; the message says how to replace it."""


class StoreError(OocGraphError):
    """A graph store cannot be opened: not a store, incomplete, or of a newer format."""


class StoreNotFoundError(StoreError, FileNotFoundError):
    """There is no graph store, and no partitions, at a path."""


class CorruptStoreError(StoreError):
    """Stored bytes differ from their checksum, or a chunk is missing or truncated."""


class PolicyError(OocGraphError):
    """A partitioning policy cannot be compiled, raises, or answers with what is no partition; the message shows where."""


class OperatorError(OocGraphError):
    """An operator cannot be compiled, or makes values better along an edge; the message shows where."""


class BudgetError(OocGraphError, MemoryError):
    """The memory budget is too small; the message gives the smallest one that works."""


class DeviceError(OocGraphError):
    """A GPU cannot be used or has failed; the message names it and the remedy."""


class ClusterError(OocGraphError):
    """A Dask cluster cannot be reached or started, or was lost; the message names the address and the remedy."""


class ConvergenceError(OocGraphError):
    """An iteration has not converged; the message gives how often it ran, what it has come to and which limits to raise."""


class VertexNotFoundError(OocGraphError, KeyError):
    """A vertex id does not occur in the graph's input."""


class MissingDependencyError(OocGraphError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""


class ValidationError(OocGraphError):
    """A traversal's result is not a valid breadth-first search tree."""
