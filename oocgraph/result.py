"""What a traversal returns: the search in store order, and the same under the user's ids.

In: a `Search` (store order) and the vertex ids of its graph. Out: `BFSResult`, whose arrays are aligned with every input
id, ascending, isolated ones included. The ids are joined as a stream, block by block, when an array is first asked for or
the result is written; a search alone never pays for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from oocgraph.errors import MissingDependencyError, OocGraphError
from oocgraph.frame import data_frame
from oocgraph.join import Ids, Join, ResultBlock, VertexIdMap
from oocgraph.text import format_number
from oocgraph.traversal import Iteration, PartFigures, Search, WorkerFigures, as_json, by_worker
from oocgraph.types import UNREACHED, Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BFSResult", "Ids", "Iteration", "PartFigures", "ResultBlock", "Search", "VertexIdMap", "WorkerFigures"]

BLOCK_VERTICES = 1 << 19
"""Vertices joined at once."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class BFSResult:
    """A breadth-first search under the user's vertex ids.

    Parameters
    ----------
    search
        The traversal in store order.
    ids
        The graph's vertex ids.
    source
        Source as the user gave it: an id, or a list of ids.
    isolated_sources
        Those of the sources that have no edge.
    writer
        Writes a result to a path (and takes `overwrite`): `oocgraph.store.result_writer.write_result`.
    depth_limit
        The limit that the search was given.
    edge_bytes
        Uncompressed bytes of the graph's neighbours.
    load_seconds
        From opening the graph to the start of the search: planes and state.
    peak_host_bytes
        Peak of the process so far.
    memory_budget
        Bytes the search was allowed.
    planes_resident
        Planes that were held in memory; of the GPU, if the search ran on one.
    device
        Where the search ran: ``cpu``, or the name of a GPU.
    device_memory_budget, device_bytes
        Bytes of device memory that the search was allowed, and held; 0 without a GPU.
    partition
        Of a search over partitions: ``1d``, ``2d``, or the policy that made them; None of any other.
    num_partitions, setup_seconds
        How many; and the time it took to make them, where they were not there, and to load them.

    Notes
    -----
    `vertices`, `level` and `parent` are made when first asked for and kept; `level_of`, `parent_of`, `path` and `write` make none of them.
    """

    search: Search
    ids: VertexIdMap
    source: Any
    isolated_sources: Sequence[Any] = ()
    writer: Callable[..., None] | None = field(default=None)
    depth_limit: int | None = None
    edge_bytes: int = 0
    load_seconds: float = 0.0
    peak_host_bytes: int = 0
    memory_budget: int = 0
    planes_resident: int = 0
    device: str = "cpu"
    device_memory_budget: int = 0
    device_bytes: int = 0
    partition: str | None = None
    num_partitions: int = 0
    setup_seconds: float = 0.0

    def __repr__(self) -> str:
        source = repr(self.source) if not isinstance(self.source, list) or len(self.source) < 5 else f"{len(self.source)} sources"
        seconds, share = format_number(self.seconds), format_number(100 * self.read_fraction, 2)
        return (
            f"<BFSResult from {source}: {self.num_reached:,} of {self.ids.num_ids:,} vertices reached, depth {self.depth}, "
            f"{seconds} s, {self.teps / 1e6:,.1f} MTEPS, read {share} % of the edge bytes>"
        )

    @property
    def depth(self) -> int:
        """Largest level."""
        return self.search.depth

    @property
    def num_reached(self) -> int:
        """Reached vertices, sources included (an isolated source reaches itself)."""
        return self.search.num_reached + len(set(self.isolated_ids.tolist()))

    @cached_property
    def isolated_ids(self) -> Array:
        """`isolated_sources` as the graph has ids: int64, or object array of str."""
        return self.ids.parse(list(self.isolated_sources))

    @property
    def num_reached_edges(self) -> int:
        """Edges of the reached component: an undirected edge once, out-edges when directed."""
        return self.search.num_reached_edges

    @property
    def iterations(self) -> tuple[Iteration, ...]:
        """Figures of each level."""
        return self.search.iterations

    @property
    def link_bytes(self) -> int:
        """Bytes of edges that went over the link to a GPU."""
        return sum(one.device.link_bytes for one in self.iterations if one.device is not None)

    @property
    def exchanged_bytes(self) -> int:
        """Bytes of all messages between partitions (`oocgraph.partition.message_size`)."""
        return sum(kind.num_bytes for one in self.iterations for kind in one.exchanged)

    @property
    def num_messages(self) -> int:
        """Messages between partitions."""
        return sum(kind.num_messages for one in self.iterations for kind in one.exchanged)

    @cached_property
    def workers(self) -> dict[str, WorkerFigures]:
        """Busy seconds, bytes read and bytes sent by each worker over the whole search; empty in process."""
        return by_worker(self.iterations)

    @property
    def seconds(self) -> float:
        """Seconds from the sources to parent and level in store order."""
        return self.search.seconds

    @property
    def teps(self) -> float:
        """Traversed edges per second: `num_reached_edges` / `seconds`."""
        return self.num_reached_edges / self.seconds if self.seconds > 0 else 0.0

    @property
    def bytes_requested(self) -> int:
        """Bytes asked of the store's files."""
        return self.search.bytes_requested

    @property
    def bytes_read(self) -> int:
        """Return the larger of the bytes requested and the device bytes of the process."""
        return self.search.bytes_read

    @property
    def read_fraction(self) -> float:
        """`bytes_read` / `edge_bytes`; 0 of a graph without edges."""
        return self.bytes_read / self.edge_bytes if self.edge_bytes else 0.0

    @cached_property
    def vertices(self) -> Array:
        """Every input id, ascending, isolated ones included: (num_ids,) int64, or object array of str."""
        return self._joined("vertices")

    @cached_property
    def level(self) -> Array:
        """Level of each of `vertices`: (num_ids,) int32, -1 where unreached."""
        return self._joined("level")

    @cached_property
    def parent(self) -> Array:
        """Parent id of each of `vertices`: int64 with -1 where unreached, or object array of str with None."""
        return self._joined("parent")

    def level_of(self, ids: Any) -> Any:
        """Level of one vertex (int) or several ((n,) int32); -1 where unreached.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        levels = self._join.levels(*self._join.look_up(ids))
        return int(levels[0]) if _is_scalar(ids) else levels

    def parent_of(self, ids: Any) -> Any:
        """Parent of one vertex or several, as user ids; -1, or None for strings, where unreached.

        Raises
        ------
        VertexNotFoundError
            An id does not occur in the graph's input.
        """
        parents = _as_numpy(self._join.column("parent", *self._join.look_up(ids)))
        return parents.tolist()[0] if _is_scalar(ids) else parents

    def path(self, target: Any) -> Array:
        """Return the path of the tree from a source to `target`, both included, as user ids.

        Raises
        ------
        VertexNotFoundError
            `target` does not occur in the graph's input.
        OocGraphError
            `target` was not reached.
        """
        if self.level_of(target) == UNREACHED:
            raise OocGraphError(f"there is no path to {target!r}: the search from {self.source!r} did not reach it")
        vertex = int(self.ids.vertices_of(target)[0])
        if vertex < 0:  # an isolated source
            return self.ids.parse(target)
        numbers = [vertex]
        while (above := int(self.search.parent[numbers[-1]])) != numbers[-1]:
            numbers.append(above)
        return self.ids.ids_of(numbers[::-1])

    def blocks(self, block_size: int | None = None) -> Iterator[ResultBlock]:
        """Iterate over the whole result in blocks, without keeping it."""
        for vertices, numbers in self.ids.stored_blocks(block_size or self.block_vertices(BLOCK_VERTICES)):
            yield self._join.block(vertices, numbers)

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write vertices, level and parent to ``.zarr``, ``.parquet`` or ``.csv``, block by block.

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
            raise OocGraphError("this result was made without a writer; use `oocgraph.bfs`, or oocgraph.store.result_writer.write_result")
        self.writer(self, path, overwrite=overwrite)

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame with the columns vertex, level and parent.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        vertices, level, parent = self._in_memory(self.vertices, self.level, self.parent)
        return data_frame(vertex=vertices, level=level, parent=parent)

    def plot(self, figure: Figure | None = None) -> Figure:
        """Draw time and bytes of each level, by worker.

        Parameters
        ----------
        figure
            Draw on this one, such as a ``pyplot.figure()`` that has a window; by default a new one, which notebooks show.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        try:
            import oocgraph.plot as pictures
        except ImportError as error:
            raise MissingDependencyError(
                "plot needs matplotlib, which is not installed: `pip install matplotlib` or `pip install oocgraph[notebooks]`; "
                "result.iterations and result.workers hold the figures"
            ) from error
        return pictures.plot_levels(self.iterations, title=repr(self).strip("<>"), figure=figure)

    def summary(self) -> dict[str, Any]:
        """Return the figures as plain numbers, as the command line prints them."""
        names = (
            "source num_reached depth seconds teps bytes_read bytes_requested edge_bytes read_fraction peak_host_bytes memory_budget "
            "planes_resident load_seconds"
        )
        if self.device_memory_budget:
            names += " device_memory_budget device_bytes link_bytes"
        if self.partition is not None:
            names += " partition num_partitions setup_seconds exchanged_bytes num_messages"
        figures = {"device": self.device} | {name: getattr(self, name) for name in names.split()}
        workers = {name: asdict(one) for name, one in self.workers.items()}
        return {**figures, "workers": workers, "iterations": as_json(self.iterations)}

    @cached_property
    def _join(self) -> Join:
        return Join(self.ids, self.search.level, self.search.parent, self.isolated_ids)

    def block_vertices(self, most: int) -> int:
        """Return the vertices joined at once when the result is streamed, where memory allows for `most`."""
        return min(most, BLOCK_VERTICES)

    def _in_memory(self, *columns: Any) -> Sequence[Array]:
        """Return whole columns as NumPy arrays."""
        return columns

    def _dtype(self, column: str) -> np.dtype[Any]:
        return np.dtype(np.int32 if column == "level" else np.int64 if self.ids.kind == "int64" else object)

    def _joined(self, column: str) -> Array:
        out = np.empty(self.ids.num_ids, self._dtype(column))
        start = 0
        for vertices, numbers in self.ids.stored_blocks(BLOCK_VERTICES):
            out[start : start + numbers.size] = _as_numpy(self._join.column(column, vertices, numbers))
            start += numbers.size
        return out


def _is_scalar(ids: Any) -> bool:
    return isinstance(ids, str) or np.ndim(ids) == 0


def _as_numpy(values: Ids) -> Array:
    return values if isinstance(values, np.ndarray) else values.to_numpy(zero_copy_only=False)
