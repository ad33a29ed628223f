"""Power iterations of an adjacency matrix, out of core: what HITS, Katz's and the eigenvector centrality share.

In: a call, the column of the weights. Out: `Power`: one vector after the other, each of them a sweep over all edges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oocgraph.algorithms.sweeping import ITERATIONS, Call, check_weights
from oocgraph.engine.sweeps import Lists, Needs, Sweeps
from oocgraph.errors import ConvergenceError
from oocgraph.kernels import sweeps as kernels
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

RESCALE_SECONDS = 2e-9
"""About what a vertex takes when a vector is multiplied by a number."""


def power_needs(store: CSRStore, column: str | None, *, num_vectors: int, num_results: int, lists: tuple[Lists, ...] = ("in",)) -> Needs:
    """Return what a power iteration needs that holds so many vectors of float64."""
    vector, empty = 8 * store.num_rows, np.empty(0)
    return Needs(
        vectors={"vectors": num_vectors * vector}, result_bytes=num_results * vector, lists=lists, column=column,
        kernels=[(kernels.multiply, empty, empty, empty, 0.0, 0.0, 0.0)], vertex_kernels=[(kernels.rescale, empty, empty, 0, 0, 0.0)],
    )  # fmt: skip


class Sums(NamedTuple):
    """Of a vector: the sum of the absolute changes of its elements, their sum, and the sum of their squares."""

    change: float
    total: float
    squares: float


class Power(NamedTuple):
    """One run.

    Attributes
    ----------
    sweeps : Sweeps
    column : str or None
        Of the weights.
    """

    sweeps: Sweeps
    column: str | None

    def multiply(
        self, x: Array, before: Array, y: Array, *, scale: float = 1.0, shift: float = 0.0, keep: float = 0.0, lists: Lists = "in"
    ) -> Sums:  # fmt: skip
        """Set ``y = scale * A x + shift + keep * before``, A being the transposed adjacency matrix (``in``), or itself (``out``).

        Raises
        ------
        ArgumentError
            A weight is negative, infinite or NaN.
        """
        found = self.sweeps.pull(kernels.multiply, [x], [before, y], [scale, shift, keep], lists=lists)
        *sums, least = (tuple(one[i] for one in found) for i in range(4))
        check_weights(self.sweeps.store, self.column, least)
        return Sums(*(self.sweeps.add_up(one) for one in sums))

    def rescale(self, y: Array, before: Array, factor: float) -> float:
        """Multiply a vector by a number; returns the sum of its absolute differences from `before`."""
        call = self.sweeps.vertices(lambda a, z: kernels.rescale(y, before, a, z, factor), RESCALE_SECONDS * y.size)
        return self.sweeps.add_up(call)


def converged(what: str, change: float, enough: float, iteration: int, max_iter: int, power: Power, remedy: str = "") -> bool:
    """Whether a run has ended, after so many iterations.

    Raises
    ------
    ConvergenceError
        It never will: values are not finite, or it was the last iteration, and the values still change by more than `enough` (0: never).
    """
    power.sweeps.progress(ITERATIONS, iteration, max_iter)
    if np.isfinite(change) and (change < enough or (iteration == max_iter and not enough)):
        return True
    if iteration == max_iter or not np.isfinite(change):
        raise ConvergenceError(
            f"{what} has not converged: after {iteration} iterations its values still change by {change:.3g}, and tol asks for less than "
            f"{enough:.3g}; {remedy}raise max_iter or tol"
        )
    return False


def start(call: Call, value: float, num_vectors: int) -> list[Array]:
    """Return vectors, the first of which has `value` everywhere."""
    n = call.store.num_rows
    first: Any = np.full(n, value)
    return [first, *(np.zeros(n) for _ in range(num_vectors - 1))]
