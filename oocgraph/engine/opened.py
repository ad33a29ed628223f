"""A graph in this process for any computation: loaded once for searches and components, with the edges of products kept between calls.

In: a store, resources. Out: `OpenedGraph`, what `oocgraph.open_runtime` returns in process, and `Unopened`, which stands for a graph in a
call without a runtime. Products read the edges that searches have loaded where they are; what they read beside these is kept as far as the
budget goes. All of it is within one budget: a computation that finds no room has what others left given back, and loaded again when it is
asked for. On a GPU products keep matrices in its memory, beside what searches have there, under the same rule.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from oocgraph.arrays import Device
from oocgraph.closing import Closing
from oocgraph.engine.in_process import MANY_SEARCHES, open_in_process
from oocgraph.engine.lifetime import Lifetime
from oocgraph.engine.on_devices import HoldsOnDevices, Kept, KeptOnDevices
from oocgraph.engine.vertex_order import MAX_IDS, POSITION_BYTES, VertexOrder
from oocgraph.errors import BudgetError
from oocgraph.memory import Budget, bytes_before
from oocgraph.resources import Resources
from oocgraph.results.search import Search
from oocgraph.sparse.edge_stream import EdgeStream
from oocgraph.store.graph import CSRStore
from oocgraph.store.input_order import input_positions
from oocgraph.types import Array, Direction, Progress, ignore_progress

if TYPE_CHECKING:
    from oocgraph.engine.block_runtime import BlockRuntime
    from oocgraph.engine.blocks import BlockEngine
    from oocgraph.engine.device import DeviceRuntime
    from oocgraph.engine.device_graph import DeviceAdjacency
    from oocgraph.engine.local import LocalRuntime
    from oocgraph.engine.small import SmallRuntime

logger = logging.getLogger(__name__)

Found = TypeVar("Found")


class Unopened(HoldsOnDevices):
    """A graph that one computation opens for itself.

    Parameters
    ----------
    limit_bytes
        Bytes that the process may hold.
    following_bytes
        As for `Budget`.
    baseline_bytes
        What the process held before the first of its computations; by default as much as it does then.
    """

    resident: Mapping[str, Array] = {}
    """Beginnings of arrays of the store that are in memory, by name."""

    def __init__(self, limit_bytes: int, following_bytes: int = 0, baseline_bytes: int | None = None) -> None:
        self._limit_bytes, self._following_bytes, self.baseline_bytes = limit_bytes, following_bytes, baseline_bytes
        self._on_devices = KeptOnDevices()

    def within(self, compute: Callable[[Budget], Found]) -> Found:
        """Return what `compute` makes within a budget, which it charges first."""
        if self.baseline_bytes is None:
            self.baseline_bytes = bytes_before(self._limit_bytes)
        return compute(Budget(self._limit_bytes, self.baseline_bytes, following_bytes=self._following_bytes))

    def edges(self, store: CSRStore, budget: Budget, **options: Any) -> EdgeStream:
        """Return a stream of the graph's edges; arguments as for `EdgeStream`."""
        return EdgeStream(store, budget, **options)

    @contextmanager
    def blocks(self, store: CSRStore, column: str | None, budget: Budget, **options: Any) -> Iterator[BlockEngine]:
        """Yield the graph's edges in blocks; arguments as for `BlockEngine`."""
        from oocgraph.engine.blocks import BlockEngine

        with BlockEngine(store, column, budget, **options) as engine:
            yield engine

    keeps = False
    """Whether what a computation has on devices serves the next."""

    @contextmanager
    def on_devices(self, _key: Hashable, make: Callable[[], Kept]) -> Iterator[Kept]:
        """Yield what `make` makes, for this call."""
        with self._on_devices.lend(object(), make, keep=False) as found:
            yield found

    def first_indices(self, _group: str) -> Array | None:
        """Neighbours of the first edges that are in the memory of the first device."""
        return None

    def host_indices(self, _group: str) -> Array | None:
        """Neighbours of the first edges that are in page-locked memory."""
        return None

    def vertex_order(self, store: CSRStore, _budget: Budget) -> VertexOrder:
        """Return what changes the order of vertices, as ids are streamed."""
        return VertexOrder(store)


