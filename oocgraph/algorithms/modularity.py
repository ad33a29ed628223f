"""Modularity of communities that were found: one sweep over all edges, which shares nothing with how they were found.

And what both ways to find them have in common.

Newman, "Finding and evaluating community structure in networks", Physical Review E 69, 2004; with NetworkX's conventions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.algorithms.pagerank_arguments import chosen_column
from oocgraph.algorithms.sweeping import Call, check_weights
from oocgraph.engine.sweeps import Needs, Sweeps
from oocgraph.errors import ArgumentError
from oocgraph.kernels import communities as kernels
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

MOST_SEED = 2**63 - 1
"""Of larger seeds the last 63 bits count."""

PARTS = 2
"""Parts of the vertices, one of which looks at its neighbours in a sweep."""

STEP_SECONDS = 1e-9
"""About what a vertex takes in a step on all vertices."""


LEAST_TOTAL = 1e-150
"""Least sum of weights but 0; the square of a smaller one, or of a larger one than 1 / this, is no number."""


def modularity_calls(store: CSRStore) -> list[tuple[Any, ...]]:
    """Return the kernel, as `oocgraph.engine.sweeps.Needs` has it."""
    return [(kernels.weigh, np.empty(0, store.index_dtype), np.empty(0))]


def find_modularity(store: CSRStore, group: Array, *, weight: str | bool | None, resolution: float, resources: Resources) -> float:
    """Return the modularity of communities of an undirected graph; 0 where there is no weight.

    Parameters
    ----------
    group : (num_vertices,) index dtype
        Store number of the vertex that the community of each is named after.
    weight, resolution, resources
        As of `oocgraph.louvain`.

    Raises
    ------
    ArgumentError
        A weight is negative, infinite or NaN, or their sum too large or small.
    BudgetError
        The budget is too small; the message names the smallest that works.
    """
    call, sums = Call("louvain", store, None, resources, None, None), np.empty(0)
    column = chosen_column(store, weight)
    needs = Needs(
        vectors={"communities and sums": store.num_rows * (8 + group.itemsize)}, result_bytes=0, column=column,
        kernels=modularity_calls(store),
        vertex_kernels=[(kernels.sum_squares_of_groups, np.empty(0, store.index_dtype), sums)],
    )  # fmt: skip
    found, _ = call.run(needs, lambda sweeps: modularity_of(sweeps, column, group, np.empty(store.num_rows), resolution))
    return found


def modularity_of(sweeps: Sweeps, column: str | None, group: Array, strength: Array, resolution: float = 1.0) -> float:
    """Return the modularity of communities, each named after one of its vertices; 0 where there is no weight.

    Parameters
    ----------
    group : (num_vertices,) index dtype
        Store number of the vertex that the community is named after.
    strength : (num_vertices,) float64
        Room, used up.
    """
    inner, least = zip(*sweeps.pull(kernels.weigh, [group], [strength]), strict=True)
    check_weights(sweeps.store, column, least)
    total = checked_total(sweeps.store, column, float(np.sum(strength)))
    if not total:
        return 0.0
    return sweeps.add_up(inner) / total - resolution * float(kernels.sum_squares_of_groups(group, strength)) / total**2


def checked_total(store: CSRStore, column: str | None, total: float) -> float:
    """Return the sum of all weights.

    Raises
    ------
    ArgumentError
        It is so large, or so small, that float64 does not hold its square.
    """
    if total and not LEAST_TOTAL <= total <= 1 / LEAST_TOTAL:
        named = "weights" if column is None else store.attributes.input_column(column)
        raise ArgumentError(
            f"{store.url}: the sum of {named} is {total:.3g}, whose square float64 does not hold; scale the weights, or leave them out "
            "(weight=False)"
        )
    return total
