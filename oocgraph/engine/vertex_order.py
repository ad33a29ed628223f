"""Reorders vertex values between the user's order (ascending ids) and the store's.

In: a store, and optionally the position of each vertex among the input's ids. Out: a `VertexOrder`. With positions, several threads
reorder; without them the ids are streamed. Streaming them before and after each product took half of its time where the graph is in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.kernels.vertex_order import DTYPES, load_vertex_order, put_values, take_values
from oocgraph.store.graph import CSRStore
from oocgraph.store.input_order import to_input_order, to_store_order
from oocgraph.team import team_of
from oocgraph.types import Array

POSITION_BYTES = 5
"""Of a vertex, while positions are read; 4 stay."""

MAX_IDS = 1 << 32
"""Ids that a position is one of."""

VALUE_SECONDS = 5e-9
"""About what a vertex takes in one thread, of a value."""


class VertexOrder:
    """The order of a graph's vertices.

    Parameters
    ----------
    store
        The graph.
    position : (num_vertices,) uint32, optional
        Position of each vertex among the ids; see `oocgraph.store.input_order.input_positions`.
    threads
        Number of threads that reorder by positions.
    """

    def __init__(self, store: CSRStore, position: Array | None = None, threads: int = 1) -> None:
        self._store, self._position, self._threads = store, position, threads

    def to_store(self, values: Array, out: Array) -> None:
        """Set ``out[v]`` to the value (or values) of vertex v; `values` is ordered by input id."""
        if not self._moved(take_values, values, out):
            to_store_order(self._store, values, out)

    def to_input(self, values: Array, out: Array) -> None:
        """Set in `out`, ordered by input id, the values of vertices with edges; `values` is ordered by store number."""
        if not self._moved(put_values, values, out):
            to_input_order(self._store, values, out)

    def _moved(self, kernel: Any, values: Array, out: Array) -> bool:
        """Reorder by positions if they are in memory and kernels take both arrays; return whether that was done."""
        position = self._position
        kind = np.dtype(np.uint8) if values.dtype == np.bool_ else values.dtype
        is_plain = values.flags.c_contiguous and out.flags.c_contiguous and out.dtype == kind and kind.name in DTYPES
        if position is None or not is_plain:
            return False
        load_vertex_order(kind.name)
        source, target, width = values.view(kind).reshape(-1), out.reshape(-1), int(np.prod(values.shape[1:]))
        with team_of(self._threads) as team:
            team.run_range(
                lambda start, stop: kernel(position, source, width, start, stop, target),
                position.size,
                VALUE_SECONDS * position.size * width,
            )
        return True
