"""The policies that come with oocgraph, by name: nothing but pairs of functions that a user could have written.

In: a name and the order of a store's vertices. Out: a `Policy`.

====== ====== ===== ==========================================================
name   master edges in CuSP's words
====== ====== ===== ==========================================================
EEC    C      S     edge-balanced edge cut: ContiguousEB, Source
HVC    C      H     hybrid vertex cut: ContiguousEB, Hybrid (PowerLyra)
CVC    C      K     Cartesian vertex cut: ContiguousEB, Cartesian (Boman)
FEC    F      S     Fennel edge cut: FennelEB, Source
GVC    F      H     Ginger vertex cut: FennelEB, Hybrid (PowerLyra's Ginger)
SVC    F      K     Sugar vertex cut: FennelEB, Cartesian
====== ====== ===== ==========================================================

``1D-edge`` and ``1D-vertex`` are ranges of equal edges and of equal vertices whatever the order, with S. ``1d`` and ``2d`` are those of
one- and two-dimensional traversals. With P partitions, V vertices and E stored entries:

- ``1d``: vertices in P sets; set p and all its out-edges are partition p's: C with S.
- ``chunk``: contiguous chunks of about equal ``alpha * V + E`` with S, cut at whole pages of vertices (`chunked`): Gemini's.
- ``2d``: a grid of ``rows`` x ``columns`` partitions, P(i, j) the one at row i, number ``i * columns + j``. Vertices are in ``rows`` sets.
  P(i, j) has the edges from set i to the sets k with ``k mod columns == j``; the master of set k is P(k, k mod columns), on the
  diagonal where the grid is square. So the candidates of a set all come from one column, and its new frontier goes along one row.
  The grid is the most square one with ``rows >= columns`` (`grid_columns`): 2 x 2, 3 x 2, 4 x 2; of a prime number of partitions it is
  P x 1, which is ``1d``. Where rows are no multiple of columns, a column has a set more than another (3 x 2: two sets and one, so twice
  the edges); 4, 8, 9 and 16 are even.

Counted on a Kronecker graph of scale 18 (173,841 vertices with edges, 7.6 M entries), one search: KiB and messages of all parts.

==== =============== ==============================
P    ``1d``          ``2d``: gather, broadcast
==== =============== ==============================
4    1,553 in 54     625 in 10, 41 in 11
9    3,155 in 299    1,124 in 26, 72 in 28
16   4,712 in 975    1,553 in 54, 98 in 56
==== =============== ==============================

The gather of R x C partitions is the exchange of ``1d`` with R, whatever C.

With n vertices, m stored entries, P partitions:

- C, contiguous: `contiguous_edges`. On a degree-ordered store the hubs are all at the front, and equal edges leave the last partition
  3.7 times its share of vertices with P = 4, 6.5 times with P = 8; so there C means `block_cyclic`.
- F, Fennel's streaming score: `fennel`. S, H, K: `to_source`, `hybrid`, `cartesian`.

Constants are those of the public Galois code (``libcusp/include/galois/graphs/GenericPartitioners.h``, `GenericHVC`, `GenericCVC`,
`FennelP`, `GingerP`, `SugarP`): gamma 1.5, both thresholds 1,000, the grid.

Copies of a vertex (replication factor), P = 4, Debian's dependencies, undirected in degree order: EEC 2.98, HVC 2.79, CVC 2.69, FEC 2.06,
GVC 1.78, SVC 2.01. In the order of its names, contiguous ranges are hard to beat: EEC 2.18, FEC 2.28, GVC 1.99. F weighs load softly:
where it helps least (a Kronecker graph in random order) its largest partition has 2.1 times the mean edges.

References
----------
- Hoang, Dathathri, Gill, Pingali: CuSP: A Customizable Streaming Edge Partitioner for Distributed Graph Analytics. IPDPS 2019,
  algorithms 1 and 2 (the functions), table II (the policies). Differs from it in: ranges are exact shares, ``x * P // total``, not
  blocks of ``ceil(total / P)``, so that no partition of a small graph stays empty; ties of F go to the first partition.
- Tsourakakis, Gkantsidis, Radunovic, Vojnovic: FENNEL: Streaming Graph Partitioning for Massive Scale Graphs. WSDM 2014.
- Chen, Shi, Chen, Guan, Zang: PowerLyra: Differentiated Graph Computation and Partitioning on Skewed Graphs. EuroSys 2015.
- Buluç, Madduri: Parallel Breadth-First Search on Distributed Memory Systems. SC 2011, sections 3.1 and 3.2. ``2d`` differs from it in:
  the diagonal alone owns vertices, so that gathering and dropping the visited is one part's work and one message from each of its column.
- Yoo, Chow, Henderson, McLendon, Hendrickson, Çatalyürek: A Scalable Distributed Parallel Breadth-First Search Algorithm on
  BlueGene/L. SC 2005.
- Zhu, Chen, Zheng, Ma: Gemini: A Computation-Centric Distributed Graph Processing System. OSDI 2016, section 4 (chunks, locality-aware).
  ``chunk`` differs from it in: it gives chunk p what lies in the p-th share of the whole, where Gemini walks over the vertices and
  divides what is left by the chunks that are left; so any worker finds the master of any vertex at once. No chunk stays empty.
  E counts out-edges, which go with their source.
- Boman, Devine, Rajamanickam: Scalable Matrix Computations on Large Scale-Free Graphs Using 2D Graph Partitioning. SC 2013.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from oocgraph.errors import PolicyError
from oocgraph.partition.policy import Policy
from oocgraph.types import Array

DEGREE_THRESHOLD = 1000
"""Out-degree above which H gives an edge to its destination's master, and F leaves a vertex to C (Galois; PowerLyra's default is 100)."""

FENNEL_GAMMA = 1.5
"""Exponent of F's cost of load (Fennel, section 5; Galois)."""

