"""The two functions of a policy, seen from outside: what their code asks of the graph, and what goes wrong when it is compiled or runs.

In: a Python function (or one that numba compiled), an exception and where a loop was. Out: `Uses`; a line with its file, number and text;
`PolicyError` with the vertex or the edge that a function was called for.
The functions that it calls by name are followed, through globals, closures and modules; what cannot be followed may ask for everything.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import linecache
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from oocgraph.errors import PolicyError
from oocgraph.store.graph import CSRStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

_METHODS = {"neighbours": "neighbours", "out_degree": "out_degree", "first_out_edge": "out_degree", "in_degree": "in_degree"}
"""Methods of ``prop``, and what each one asks for."""

_KNOWN = {"numba", "numpy", "oocgraph.compiled", "oocgraph.kernels", *sys.stdlib_module_names}
"""Modules whose functions do not ask a ``prop`` for anything."""

_FIXED = (int, float, complex, str, bytes, np.generic, type, ModuleType, BuiltinFunctionType, np.ufunc)
"""What is the same as long as it is the same object, or equal."""

_NUM_OF_FUNCTION = 3
"""Fields that `identity_of` has for a function: its code, its module, its defaults."""

_PLACE = re.compile(r'File "([^"]+)", line (\d+)|Raised from (\S+) \((\d+)\)')
"""How numba names a line."""

_PROP = re.compile(r"Prop\((?:[^()]|\([^()]*\))*\)")
"""The type of ``prop`` in numba's words, left out of messages."""

_RETURNED = re.compile(r"whole_number\((.*)\)")
"""How numba says that what is returned is not an integer (`oocgraph.kernels.policy.whole_number`)."""


@dataclass(frozen=True, slots=True)
class Uses:
    """What a function asks of ``prop``.

    Attributes
    ----------
    neighbours : bool
        Neighbours of the vertex that is being assigned.
    out_degree, in_degree : bool
        Degrees, or positions of first out-edges.
    """

    neighbours: bool
    out_degree: bool
    in_degree: bool


def uses_of(function: Any) -> Uses:
    """Return what a function and those that it calls ask of ``prop``; all of it, if one of them is out of sight.

    Examples
    --------
    >>> uses_of(lambda prop, v: prop.first_out_edge(v) % prop.num_partitions)
    Uses(neighbours=False, out_degree=True, in_degree=False)
    """
    names: set[str] = set()
    for found in _functions(function):
        if found is None:
            return Uses(neighbours=True, out_degree=True, in_degree=True)
        names |= {_METHODS[name] for code in _codes(found.__code__) for name in code.co_names if name in _METHODS}
    return Uses(neighbours="neighbours" in names, out_degree="out_degree" in names, in_degree="in_degree" in names)


def identity_of(function: Any) -> Any:
    """Return what a function compiles to, as a key: its code, and the values of all that it names, which a compiler takes as they are now.

    None where that is unknown: something that it names may change without being another object, as an array may.

    Examples
    --------
    >>> here = {"limit": 3}
    >>> exec("def first(v): return v + limit", here)
    >>> before = identity_of(here["first"])
    >>> here["limit"] = 4
    >>> before == identity_of(here["first"]), identity_of(here["first"]) == identity_of(here["first"])
    (False, True)
    """
    key: list[Any] = []
    for found in _functions(function):
        if found is None:
            return None
        key.append((found.__code__, found.__module__, found.__defaults__))
        for value in _called(found):
            plain = getattr(value, "py_func", value)
            if not isinstance(plain, FunctionType):
                if value is not None and not isinstance(value, _FIXED):
                    return None
                key.append((type(value), value))
    try:
        hash(tuple(key))
    except TypeError:
        return None
    return tuple(key)


def digest_of(identity: Any) -> str | None:
    """Return what tells an identity from others in every process, where all of it came with oocgraph; else None.

    A user's functions are left out: each version of them would stay on disk.
    """
    homes: list[Any] = []

    def text(value: Any) -> str:
        if isinstance(value, CodeType):
            parts = (value.co_code, value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars, value.co_consts)
            return f"code({', '.join(map(text, parts))})"
        if isinstance(value, tuple):
            if len(value) == _NUM_OF_FUNCTION and isinstance(value[0], CodeType):
                homes.append(value[1])
            return f"({', '.join(map(text, value))})"
        return repr(value)

    found = text(identity)
    if not all(str(home).startswith("oocgraph.") for home in homes) or " at 0x" in found:
        return None
    return hashlib.sha256(found.encode()).hexdigest()