class Opened(HoldsOnDevices, Closing):
    """What is open in this process for any number of computations, which take turns, and share one budget.

    Parameters
    ----------
    name
        Named in errors.
    limit_bytes, baseline_bytes
        The budget: bytes that the process may hold, and those that it held before.
    """

    client = None
    """The Dask client on whose workers it is: none."""

    lease = None
    """Name under which workers keep edges for it: there are none."""

    keeps = True
    """Whether what a computation has on devices serves the next."""

    def __init__(self, name: str, limit_bytes: int, baseline_bytes: int) -> None:
        self._name, self._limit_bytes, self._baseline_bytes = name, limit_bytes, baseline_bytes
        self._lifetime = Lifetime(name)
        self._on_devices = KeptOnDevices()

    def check(self) -> None:
        """Refuse to do anything once it is closed."""
        self._lifetime.check()

    def close(self) -> None:
        """Give back what it holds; closing again does nothing."""
        with self._lifetime.ending() as was_open:
            if was_open:
                self._give_back()

    def within(self, compute: Callable[[Budget], Found]) -> Found:
        """Return what `compute` makes within what is left of the budget, which it charges first.

        Where that is too little, what other computations have left is given back, and `compute` is called once more.

        Raises
        ------
        BudgetError
            The whole budget is too small.
        """
        with self._taking_turns():
            try:
                return compute(self._budget())
            except BudgetError:
                if not self._holds_anything:
                    raise
                logger.info("%s: what is loaded is given back, because a computation needs the memory", self._name)
                self._give_back()
            return compute(self._budget())

    @contextmanager
    def on_devices(self, key: Hashable, make: Callable[[], Kept]) -> Iterator[Kept]:
        """Yield what `make` has made at the first call with this key, and keep it for the next; inside of `within`."""
        with self._on_devices.lend(key, make, keep=True) as found:
            yield found

    @property
    def _holds_anything(self) -> bool:
        """Whether `_give_back` makes room."""
        return bool(self._on_devices)

    def _budget(self) -> Budget:
        """Return the budget of a computation that leaves what is loaded in memory, also while its result is written."""
        return Budget(self._limit_bytes, self._baseline_bytes + self._on_devices.host_bytes)

    def _give_back(self) -> None:
        """Give back what computations have left."""
        self._on_devices.give_back()

    @contextmanager
    def _taking_turns(self) -> Iterator[None]:
        self._lifetime.check()  # before the lock, which a fork may never get
        with self._lifetime.searching:
            self._lifetime.check()
            yield


