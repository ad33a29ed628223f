"""An edge source whose edges are a function of their position.

In: how many edges, and a function from a range of positions to endpoints. Out: a `Source` whose streams are equal consecutive
ranges, so that as many threads as there are streams can work.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from oocgraph.arguments import is_whole
from oocgraph.errors import ArgumentError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.source import Source, range_streams
from oocgraph.store.layout import WEIGHT
from oocgraph.types import Array

MAX_STREAMS = 64
"""More streams than cores, so that an early end of one does not leave a thread idle."""

MAX_SCALE = 40
"""Above 2**40 vertices the vertex arrays of a build exceed any machine this is meant for."""


class GeneratedEdges(Source):
    """Base of the generators: undirected; ids are 0 .. num_vertices - 1.

    Parameters
    ----------
    description
        Name and parameters, stored with the graph.
    num_vertices, num_positions
        Ids, and positions of edges.
    keeps_all
        Whether there is an edge at every position.
    weights
        Smallest and largest integer weight, given to an edge by a hash of its ends; None: the edges have no weights.
    """

    def __init__(self, description: str, *, num_vertices: int, num_positions: int, keeps_all: bool = True, weights: Any = None) -> None:
        self.num_positions = num_positions
        self.weights = None if weights is None else checked_weights(weights)
        self.weight_dtype = np.min_scalar_type(0 if self.weights is None else self.weights[1])
        super().__init__(
            description if self.weights is None else f"{description[:-1]}, weights={self.weights[0]}:{self.weights[1]})",
            "int64",
            range_streams(num_positions, self._block, max_streams=MAX_STREAMS),
            num_rows=num_positions if keeps_all else None,
            num_vertices=num_vertices,
            id_bounds=(0, num_vertices - 1) if num_vertices else None,
            weight=None if self.weights is None else WEIGHT,
            columns={} if self.weights is None else {WEIGHT: self.weight_dtype.name},
        )

    def edges(self, first: int, num_edges: int) -> tuple[Array, Array]:
        """Endpoints of the edges at positions ``first .. first + num_edges - 1``: two int64 arrays."""
        raise NotImplementedError

    def columns_of(self, source: Array, target: Array) -> dict[str, Array]:
        """Edge columns of some edges, by name: their weights, if they have any."""
        if self.weights is None:
            return {}
        from oocgraph.kernels.generate import edge_weights

        return {WEIGHT: edge_weights(source, target, *self.weights, self.weight_dtype)}

    def _block(self, low: int, high: int) -> EdgeBlock:
        source, target = self.edges(low, high - low)
        return EdgeBlock(source, target, self.columns_of(source, target), first_row=low)


class RandomEdges(GeneratedEdges):
    """Base of the random graphs: ``edge_factor * 2**scale`` edges over 2**scale vertices; `name` is the kind of graph."""

    name: ClassVar[str]

    def __init__(self, scale: int, *, edge_factor: int, seed: int, weights: Any = None) -> None:
        check_size(scale, edge_factor)
        description = f"{self.name}(scale={scale}, edge_factor={edge_factor}, seed={seed})"
        super().__init__(description, num_vertices=1 << scale, num_positions=edge_factor << scale, weights=weights)
        self.scale, self.seed = scale, seed


def checked_weights(weights: Any) -> tuple[int, int]:
    """Return the smallest and the largest weight, as integers.

    Raises
    ------
    ArgumentError
        They are not two integers, 0 or more and below 2**32, in this order.
    """
    pair = list(weights) if isinstance(weights, list | tuple) else []
    if len(pair) != 2 or not all(is_whole(one, 0, (1 << 32) - 1) for one in pair) or pair[0] > pair[1]:
        raise ArgumentError(f"weights is {weights!r}; give the smallest and the largest weight, from 0 to 2**32 - 1, such as (1, 255)")
    return int(pair[0]), int(pair[1])


def check_size(scale: int, edge_factor: int) -> None:
    """Refuse a size that no generator can make.

    Raises
    ------
    ArgumentError
        `scale` is not in 0 .. `MAX_SCALE`, or `edge_factor` is negative.
    """
    if not 0 <= scale <= MAX_SCALE:
        raise ArgumentError(f"scale is {scale}; it must be 0 to {MAX_SCALE} (the graph has 2**scale vertices)")
    if edge_factor < 0:
        raise ArgumentError(f"edge_factor is {edge_factor}; it must not be negative (edges per vertex)")
