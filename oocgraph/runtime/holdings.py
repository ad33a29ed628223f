"""The partitions and searches that one worker holds, and the memory they take.

In: `GraphSpec` (what to load), `SearchSpec` (what to search), and the parts of a frontier. Out: this worker's part of the next frontier;
visited bits and parents stay here, and in the log of the result store, from which any worker can make them again.

A *lease* is one opened runtime of one client: it reserves memory for one search at a time on the partitions it uses. Leases on
the same graph share what is loaded of it; where another graph comes, those that are there give up edges and planes for it.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oocgraph.errors import BudgetError, ClusterError
from oocgraph.exchange.parts import FrontierPart
from oocgraph.kernels import warm
from oocgraph.memory import default_budget_bytes, device_bytes_read, effective_budget_bytes, host_bytes
from oocgraph.partition.dealing import Dealing, deal
from oocgraph.plan.residency import Residency, part_state_bytes
from oocgraph.result import Iteration
from oocgraph.runtime.engine import BUFFER_BYTES
from oocgraph.runtime.events import SEARCHES
from oocgraph.runtime.part import PartRuntime, PartState
from oocgraph.runtime.part_load import Loading, PartPlan
from oocgraph.runtime.specs import GraphSpec, LeftError, SearchSpec, StateLostError
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.search_log import LogWriter
from oocgraph.store.search_store import SearchStore, graph_fingerprint
from oocgraph.types import Array

SPILL_MARGIN = 0.05
"""Budget of a worker below the share of its memory at which Dask begins to spill results."""

SPILL_SHARE = 0.7
"""That share where Dask's configuration does not name one."""

EVENT_SECONDS = 0.001
"""How long an event of a step waits for the message that the step has ended (Dask sends one batch every 2 ms)."""

REMEMBERED = 1024
"""Searches and leases that have left, the last ones, so that a task of theirs that comes late finds the door shut."""

MOST_NAMED = 8
"""Partitions that a message names one by one."""

phase_hook: Callable[[str, int, int], None] | None = None
"""For tests: called with (phase, step, partition) as each phase of a step begins: read, kernel, transfer, finish."""


@dataclass(slots=True)
class HeldPart:
    """A partition that is loaded, and who uses it; `runtime` is None when it is not loaded any more. `lock` is held by a step."""

    spec: GraphSpec
    plan: PartPlan
    residency: Residency
    runtime: PartRuntime | None
    num_loads: int = 1
    lock: threading.RLock = field(default_factory=threading.RLock)
    leases: set[str] = field(default_factory=set)


@dataclass(slots=True)
class RunningSearch:
    """The state of a search in a partition, and the load of it (the n-th) that made or last used the state."""

    spec: SearchSpec
    state: PartState
    log: LogWriter
    step: int
    num_loads: int


