"""What PageRank returns: ranks in store order, and the same under the user's ids.

In: ranks of the vertices that have edges, what isolated ones have, and the vertex ids of the graph. Out: `PageRankResult`, whose arrays are
aligned with every input id, ascending, isolated ones included. The ids are joined as a stream, block by block, when an array is first asked
for or the result is written; the iterations never pay for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from oocgraph.errors import OocGraphError
from oocgraph.frame import data_frame
from oocgraph.join import Ids, VertexIdMap
from oocgraph.text import format_number
from oocgraph.types import Array

BLOCK_VERTICES = 1 << 19
"""Vertices joined at once."""

TOP_VERTICES = 1 << 16
"""Vertices looked at at once for those that rank highest."""


@dataclass(frozen=True, slots=True)
class RankIteration:
    """Figures of one iteration.

    Attributes
    ----------
    iteration : int
        From 1.
    change : float
        Sum of the absolute changes of all ranks.
    seconds : float
    bytes_requested, bytes_read : int
        Asked of the store's files; the larger of that and the device bytes of the process.
    precision : str
        Of the shares that were gathered: ``single`` or ``double``.
    """

    iteration: int
    change: float
    seconds: float
    bytes_requested: int
    bytes_read: int
    precision: str


@dataclass(frozen=True, slots=True)
class RankBlock:
    """Some consecutive vertices of a result.

    Attributes
    ----------
    vertices : (n,) int64, or pyarrow.LargeStringArray
        User ids.
    rank : (n,) float64
    """

    vertices: Ids
    rank: Array


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PageRankResult:
    """PageRank under the user's vertex ids.

    Parameters
    ----------
    stored_rank : (num_vertices,) float64
        In store order.
    ids
        The graph's vertex ids.
    isolated_scale
        Multiple of what it wants that a vertex without edges has.
    wanted : (num_ids,) float64, or None
        Personalization by input id, of sum 1; None: 1 / N each.
    writer
        Writes a result to a path (and takes `overwrite`): `oocgraph.store.result_writer.write_ranks`.
    damping, tol, weights
        As given; of `weights` the column, or None.
    iterations
        Iterations done, those before a checkpoint included.
    converged
        Whether the last change was below the tolerance.
    change
        Sum of the absolute changes of all ranks in the last iteration.
    steps
        Figures of the iterations that this call has done.
    edge_bytes
        Uncompressed bytes of the neighbours and weights that one iteration visits.
    kept_bytes
        Those of them that stayed in memory.
    load_seconds
        From opening the graph to the first iteration.
    peak_host_bytes, memory_budget
        Peak of the process so far; bytes it was allowed.

    Notes
    -----
    `vertices` and `rank` are made when first asked for and kept; `rank_of`, `top` and `write` make none of them.
    """

    stored_rank: Array
    ids: VertexIdMap
    isolated_scale: float
    wanted: Array | None = None
    writer: Callable[..., None] | None = field(default=None)
    damping: float
    tol: float
    weights: str | None
    iterations: int
    converged: bool
    change: float
    steps: tuple[RankIteration, ...]
    edge_bytes: int = 0
    kept_bytes: int = 0
    load_seconds: float = 0.0
    peak_host_bytes: int = 0
    memory_budget: int = 0

    def __repr__(self) -> str:
        best = ", ".join(f"{vertex!r}: {rank:.4g}" for vertex, rank in self.top(3)) or "no vertices"
        end = "converged" if self.converged else "not converged"
        seconds = format_number(self.seconds)
        return f"<PageRankResult of {self.ids.num_ids:,} vertices: {self.iterations} iterations, {end}, {seconds} s; {best}>"

    @property
    def seconds(self) -> float:
        """Seconds of the iterations of this call."""
        return sum(one.seconds for one in self.steps)

    @property
    def bytes_requested(self) -> int:
        """Bytes asked of the store's files by the iterations."""
        return sum(one.bytes_requested for one in self.steps)

    @property
    def bytes_read(self) -> int:
        """Return the larger of the bytes requested and the device bytes of the process."""
        return sum(one.bytes_read for one in self.steps)

    @cached_property
    def vertices(self) -> Array:
        """Every input id, ascending, isolated ones included: (num_ids,) int64, or object array of str."""
        out = np.empty(self.ids.num_ids, np.int64 if self.ids.kind == "int64" else object)
        start = 0
        for block in self.blocks():
            values = block.vertices if isinstance(block.vertices, np.ndarray) else block.vertices.to_numpy(zero_copy_only=False)
            out[start : start + len(values)] = values
            start += len(values)
        return out

    @cached_property
    def rank(self) -> Array:
        """Rank of each of `vertices`: (num_ids,) float64, of sum 1."""
        out = np.empty(self.ids.num_ids)
        start = 0
        for block in self.blocks():
            out[start : start + block.rank.size] = block.rank
            start += block.rank.size
        return out

    def block_vertices(self, most: int) -> int:
        """Return the vertices joined at once when the result is streamed, where memory allows for `most`."""
        return min(most, BLOCK_VERTICES)

    def blocks(self, block_size: int = BLOCK_VERTICES) -> Iterator[RankBlock]:
        """Iterate over the whole result in blocks, without keeping it."""
        start = 0
        for vertices, numbers in self.ids.stored_blocks(block_size):
            yield RankBlock(vertices, self._ranks(numbers, start))
            start += numbers.size

    def rank_of(self, ids: Any) -> Any:
        """Rank of one vertex (float) or several ((n,) float64).

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        numbers = self.ids.vertices_of(ids)
        if self.wanted is None or not (numbers < 0).any():
            ranks = self._ranks(numbers, 0)
        else:  # where an isolated vertex stands among all is not stored: a stream of the ids finds it
            ranks = self.rank[np.searchsorted(self.vertices, self.ids.parse(ids))]
        return float(ranks[0]) if isinstance(ids, str) or np.ndim(ids) == 0 else ranks

    def top(self, count: int = 10) -> list[tuple[Any, float]]:
        """Ids and ranks of the vertices that rank highest, in descending order; of equals, the smaller id first.

        Raises
        ------
        OocGraphError
            `count` is no whole number, or negative.
        """
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise OocGraphError(f"count is {count!r}; it must be a whole number, 0 or more")
        if count not in self._tops:
            self._tops[count] = self._find_top(count)
        return self._tops[count]

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write vertices and ranks to ``.zarr``, ``.parquet`` or ``.csv``, block by block.

        Parameters
        ----------
        path
            A local file, or folder of arrays; its extension chooses the form.
        overwrite
            Replace a result that exists, once the new one is complete.

        Raises
        ------
        OutputError
            The path exists and `overwrite` is false, its extension is another, or it cannot be written; nothing is left behind.
        """
        if self.writer is None:
            raise OocGraphError("this result was made without a writer; use `oocgraph.pagerank`, or store.result_writer.write_ranks")
        self.writer(self, path, overwrite=overwrite)

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame with the columns vertex and rank.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        return data_frame(vertex=self.vertices, rank=self.rank)

    def summary(self) -> dict[str, Any]:
        """Return the figures as plain numbers, as the command line prints them."""
        names = (
            "damping tol weights iterations converged change seconds bytes_read bytes_requested edge_bytes kept_bytes peak_host_bytes "
            "memory_budget load_seconds"
        )
        return {**{name: getattr(self, name) for name in names.split()}, "steps": [asdict(one) for one in self.steps]}

    @cached_property
    def _tops(self) -> dict[int, list[tuple[Any, float]]]:
        return {}

    def _ranks(self, numbers: Array, start: int) -> Array:
        """Ranks of vertices by store number, -1 where isolated; of those by position among the ids, which begins at `start`."""
        isolated = numbers < 0
        if self.wanted is None:
            ranks = np.full(numbers.size, self.isolated_scale / max(1, self.ids.num_ids))
        else:
            ranks = self.isolated_scale * self.wanted[start : start + numbers.size]
        ranks[~isolated] = self.stored_rank[numbers[~isolated]]
        return ranks

    def _find_top(self, count: int) -> list[tuple[Any, float]]:
        best: list[tuple[Any, float]] = []
        for block in self.blocks(TOP_VERTICES) if count else ():
            floor = best[-1][1] if len(best) == count else -np.inf
            (places,) = np.nonzero(block.rank > floor)
            places = places[np.argsort(-block.rank[places], kind="stable")[:count]]
            vertices = block.vertices.take(places)
            names = vertices.tolist() if isinstance(vertices, np.ndarray) else vertices.to_pylist()
            found = zip(names, block.rank[places].tolist(), strict=True)
            best = sorted([*best, *found], key=lambda pair: -pair[1])[:count]
        return best
