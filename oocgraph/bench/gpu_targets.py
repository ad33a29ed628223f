"""What searches on an H200-class GPU must reach, beside what was measured.

In: the metrics of a run. Out: rows ``what, graph, must_reach, measured, verdict``; the verdict is ``met``, ``missed``, or ``not measured``
and why. Every graph gets a verdict; `Target.meant` names those that the bounds were set for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

NO_DEVICE = "not measured: no device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One bound.

    Attributes
    ----------
    what
        In words.
    meant
        The graphs it was set for: Kronecker graphs of these scales.
    measured
        Function from the metrics of a graph to the value that must reach the bound; None where there is none.
    sign, bound
        ``>=`` or ``<=``, and the number that must be reached.
    needs_device
        Whether it is about time.
    """

    what: str
    meant: str
    measured: Callable[[dict[str, Any]], float | None]
    sign: Literal[">=", "<="]
    bound: float
    needs_device: bool = True

    def row(self, metrics: dict[str, Any], *, emulated: bool) -> dict[str, Any]:
        """Return the verdict on one graph (or on the run)."""
        value = None if emulated and self.needs_device else self.measured(metrics)
        if value is None:
            verdict = NO_DEVICE if emulated and self.needs_device else f"not measured: {_reason(metrics)}"
        else:
            verdict = "met" if (value >= self.bound if self.sign == ">=" else value <= self.bound) else "missed"
        must_reach, graph = f"{self.sign} {self.bound:g}", metrics.get("graph", "")
        return {"what": self.what, "meant_for": self.meant, "graph": graph, "must_reach": must_reach, "measured": value, "verdict": verdict}


def _case(edges: str, name: str, share: float | None = None, *, unit: float = 1.0) -> Callable[[dict[str, Any]], float | None]:
    """Return a function that reads one metric of one case, in units of `unit`."""

    def read(metrics: dict[str, Any]) -> float | None:
        values = [case.get(name) for case in metrics["cases"] if case["edges"] == edges and case["budget_share"] == share]
        return values[0] / unit if values and values[0] is not None else None

    return read


def _least(name: str) -> Callable[[dict[str, Any]], float | None]:
    """Return a function that reads a metric of the methods: the least of several frontiers."""
    return lambda metrics: min((one[name] for one in metrics["methods"]), default=None)


def _scan(metrics: dict[str, Any]) -> float | None:
    scan = metrics["plane_scan"]
    return None if scan is None else float(scan["device_copy_fraction"])


SHARE = 0.1

TARGETS = (
    Target(
        what="all resident: median GTEPS, until parent and level are on the device",
        meant="kron24, kron26", measured=_case("device", "median_device_teps", unit=1e9), sign=">=", bound=100,
    ),
    Target(
        what="all resident: time until parent and level are on the host / until they are on the device, median",
        meant="kron24, kron26", measured=_case("device", "median_results_ratio"), sign="<=", bound=3,
    ),
    Target(
        what="10 % budget, edges in host memory: time / (edge bytes / link bandwidth), median",
        meant="kron26", measured=_case("host", "median_each_edge_once_ratio", SHARE), sign="<=", bound=0.25,
    ),
    Target(
        what="10 % budget, edges in host memory: bytes over the link / edge bytes, median",
        meant="kron24, kron26", measured=_case("host", "median_link_fraction", SHARE), sign="<=", bound=0.02, needs_device=False,
    ),
    Target(
        what="10 % budget, edges in host memory: bytes over the link / those of sweeps over whole partitions, median",
        meant="kron24, kron26", measured=_case("host", "link_to_sweep", SHARE), sign="<=", bound=0.2, needs_device=False,
    ),
    Target(
        what="10 % budget, edges on disk: time / max(disk, link, kernel), median",
        meant="kron26", measured=_case("disk", "median_slowest_tier_ratio", SHARE), sign="<=", bound=1.3,
    ),
    Target(what="full scan of the planes / device copy bandwidth", meant="kron24, kron26", measured=_scan, sign=">=", bound=0.7),
    Target(
        what="Scan+Warp+CTA: speed-up over one thread per vertex, largest frontiers",
        meant="kron24", measured=_least("serial_to_hybrid"), sign=">=", bound=3,
    ),
    Target(
        what="Scan+Warp+CTA: speed-up over warp alone and scan alone",
        meant="kron24", measured=_least("best_other_to_hybrid"), sign=">=", bound=1,
    ),
)  # fmt: skip

PREPARATION = Target(
    what="dependency subgraph of 10 % of 16 M vertices, counts on the host: milliseconds",
    meant="16 M vertices",
    measured=lambda metrics: 1e3 * metrics["seconds"] if metrics else None,
    sign="<=",
    bound=0.4,
)


def verdicts(graphs: Sequence[dict[str, Any]], preparation: dict[str, Any] | None, *, emulated: bool) -> list[dict[str, Any]]:
    """Return the rows of all graphs, and that of the preparation, which no graph is needed for."""
    rows = [target.row(metrics, emulated=emulated) for metrics in graphs for target in TARGETS]
    return [*rows, PREPARATION.row(preparation or {}, emulated=emulated)]


def _reason(metrics: dict[str, Any]) -> str:
    """Say why there is no value."""
    if not metrics:
        return "too little device memory"
    refused = [case["case"] for case in metrics["cases"] if case["refused"] is not None]
    if refused:
        return f"refused: {'; '.join(refused)}"
    return metrics["unmeasured"] or "this run has no such case"
