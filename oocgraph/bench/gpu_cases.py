"""Searches on a GPU with a graph's edges in one place: device memory, pinned host memory behind a small device budget, or disk behind it.

In: a store, a `Case`, a device, sources. Out: a `CaseReport`. In one of the cases the processor searches from the same sources, in turn.
Results wait on disk and are validated when the searches of the case are over and the device is free again. A case that the memory of the
machine does not allow is told with the numbers, not failed.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from oocgraph.algorithms.bfs import bfs
from oocgraph.arrays import Device
from oocgraph.bench.gpu_rates import empty_page_cache
from oocgraph.bench.judge import broken_rule
from oocgraph.bench.spool import ResultSpool
from oocgraph.errors import BudgetError, OocGraphError
from oocgraph.memory import PeakSampler, format_bytes, parse_bytes
from oocgraph.results.bfs import BFSResult
from oocgraph.runtime.device import DeviceRuntime
from oocgraph.runtime.device_load import device_limit_bytes
from oocgraph.runtime.local import LocalRuntime
from oocgraph.store.arrays import StoredArray
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, Progress

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
class CaseReport:
    """What the searches of a case took.

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
        Of each source, without the arrays; the rule that it breaks, or None.
    cpu
        The same of the processor, where it was measured beside: ``seconds`` of each source, and what it held.
    cpu_invalid
        Rules that its results break.
    """

    case: Case
    refused: str | None = None
    held: dict[str, Any]
    results: tuple[BFSResult, ...] = ()
    invalid: tuple[str | None, ...] = ()
    cpu: dict[str, Any] | None = None
    cpu_invalid: tuple[str | None, ...] = ()


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
    case: Case, store: CSRStore, sources: list[Any], *, device: Device, memory_budget: str | int | None, threads: int | None,
    folder: Path, beside_cpu: bool, progress: Progress,
) -> CaseReport:  # fmt: skip
    """Search from each source, then validate.

    Parameters
    ----------
    sources
        User ids.
    folder
        Where results wait for their validation.
    beside_cpu
        Whether the processor searches too, in turn.
    """
    spool, cpu_spool = ResultSpool(_made(folder / "gpu")), ResultSpool(_made(folder / "cpu"))
    held: dict[str, Any] = {}
    cpu: dict[str, Any] | None = None
    free = device.free_bytes()
    try:
        with ExitStack() as stack:
            sampler = stack.enter_context(PeakSampler())
            runtime = stack.enter_context(_open(case, store, device, memory_budget, threads, progress))
            held = _held(runtime)
            local = None
            if beside_cpu:
                local, cpu = _open_cpu(stack, store, memory_budget, threads, progress)
            bfs(store, sources[0], runtime=runtime)  # not counted: the driver loads a kernel when it is launched first
            for i, source in enumerate(sources):
                if local is not None and i % 2:  # whoever comes second finds the other's traces in caches
                    cpu_spool.put(bfs(store, source, runtime=local))
                if case.edges == "disk":
                    empty_page_cache(stored_edges(store))
                spool.put(bfs(store, source, runtime=runtime))
                if local is not None and not i % 2:
                    cpu_spool.put(bfs(store, source, runtime=local))
                progress(f"searching: {case.name}", i + 1, len(sources))
            held["peak_device_bytes"] = free - device.free_bytes()
    except BudgetError as error:
        return CaseReport(case=case, refused=str(error), held={})
    runtime = local = None  # type: ignore[assignment]
    held["peak_host_bytes"] = sampler.peak_bytes
    results, invalid = _validated(store, spool, progress, case.name)
    cpu_results, cpu_invalid = _validated(store, cpu_spool, progress, f"{case.name}, processor")
    if cpu_results:
        cpu = cpu or {}
        cpu["seconds"] = [one.seconds for one in cpu_results]
    return CaseReport(case=case, held=held, results=results, invalid=invalid, cpu=cpu, cpu_invalid=cpu_invalid)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _open(
    case: Case, store: CSRStore, device: Device, memory_budget: str | int | None, threads: int | None, progress: Progress
) -> DeviceRuntime:
    """Load a graph as the case asks for it.

    Raises
    ------
    BudgetError
        It does not fit.
    """
    if case.edges == "device" and store.edge_bytes > (most := device_limit_bytes(device, None)):
        raise BudgetError(f"the edges take {format_bytes(store.edge_bytes)} of device memory, of which {format_bytes(most)} can be used")
    runtime = DeviceRuntime.open(
        store,
        device=device,
        device_memory_budget=case.device_memory_budget,
        memory_budget=memory_budget,
        threads=threads,
        max_host_edges=0 if case.edges == "disk" else None,
        progress=progress,
    )
    lacks = _lacks(case, runtime)
    if lacks is not None:
        runtime.close()
        raise BudgetError(lacks)
    return runtime


def _open_cpu(
    stack: ExitStack, store: CSRStore, memory_budget: str | int | None, threads: int | None, progress: Progress
) -> tuple[LocalRuntime | None, dict[str, Any]]:
    """Load a graph for the processor; returns what it holds, or why it cannot."""
    try:
        local = stack.enter_context(LocalRuntime.open(store, memory_budget=memory_budget, threads=threads, progress=progress))
    except BudgetError as error:
        return None, {"refused": str(error)}
    figures = {name: getattr(local, name) for name in ("threads", "planes_resident", "memory_budget", "load_seconds")}
    return local, {**figures, "resident_bytes": local.graph.residency.resident_bytes}


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
        "plane_bytes": sum(int(one.planes.nbytes) for one in both),
        "resident_bytes": sum(int(one.resident.nbytes) for one in both),
        "pinned_bytes": reserved.get("pinned staging", 0) + reserved.get("pinned edges", 0),
        "row_capacity": runtime.subgraph.capacity,
        "load_seconds": runtime.load_seconds,
    }


def _validated(store: CSRStore, spool: ResultSpool, progress: Progress, name: str) -> tuple[tuple[BFSResult, ...], tuple[str | None, ...]]:
    """Return the results, without their arrays, and the rule that each breaks."""
    results, rules = [], []
    for i in range(len(spool)):
        rules.append(broken_rule(store, spool.take(i)))
        results.append(spool.figures(i))
        progress(f"validating: {name}", i + 1, len(spool))
    return tuple(results), tuple(rules)


def source_ids(store: CSRStore, vertices: Array) -> list[Any]:
    """Return the user's ids of some vertices of the store."""
    from oocgraph.store.vertices import VertexIds

    ids: list[Any] = VertexIds(store).ids_of(vertices).tolist()
    return ids