def where_refused(function: Any, message: str) -> tuple[str, str]:
    """Return the user's line that a compiler's message is about (file, number, text), and what is wrong."""
    codes = [code for found in _functions(function) if found is not None for code in _codes(found.__code__)]
    reason = _reason(message)
    for match in _PLACE.finditer(message):
        path, number = Path(match[1] or match[3]).name, int(match[2] or match[4])
        for code in codes:
            if Path(code.co_filename).name == path and number in {line for _, _, line in code.co_lines()}:
                return _line(code.co_filename, number), reason
    return (_line(codes[0].co_filename, codes[0].co_firstlineno) if codes else ""), reason


def _reason(message: str) -> str:
    """Return what numba has to say, without its own frames and types."""
    message = _PROP.sub("Prop", message)
    if returned := _RETURNED.search(message):
        return f"it returns {returned[1]} on some path, but a partition is an integer"
    lines = message.partition('File "')[0].splitlines()
    return "\n".join([line for line in lines if line.strip() and not line.startswith(("Failed in nopython mode", "During: "))][:4])


def _line(path: str, number: int) -> str:
    return f'  File "{path}", line {number}\n    {linecache.getline(path, number).strip() or "(its source is not on this machine)"}'


def _functions(function: Any) -> Iterator[FunctionType | None]:
    """Yield a function and those that it calls, transitively; None for one that is out of sight."""
    waiting, seen = [getattr(function, "py_func", function)], []
    while waiting:
        current = waiting.pop()
        if not isinstance(current, FunctionType):
            yield None
        elif current not in seen:
            seen.append(current)
            yield current
            waiting += [getattr(value, "py_func", value) for value in _called(current) if not _asks_nothing(value)]


def _called(function: FunctionType) -> Iterator[Any]:
    """Yield what a function names: its globals, its closure's cells, attributes of modules; None for what is not defined."""
    for cell in function.__closure__ or ():
        yield cell.cell_contents
    for code in _codes(function.__code__):
        owner: Any = None
        for instruction in dis.get_instructions(code):
            if instruction.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
                owner = function.__globals__.get(instruction.argval, getattr(builtins, instruction.argval, None))
                yield owner
            elif isinstance(owner, ModuleType) and instruction.opname in {"LOAD_ATTR", "LOAD_METHOD"}:
                owner = getattr(owner, instruction.argval, None)
                yield owner
            else:
                owner = None
                if instruction.opname == "IMPORT_NAME":
                    yield None


def _asks_nothing(value: Any) -> bool:
    """Whether a value cannot ask a ``prop``: a number, an array, a module (whose attributes are followed), what a library defines."""
    if any(value is far for far in (None, getattr, eval, exec)):
        return False
    if isinstance(value, tuple | list):
        return all(map(_asks_nothing, value))
    if isinstance(value, int | float | complex | str | bytes | type | ModuleType | np.ndarray | np.generic | np.dtype):
        return True
    home = getattr(value, "__module__", None) or type(value).__module__
    return any(home == known or home.startswith(f"{known}.") for known in _KNOWN)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


class OutOfRangeError(Exception):
    """A policy named a partition that does not exist."""


@contextmanager
def policy_errors(policy: str, function: str, store: CSRStore, num_partitions: int, numbers: Array) -> Iterator[None]:
    """Report an error of the user's function with the vertex, or the ends of the edge, that a loop has left in `numbers`."""
    try:
        yield
    except PolicyError:
        raise
    except Exception as error:
        ids = VertexIds(store).ids_of(numbers).tolist() if numbers.min() >= 0 else numbers.tolist()
        ends = [f"vertex {v} (id {one!r})" for v, one in zip(numbers.tolist(), ids, strict=True)]
        what, where = f"policy {policy!r}: {function}", ends[0] if len(ends) == 1 else f"the edge from {ends[0]} to {ends[1]}"
        if isinstance(error, OutOfRangeError):
            raise PolicyError(
                f"{what} returned {error} for {where}, but partitions are 0 to {num_partitions - 1}; correct the policy"
            ) from None
        raise PolicyError(f"{what} raised {type(error).__name__} for {where}: {error}; correct the policy") from error


def not_deterministic(policy: str, first_row: int, stop_row: int) -> PolicyError:
    """Return the error of a policy that has decided otherwise in the second pass than in the first, for a block of rows."""
    return PolicyError(
        f"policy {policy!r}: get_edge_owner is not deterministic: for edges of vertices {first_row} to {stop_row - 1} it decided otherwise "
        "when they were inserted than when they were counted; it may depend on its arguments and its state alone"
    )