class Holdings:
    """The partitions and searches of one worker, and the memory they take.

    Locks are taken in this order: that of what is held (while it is loaded), that of a partition (while it takes a step), that of
    the searches (never for long).
    """

    def __init__(self, worker: Any) -> None:
        self.worker = worker
        self._lock = threading.RLock()
        self._searches_lock = threading.Lock()
        self._left: deque[str] = deque(maxlen=REMEMBERED)
        self._parts: dict[tuple[str, int, int], HeldPart] = {}
        self._charges: dict[tuple[str, int], int] = {}
        self._searches: dict[tuple[str, int], RunningSearch] = {}
        self._baseline = 0
        self._dealings: dict[tuple[str, int], tuple[CSRStore, Dealing]] = {}

    # Memory: who holds how much.

    def limit_bytes(self, spec: GraphSpec) -> int:
        """Bytes that this worker may hold in all."""
        import dask.config

        limit = self.worker.memory_manager.memory_limit
        requested = spec.memory_budget if spec.memory_budget is not None else spec.settings.memory_budget
        if not limit:
            return effective_budget_bytes(requested) if requested is not None else default_budget_bytes()
        spill = dask.config.get("distributed.worker.memory.spill", SPILL_SHARE)
        share = (spill if spill else SPILL_SHARE) - SPILL_MARGIN
        most = int(share * limit)
        return most if requested is None else min(most, effective_budget_bytes(requested))

    def acquire(self, lease: str, spec: GraphSpec, partitions: Sequence[int]) -> list[dict[str, Any]]:
        """Reserve memory for one search and load `partitions`, if they are not here already.

        Returns
        -------
        list of dict
            Of each partition: planes, bytes and imbalance figures.

        Raises
        ------
        BudgetError
            They do not fit beside what is here; nothing has changed then.
        """
        with self._lock:
            self._refuse_late(lease)
            store, dealing = self._deal(spec)
            warm.load_search_kernels(store.attributes.index_dtype, parts=True)
            new = [p for p in partitions if (spec.fingerprint, spec.num_partitions, p) not in self._parts]
            charges = {
                (lease, p): part_state_bytes(store.num_vertices, int(dealing.num_owned[p]), store.index_dtype.itemsize) for p in partitions
            }
            threads = spec.threads or max(1, int(self.worker.state.nthreads))
            loading = Loading(threads, spec.settings.io_threads, BUFFER_BYTES, spec.max_planes, spec.check_pages)
            plans = {(spec.fingerprint, spec.num_partitions, p): PartPlan(store, dealing, p, loading) for p in new}
            try:
                residencies = self._share_out(spec, plans, charges)
            except BudgetError as error:
                raise BudgetError(
                    f"worker {self.worker.address} cannot take partition {_some(partitions)} of {spec.num_partitions}: {error}; "
                    "or use more workers (--workers) or more memory for each (--worker-memory)"
                ) from error
            self._shrink({key: r for key, r in residencies.items() if key in self._parts})
            self._charges.update(charges)
            for key, plan in plans.items():
                self._parts[key] = HeldPart(spec, plan, residencies[key], self._load(spec, plan, residencies[key]))
                self._refuse_late(lease)
            for p in partitions:
                self._parts[spec.fingerprint, spec.num_partitions, p].leases.add(lease)
            return [self._figures(self._parts[spec.fingerprint, spec.num_partitions, p], p) for p in partitions]

    def _refuse_late(self, name: str) -> None:
        """Refuse a task of a lease or a search that has left: it was on its way when the client went."""
        if name in self._left:
            raise LeftError(f"{name} has left worker {self.worker.address}")

    def _deal(self, spec: GraphSpec) -> tuple[CSRStore, Dealing]:
        key = spec.fingerprint, spec.num_partitions
        if key not in self._dealings:
            store = open_graph(spec.url)
            if graph_fingerprint(store) != spec.fingerprint:
                raise ClusterError(
                    f"worker {self.worker.address} sees another graph at {spec.url} than the client; "
                    "give a path that means the same on every machine"
                )
            self._dealings[key] = store, deal(store, spec.num_partitions)
        return self._dealings[key]

    def _share_out(self, spec: GraphSpec, plans: dict[Any, PartPlan], charges: dict[Any, int]) -> dict[Any, Residency]:
        """Plan what new partitions hold; if they do not fit beside those that are here, all get equal shares."""
        limit = self.limit_bytes(spec)
        held = sum(residency_bytes(part.residency) for part in self._parts.values())
        searches = sum({**self._charges, **charges}.values())
        here = host_bytes()  # later it cannot be told from what is reserved and not yet touched, so it never falls
        self._baseline = max(self._baseline, here - held - sum(self._charges.values())) if self._parts else here
        free = limit - self._baseline - searches
        if held <= free:
            try:
                return _equal_shares(plans, free - held, limit)
            except BudgetError:
                if not self._parts:
                    raise
        everything = {**{key: part.plan for key, part in self._parts.items()}, **plans}
        shares = _equal_shares(everything, free, limit)
        grown = {key for key, part in self._parts.items() if residency_bytes(shares[key]) >= residency_bytes(part.residency)}
        return {key: residency for key, residency in shares.items() if key not in grown}

    def _shrink(self, residencies: dict[Any, Residency]) -> None:
        """Load what is here anew with less."""
        for key, residency in residencies.items():
            part = self._parts[key]
            with part.lock:
                self._close_part(part)
                try:
                    part.runtime = self._load(part.spec, part.plan, residency)
                except BaseException:
                    del self._parts[key]
                    raise
                part.residency = residency
                part.num_loads += 1

    def _load(self, spec: GraphSpec, plan: PartPlan, residency: Residency) -> PartRuntime:
        graph, loading = plan.load(residency, self.limit_bytes(spec)), plan.loading
        return PartRuntime(
            plan.store, plan.dealing, plan.partition, graph, threads=loading.threads, io_threads=loading.io_threads, knobs=spec.settings
        )

    def _close_part(self, part: HeldPart) -> None:
        """Give back the memory of a partition whose lock is held."""
        runtime, part.runtime = part.runtime, None
        if runtime is not None:
            runtime.close()
        del runtime
        gc.collect()

    def _figures(self, part: HeldPart, partition: int) -> dict[str, Any]:
        runtime = _loaded(part)
        return {
            "partition": partition,
            "worker": self.worker.address,
            "planes_resident": runtime.planes_resident,
            "in_memory": runtime.graph.push.all_resident,
            "memory_budget": self.limit_bytes(part.spec),
            "resident_bytes": residency_bytes(part.residency),
            "load_seconds": runtime.graph.load_seconds,
            "num_owned": int(runtime.dealing.num_owned[partition]),
            "num_edges": int(runtime.dealing.num_edges[partition]),
        }

    # Searches.

    def step(
        self, spec: SearchSpec | tuple[str, int], graph: tuple[str, int], partition: int, index: int, parts: Sequence[FrontierPart]
    ) -> FrontierPart:
        """Take one step of a search; see `oocgraph.runtime.part`.

        Raises
        ------
        StateLostError
            The search, in this epoch and at this step, is not here.
        """
        self._refuse_late(spec.search if isinstance(spec, SearchSpec) else spec[0])
        held = self._held(graph, partition)
        with held.lock:
            runtime = _loaded(held)
            began, device_began = time.perf_counter(), device_bytes_read()
            if isinstance(spec, SearchSpec):
                running = self._begin(spec, runtime, partition, held.num_loads)
            else:
                search, epoch = spec
                self._refuse_late(search)
                found = self._searches.get((search, partition))
                if found is None or (found.spec.epoch, found.step) != (epoch, index - 1):
                    raise StateLostError(f"worker {self.worker.address} is not at step {index} of the search in partition {partition}")
                running = found
            if running.num_loads != held.num_loads:
                runtime.adopt(running.state)
                running.num_loads = held.num_loads
            return self._take(running, runtime, partition, index, parts, began, device_began)

    def _held(self, graph: tuple[str, int], partition: int) -> HeldPart:
        held = self._parts.get((*graph, partition))
        if held is None:
            raise StateLostError(f"worker {self.worker.address} does not hold partition {partition}")
        return held

    def _begin(self, spec: SearchSpec, runtime: PartRuntime, partition: int, num_loads: int) -> RunningSearch:
        """Start, or make again from the logs, the state of a search in a partition."""
        self._refuse_late(spec.lease)
        self._refuse_late(spec.search)
        found = self._searches.get((spec.search, partition))
        if found is not None and found.spec.epoch >= spec.epoch:
            raise StateLostError(f"worker {self.worker.address} has begun epoch {found.spec.epoch} of the search, not {spec.epoch}")
        self._forget(spec.search, partition)
        store = SearchStore.open(spec.result_store)
        if spec.last_step < 0:
            state = runtime.start(spec.sources)
        else:
            logs = [store.records(p, spec.last_step, parents=p == partition) for p in range(runtime.dealing.num_partitions)]
            state = runtime.resume(logs)
        running = RunningSearch(spec, state, LogWriter(store.log_path(partition, spec.epoch)), spec.last_step, num_loads)
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
    ) -> FrontierPart:
        state, spec = running.state, running.spec

        def at(phase: str) -> None:
            self._refuse_late(spec.lease)
            self._refuse_late(spec.search)
            if phase_hook is not None:
                phase_hook(phase, index, partition)

        had_ended, num_found = state.ended, 0
        found: list[int] = []
        runtime.on_phase = at
        part = runtime.step(state, spec.options, list(parts) or None, spec.iterate)
        running.step = index
        if not had_ended:
            record = runtime.record(state, index)
            running.log.append(record)
            found = np.bincount(record.early_level).tolist() if record.early_level.size else []
            num_found = int(np.bitwise_count(record.found).sum()) if record.dense else int(record.found.size)
            if state.ended:
                runtime.finish(state)
        at("transfer")
        event = {
            "search": spec.search,
            "step": index,
            "epoch": spec.epoch,
            "partition": partition,
            "worker": self.worker.address,
            "level": state.level,
            "ended": state.ended,
            "num_found": num_found,
            "num_found_early": found,
            "num_reached": state.num_reached,
            "sent_bytes": (len(runtime.blocks) - 1) * part.vertices.nbytes if part.vertices.size else 0,
            "busy_seconds": time.perf_counter() - began,
            "device_bytes": device_bytes_read() - device,
            "iterations": [_row(one) for one in state.drain()],
        }
        if not had_ended:
            self._tell(event)
        return part

    def _tell(self, event: dict[str, Any]) -> None:
        """Send an event a moment later: the stream to the scheduler pauses after each message, and the end of the task comes first."""
        loop = self.worker.loop
        if event["ended"]:  # nobody waits for the task
            self.worker.log_event(SEARCHES, event)
        else:
            loop.add_callback(loop.call_later, EVENT_SECONDS, self.worker.log_event, SEARCHES, event)

    def finish(self, search: str, graph: tuple[str, int], partition: int) -> dict[str, Any]:
        """Write levels and parents of the partition's vertices to the result store; returns figures of the search."""
        self._refuse_late(search)
        held = self._held(graph, partition)
        with held.lock:
            running, runtime = self._searches.get((search, partition)), _loaded(held)
            if running is None:
                raise StateLostError(f"worker {self.worker.address} holds no search of partition {partition}")
            if phase_hook is not None:
                phase_hook("finish", running.step, partition)
            state = running.state
            if not state.ended:  # nothing was found in the last step, which the driver has seen first
                state.ended = True
                runtime.finish(state)
            SearchStore.open(running.spec.result_store).write_part(partition, state.levels, state.parent)
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
        self._left.append(search)
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
        """Give back what a lease holds; what nobody else uses is closed."""
        self._left.append(lease)
        self._wait_for_steps()
        for (name, partition), running in list(self._searches.items()):
            if running.spec.lease == lease:
                self._forget(name, partition)
        with self._lock:
            for charge in [charge for charge in self._charges if charge[0] == lease]:
                del self._charges[charge]
            for key, part in list(self._parts.items()):
                part.leases.discard(lease)
                with part.lock:
                    if part.runtime is not None:
                        part.runtime.buffers.clear()
                    if not part.leases:
                        del self._parts[key]
                        self._close_part(part)
            used = {key[:2] for key in self._parts}
            self._dealings = {key: value for key, value in self._dealings.items() if key in used}

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
            "reserved_bytes": sum(list(self._charges.values())) + sum(residency_bytes(part.residency) for _, part in parts),
        }


