"""What is predicted of a partitioned traversal, put together: counts and constants in, one case of a plan out. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from oocgraph.listing import html_listing, html_records
from oocgraph.partition.policies import Dimension
from oocgraph.plan.fitting import Fits
from oocgraph.plan.timing import Constants, IterationLoad, Shape, predict_seconds
from oocgraph.plan.traffic import PairCounts, Traffic, traffic_of
from oocgraph.types import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedIteration:
    """One iteration.

    Attributes
    ----------
    level
        Level of the vertices that it finds.
    frontier, edges
        Active vertices at its start, and the entries of their rows.
    num_bytes, num_messages
        Sent by all parts.
    seconds
        Predicted.
    """

    level: int
    frontier: int
    edges: int
    num_bytes: int
    num_messages: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBFS:
    """One kind of partition with one number of workers.

    Attributes
    ----------
    dimension
        ``1d`` or ``2d``.
    num_workers, rows, columns
        Workers, and the grid they form.
    num_bytes, num_messages, seconds
        Of the whole search; it takes a hop more than its iterations.
    worker_bytes, least_worker_bytes
        What the worker that has most would hold: with all its edges in memory; with none.
    fits, advice
        Whether that fits, and what to do.
    iterations
        One after the other.
    """

    dimension: Dimension
    num_workers: int
    rows: int
    columns: int
    num_bytes: int
    num_messages: int
    seconds: float
    worker_bytes: int
    least_worker_bytes: int
    fits: Fits
    advice: str
    iterations: tuple[PlannedIteration, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BFSPlan:
    """What is predicted.

    Attributes
    ----------
    graph
        Where it is.
    source
        User id.
    num_reached, depth
        Vertices with an edge that the search reaches; largest level.
    memory_bytes, threads
        Of each worker.
    constants
        Seconds.
    cases
        1D and 2D for each number of workers.
    """

    graph: str
    source: Any
    num_reached: int
    depth: int
    memory_bytes: int
    threads: int
    constants: Constants
    cases: tuple[PlannedBFS, ...]

    def _repr_html_(self) -> str:
        found = {name: getattr(self, name) for name in ("source", "num_reached", "depth", "memory_bytes", "threads", "graph")}
        names = ("dimension", "num_workers", "seconds", "num_bytes", "num_messages", "worker_bytes", "advice")
        return html_listing("BFSPlan", found) + html_records({name: getattr(case, name) for name in names} for case in self.cases)

    def summary(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def iteration_load(
    candidates: PairCounts, broadcasts: PairCounts | None, level_vertices: Array, level_edges: Array, *, parent_bytes: int
) -> IterationLoad:
    """Return what all parts do together in each iteration.

    Parameters
    ----------
    candidates, broadcasts
        Counts of both kinds; None where nothing is broadcast.
    level_vertices, level_edges : (num_levels,) int64
        Vertices of each level, and their out-edges.
    parent_bytes
        Of each parent in a message of candidates.
    """
    nothing = Traffic(*np.zeros((3, level_vertices.size), np.int64))
    return IterationLoad(
        edges=level_edges,
        found=np.append(level_vertices[1:], 0),
        candidates=traffic_of(candidates, parent_bytes=parent_bytes),
        broadcasts=nothing if broadcasts is None else traffic_of(broadcasts, parent_bytes=0),
    )


def shape_of(edges: Array, set_vertices: Array) -> Shape:
    """Return the shape of a grid: (rows, columns) edges of each part, (rows,) vertices of each set."""
    rows, columns = edges.shape
    return Shape(
        rows=rows, columns=columns, edge_share=float(edges.max() / max(1.0, edges.sum())),
        vertex_share=float(set_vertices.max() / max(1, set_vertices.sum())),
    )  # fmt: skip


def plan_case(
    dimension: Dimension, shape: Shape, load: IterationLoad, level_vertices: Array, *, constants: Constants, threads: int,
    needed: tuple[int, int], verdict: tuple[Fits, str],
) -> PlannedBFS:  # fmt: skip
    """Put one case together.

    Parameters
    ----------
    needed
        Bytes of the worker that has most, with all edges in memory and with none.
    verdict
        Whether that fits, and what to do.
    """
    seconds, total = predict_seconds(load, shape, constants, threads)
    num_bytes = load.candidates.num_bytes + load.broadcasts.num_bytes
    messages = load.candidates.num_messages + load.broadcasts.num_messages
    iterations = tuple(
        PlannedIteration(level=i + 1, frontier=frontier, edges=edges, num_bytes=size, num_messages=number, seconds=duration)
        for i, (frontier, edges, size, number, duration) in enumerate(
            zip(*(one.tolist() for one in (level_vertices, load.edges, num_bytes, messages, seconds)), strict=True)
        )
    )
    return PlannedBFS(
        dimension=dimension, num_workers=shape.num_parts, rows=shape.rows, columns=shape.columns, num_bytes=int(num_bytes.sum()),
        num_messages=int(messages.sum()), seconds=total, worker_bytes=needed[0], least_worker_bytes=needed[1],
        fits=verdict[0], advice=verdict[1], iterations=iterations,
    )  # fmt: skip
