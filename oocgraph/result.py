"""What a traversal returns: per-iteration figures, the search in store order, and the same under the user's ids."""

from __future__ import annotations

from dataclasses import dataclass

from oocgraph.types import Array


@dataclass(frozen=True, slots=True)
class Iteration:
    """Figures of one level.

    Attributes
    ----------
    level
        Level of the vertices that this iteration finds.
    direction
        ``push`` or ``pull``, as carried out.
    reason
        Why, with the numbers compared.
    frontier
        Active vertices at its start.
    undecided
        Vertices that the resident planes left undecided (pull), whose tails had to be looked at; 0 in a push.
    seconds
        Wall time.
    bytes_read
        Bytes requested from the store's files.
    """

    level: int
    direction: str
    reason: str
    frontier: int
    undecided: int
    seconds: float
    bytes_read: int


@dataclass(frozen=True, slots=True)
class Search:
    """One traversal in store order (vertices as the store numbers them).

    Attributes
    ----------
    sources : (num_sources,) int64
        Store numbers of the sources; empty when all sources are isolated.
    parent : (num_vertices,) index dtype
        ``no_parent(dtype)`` where unreached; a source is its own parent.
    level : (num_vertices,) uint8 or int32
        `LEVEL_UNREACHED` (255) where unreached when uint8, -1 when int32.
    num_reached
        Reached vertices that have an edge.
    num_reached_edges
        Edges of the reached component as TEPS counts them.
    depth
        Largest level.
    seconds
        From the sources to parent and level in store order.
    bytes_requested, bytes_read
        Bytes asked of the store's files; the larger of that and the device's bytes.
    iterations : tuple of Iteration
    """

    sources: Array
    parent: Array
    level: Array
    num_reached: int
    num_reached_edges: int
    depth: int
    seconds: float
    bytes_requested: int
    bytes_read: int
    iterations: tuple[Iteration, ...]
