"""The result of a search on a cluster: Dask arrays over the files that its workers wrote, made block by block where they are used.

In: a result store (parents and levels of each partition) and the graph it belongs to. Out: `DaskBFSResult`, whose `vertices`, `level` and
`parent` are Dask arrays aligned with every input id, ascending. A block is a pure function of two paths and a range of ids: the
graph of an array holds nothing else, and neither client nor scheduler ever holds as many values as there are vertices.

A block's ids are scattered over the vertex order, so a block of many ids reads most of the result's files once, by ranges. Blocks are
therefore large where the graph is: at most `MAX_BLOCKS`.
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np

from oocgraph.config import settings
from oocgraph.errors import BudgetError, OocGraphError, OutputError, StoreError
from oocgraph.lazy import cached_property
from oocgraph.memory import bytes_before, effective_budget_bytes, format_bytes
from oocgraph.partition.vertex_partition import VertexPartition, partition_vertices
from oocgraph.resources import seceded
from oocgraph.results.bfs import BFSResult
from oocgraph.results.join import Join
from oocgraph.results.store_order import StoreOrder
from oocgraph.results.writer import MAX_ROWS
from oocgraph.store.columns import as_numpy
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.preallocated import PreallocatedArray
from oocgraph.store.remains import OUTPUT, TEMPORARY, Remains, clear
from oocgraph.store.search_store import SearchStore
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

ARRAY_BLOCK_VERTICES = 1 << 20
"""Ids of a block of a Dask array, unless there are more than `MAX_BLOCKS` of them."""

MAX_BLOCKS = 64
"""Blocks of an array: each may read all of the result's files."""

MAX_STREAMED_VERTICES = 1 << 22
"""Ids of a block that the client streams (`write`, `blocks`): about 150 MiB."""


STREAM_BYTES = 64 << 20
"""What a client that holds levels and parents holds at the least beside them to stream a result."""


class TemporaryStore:
    """Keeps a temporary result store until neither the result nor an array of it is left in this process.

    A copy in another process is None: it keeps nothing and removes nothing. A store of `make` is removed after this process has been
    killed, too: by the next output or search that has its place in the same folder (`oocgraph.store.remains`).
    """

    def __init__(self, path: str, remove: Callable[[], object] | None = None) -> None:
        self.path = path
        self.remove = weakref.finalize(self, remove or partial(shutil.rmtree, path, ignore_errors=True))

    @classmethod
    def make(cls, folder: Path) -> TemporaryStore:
        """Make a place for a result store in a folder, without what killed processes have left there.

        Raises
        ------
        OutputError
            The folder cannot be written to.
        """
        try:
            clear(folder)
            remains = Remains.make(folder / "search.zarr")
        except OSError as error:
            raise OutputError(
                f"{folder}: results cannot be written here ({error.strerror}); set oocgraph.result-folder, or result_store, "
                "to another folder"
            ) from error
        made = cls(str(remains.folder / OUTPUT), remains.discard)
        _temporary[made.path] = made
        return made

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return type(None), ()


