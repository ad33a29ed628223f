"""Communities by Louvain's method, out of core: sweeps that move vertices, then the graph of the communities, in a store of its own.

1. Each vertex is a community of its own.
2. A hash of the seed, the round and the vertex puts each vertex into one of two halves. The vertices of a half that are in a batch of rows
   move to the community of a neighbour where modularity gains most, as if each alone did; then those of the next batch; then the other
   half, and so on, as long as the gains of both halves together are worth it. A vertex of whose neighbours none has moved since it last
   looked need not look.
3. The communities become the vertices of another graph, and 2. begins again there, until modularity does not grow any more.
4. All of it is done once more, beginning at the vertices with the communities found: a vertex that went with its community may leave it.

Blondel, Guillaume, Lambiotte, Lefebvre, "Fast unfolding of communities in large networks", Journal of Statistical Mechanics, 2008.
Differs from the paper in: many vertices at once in place of one after the other, so that the communities depend on the seed alone; and in
step 4, which makes up for that: modularity was 0.96 to 1.02 of NetworkX's without it, and 1.00 to 1.06 with it (random graphs, grids,
Kronecker graphs). All vertices at once change places for ever: that gave less than 0.2 of it on half of these. Without batches a Kronecker
graph of scale 20 came to 0.94 of the modularity.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oocgraph.algorithms.modularity import MOST_SEED, PARTS, STEP_SECONDS, checked_total, modularity_calls, modularity_of
from oocgraph.algorithms.pagerank_arguments import chosen_column
from oocgraph.algorithms.runtimes import Runtime
from oocgraph.algorithms.sweeping import Call, check_undirected, check_weights
from oocgraph.arguments import check_number, known_keywords
from oocgraph.engine import quotient as quotients
from oocgraph.engine.naming import name_by_smallest_id, naming_bytes, naming_calls
from oocgraph.engine.sweeps import Needs, Sweeps, longest_list
from oocgraph.kernels import communities as kernels
from oocgraph.kernels.components import begin
from oocgraph.resources import Resources
from oocgraph.results.communities import LouvainResult
from oocgraph.sparse.edge_stream import READ_AHEAD
from oocgraph.store.graph import CSRStore
from oocgraph.store.in_memory import held_bytes
from oocgraph.store.layout import WEIGHT
from oocgraph.types import Array, ProgressOption

if TYPE_CHECKING:
    from pathlib import Path

REPEATS = 2
"""Times that vertices are moved by themselves, and then their communities; a third time won 0.0 to 0.3 % of modularity."""

MOST_ROUNDS = 32
"""Times that both halves of a graph's vertices are swept, at most; NetworKit has the same bound."""

LEAST_GAIN = 1e-3
"""Of modularity, by both halves of the vertices together: with less, their communities become vertices. With 1e-5 a Kronecker graph took
1.6 times the sweeps, and gained 0.5 % of modularity."""

WEIGHT_BYTES = 4 << 20
"""Of the weights of a piece of a graph of communities, which are charged before there is one: other such graphs have weights like it."""


