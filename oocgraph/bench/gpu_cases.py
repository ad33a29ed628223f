"""Searches on a GPU with a graph's edges in one place: device memory, pinned host memory behind a small device budget, or disk behind it.

In: a store, a `Case`, a device, sources. Out: a `CaseRun`. In one of the cases the processor searches from the same sources, in turn.
Results wait on disk and are validated when the searches of the case are over and the device is free again. A case that the memory of the
machine does not allow is reported with the numbers, not failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from oocgraph.algorithms.bfs import bfs
from oocgraph.arrays import Device
from oocgraph.bench.disk import chunk_files, drop_page_cache
from oocgraph.bench.gpu_sweep import SweepRuntime, sweep_metrics
from oocgraph.bench.harness import in_turn
from oocgraph.bench.results_on_disk import ResultsOnDisk
from oocgraph.config import parse_bytes
from oocgraph.engine.device import DeviceRuntime
from oocgraph.engine.device_load import device_limit_bytes
from oocgraph.engine.local import LocalRuntime
from oocgraph.errors import BudgetError, DeviceError, OocGraphError
from oocgraph.memory import PeakSampler, format_bytes
from oocgraph.results.bfs import BFSResult
from oocgraph.store.arrays import StoredArray
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress

Place = Literal["device", "host", "disk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Where edges are.

    Attributes
    ----------
    edges
        ``device``: all in device memory. ``host``: what the budget leaves out is in pinned host memory. ``disk``: it is read from disk.
    budget_share
        The device budget as a share of the edge bytes; None where it was given in bytes, or is all that is free.
    device_memory_budget
        In bytes; None for all that is free.
    """

    edges: Place
    budget_share: float | None = None
    device_memory_budget: int | None = None

    @property
    def name(self) -> str:
        """For people."""
        if self.edges == "device":
            return "all on the device"
        budget = format_bytes(self.device_memory_budget or 0) if self.budget_share is None else f"{100 * self.budget_share:g} %"
        return f"{budget}, rest in host memory" if self.edges == "host" else f"{budget}, rest on disk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What all cases have: a device, and the host's memory and threads, as for `bfs`."""

    device: Device
    progress: Progress
    memory_budget: str | int | None = None
    threads: int | None = None

    def open_device(self, store: CSRStore, **options: Any) -> DeviceRuntime:
        """Load a graph on the device; see `DeviceRuntime.open`."""
        return DeviceRuntime.open(store, device=self.device, memory_budget=self.memory_budget, threads=self.threads, **options)

    def open_cpu(self, store: CSRStore) -> LocalRuntime:
        """Load a graph for the processor; see `LocalRuntime.open`."""
        return LocalRuntime.open(store, memory_budget=self.memory_budget, threads=self.threads, progress=self.progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRun:
    """The searches of a case.

    Attributes
    ----------
    case
        Where the edges were.
    refused
        Why it was not measured; None if it was, and then the rest holds.
    held
        ``planes_resident, plane_bytes, resident_bytes`` (edges beside the planes), ``device_bytes`` (charged to the budget),
        ``peak_device_bytes`` (by which the device's free memory shrank), ``pinned_bytes, load_seconds``, ``peak_host_bytes`` of the process
        (with the processor's graph, where that searches beside).
    results, invalid
        One entry for each source: the result without its arrays; the rule that it breaks, or None.
    cpu
        Metrics of the processor, where it was measured beside: ``seconds`` of each source, and what it held.
    cpu_invalid
        Rules that its results break.
    sweep
        Metrics of the baseline, where it was measured beside: its partitions, and ``searches`` (``seconds, link_bytes, num_levels``).
    sweep_invalid
        Rules that its results break.
    """

    case: Case
    refused: str | None = None
    held: dict[str, Any] = field(default_factory=dict)
    results: Sequence[BFSResult] = ()
    invalid: Sequence[str | None] = ()
    cpu: dict[str, Any] | None = None
    cpu_invalid: Sequence[str | None] = ()
    sweep: dict[str, Any] | None = None
    sweep_invalid: Sequence[str | None] = ()

    @property
    def wrong(self) -> list[str]:
        """What is wrong with results, in words that follow the graph."""
        rules = zip(self.results, self.invalid, strict=True)
        ours = [f", {self.case.name}, source {result.source}: {rule}" for result, rule in rules if rule is not None]
        ours += [f", processor: {rule}" for rule in self.cpu_invalid if rule is not None]
        return ours + [f", {self.case.name}, sweep: {rule}" for rule in self.sweep_invalid if rule is not None]


def cases_of(store: CSRStore, budgets: tuple[str, ...]) -> list[Case]:
    """Return the cases of a graph: all on the device, then each budget, with the rest in host memory and on disk.

    Parameters
    ----------
    budgets
        Sizes such as ``2G``, or shares of the edge bytes such as ``10%``.

    Raises
    ------
    OocGraphError
        A budget is neither.
    """
    out = [Case(edges="device")]
    places: tuple[Place, ...] = ("host", "disk")
    for text in budgets:
        share = parse_share(text)
        num_bytes = parse_bytes(text) if share is None else int(share * store.edge_bytes)
        out += [Case(edges=place, budget_share=share, device_memory_budget=num_bytes) for place in places]
    return out


def parse_share(text: str) -> float | None:
    """Return the share that a text such as ``10%`` means; None for a text without a percent sign.

    Raises
    ------
    OocGraphError
        It is not a number above 0.

    Examples
    --------
    >>> parse_share("10%"), parse_share("2G")
    (0.1, None)
    """
    if not text.strip().endswith("%"):
        return None
    try:
        share = float(text.strip()[:-1]) / 100
    except ValueError:
        share = 0.0
    if not 0 < share < float("inf"):
        raise OocGraphError(f"{text!r} is not a share of the edge bytes; write for example 10%, or a size such as 2G")
    return share


def stored_edges(store: CSRStore) -> list[StoredArray]:
    """Return the neighbours of a graph on disk, each direction that a search reads."""
    return [store.array(f"{group}/indices") for group in (["out", "in"] if store.attributes.directed else ["out"])]


def measure_case(
    case: Case, store: CSRStore, sources: list[Any], resources: Resources, *, folder: Path, beside_cpu: bool, beside_sweep: bool = False
) -> CaseRun:
    """Search from each source, then validate.

    Parameters
    ----------
    sources
        User ids.
    folder
        Where results wait for their validation.
    beside_cpu
        Whether the processor searches too, in turn.
    beside_sweep
        Whether the baseline does, too, where edges are in host memory.
    """
    results, cpu_results, sweep_results = (ResultsOnDisk(folder / name) for name in ("gpu", "cpu", "sweep"))
    try:
        with PeakSampler() as sampler:
            beside = cpu_results if beside_cpu else None, sweep_results if beside_sweep and case.edges == "host" else None
            held, cpu, sweep = _search_all(case, store, sources, resources, results, *beside)
    except BudgetError as error:
        return CaseRun(case=case, refused=str(error))
    held["peak_host_bytes"] = sampler.peak_bytes
    invalid = results.validate(store, resources.progress, phase=f"validating: {case.name}")
    cpu_invalid = cpu_results.validate(store, resources.progress, phase=f"validating: {case.name}, processor")
    sweep_invalid = sweep_results.validate(store, resources.progress, phase=f"validating: {case.name}, sweep")
    if cpu is not None and len(cpu_results):
        cpu["seconds"] = [one.seconds for one in cpu_results]
    if sweep is not None and len(sweep_results):
        sweep["searches"] = [{"seconds": one.seconds, "link_bytes": one.link_bytes, "num_levels": one.depth} for one in sweep_results]
    return CaseRun(
        case=case, held=held, results=tuple(results), invalid=invalid, cpu=cpu, cpu_invalid=cpu_invalid, sweep=sweep,
        sweep_invalid=sweep_invalid,
    )  # fmt: skip


def _search_all(
    case: Case, store: CSRStore, sources: list[Any], resources: Resources, results: ResultsOnDisk, cpu_results: ResultsOnDisk | None,
    sweep_results: ResultsOnDisk | None,
) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any] | None]:  # fmt: skip
    """Search on the device and, where their results have a place, on the processor and by sweeps, in turn; return what all held.

    All runtimes and their memory are gone when this function returns.
    """
    device = resources.device
    free = device.free_bytes()
    with ExitStack() as stack:
        runtime = stack.enter_context(_open(case, store, resources))
        held = _held(runtime)
        cpu: dict[str, Any] | None = None

        def search(source: Any) -> None:
            if case.edges == "disk":
                drop_page_cache(chunk_files(stored_edges(store)))
            results.put(bfs(store, source, runtime=runtime))

        subjects: dict[str, Callable[[Any], None]] = {"gpu": search}
        if cpu_results is not None:
            try:
                local = stack.enter_context(resources.open_cpu(store))
            except BudgetError as error:
                cpu = {"refused": str(error)}
            else:
                cpu = {name: getattr(local, name) for name in ("threads", "planes_resident", "memory_budget", "load_seconds")}
                cpu["resident_bytes"] = local.graph.residency.resident_bytes
                subjects["cpu"] = lambda source: cpu_results.put(bfs(store, source, runtime=local))
        bfs(store, sources[0], runtime=runtime)  # not counted: the driver loads a kernel when it is launched first
        held["peak_device_bytes"] = free - device.free_bytes()  # nothing is allocated while searching
        sweep = _sweep_beside(runtime, sources[0], sweep_results, subjects)
        in_turn(subjects, sources, resources.progress, phase=f"searching: {case.name}", alternate=True)
        subjects.clear()  # so that nothing of the sweep stays on the device
    return held, cpu, sweep


