"""The policies that come with oocgraph, by name: nothing but pairs of functions that a user could have written.

In: a name. Out: a `Policy`.

| name | masters | edges | of CuSP |
|---|---|---|---|
| EEC | C | S: to the source's master | edge-balanced edge cut |
| HVC | C | H: to the destination's master if the source's out-degree is above 1,000, else the source's | hybrid vertex cut |
| CVC | C | K: Cartesian, row of the source's master, column of the destination's | Cartesian vertex cut |
| 1D-edge | ranges of equal edges | S | ContiguousEB and Source |
| 1D-vertex | ranges of equal vertices | S | Contiguous and Source |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from oocgraph.errors import PolicyError
from oocgraph.partition.policy import Policy
from oocgraph.types import VertexOrder

Masters = Literal["contiguous", "dealt"]

DEGREE_THRESHOLD = 1000
"""Out-degree above which H gives an edge to its destination's master (Galois, `GenericHVC`; PowerLyra's own default is 100)."""

BLOCKS_PER_PARTITION = 64
"""Blocks that dealt masters cut for each partition."""

HUB_SHARE = 8
"""A vertex that alone weighs more than a block's eighth is dealt alone."""


def contiguous_edges(prop: Any, v: Any) -> Any:
    """C: ranges of about equal edges, ``first_out_edge(v) * P // (m + 1)``."""
    return prop.first_out_edge(v) * prop.num_partitions // (prop.num_edges + 1)


def contiguous_vertices(prop: Any, v: Any) -> Any:
    """Ranges of equal numbers of vertices, ``v * P // n``."""
    return v * prop.num_partitions // prop.num_vertices


def dealt(prop: Any, v: Any) -> Any:
    """Blocks of equal weight in snake order."""
    weight = 1 + prop.num_edges // prop.num_vertices
    block = 1 + (prop.num_edges + weight * prop.num_vertices) // (BLOCKS_PER_PARTITION * prop.num_partitions)
    alone = (prop.out_degree(v) + weight) * HUB_SHARE > block
    at = v if alone else (prop.first_out_edge(v) + weight * v) // block
    turn, place = at // prop.num_partitions, at % prop.num_partitions
    return prop.num_partitions - 1 - place if turn & 1 else place


def to_source(prop: Any, src: Any, dst: Any, src_master: Any, dst_master: Any) -> Any:
    """S: to the source's master."""
    return src_master


def hybrid(prop: Any, src: Any, dst: Any, src_master: Any, dst_master: Any) -> Any:
    """H: to the destination's master if the source's out-degree is above `DEGREE_THRESHOLD`, else to the source's."""
    return dst_master if prop.out_degree(src) > DEGREE_THRESHOLD else src_master


def grid_columns(num_partitions: int) -> int:
    """Columns of the grid: the largest divisor of P that is at most its square root; rows are ``P // columns``."""
    columns = int(num_partitions**0.5)
    while num_partitions % columns:
        columns -= 1
    return columns


def cartesian(prop: Any, src: Any, dst: Any, src_master: Any, dst_master: Any) -> Any:
    """K: row block of the source's master, column cyclic by the destination's."""
    columns = grid_columns(prop.num_partitions)
    return src_master // columns * columns + dst_master % columns


EDGES: dict[str, Callable[..., int]] = {"EEC": to_source, "HVC": hybrid, "CVC": cartesian}


def named_policy(name: str, *, vertex_order: VertexOrder, masters: Masters | None = None) -> Policy:
    """Return a policy by its name."""
    if name == "1D-edge":
        return Policy(name, contiguous_edges, to_source)
    if name == "1D-vertex":
        return Policy(name, contiguous_vertices, to_source)
    if name not in EDGES:
        raise PolicyError(f"there is no policy {name!r}; choose one of {', '.join([*EDGES, '1D-edge', '1D-vertex'])}")
    if masters is None:
        masters = "dealt" if vertex_order == "degree" else "contiguous"
    return Policy(name, dealt if masters == "dealt" else contiguous_edges, EDGES[name])
