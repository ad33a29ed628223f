"""Communities by label propagation, out of core: two sweeps an iteration, in each of which half of the vertices look at their neighbours.

1. Each vertex has a label of its own.
2. A hash of the seed, the iteration and the vertex puts each vertex into one of two halves. The vertices of a half take the label that most
   of their neighbours had before; of several a hash chooses one, unless the own label is among them. Then those of the other half do.
3. A vertex of whose neighbours none has another label than when it last looked need not look. The run ends when none must: each has a label
   that is among the most frequent of its neighbours.

Raghavan, Albert, Kumara, "Near linear time algorithm to detect community structures in large-scale networks", Physical Review E 76, 2007.
Differs from the paper in: half of the vertices at once in place of one after the other, so that the labels depend on the seed alone. (All
at once would never end where two vertices exchange their labels.)
"""

from __future__ import annotations

import os

import numpy as np

from oocgraph.algorithms.modularity import MOST_SEED, PARTS, STEP_SECONDS, modularity_calls, modularity_of
from oocgraph.algorithms.pagerank_arguments import chosen_column
from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.sweeping import ITERATIONS, Call, check_iterations, check_undirected, check_weights
from oocgraph.arguments import known_keywords
from oocgraph.engine.naming import name_by_smallest_id, naming_bytes, naming_calls
from oocgraph.engine.sweeps import Needs, Sweeps, longest_list
from oocgraph.errors import ConvergenceError
from oocgraph.kernels import communities as kernels
from oocgraph.kernels.components import begin
from oocgraph.resources import Resources
from oocgraph.results.communities import LabelPropagationResult
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption


@known_keywords
def label_propagation(
    graph: CSRStore | str | os.PathLike[str],
    *,
    seed: int = 1,
    max_iter: int = 100,
    weight: str | bool | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> LabelPropagationResult:
    """Find communities in which every vertex belongs to one that is among the most frequent of its neighbours.

    Parameters
    ----------
    graph
        An undirected graph store or its path. A duplicate that the build has kept counts again, and a self-loop as a neighbour.
    seed
        The same seed gives the same communities, whatever the threads and the budget.
    max_iter
        Iterations at most.
    weight
        Edge column of the weights; True: the graph's weight; False: every edge counts 1; by default the graph's weight, if it has one.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources, and keeps edges between calls.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called with ("iterations", done, most); True draws a bar.

    Returns
    -------
    LabelPropagationResult
        Its column is `community`: the smallest id of the community; a vertex without edges is one of its own.

    Raises
    ------
    ConvergenceError
        After `max_iter` iterations there are vertices that would change.
    ArgumentError
        An argument is invalid, a weight is negative, infinite or NaN, their sum too large or small, or the graph is directed.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 12 bytes for each vertex that has edges (18 of more than 2**32 - 2), for each thread and two more 20 to 28 bytes for each
    neighbour of the longest list and a piece of 2 MiB of edges (or as long as that list), and what the budget has left for edges that stay.
    An iteration reads the others twice, and the modularity once more.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = label_propagation(build_csr(([1, 1, 2, 4, 4, 5, 3], [2, 3, 3, 5, 6, 6, 4]), f"{folder}/g.zarr"))
    ...     result.community.tolist(), result.num_communities
    ([1, 1, 1, 4, 4, 4], 2)
    """
    check_iterations(0, max_iter)
    call = Call("label_propagation", graph, runtime, resources, memory_budget, progress)
    check_undirected("label_propagation", call.store)
    column, n = chosen_column(call.store, weight), call.store.num_rows

    def compute(sweeps: Sweeps) -> tuple[Array, int, int, float]:
        label, iterations = _propagate(sweeps, column, seed, max_iter)
        count = name_by_smallest_id(
            call.store, label, np.empty_like(label), n, lambda each: sweeps.vertices(each, STEP_SECONDS * n)
        )  # fmt: skip
        return label, count, iterations, modularity_of(sweeps, column, label, np.empty(n))

    (label, count, iterations, modularity), fields = call.run(_needs(call.store, column), compute)
    count += call.store.attributes.num_input_vertices - n
    details = {"num_communities": count, "modularity": modularity, "num_iterations": iterations}
    return LabelPropagationResult(stored={"community": label}, details=details, **fields)


def _propagate(sweeps: Sweeps, column: str | None, seed: int, max_iter: int) -> tuple[Array, int]:
    """Return a label for each vertex, and how many iterations that took."""
    n, kind = sweeps.store.num_rows, sweeps.store.index_dtype
    label, new = np.empty(n, kind), np.empty(n, kind)
    pending, woken = np.ones(n, np.uint8), np.zeros(n, np.uint8)
    sweeps.vertices(lambda start, stop: begin(label, start, stop), STEP_SECONDS * n)
    for iteration in range(1, max_iter + 1):
        salt = np.uint64(kernels.salt_of(seed & MOST_SEED, iteration))
        for part in range(PARTS):
            found = sweeps.pull(kernels.vote, [label, woken], [new, pending], [salt, part, PARTS], has_scratch=True)
            check_weights(sweeps.store, column, (least for _, least in found))
            label, new = new, label
            num_pending = sum(sweeps.vertices(lambda start, stop: int(kernels.wake(pending, woken, start, stop)), STEP_SECONDS * n))
        sweeps.progress(ITERATIONS, iteration, max_iter)
        if not num_pending:
            return label, iteration
    raise ConvergenceError(
        f"label propagation has not converged: after {max_iter} iterations {num_pending} vertices must look at their neighbours again; "
        "raise max_iter, or choose another seed"
    )


def _needs(store: CSRStore, column: str | None) -> Needs:
    """Return what a run needs: labels twice and marks twice, then labels and names or sums."""
    n, index, longest = store.num_rows, np.empty(0, store.index_dtype), longest_list(store)
    marks, keys, sums, salt = np.empty(0, np.uint8), index, np.empty(0), np.uint64(0)
    return Needs(
        vectors={"labels and marks": n * max(2 * index.itemsize + 2, index.itemsize + 8), "names": naming_bytes(store)},
        result_bytes=n * index.itemsize, column=column,
        kernels=[(kernels.vote, index, marks, index, marks, salt, 0, 0, index, keys, sums), *modularity_calls(store)],
        vertex_kernels=[
            (kernels.wake, marks, marks, 0, 0), (begin, index, 0, 0), (kernels.salt_of, 0, 0),
            (kernels.sum_squares_of_groups, index, sums), *naming_calls(store),
        ],
        scratch=kernels.scratch_of(longest, index.dtype), longest_row=longest,
    )  # fmt: skip
