"""An edge source whose edges are a function of their position.

In: how many edges, and a function from a range of positions to endpoints. Out: a `Source` whose streams are equal consecutive
ranges, so that as many threads as there are streams can work.
"""

from __future__ import annotations

from typing import ClassVar

from oocgraph.errors import ArgumentError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.source import Source, range_streams
from oocgraph.types import Array

MAX_STREAMS = 64
"""More streams than cores, so that an early end of one does not leave a thread idle."""

MAX_SCALE = 40
"""Above 2**40 vertices the vertex arrays of a build exceed any machine this is meant for."""


class GeneratedEdges(Source):
    """Base of the generators: undirected, without edge columns; ids are 0 .. num_vertices - 1.

    Parameters
    ----------
    description
        Name and parameters, stored with the graph.
    num_vertices, num_rows
        Ids and listed edges.
    """

    def __init__(self, description: str, *, num_vertices: int, num_rows: int) -> None:
        super().__init__(
            description,
            "int64",
            range_streams(num_rows, self._block, max_streams=MAX_STREAMS),
            num_rows=num_rows,
            num_vertices=num_vertices,
            id_bounds=(0, num_vertices - 1) if num_vertices else None,
            directed=False,
        )

    def edges(self, first: int, num_edges: int) -> tuple[Array, Array]:
        """Endpoints of edges ``first .. first + num_edges - 1``: two (num_edges,) int64 arrays."""
        raise NotImplementedError

    def _block(self, low: int, high: int) -> EdgeBlock:
        return EdgeBlock(*self.edges(low, high - low), first_row=low)


class RandomEdges(GeneratedEdges):
    """Base of the random graphs: ``edge_factor * 2**scale`` edges over 2**scale vertices; `name` is the kind of graph."""

    name: ClassVar[str]

    def __init__(self, scale: int, *, edge_factor: int, seed: int) -> None:
        check_size(scale, edge_factor)
        description = f"{self.name}(scale={scale}, edge_factor={edge_factor}, seed={seed})"
        super().__init__(description, num_vertices=1 << scale, num_rows=edge_factor << scale)
        self.scale, self.seed = scale, seed


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