_temporary: weakref.WeakValueDictionary[str, TemporaryStore] = weakref.WeakValueDictionary()


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class DaskBFSResult(BFSResult):
    """A breadth-first search on a cluster, under the user's vertex ids.

    Parameters
    ----------
    result_store
        Folder that holds the search; its parents and levels are complete.
    client
        Computes what is asked for as a whole (`to_pandas`).
    cluster
        How it went there: ``num_hops``, ``num_steps``, ``exchange``, ``exchanged``, ``num_epochs``, ``num_moves``, ``resumed_after_step``,
        ``edge_shares``, ``shares_reason`` (see `oocgraph.cluster.logged_search.Outcome`).
    owned
        Whether the folder is temporary: it is removed with the last of the result and its arrays in this process.
    **others
        As of `BFSResult`; ``search.level`` and ``search.parent`` are `oocgraph.results.store_order.StoreOrder`.

    Notes
    -----
    `vertices`, `level` and `parent` are Dask arrays, (num_ids,), of the dtypes that `BFSResult` gives them. What is persisted or sent away
    from them does not keep an owned folder: name a result store to go on using it.

    A pickle says where the result store is, and has no client; of an owned folder it is a `BFSResult` with all levels and parents.
    """

    result_store: str
    client: Any = None
    cluster: Mapping[str, Any] = field(default_factory=dict)
    owned: bool = False

    def __post_init__(self) -> None:
        if self.owned:
            self._keep  # noqa: B018 - made now, so that the folder of a result that is never read is removed too

    def __copy__(self) -> DaskBFSResult:
        return replace(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a pickle has: no client, and levels and parents where their folder goes with this result.

        Raises
        ------
        BudgetError
            These do not fit into memory.
        """
        needed_bytes, free_bytes = self._held_bytes, self.free_bytes()
        if self.owned and needed_bytes > free_bytes:
            raise BudgetError(
                f"the result store of this result is temporary, so a pickle has all levels and parents: {format_bytes(needed_bytes)}, but "
                f"oocgraph.memory-budget leaves {format_bytes(max(0, free_bytes))}; raise it, or search with result_store=..., whose path "
                "is all that a pickle needs"
            )
        sent = self._held() if self.owned else replace(self, client=None, result_store=_absolute(self.result_store))
        return _unpickled, (type(sent), {field.name: getattr(sent, field.name) for field in fields(sent)})

    def summary(self) -> dict[str, Any]:
        """Return the metrics as plain numbers; ``result_store`` is null where it was temporary."""
        return {**super().summary(), **self.cluster, "result_store": None if self.owned else self.result_store}

    def _in_memory(self, columns: Sequence[Any]) -> Sequence[Array]:
        if self.client is None or self.client.status != "running":  # the result is in files, and can be read here
            return da.compute(*columns, scheduler="threads")  # type: ignore[no-any-return]
        with seceded():
            return self.client.gather(self.client.compute(columns))  # type: ignore[no-any-return]

    def block_vertices(self, most: int) -> int:
        """Return the vertices joined at once, whatever memory allows for: each block may read all of the result's files."""
        num_units = -(-self.ids.num_ids // (MAX_BLOCKS * MAX_ROWS))
        return min(MAX_STREAMED_VERTICES, max(1, num_units) * MAX_ROWS)  # whole row groups

    def free_bytes(self) -> int:
        """Return what the client's own memory budget leaves."""
        budget_bytes = effective_budget_bytes(settings().memory_budget)
        return budget_bytes - bytes_before(budget_bytes)

    def streamed(self) -> BFSResult:
        """Return a result that holds levels and parents in store order, where the client has room for them: each file is read once then."""
        return self if self._held_bytes + STREAM_BYTES > self.free_bytes() else self._held()

    @property
    def _held_bytes(self) -> int:
        return sum(one.size * one.dtype.itemsize for one in (self.search.level, self.search.parent))

    def _held(self) -> BFSResult:
        """Return a result that holds levels and parents."""
        inherited = {field.name: getattr(self, field.name) for field in fields(BFSResult)}
        held = replace(self.search, level=np.asarray(self.search.level), parent=np.asarray(self.search.parent))
        return BFSResult(**{**inherited, "search": held, "memory_budget": effective_budget_bytes(settings().memory_budget)})

    @cached_property
    def origin(self) -> Any:
        """See `BFSResult`; found in this process, as a NumPy array."""
        return self._held().origin

    def put_by_workers(self, arrays: Mapping[str, PreallocatedArray]) -> bool:
        """Have each worker write its share of the blocks, if there are workers and all of them see the folder."""
        if self.client is None or self.client.status != "running":
            return False
        folder = str(next(iter(arrays.values())).root)
        seen = self.client.run(os.path.isdir, folder)
        if not seen or not all(seen.values()):
            return False
        arguments = self.ids.store.place, _absolute(self.result_store), folder
        with seceded():
            self.client.gather([self.client.submit(write_block, *arguments, *bounds, pure=False) for bounds in self._bounds()])
        return True

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """Ranges of the blocks of an array."""
        num_ids, size = self.ids.num_ids, self._array_block_size
        return ((start, min(num_ids, start + size)) for start in range(0, num_ids, size))

    @property
    def _array_block_size(self) -> int:
        return max(ARRAY_BLOCK_VERTICES, -(-self.ids.num_ids // MAX_BLOCKS))

    @cached_property
    def _keep(self) -> TemporaryStore:
        """Guard of the folder, shared by all copies of this result."""
        keep = _temporary.get(self.result_store)
        if keep is None:
            keep = _temporary[self.result_store] = TemporaryStore(self.result_store)
        return keep

    @cached_property
    def _token(self) -> str:
        return uuid4().hex

    def _columns_joined(self, names: Sequence[str]) -> Sequence[Any]:
        """Return whole columns as Dask arrays."""
        return [self._array(name) for name in names]

    def _array(self, column: str) -> Any:
        sizes = [stop - start for start, stop in self._bounds()] or [0]
        keep = self._keep if self.owned and column != "vertices" else None
        block = partial(read_block, self.ids.store.place, _absolute(self.result_store), column, self._array_block_size, keep)
        dtype = self.dtype_of(column)
        return da.map_blocks(block, name=f"bfs-{column}-{self._token}", chunks=(tuple(sizes),), dtype=dtype, meta=np.empty(0, dtype))


def _unpickled(kind: type[BFSResult], values: dict[str, Any]) -> BFSResult:
    return kind(**values)


def read_block(
    graph: str, result_store: str, column: str, size: int, _keep: TemporaryStore | None, *, block_id: tuple[int]
) -> Array:  # fmt: skip
    """Return a block of a column, on any machine that sees the two folders; their paths are absolute, as workers have folders of their own.

    Parameters
    ----------
    graph, result_store
        Where they are.
    column
        ``vertices``, ``level`` or ``parent``.
    size
        Ids of a block; the last may be smaller.
    _keep
        Keeps the result store in the process of the client for as long as there is an array of it.
    block_id
        Number of the block, as Dask gives it.

    Raises
    ------
    StoreError
        The graph or the result store cannot be opened, or they do not belong together.
    """
    store = open_graph(graph)
    ids = VertexIds(store)
    vertices, numbers = ids.stored_block(block_id[0] * size, (block_id[0] + 1) * size)
    if column == "vertices":
        return as_numpy(vertices)
    return as_numpy(_open_join(store, ids, result_store).values_of((column,), vertices, numbers)[column])


def write_block(graph: str, result_store: str, folder: str, start: int, stop: int) -> None:
    """Write the ids at positions ``start .. stop - 1``, integers, with level and parent, to preallocated arrays in a folder.

    Raises
    ------
    StoreError
        As of `read_block`.
    """
    store = open_graph(graph)
    ids = VertexIds(store)
    vertices, numbers = ids.stored_block(start, stop)
    values = _open_join(store, ids, result_store).values_of(("level", "parent"), vertices, numbers)
    for name, column in {"vertices": vertices, **values}.items():
        PreallocatedArray(Path(folder), name, column.dtype, ids.num_ids).write(start, column)


def _open_join(store: CSRStore, ids: VertexIds, result_store: str) -> Join:
    try:
        search = SearchStore.open(result_store)
        search.require_complete()
    except OocGraphError as error:
        raise StoreError(
            f"the result of this search is gone or out of reach ({error}); a result store that was not named lives as long as the result "
            "and its arrays: keep them, or name a folder with result_store=..."
        ) from error
    fingerprint = graph_fingerprint(store)
    if search.field("graph_fingerprint") != fingerprint:
        named = "" if TEMPORARY in result_store else f" for {result_store}"
        raise StoreError(f"{store.url} is not the graph that was searched{named}: it was built again; search again")
    vertex_partition = vertex_partition_of(store, search)
    level, parent = StoreOrder(search, vertex_partition, "level"), StoreOrder(search, vertex_partition, "parent")
    return Join(ids, level, parent, ids.parse(search.field("isolated_sources")))


def vertex_partition_of(store: CSRStore, search: SearchStore) -> VertexPartition:
    """Return who owns which vertices in a result store of this graph."""
    return _vertex_partition(store.place, graph_fingerprint(store), search.num_partitions, search.shares)


@lru_cache(maxsize=4)
def _vertex_partition(url: str, _fingerprint: str, num_partitions: int, shares: tuple[int, ...] | None) -> VertexPartition:
    return partition_vertices(open_graph(url), num_partitions, shares)


def _absolute(path: str) -> str:
    return path if "://" in path else os.path.abspath(path)