@known_keywords
def louvain(
    graph: CSRStore | str | os.PathLike[str],
    *,
    resolution: float = 1.0,
    threshold: float = 1e-7,
    seed: int = 1,
    weight: str | bool | None = None,
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> LouvainResult:
    """Find communities of high modularity.

    Parameters
    ----------
    graph
        An undirected graph store or its path.
    resolution
        Above 1 communities get smaller, below 1 larger; 0 or more.
    threshold
        The run ends when modularity grows by no more.
    seed
        The same seed gives the same communities, whatever the threads and the budget.
    weight
        Edge column of the weights; True: the graph's weight; False: every edge counts 1; by default the graph's weight, if it has one.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources, and keeps edges between calls.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called with ("sweeps", done, 0), for each graph of communities again; True draws a bar.

    Returns
    -------
    LouvainResult
        Its column is `community`: the smallest id of the community; a vertex without edges is one of its own.

    Raises
    ------
    ArgumentError
        An argument is invalid, a weight is negative, infinite or NaN, their sum too large or small, or the graph is directed; or it is
        remote, and ``oocgraph.result-folder`` not set.
    BudgetError
        The budget is too small; the message names the smallest that works.
    OutputError
        Graphs of communities cannot be written: beside the graph, or to ``oocgraph.result-folder``.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 30 bytes for each vertex that has edges (42 of more than 2**32 - 2); 32 MiB, and 27 to 35 MiB for each of up to four
    threads, to build graphs of communities; for each thread and two more 20 to 28 bytes for each neighbour of the longest list, and a piece
    of 2 MiB of edges (or as long as that list) and 4 MiB of weights; and what the budget has left for edges that stay. A sweep reads the
    others once.
    Disk: graphs of communities, 24 bytes for each edge between two of them, and as much for a time to build them. Those of a graph in
    memory are in memory, too, instead of what builds take: 24 bytes for each of its edges. Those of a store are where all of its edges
    stay in memory and there is room for as much.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from oocgraph import build_csr
    >>> with TemporaryDirectory() as folder:
    ...     result = louvain(build_csr(([1, 1, 2, 4, 4, 5, 3], [2, 3, 3, 5, 6, 6, 4]), f"{folder}/g.zarr"))
    ...     result.community.tolist(), round(result.modularity, 3)
    ([1, 1, 1, 4, 4, 4], 0.357)
    """
    check_number("resolution", resolution, low=0)
    check_number("threshold", threshold, low=0)
    call = Call("louvain", graph, runtime, resources, memory_budget, progress)
    check_undirected("louvain", call.store)
    run = _Run(call, chosen_column(call.store, weight), resolution, threshold, seed & MOST_SEED, [])
    quotients.load_builds()
    with quotients.temporary_folder(call.store) as folder:
        member = run.search(folder)
    n = call.store.num_rows

    def finish(sweeps: Sweeps) -> tuple[int, float]:
        count = name_by_smallest_id(call.store, member, np.empty_like(member), n, lambda each: sweeps.vertices(each, STEP_SECONDS * n))
        return count, modularity_of(sweeps, run.column, member, np.empty(n), resolution)

    count, modularity = run.within(call, finish, n * (8 + member.itemsize))
    details = {
        "num_communities": count + call.store.attributes.num_input_vertices - n, "modularity": modularity, "num_levels": run.num_levels,
        "num_sweeps": run.num_sweeps,
    }  # fmt: skip
    return LouvainResult(stored={"community": member}, details=details, **run.fields())


Later = tuple[Callable[[int], int], int]
"""Bytes by the number of threads; and those that are of use."""


class _Level(NamedTuple):
    """What the moves in a graph have led to: of each of its ids the community, the strength of each of these, and their graph."""

    following: Array
    strength: Array
    quotient: quotients.Quotient


@dataclass(slots=True)
class _Run:
    """One run; `num_sweeps` are those over the edges of the graph itself.

    The strength of all vertices is `total`, and `units` in graphs of communities, where a weight of 1 is `scale`.
    """

    call: Call
    column: str | None
    resolution: float
    threshold: float
    seed: int
    found: list[dict[str, Any]]
    total: float = 0.0
    scale: float = 1.0
    units: float = 0.0
    turn: int = 0
    num_levels: int = 0
    num_sweeps: int = 0

    def search(self, folder: Path | None) -> Array:
        """Return the community of each vertex: (num_vertices,) index dtype."""
        n, best = self.call.store.num_rows, -np.inf
        member = np.arange(n, dtype=self.call.store.index_dtype)
        for _ in range(REPEATS):
            call, level = self.call, None
            while call.store.num_rows:
                path = None if folder is None else folder / f"{len(self.found)}.zarr"
                level = self._level(call, member, None if level is None else level.strength, path)
                if level is None or not (quality := self._quality(level)) > best + self.threshold:
                    break
                if call is self.call:
                    member = level.following
                else:
                    kernels.rename(member, level.following, 0, n)
                best, self.num_levels = quality, self.num_levels + 1
                call = self.call.part(level.quotient.store)
        return member

    def within(self, call: Call, compute: Callable[[Sweeps], Any], vector_bytes: int, later: Later = (lambda _: 0, 0)) -> Any:
        """Compute something with the edges of a graph, and note what it took.

        Later it takes so much with so many threads, or so much more, if all edges stay in memory and there is room for it.
        """
        store, column = call.store, self.column if call is self.call else WEIGHT
        by_rows, others, size, longest = *kernels.louvain_calls(store.index_dtype), store.index_dtype.itemsize, longest_list(store)
        needs = Needs(
            vectors={"communities": vector_bytes, "names": naming_bytes(store)}, by_threads={"graphs of communities": later[0]},
            result_bytes=size * store.num_rows, column=column, kernels=[*by_rows, *modularity_calls(store)],
            vertex_kernels=[*others, *quotients.quotient_calls(store, column, self._weight_dtype), *naming_calls(store)],
            scratch=kernels.scratch_of(longest, store.index_dtype), longest_row=longest, spare_bytes=later[1],
        )  # fmt: skip
        found, fields = call.run(needs, compute)
        self.found.append(fields)
        return found

    @property
    def _weight_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint32 if self.column is None and self.total < 2**32 else np.int64)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the result."""
        first, last = self.found[0], self.found[-1]
        sums = {name: sum(one[name] for one in self.found) for name in ("bytes_requested", "bytes_read")}
        seconds = {"load_seconds": first["load_seconds"], "seconds": last["load_seconds"] + last["seconds"] - first["load_seconds"]}
        return {**last, **sums, **seconds, "peak_host_bytes": max(one["peak_host_bytes"] for one in self.found)}

    def _quality(self, level: _Level) -> float:
        """Return the modularity of communities by what runs between them, and their strength."""
        return 1 - 2 * level.quotient.crossing / self.units - self.resolution * float(kernels.sum_squares(level.strength)) / self.units**2

    def _level(self, call: Call, member: Array, strength: Array | None, path: Path | None) -> _Level | None:
        """Move the vertices of a graph, and make the graph of their communities; None where none has moved.

        Parameters
        ----------
        member : (num_vertices,) index dtype
            Communities that vertices of the graph itself begin with.
        strength : (num_ids,) float64
            Of each community before: the vertices of any other graph; None for the graph itself.
        """

        def compute(sweeps: Sweeps) -> _Level | None:
            if strength is None:
                group, own = member.copy(), self._strength(sweeps, member)
            else:
                ids = quotients.group_ids(call.store)
                group, own = np.empty(n, call.store.index_dtype), strength[ids]
                begin(group, 0, n)
            total, scale = (self.total, self.scale) if strength is None else (self.units, 1.0)
            group, moved = self._move(sweeps, group, own, total) if total else (group, 0)
            if not moved:
                return None
            count, following = int(kernels.compact(group, np.empty_like(group))), group
            if strength is not None:
                following = np.empty(strength.size, group.dtype)
                count = int(kernels.follow(ids, group, count, following))
            volume = np.zeros(count)
            kernels.add_volumes(following, own if strength is None else strength, volume)
            volume *= scale
            quotient = quotients.build_quotient(sweeps, group, count, path, self._weight_dtype, scale, threads=call.num_threads)
            self.num_sweeps += sweeps.num_sweeps * (call is self.call)
            return _Level(following, volume, quotient)

        n, size = call.store.num_rows, call.store.index_dtype.itemsize
        later, more = quotients.charges(call.store, n if strength is None else strength.size, path)
        others = 0 if strength is None else 8 * n + (8 + size) * strength.size + held_bytes(call.store)
        weights = min(WEIGHT_BYTES, 16 * call.store.num_edges) if strength is None else 0
        level: _Level | None = self.within(
            call, compute, n * (3 * size + 18) + others, (lambda threads: later(threads) + (threads + READ_AHEAD) * weights, more)
        )
        return level

    def _strength(self, sweeps: Sweeps, member: Array) -> Array:
        """Return the weights of each vertex, and note their sum."""
        strength = np.empty(member.size)
        _, least = zip(*sweeps.pull(kernels.weigh, [member], [strength]), strict=True)
        check_weights(sweeps.store, self.column, least)
        self.total = checked_total(sweeps.store, self.column, float(np.sum(strength)))
        self.scale = quotients.scale_of(sweeps.store, self.column, self.total)
        self.units = self.total * self.scale
        return strength

    def _move(self, sweeps: Sweeps, group: Array, strength: Array, total: float) -> tuple[Array, int]:
        """Move vertices while it is worth it; returns communities, and how often any vertex has moved."""
        n, new, volume = group.size, np.empty_like(group), np.zeros(group.size)
        pending, woken, moved = np.ones(n, np.uint8), np.zeros(n, np.uint8), 0
        kernels.add_volumes(group, strength, volume)
        for _ in range(MOST_ROUNDS):
            self.turn += 1
            salt, gain = np.uint64(kernels.salt_of(self.seed, self.turn)), 0.0
            for part, (pieces, rows) in product(range(PARTS), sweeps.batches()):
                vectors = [group, volume, strength, woken], [new, pending]
                scalars = [salt, part, PARTS, self.resolution / total, kernels.NEAR * total]
                counts, gains = zip(*sweeps.pull(kernels.move, *vectors, scalars, has_scratch=True, only=pieces), strict=True)
                moved, gain = moved + sum(counts), gain + 2 * sweeps.add_up(gains) / total
                kernels.settle(group, new, strength, volume, rows.start, rows.stop)
                sweeps.vertices(lambda start, stop: kernels.wake(pending, woken, start, stop), STEP_SECONDS * n)
                sweeps.progress("sweeps", sweeps.num_sweeps, 0)
            if gain < LEAST_GAIN:
                break
        return group, moved