def _some(partitions: Sequence[int]) -> str:
    """Name a few of many."""
    if len(partitions) <= MOST_NAMED:
        return ", ".join(map(str, partitions))
    return f"{partitions[0]}, {partitions[1]}, ..., {partitions[-1]} ({len(partitions)} of them)"


def _equal_shares(plans: dict[Any, PartPlan], available_bytes: int, limit_bytes: int) -> dict[Any, Residency]:
    k = len(plans)
    return {key: plan.residency(available_bytes=available_bytes // k, limit_bytes=limit_bytes, shares=k) for key, plan in plans.items()}


def _loaded(part: HeldPart) -> PartRuntime:
    """Return what is loaded of a partition whose lock is held."""
    if part.runtime is None:
        raise StateLostError(f"partition {part.plan.partition} is not loaded any more")
    return part.runtime


def residency_bytes(residency: Residency) -> int:
    """Bytes that a residency takes in all."""
    return residency.vertex_bytes + residency.plane_bytes + residency.resident_bytes + residency.staging_bytes + residency.cache_bytes


def _row(figures: Iteration | Array) -> tuple[Any, ...] | bytes:
    """Figures of a level as an event may hold them; of many levels as bytes of float64 (see `SearchState.drain`)."""
    if isinstance(figures, Iteration):
        return (
            figures.level, figures.direction, figures.reason, figures.frontier, figures.undecided, figures.seconds, figures.bytes_read
        )  # fmt: skip
    return figures.tobytes()