def _sweep_beside(
    runtime: DeviceRuntime, source: Any, results: ResultsOnDisk | None, subjects: dict[str, Callable[[Any], None]]
) -> dict[str, Any] | None:
    """Let the baseline be one of the subjects if its results have a place; return what it holds."""
    if results is None:
        return None
    try:
        sweep = SweepRuntime(runtime)
    except DeviceError as error:
        return {"refused": str(error)}
    store = runtime.store

    def search(source: Any) -> None:
        results.put(bfs(store, source, runtime=sweep, direction="pull"))

    bfs(store, source, runtime=sweep, direction="pull", depth_limit=1)  # not counted either
    subjects["sweep"] = search
    return sweep_metrics(sweep)


def _open(case: Case, store: CSRStore, resources: Resources) -> DeviceRuntime:
    """Load a graph as the case requires.

    Raises
    ------
    BudgetError
        It does not fit.
    """
    if case.edges == "device" and store.edge_bytes > (most := device_limit_bytes(resources.device, None)):
        raise BudgetError(f"the edges take {format_bytes(store.edge_bytes)} of device memory, of which {format_bytes(most)} can be used")
    max_host_edges = 0 if case.edges == "disk" else None
    runtime = resources.open_device(
        store, device_memory_budget=case.device_memory_budget, max_host_edges=max_host_edges, progress=resources.progress
    )
    lacks = _lacks(case, runtime)
    if lacks is not None:
        runtime.close()
        raise BudgetError(lacks)
    return runtime


