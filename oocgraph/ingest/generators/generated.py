"""An edge source whose edges are a function of their position.

In: how many edges, and a function from a range of positions to endpoints. Out: the streams of an `EdgeSource`: equal
consecutive ranges, so that as many threads as there are streams can work, and each stream yields bounded blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from oocgraph.errors import OocGraphError
from oocgraph.ingest.edges import EdgeBlock, EdgeStream, IdKind
from oocgraph.types import Array

MAX_STREAMS = 64
"""More streams than cores, so that an early end of one does not leave a thread idle."""

MAX_SCALE = 40
"""Above 2**40 vertices the vertex arrays of a build exceed any machine this is meant for."""


class GeneratedEdges:
    """Base of the generators: an `EdgeSource` without edge columns, whose ids are 0 .. num_vertices - 1.

    Parameters
    ----------
    description
        Name and parameters, stored with the graph.
    num_vertices, num_rows
        Ids and listed edges.
    """

    id_kind: IdKind = "int64"
    directed: bool | None = False
    weight: str | None = None

    def __init__(self, description: str, *, num_vertices: int, num_rows: int) -> None:
        self.description = description
        self.num_rows: int | None = num_rows
        self.num_vertices: int | None = num_vertices
        self.id_bounds: tuple[int, int] | None = (0, num_vertices - 1) if num_vertices else None
        self.columns: dict[str, str] = {}
        self._num_edges = num_rows

    def edges(self, first: int, num_edges: int) -> tuple[Array, Array]:
        """Endpoints of edges ``first .. first + num_edges - 1``: two (num_edges,) int64 arrays."""
        raise NotImplementedError

    def streams(self, block_rows: int) -> Sequence[EdgeStream]:
        """Return at most `MAX_STREAMS` consecutive ranges of whole blocks, none empty."""
        num_blocks = -(-self._num_edges // block_rows)
        num_streams = min(MAX_STREAMS, num_blocks)
        bounds = [min(self._num_edges, num_blocks * i // num_streams * block_rows) for i in range(num_streams + 1)] if num_streams else []
        return [partial(self._blocks, start, stop, block_rows) for start, stop in pairwise(bounds)]

    def _blocks(self, start: int, stop: int, block_rows: int) -> Iterator[EdgeBlock]:
        for first in range(start, stop, block_rows):
            source, target = self.edges(first, min(block_rows, stop - first))
            yield EdgeBlock(source, target, first_row=first)


def check_size(scale: int, edge_factor: int) -> None:
    """Refuse a size that no generator can make.

    Raises
    ------
    OocGraphError
        `scale` is not in 0 .. `MAX_SCALE`, or `edge_factor` is negative.
    """
    for name, value in (("scale", scale), ("edge_factor", edge_factor)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise OocGraphError(f"{name} is {value!r}; give a whole number")
    if not 0 <= scale <= MAX_SCALE:
        raise OocGraphError(f"--scale (scale) is {scale}; it must be 0 to {MAX_SCALE} (the graph has 2**scale vertices)")
    if edge_factor < 0:
        raise OocGraphError(f"--edge-factor (edge_factor) is {edge_factor}; it must not be negative (edges per vertex)")