FENNEL_LOADS = np.dtype([("num_vertices", np.int64), ("num_edges", np.int64)])
"""What F keeps of each partition: vertices that it was given, and their out-edges."""

BLOCKS_PER_PARTITION = 64
"""Blocks that block-cyclic masters cut for each partition: one block more or less is 1.6 % of its share."""

PAGE_VERTICES = 4096
"""Vertices at whose multiples chunks are cut: Gemini keeps vertex data on the NUMA node of its chunk, and a page of memory is on one node
(its ``PAGESIZE``, of vertices: 4,096 bytes where data is a byte a vertex)."""

PAGES_PER_CHUNK = 8
"""Pages of `PAGE_VERTICES` that a chunk must have on average; a smaller graph is cut at any vertex. A page more or less is then an eighth
of a chunk's vertices at most."""

CHUNK_ALPHA = 8
"""Weight of a vertex in entries, for each partition but one (Gemini: alpha is 8 (P - 1))."""

HUBS_PER_BLOCK = 8
"""A vertex of more than this part of a block's weight is assigned alone, so that blocks differ by an eighth of one at most."""


def edge_range(prop: Any, v: Any, num_sets: Any) -> Any:
    """Cut vertices into ranges of about equal edges: ``first_out_edge(v) * num_sets // (m + 1)``."""
    return prop.first_out_edge(v) * num_sets // (prop.num_edges + 1)


def contiguous_edges(prop: Any, v: Any) -> Any:
    """C: ranges of about equal edges (CuSP's ContiguousEB)."""
    return edge_range(prop, v, prop.num_partitions)


def contiguous_vertices(prop: Any, v: Any) -> Any:
    """Ranges of equal numbers of vertices, ``v * P // n`` (CuSP's Contiguous)."""
    return v * prop.num_partitions // prop.num_vertices


def chunk_page_vertices(num_vertices: Any, num_partitions: Any) -> Any:
    """Return the vertices of a page of ``chunk``: `PAGE_VERTICES`, or 1 of a graph with fewer than `PAGES_PER_CHUNK` pages a chunk.

    Examples
    --------
    >>> chunk_page_vertices(1_000_000, 4), chunk_page_vertices(100_000, 4)
    (4096, 1)
    """
    return PAGE_VERTICES if num_vertices >= PAGES_PER_CHUNK * PAGE_VERTICES * num_partitions else 1