def _lacks(case: Case, runtime: DeviceRuntime) -> str | None:
    """Say which edges are not where the case wants them."""
    for adjacency in (runtime.graph.push, runtime.graph.pull):
        total, item = adjacency.num_edges, adjacency.stored.dtype.itemsize
        if case.edges == "device" and not adjacency.all_resident:
            return f"beside the state, device memory holds {adjacency.resident.size:,} of {total:,} edges ({format_bytes(total * item)})"
        if case.edges == "host" and not adjacency.in_host_memory:
            return (
                f"the host's budget {format_bytes(runtime.memory_budget)} holds {adjacency.host.size:,} of {total:,} edges "
                f"({format_bytes(total * item)}); give more --memory"
            )
    return None


def _held(runtime: DeviceRuntime) -> dict[str, Any]:
    """Return what a runtime holds, and where."""
    both = {id(one): one for one in (runtime.graph.push, runtime.graph.pull)}.values()
    reserved = runtime.budget.reservations
    return {
        "device_memory_budget": runtime.device_limit,
        "device_bytes": runtime.device_bytes,
        "planes_resident": runtime.planes_resident,
        "plane_bytes": sum(int(one.heads.edges.nbytes) for one in both),
        "resident_bytes": sum(int(one.resident.nbytes) for one in both),
        "pinned_bytes": sum(size for name, size in reserved.items() if name.startswith("pinned ")),
        "row_capacity": runtime.subgraph.capacity,
        "load_seconds": runtime.load_seconds,
    }
