"""The policies of one- and two-dimensional traversals, ``1d`` and ``2d``: two functions each, as anybody could write them.

In: a name and the order of a store's vertices. Out: a `Policy`. With P partitions:

- ``1d``: vertices in P sets; set p and all its out-edges are partition p's.
- ``2d``: a grid of ``rows`` x ``columns`` partitions, P(i, j) the one at row i, number ``i * columns + j``. Vertices are in ``rows`` sets.
  P(i, j) has the edges from set i to the sets k with ``k mod columns == j``; the master of set k is P(k, k mod columns), on the
  diagonal where the grid is square. So the candidates of a set all come from one column, and its new frontier goes along one row.
  The grid is the most square one with ``rows >= columns`` (`oocgraph.partition.policies.grid_columns`): 2 x 2, 3 x 2, 4 x 2; of a
  prime number of partitions it is P x 1, which is ``1d``. Where rows are no multiple of columns, a column has a set more than another
  (3 x 2: two sets and one, so twice the edges); 4, 8, 9 and 16 are even.

Counted on a Kronecker graph of scale 18 (173,841 vertices with edges, 7.6 M entries), one search: KiB and messages of all members.

==== =============== ==============================
P    ``1d``          ``2d``: gather, broadcast
==== =============== ==============================
4    1,553 in 54     625 in 10, 41 in 11
9    3,155 in 299    1,124 in 26, 72 in 28
16   4,712 in 975    1,553 in 54, 98 in 56
==== =============== ==============================

The gather of R x C partitions is the exchange of ``1d`` with R, whatever C.

Sets have about equal numbers of edges and vertices: blocks of about equal weight, dealt in snake order, where the store is in degree order,
else ranges of equal edges, as `oocgraph.partition.policies` has them for P sets.

References
----------
- Buluç, Madduri: Parallel Breadth-First Search on Distributed Memory Systems. SC 2011, sections 3.1 and 3.2. Differs from it in: the
  diagonal alone owns vertices, so that gathering and dropping the visited is one member's work and one message from each of its column.
- Yoo, Chow, Henderson, McLendon, Hendrickson, Çatalyürek: A Scalable Distributed Parallel Breadth-First Search Algorithm on
  BlueGene/L. SC 2005.
"""

from __future__ import annotations

from typing import Any, Literal

from oocgraph.partition.policies import cartesian, contiguous_edges, dealt, dealt_set, edge_range, grid_columns, to_source
from oocgraph.partition.policy import Policy

Dimension = Literal["1d", "2d"]

DIMENSIONS: tuple[Dimension, ...] = ("1d", "2d")
"""Names of the policies."""


def dealt_2d(prop: Any, v: Any) -> Any:
    """Return the diagonal partition of the set of a vertex of a degree-ordered store."""
    columns = grid_columns(prop.num_partitions)
    k = dealt_set(prop, v, prop.num_partitions // columns)
    return k * columns + k % columns


def ranged_2d(prop: Any, v: Any) -> Any:
    """Return the diagonal partition of the set of a vertex of another store."""
    columns = grid_columns(prop.num_partitions)
    k = edge_range(prop, v, prop.num_partitions // columns)
    return k * columns + k % columns


def grid_policy(dimension: Dimension, vertex_order: str) -> Policy:
    """Return the policy of a one- or two-dimensional traversal.

    Examples
    --------
    >>> grid_policy("2d", "degree").get_master.__name__
    'dealt_2d'
    """
    is_dealt = vertex_order == "degree"
    if dimension == "1d":
        return Policy("1d", dealt if is_dealt else contiguous_edges, to_source)
    return Policy("2d", dealt_2d if is_dealt else ranged_2d, cartesian)  # the column of k's master is k mod columns