class OpenedGraph(Opened):
    """A graph in this process for any number of computations, which take turns. Use it in a ``with`` statement.

    Parameters
    ----------
    store
        The graph, or a view of it.
    resources
        Memory, threads and device.
    progress
        Called while the graph is loaded.
    num_searches
        How many searches the start of a GPU has to pay for.

    Raises
    ------
    BudgetError
        A search does not fit; the message names the smallest budget that works.
    DeviceError
        Device ``cuda``, and no GPU can be used.
    """

    only_searches = False
    """Whether `oocgraph.bfs` alone takes it."""

    def __init__(
        self, store: CSRStore, resources: Resources, progress: Progress = ignore_progress, *, num_searches: int = MANY_SEARCHES
    ) -> None:  # fmt: skip
        self.store, self.view, self.resources = store.stored, store, resources
        self._streams: dict[tuple[bool, str | None, bool], tuple[EdgeStream, int]] = {}
        self._engines: dict[tuple[bool, str | None], tuple[BlockEngine, int]] = {}
        self._position: Array | None = None
        loaded = open_in_process(store, resources, num_searches=num_searches, progress=progress)
        super().__init__(store.url, loaded.budget.limit_bytes, loaded.budget.baseline_bytes)
        self._loaded: LocalRuntime | BlockRuntime | DeviceRuntime | SmallRuntime | None = loaded
        self._metrics = loaded.metrics
        self.device: Device | None = getattr(loaded, "device", None)

    def search(
        self, sources: Array, *, direction: Direction = "auto", depth_limit: int | None = None, targets: Array | None = None,
        progress: Progress = ignore_progress,
    ) -> Search:  # fmt: skip
        """Traverse from `sources`, (num_sources,) int64 store numbers, distinct, perhaps none, until all of `targets` are found, if given.

        The result is in store order.
        """
        with self._taking_turns():
            if self._loaded is None:
                self._give_back()
                self._loaded = open_in_process(self.view, self.resources)
            return self._loaded.search(sources, direction=direction, depth_limit=depth_limit, targets=targets, progress=progress)

    @property
    def metrics(self) -> dict[str, Any]:
        """What a result says of the runtime: fields of `oocgraph.BFSResult`."""
        loaded = self._loaded
        return self._metrics if loaded is None else loaded.metrics

    @property
    def resident(self) -> Mapping[str, Array]:
        """Beginnings of arrays of the store that are in memory, by name."""
        return {} if self._loaded is None else self._loaded.resident

    def edges(
        self, store: CSRStore, budget: Budget, *, transpose: bool, column: str | None, threads: int, keep_edges: bool = True,
        whole_rows: bool = False,
    ) -> EdgeStream:  # fmt: skip
        """Return a stream of the graph's edges, which keeps as many as fit for the next call; arguments as for `EdgeStream`."""
        key = (transpose and store.attributes.directed, column, whole_rows)
        if key not in self._streams or self._streams[key][0].threads != threads:
            before = budget.reserved_bytes
            group = "in" if key[0] else "out"
            stream = EdgeStream(
                store, budget, transpose=transpose, column=column, threads=threads, keep_edges=True,
                resident=self.resident.get(f"{group}/indices"), whole_rows=whole_rows,
            )  # fmt: skip
            self._streams[key] = stream, budget.reserved_bytes - before
        return self._streams[key][0]

    @contextmanager
    def blocks(
        self, store: CSRStore, column: str | None, budget: Budget, *, threads: int, beside: Mapping[str, int], in_lists: bool = False,
    ) -> Iterator[BlockEngine]:  # fmt: skip
        """Yield the graph's edges in blocks, of which those in memory stay there for the next call; arguments as for `BlockEngine`."""
        from oocgraph.engine.blocks import BlockEngine  # with 60 kernels, which a search does not need

        key = (in_lists and store.attributes.directed, column)
        if key in self._engines and self._engines[key][0].threads == threads:
            budget.reserve_all(beside)
        else:
            before = budget.reserved_bytes + sum(beside.values())
            engine = BlockEngine(store, column, budget, threads=threads, beside=beside, in_lists=in_lists)
            self._engines[key] = engine, budget.reserved_bytes - before
        yield self._engines[key][0]

    def vertex_order(self, store: CSRStore, budget: Budget) -> VertexOrder:
        """Return what changes the order of vertices: by positions, which are kept for the next call, if there is room for them.

        To be asked for last, when all that has to be there is charged.
        """
        needed = POSITION_BYTES * store.num_rows
        if self._position is None and store.attributes.num_input_vertices <= MAX_IDS and needed <= budget.available_bytes:
            budget.reserve("positions of vertices", needed)
            self._position = input_positions(store)
        return VertexOrder(store, self._position, self.resources.num_threads)

    def first_indices(self, group: str) -> Array | None:
        """Neighbours of the first edges, ``out`` or ``in``, that searches have in the memory of the first device."""
        found = self._adjacency(group)
        return None if found is None else found.resident

    def host_indices(self, group: str) -> Array | None:
        """Neighbours of the first edges, ``out`` or ``in``, that searches have in page-locked memory."""
        found = self._adjacency(group)
        return None if found is None else found.host

    def _adjacency(self, group: str) -> DeviceAdjacency | None:
        """Return what searches on a device have of a group."""
        if self.device is None or self._loaded is None:
            return None
        graph: Any = getattr(self._loaded, "graph", None)
        found: DeviceAdjacency = graph.pull if group == "in" else graph.push
        return found

    def _searching_on(self, number: int) -> int:
        return int(getattr(self._loaded, "device_bytes", 0)) if number == 0 else 0

    @property
    def _holds_anything(self) -> bool:
        return self._loaded is not None or self._position is not None or bool(self._streams or self._engines or self._on_devices)

    def _budget(self) -> Budget:
        loaded = 0 if self._loaded is None else self._loaded.budget.reserved_bytes
        kept = sum(num_bytes for kept in (self._streams, self._engines) for _, num_bytes in kept.values())
        kept += 0 if self._position is None else self._position.nbytes
        return Budget(self._limit_bytes, self._baseline_bytes + loaded + kept + self._on_devices.host_bytes)

    def _give_back(self) -> None:
        self._streams.clear()
        self._position = None
        self._close_engines()
        self._on_devices.give_back()
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None

    def _close_engines(self) -> None:
        while self._engines:
            self._engines.popitem()[1][0].close()