def chunk_share(prop: Any, v: Any) -> Any:
    """Return in which of P equal shares of ``alpha * V + E`` vertex `v` begins; of one partition alpha is 0, and some begin at E."""
    alpha = CHUNK_ALPHA * (prop.num_partitions - 1)
    total = alpha * prop.num_vertices + prop.num_edges
    return min((alpha * v + prop.first_out_edge(v)) * prop.num_partitions // total, prop.num_partitions - 1)


def chunked(prop: Any, v: Any) -> Any:
    """Cut vertices into contiguous chunks of about equal ``alpha * V + E``, at whole pages (`chunk_page_vertices`).

    A page belongs to the share in which it begins (`chunk_share`). Where pages weigh more than a share (hubs), shares stay without one, so
    chunks are numbered without gaps: a page is at most one chunk behind the page before, and the last pages have a chunk each if
    need be. No chunk is empty, as there are no fewer pages than partitions; none weighs more than a share and the heaviest page.
    A vertex looks at as many pages as its chunk's number, at most. On a degree-ordered store the first pages have the hubs; `block_cyclic`
    divides these better.
    """
    size = chunk_page_vertices(prop.num_vertices, prop.num_partitions)
    page, num_pages = v // size, (prop.num_vertices + size - 1) // size
    chunk, back = chunk_share(prop, page * size), 1
    while back < chunk:  # the chunk of the page before and one more, and so on: the smallest counts
        chunk = min(chunk, chunk_share(prop, (page - back) * size) + back)
        back += 1
    return max(chunk, prop.num_partitions - num_pages + page)


def block_cyclic_set(prop: Any, v: Any, num_sets: Any) -> Any:
    """Assign blocks of equal weight to sets, in boustrophedon order (0 .. k-1, k-1 .. 0), for a degree-ordered store.

    A vertex weighs its out-degree and the mean degree, ``w = 1 + m // n``, so that vertices have half of all weight; it stands at
    ``first_out_edge(v) + w * v``; a block is ``1 / (64 * num_sets)`` of the whole. A vertex above an eighth of a block is assigned alone,
    by its number. Nothing is looked up but the vertex itself, so every worker gives the same answer at once.
    """
    weight = 1 + prop.num_edges // prop.num_vertices
    block = 1 + (prop.num_edges + weight * prop.num_vertices) // (BLOCKS_PER_PARTITION * num_sets)
    alone = (prop.out_degree(v) + weight) * HUBS_PER_BLOCK > block
    at = v if alone else (prop.first_out_edge(v) + weight * v) // block
    turn, place = at // num_sets, at % num_sets
    return num_sets - 1 - place if turn & 1 else place


def block_cyclic(prop: Any, v: Any) -> Any:
    """C on a degree-ordered store: `block_cyclic_set` of P.

    Measured, Kronecker graph of scale 20 in degree order, EEC, largest share over mean, edges / vertices: 1.003 / 1.001 for P = 4,
    1.015 / 1.002 for P = 8. A hub that is a partition's quarter cannot be made up for: Debian's dependencies, P = 8: 1.17 / 1.001.
    """
    return block_cyclic_set(prop, v, prop.num_partitions)


def fennel(prop: Any, v: Any, m_state: Any, masters: Any) -> Any:
    """F: the partition p of the largest ``|neighbours of v in p| - alpha * gamma * load(p) ** (gamma - 1)``; the first of equal ones.

    ``alpha = m * P ** (gamma - 1) / n ** gamma`` and ``load(p) = (vertices(p) + edges(p) * n / m) / 2``, of what F itself has
    given to p before (CuSP's FennelEB).
    """
    count = np.zeros(prop.num_partitions, np.int64)
    for u in prop.neighbours(v):
        if masters[u] >= 0:
            count[masters[u]] += 1
    n, m = float(prop.num_vertices), float(prop.num_edges)
    cost = FENNEL_GAMMA * m * prop.num_partitions ** (FENNEL_GAMMA - 1) / n**FENNEL_GAMMA
    vertices, edges = m_state["num_vertices"], m_state["num_edges"]
    best, best_score = 0, -np.inf
    for p in range(prop.num_partitions):
        score = count[p] - cost * ((vertices[p] + edges[p] * (n / m)) / 2) ** (FENNEL_GAMMA - 1)
        if score > best_score:
            best, best_score = p, score
    vertices[best] += 1
    edges[best] += prop.out_degree(v)
    return best


def fennel_or_contiguous(prop: Any, v: Any, m_state: Any, masters: Any) -> Any:
    """F; vertices above `DEGREE_THRESHOLD` in contiguous ranges."""
    return contiguous_edges(prop, v) if prop.out_degree(v) > DEGREE_THRESHOLD else fennel(prop, v, m_state, masters)


def fennel_or_block_cyclic(prop: Any, v: Any, m_state: Any, masters: Any) -> Any:
    """F; vertices above `DEGREE_THRESHOLD` block-cyclic."""
    return block_cyclic(prop, v) if prop.out_degree(v) > DEGREE_THRESHOLD else fennel(prop, v, m_state, masters)


def fennel_loads(prop: Any) -> Array:
    """Return F's initial state: nothing given to any partition."""
    return np.zeros(prop.num_partitions, FENNEL_LOADS)


def to_source(prop: Any, src: Any, dst: Any, src_master: Any, dst_master: Any) -> Any:
    """S: to the source's master."""
    return src_master


def hybrid(prop: Any, src: Any, dst: Any, src_master: Any, dst_master: Any) -> Any:
    """H: to the destination's master if the source's out-degree is above `DEGREE_THRESHOLD`, else to the source's."""
    return dst_master if prop.out_degree(src) > DEGREE_THRESHOLD else src_master


def grid_columns(num_partitions: Any) -> Any:
    """Return the columns of K's grid: the largest divisor of P that is at most its square root; it has ``P // columns`` rows.

    Examples
    --------
    >>> [(p // grid_columns(p), grid_columns(p)) for p in (1, 2, 4, 6, 7, 8)]
    [(1, 1), (2, 1), (2, 2), (3, 2), (7, 1), (4, 2)]
    """
    columns = int(num_partitions**0.5)
    while num_partitions % columns:
        columns -= 1
    return columns


def cartesian(prop: Any, src: Any, dst: Any, src_master: Any, dst_master: Any) -> Any:
    """K: in a grid of partitions, the row of the source's master and the column of the destination's.

    Partition p is at row ``p // columns`` (blocked), column ``p % columns`` (cyclic); see `grid_columns`.
    """
    columns = grid_columns(prop.num_partitions)
    return src_master // columns * columns + dst_master % columns


def block_cyclic_2d(prop: Any, v: Any) -> Any:
    """Return the diagonal partition of the set of a vertex of a degree-ordered store."""
    columns = grid_columns(prop.num_partitions)
    k = block_cyclic_set(prop, v, prop.num_partitions // columns)
    return k * columns + k % columns


def ranged_2d(prop: Any, v: Any) -> Any:
    """Return the diagonal partition of the set of a vertex of another store."""
    columns = grid_columns(prop.num_partitions)
    k = edge_range(prop, v, prop.num_partitions // columns)
    return k * columns + k % columns


Dimension = Literal["1d", "2d"]

DIMENSIONS: tuple[Dimension, ...] = ("1d", "2d")
"""Policies of traversals, by name."""

EDGES: dict[str, Callable[..., int]] = {
    "EEC": to_source, "HVC": hybrid, "CVC": cartesian, "FEC": to_source, "GVC": hybrid, "SVC": cartesian,
}  # fmt: skip

RANGES: dict[str, Callable[..., int]] = {"1D-edge": contiguous_edges, "1D-vertex": contiguous_vertices, "chunk": chunked}

POLICY_NAMES = (*EDGES, *RANGES, *DIMENSIONS)
"""Names that `named_policy` knows."""


def named_policy(name: str, *, vertex_order: str) -> Policy:
    """Return a policy by its name.

    Parameters
    ----------
    name
        One of `POLICY_NAMES`; upper or lower case.
    vertex_order
        Of the store. Where it is ``degree``, C is block-cyclic blocks, else contiguous ranges.

    Raises
    ------
    PolicyError
        There is no such policy.

    Examples
    --------
    >>> named_policy("cvc", vertex_order="degree").get_master.__name__
    'block_cyclic'
    """
    known = {one.lower(): one for one in POLICY_NAMES}.get(name.lower())
    if known is None:
        raise PolicyError(f"there is no policy {name!r}; choose one of {', '.join(POLICY_NAMES)}")
    if known in RANGES:
        return Policy(known, RANGES[known], to_source)
    is_block_cyclic = vertex_order == "degree"
    if known in {"FEC", "GVC", "SVC"}:
        return Policy(known, fennel_or_block_cyclic if is_block_cyclic else fennel_or_contiguous, EDGES[known], master_state=fennel_loads)
    if known == "2d":
        return Policy(known, block_cyclic_2d if is_block_cyclic else ranged_2d, cartesian)  # the column of k's master is k mod columns
    return Policy(known, block_cyclic if is_block_cyclic else contiguous_edges, EDGES.get(known, to_source))
