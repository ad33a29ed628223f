"""How long a 1D or 2D traversal will take: what each iteration hands to the busiest part, times constants that were measured. Pure.

In: counts of an iteration (`IterationLoad`), the shape of the partition, `Constants`. Out: seconds. An iteration with H hops of the
scheduler (one in 1D, two where a new frontier is broadcast) on P parts takes::

    H * (hop + task * P + pair * P ** 2)                  the scheduler: steps of a hop, which each depend on all of the hop before
    + edge * edges / threads + vertex * vertices          the busiest part: entries of rows, vertices found, sent and received
    + message * messages + byte * bytes                   what goes over its connection

A search has a hop more than its iterations, the last of 1D, the first of 2D, and waits at first until the hops that are submitted ahead are
submitted. Messages go through Dask; workers of one host are quicker. What is not in it: reading edges that are not held; a network slower
than the one that was measured. Kernels and transfers of one part do not overlap: its steps are serial.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oocgraph.plan.traffic import Traffic
from oocgraph.types import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Seconds.

    Attributes
    ----------
    edge_seconds
        Of an entry of a row that is expanded, by one thread.
    vertex_seconds
        Of a vertex that is found, sent or received.
    message_seconds, byte_seconds
        Of a message from another worker, and of each of its bytes.
    hop_seconds, task_seconds, pair_seconds
        Of a hop; of each step in it; of each pair of steps one of which depends on the other.
    start_hops
        Hops' time that goes by before the first hop.
    """

    edge_seconds: float
    vertex_seconds: float
    message_seconds: float
    byte_seconds: float
    hop_seconds: float
    task_seconds: float
    pair_seconds: float
    start_hops: float

    def hop(self, num_parts: int) -> float:
        """Seconds of a hop in which nothing is done."""
        return self.hop_seconds + self.task_seconds * num_parts + self.pair_seconds * num_parts**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A partition, as far as time depends on it.

    Attributes
    ----------
    rows, columns : int
        Of the grid; in 1D one column. As many parts as both multiplied own edges, as many as rows own vertices.
    edge_share : float
        Edges of the part that has most, as a share of all.
    vertex_share : float
        The same of vertices.
    """

    rows: int
    columns: int
    edge_share: float
    vertex_share: float

    @property
    def num_parts(self) -> int:
        """Parts."""
        return self.rows * self.columns

    @property
    def num_hops(self) -> int:
        """Hops of an iteration."""
        return 1 if self.columns == 1 else 2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class IterationLoad:
    """What all parts do together, by iteration: (num_iterations,) each.

    Attributes
    ----------
    edges, found
        Entries of the frontier's rows; vertices of the next level.
    candidates, broadcasts
        Messages of candidates, and of the frontier that is broadcast.
    """

    edges: Array
    found: Array
    candidates: Traffic
    broadcasts: Traffic


def busiest(load: IterationLoad, shape: Shape, num_threads: int) -> Array:
    """Return what the busiest part has of each constant: (4, num_iterations), edges a thread, vertices, messages, bytes.

    In 1D a step takes the candidates of the step before and expands the level that they complete; its time is the iteration's that
    expands. In 2D a candidate is sent by one of all parts and received by one of those that own vertices; of the frontier it is the
    other way round.
    """
    edges, sent, broadcast = shape.edge_share * load.edges / num_threads, load.candidates, load.broadcasts
    if shape.columns == 1:
        found, candidates, messages, sizes = (
            np.insert(one[:-1], 0, 0) for one in (load.found, sent.num_vertices, sent.num_messages, sent.num_bytes)
        )
        vertices = shape.vertex_share * (found + candidates) + sent.num_vertices / shape.num_parts
        return np.stack([edges, vertices, messages / shape.rows, shape.vertex_share * sizes])
    both = 1 / shape.num_parts + shape.vertex_share
    vertices = shape.vertex_share * load.found + both * (sent.num_vertices + broadcast.num_vertices)
    messages = sent.num_messages / shape.rows + broadcast.num_messages / max(1, shape.num_parts - shape.rows)
    return np.stack([edges, vertices, messages, shape.vertex_share * (sent.num_bytes + broadcast.num_bytes)])


def predict_seconds(load: IterationLoad, shape: Shape, constants: Constants, num_threads: int) -> tuple[Array, float]:
    """Return the time of each iteration, (num_iterations,) float64, and of the whole search.

    Examples
    --------
    >>> none = Traffic(*np.zeros((3, 2)))
    >>> load = IterationLoad(edges=np.array([10.0, 4.0]), found=np.zeros(2), candidates=none, broadcasts=none)
    >>> one = Constants(edge_seconds=1.0, vertex_seconds=0.0, message_seconds=0.0, byte_seconds=0.0, hop_seconds=100.0, task_seconds=0.0,
    ...                 pair_seconds=0.0, start_hops=2.0)
    >>> seconds, total = predict_seconds(load, Shape(rows=2, columns=1, edge_share=0.5, vertex_share=0.5), one, 1)
    >>> seconds.tolist(), total
    ([305.0, 102.0], 507.0)
    """
    edges, vertices, messages, num_bytes = busiest(load, shape, num_threads)
    hop = constants.hop(shape.num_parts)
    seconds = (
        shape.num_hops * hop
        + constants.edge_seconds * edges
        + constants.vertex_seconds * vertices
        + constants.message_seconds * messages
        + constants.byte_seconds * num_bytes
    )
    start = constants.start_hops * hop
    if shape.columns == 1:
        seconds[:1] += start
        start = 0.0
    return seconds, float(seconds.sum()) + start + hop


def fit_hops(num_parts: Array, seconds: Array, constants: Constants) -> Constants:
    """Fit what a hop takes, none of its terms below 0, to hops of partitions of several sizes.

    Parameters
    ----------
    num_parts, seconds : (n,) float64
        At least three different sizes, or a term is 0.

    Examples
    --------
    >>> p = np.array([2.0, 6.0, 12.0])
    >>> found = fit_hops(p, 3.0 + 0.5 * p + 0.25 * p**2, STORED)
    >>> round(found.hop_seconds, 6), round(found.task_seconds, 6), round(found.pair_seconds, 6)
    (3.0, 0.5, 0.25)
    """
    terms = np.stack([np.ones_like(num_parts), num_parts, num_parts**2], axis=1)
    hop, task, pair = fit(terms, seconds)
    return replace(constants, hop_seconds=hop, task_seconds=task, pair_seconds=pair)


def fit(terms: Array, seconds: Array) -> list[float]:
    """Return factors of some terms, none below 0, so that relative errors are small: (n, k) and (n,) float64 give k numbers.

    Terms whose factor comes out negative are left out, the worst first: with few terms this is the non-negative least squares.

    Examples
    --------
    >>> fit(np.array([[1.0, 1.0], [1.0, 2.0]]), np.array([2.0, 1.0]))[1]
    0.0
    """
    kept = list(range(terms.shape[1]))
    scaled, ones = terms / seconds[:, None], np.ones(seconds.size)
    found = np.zeros(terms.shape[1])
    while kept:
        factors = np.linalg.lstsq(scaled[:, kept], ones, rcond=None)[0]
        if (factors >= 0).all():
            found[kept] = factors
            break
        kept.pop(int(np.argmin(factors * scaled[:, kept].max(axis=0))))
    return [float(one) for one in found]


STORED = Constants(
    edge_seconds=3e-9, vertex_seconds=8e-8, message_seconds=8e-4, byte_seconds=7e-10, hop_seconds=1.3e-2, task_seconds=1e-3,
    pair_seconds=1e-4, start_hops=1.4,
)  # fmt: skip
"""Measured by `oocgraph.algorithms.calibrate` on two cores that scheduler, client and two worker processes shared, with other programs
running (a load of 3 to 5): rounded from six calibrations, which differed by a factor of 2. `oocgraph plan --calibrate` measures the machine
at hand, with whatever runs there."""
