"""The searches that one worker takes part in, on the partitions that it holds (`oocgraph.cluster.shard_cache`).

In: `GraphSpec` (what to load), `SearchSpec` (what to search), and the parts of a frontier. Out: this worker's part of the next frontier;
visited bits and parents stay here, and in the log of the result store, from which any worker can make them again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from oocgraph.cluster.ledger import WorkerLedger
from oocgraph.cluster.shard_cache import ShardCache
from oocgraph.cluster.specs import SearchSpec, StateLostError
from oocgraph.cluster.worker_memory import HeldPart, loaded
from oocgraph.cluster.worker_steps import Hop, Steps, Taken
from oocgraph.engine.part import PartRuntime, PartState, bounds_of
from oocgraph.engine.take_over import Facts
from oocgraph.exchange.parts import FrontierPart
from oocgraph.exchange.windows import Channel
from oocgraph.memory import device_bytes_read
from oocgraph.results.search import Iteration
from oocgraph.store.search_log import LogWriter
from oocgraph.store.search_store import SearchStore
from oocgraph.types import Array


@dataclass(slots=True)
class RunningSearch:
    """The state of a search in a partition, and the load of it that made or last used the state."""

    spec: SearchSpec
    state: PartState
    log: LogWriter
    step: int
    load: int


@dataclass(frozen=True, slots=True)
class SearchSteps(Steps):
    """The steps of a search.

    Attributes
    ----------
    spec
        In the first hop of an epoch; None in later ones.
    graph
        Name of what the worker holds.
    """

    spec: SearchSpec | None
    graph: tuple[str, int]
    message: ClassVar[type[Any]] = FrontierPart

    def take(
        self, plugin: Any, hop: Hop, p: int, number: int, before: Sequence[FrontierPart], own: Mapping[int, Array], *, is_first: bool
    ) -> Taken:  # fmt: skip
        """See `WorkerState.step`."""
        taken: Taken = plugin.worker_state.step(self.spec or (hop.name, hop.epoch), self.graph, p, number, before, is_first=is_first)
        return taken

    def offer(self, plugin: Any, hop: Hop, p: int, channel: Channel | None) -> None:
        """See `Steps.offer`."""
        plugin.worker_state.offer(hop.name, self.graph, p, channel)

    def may_take_over(self, plugin: Any, p: int) -> bool:
        """See `WorkerState.may_take_over`."""
        may: bool = plugin.worker_state.may_take_over(self.graph, p)
        return may

    def take_over(self, plugin: Any, hop: Hop, p: int, other: int, channel: Channel) -> bool:
        """See `WorkerState.take_over`."""
        taken: bool = plugin.worker_state.take_over(hop.name, self.graph, p, other, channel)
        return taken

    def is_over(self, messages: Sequence[FrontierPart]) -> bool:
        """Whether nothing was found."""
        return not any(one.vertices.size for one in messages)


class WorkerState(ShardCache):
    """The partitions and searches of one worker, and the memory they take.

    Locks are taken in this order: that of what is held (while it is loaded), that of a partition (while it takes a step), that of
    the searches (never for long).
    """

    def __init__(self, worker: Any, ledger: WorkerLedger, at: Callable[[str, int, int], None]) -> None:
        super().__init__(worker, ledger)
        self._at = at
        self._searches_lock = threading.Lock()
        self._searches: dict[tuple[str, int], RunningSearch] = {}
        self._channels: dict[tuple[str, int], Channel] = {}

    def step(
        self,
        spec: SearchSpec | tuple[str, int],
        graph: tuple[str, int],
        partition: int,
        index: int,
        parts: Sequence[FrontierPart],
        *,
        is_first: bool,
    ) -> Taken:
        """Take one step of a search, the first of an epoch or a later one; see `oocgraph.engine.part`.

        Raises
        ------
        StateLostError
            The search, in this epoch and at this step, is not here.
        DeviceError
            The worker's device failed; the message names worker, partition and level.
        """
        search, epoch = (spec.search, spec.epoch) if isinstance(spec, SearchSpec) else spec
        self.refuse_late(search)
        held = self._held(graph, partition)
        with held.lock, self.device.naming():
            runtime = loaded(held)
            began, device_began = time.perf_counter(), device_bytes_read()
            if is_first and isinstance(spec, SearchSpec):
                running = self._begin(spec, runtime, partition, held.load)
            else:
                self.refuse_late(search)
                found = self._searches.get((search, partition))
                if found is None or (found.spec.epoch, found.step) != (epoch, index - 1):
                    raise StateLostError(f"worker {self.worker.address} is not at step {index} of the search in partition {partition}")
                running = found
            if running.state.lost:
                raise StateLostError(f"worker {self.worker.address} has lost what its device had noted of the search")
            if running.load != held.load:
                runtime.adopt(running.state)
                running.load = held.load
            return self._take(running, runtime, partition, index, parts, began, device_began)

    def offer(self, search: str, graph: tuple[str, int], partition: int, channel: Channel | None) -> None:
        """Have the next step of a search in a partition offer work to others, through the channel of its hop; None: have it offer none."""
        if channel is not None:
            self._channels[search, partition] = channel
            return
        self._channels.pop((search, partition), None)
        held = self._parts.get((*graph, partition))
        if held is not None and held.mapped is not None:
            held.mapped.clear()

    def take_over(self, search: str, graph: tuple[str, int], partition: int, other: int, channel: Channel) -> bool:
        """Take over a piece of another partition's step of a search, if there is one, and this partition holds what it needs."""
        held, running = self._parts.get((*graph, partition)), self._searches.get((search, partition))
        if held is None or running is None:
            return False
        window = channel.windows[other]
        board, offered = window.board, window.board.job_of(channel.round)
        if offered is None:
            return False
        with held.lock:  # before a piece is claimed, for which the owner would have to wait
            runtime, mapped, facts = held.runtime, held.mapped, Facts.of(offered[1])
            if runtime is None or mapped is None or running.load != held.load or facts.touched_bytes > held.planes_to_touch_bytes:
                return False
            plan = held.plan_of(other)
            if not runtime.can_take_over(running.state, facts, plan) or (owner := mapped.of(other, window.address, facts)) is None:
                return False
            piece = board.take(offered[0])
            if piece is None:
                return False
            left, num_bytes = runtime.take_over(running.state, facts, piece, owner, plan)
            owner.planes.forget_pages()
            board.report(left, num_bytes)
            return True

    def may_take_over(self, graph: tuple[str, int], partition: int) -> bool:
        """Whether a partition may take over work of others at all."""
        held = self._parts.get((*graph, partition))
        return held is not None and held.mapped is not None

    def _held(self, graph: tuple[str, int], partition: int) -> HeldPart:
        held = self._parts.get((*graph, partition))
        if held is None:
            raise StateLostError(f"worker {self.worker.address} does not hold partition {partition}")
        return held

    def _begin(self, spec: SearchSpec, runtime: PartRuntime, partition: int, load: int) -> RunningSearch:
        """Start, or make again from the logs, the state of a search in a partition."""
        self.refuse_late(spec.lease)
        self.refuse_late(spec.search)
        found = self._searches.get((spec.search, partition))
        if found is not None and found.spec.epoch >= spec.epoch:
            raise StateLostError(f"worker {self.worker.address} has begun epoch {found.spec.epoch} of the search, not {spec.epoch}")
        self._forget(spec.search, partition)
        del found  # its state's memory is lent to the next one
        store = SearchStore.open(spec.result_store)
        runtime.on_phase = partial(self._phase, spec, partition, spec.last_step)  # until now that of the search before
        if spec.last_step < 0:
            state = runtime.start(spec.sources)
        else:
            bounds = bounds_of(runtime.vertex_partition)
            logs = [
                store.records(p, spec.last_step, bounds[p], parents=p == partition) for p in range(runtime.vertex_partition.num_partitions)
            ]
            state = runtime.resume(logs)
        running = RunningSearch(spec, state, LogWriter(store.log_path(partition, spec.epoch)), spec.last_step, load)
        with self._searches_lock:
            self._searches[spec.search, partition] = running
        return running

    def _take(
        self,
        running: RunningSearch,
        runtime: PartRuntime,
        partition: int,
        index: int,
        parts: Sequence[FrontierPart],
        began: float,
        device: int,
    ) -> Taken:
        state, spec = running.state, running.spec
        runtime.on_phase = at = partial(self._phase, spec, partition, index)
        runtime.channel, runtime.take_over_share = self._channels.get((spec.search, partition)), spec.options.take_over
        try:
            part = runtime.step(state, spec.options, list(parts) or None)
        finally:
            runtime.channel = None  # another search of the partition has other windows; what is done to resume one is not offered
        running.step = index
        record = runtime.record(state, index)
        running.log.append(record)
        found = np.bincount(record.early_level).tolist() if record.early_level.size else []
        num_found = int(np.bitwise_count(record.found).sum()) if record.dense else int(record.found.size)
        if state.ended:
            runtime.finish(state)
        at("transfer")
        report = {
            "level": state.level,
            "num_found": num_found,
            "num_found_early": found,
            "num_reached": state.num_reached,
            "sent_bytes": (len(runtime.blocks) - 1) * part.vertices.nbytes if part.vertices.size else 0,
            "busy_seconds": time.perf_counter() - began,
            "device_bytes": device_bytes_read() - device,
            "iterations": [_row(one) for one in state.log.drain()],
        }
        return Taken(part, report)

    def _phase(self, spec: SearchSpec, partition: int, index: int, phase: str) -> None:
        """Note that a phase of a step begins, unless the search has left this worker."""
        self.refuse_late(spec.lease)
        self.refuse_late(spec.search)
        self._at(phase, index, partition)

    def finish(self, search: str, graph: tuple[str, int], partition: int) -> dict[str, Any]:
        """Write levels and parents of the partition's vertices to the result store; returns metrics of the search."""
        self.refuse_late(search)
        held = self._held(graph, partition)
        with held.lock, self.device.naming():
            running, runtime = self._searches.get((search, partition)), loaded(held)
            if running is None:
                raise StateLostError(f"worker {self.worker.address} holds no search of partition {partition}")
            if running.state.lost:
                raise StateLostError(f"worker {self.worker.address} has lost what its device had noted of the search")
            self._at("finish", running.step, partition)
            state = running.state
            if not state.ended:  # nothing was found in the last step, which the driver has seen first
                state.ended = True
                runtime.finish(state)
            SearchStore.open(running.spec.result_store).write_part(partition, [(state.levels, state.parent)])
            reached = state.visited
            levels = state.levels
            none = 255 if levels.dtype == np.uint8 else -1
            depth = int(levels[levels != none].max(initial=0)) if levels.size else 0
            return {
                "partition": partition,
                "depth": depth,
                "num_reached": int(np.bitwise_count(reached).sum()),
                "num_reached_edges": runtime.reached_edges(state) if partition == 0 else 0,
            }

    # Leaving.

    def forget(self, search: str) -> None:
        """Drop the states of a search; a step that runs ends first, soon, and none begins after."""
        self.leave(search)
        self._wait_for_steps()
        for name, partition in list(self._searches):
            if name == search:
                self._forget(name, partition)

    def _wait_for_steps(self) -> None:
        for part in list(self._parts.values()):
            with part.lock:
                continue

    def _forget(self, search: str, partition: int) -> None:
        with self._searches_lock:
            running = self._searches.pop((search, partition), None)
        if running is not None:
            running.log.close()

    def release(self, lease: str) -> None:
        """Give back what a lease holds; what has no other user is closed."""
        self.leave(lease)
        self._wait_for_steps()
        for (name, partition), running in list(self._searches.items()):
            if running.spec.lease == lease:
                self._forget(name, partition)
        with self._lock:
            for charge in [charge for charge in self._charges if charge[0] == lease]:
                del self._charges[charge]
            for key, part in list(self._parts.items()):
                self._leave_part(lease, key, part)
            self._forget_dealings()

    def close(self) -> None:
        """Close everything; a step that runs ends first, soon."""
        self._left.extend(name for name, _ in list(self._searches))
        for name, partition in list(self._searches):
            self._forget(name, partition)
        with self._lock:
            for part in self._parts.values():
                with part.lock:
                    self._close_part(part)
            self._parts.clear()
            self._charges.clear()

    def leases(self) -> list[str]:
        """Names of the leases that hold something here; does not wait for what is being loaded."""
        return sorted(
            {lease for lease, _ in list(self._charges)} | {lease for part in list(self._parts.values()) for lease in list(part.leases)}
        )

    def inventory(self) -> dict[str, Any]:
        """Say what is held, for tests and messages."""
        parts = list(self._parts.items())
        return {
            "parts": [list(key) for key, _ in parts],
            "searches": [list(key) for key in list(self._searches)],
            "reserved_bytes": self.reserved_bytes(),
        }


def _row(metrics: Iteration | Array) -> tuple[Any, ...] | bytes:
    """Metrics of a level as an event may hold them; of many levels as bytes of float64 (see `LevelLog.drain`)."""
    if isinstance(metrics, Iteration):
        one = metrics
        device = () if one.device is None else (astuple(one.device),)
        return one.level, one.direction, one.reason, one.frontier, one.undecided, one.seconds, one.bytes_read, *device
    return metrics.tobytes()
