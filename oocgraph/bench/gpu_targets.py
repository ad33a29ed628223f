"""What searches on an H200-class GPU must reach, beside what was measured.

In: the figures of a run. Out: rows ``what, graph, must_reach, measured, verdict``; the verdict is ``met``, ``missed``, or ``not measured``
and why. Every graph is judged; those that the bounds were set for are named in `Target.meant`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
        From the figures of a graph to the figure that is judged; None where there is none.
    at_least, at_most
        One of them is the bound.
    needs_device
        Whether it is about time.
    """

    what: str
    meant: str
    measured: Callable[[dict[str, Any]], float | None]
    at_least: float | None = None
    at_most: float | None = None
    needs_device: bool = True

    def judge(self, figures: dict[str, Any], *, emulated: bool) -> dict[str, Any]:
        """Return the row of one graph (or of the run)."""
        value = None if emulated and self.needs_device else self.measured(figures)
        if value is None:
            verdict = NO_DEVICE if emulated and self.needs_device else f"not measured: {_reason(figures)}"
        else:
            met = value >= self.at_least if self.at_least is not None else self.at_most is not None and value <= self.at_most
            verdict = "met" if met else "missed"
        bound = f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"
        graph = figures.get("graph", "")
        return {"what": self.what, "meant_for": self.meant, "graph": graph, "must_reach": bound, "measured": value, "verdict": verdict}


def _case(edges: str, name: str, share: float | None = None) -> Callable[[dict[str, Any]], float | None]:
    """Return what reads one figure of one case."""

    def read(figures: dict[str, Any]) -> float | None:
        for case in figures["cases"]:
            if case["edges"] == edges and case["budget_share"] == share:
                value: float | None = case.get(name)
                return value
        return None

    return read


def _gteps(figures: dict[str, Any]) -> float | None:
    teps = _case("device", "median_teps")(figures)
    return None if teps is None else teps / 1e9


def _least(name: str) -> Callable[[dict[str, Any]], float | None]:
    """Return what reads a figure of the methods: of several frontiers the least."""
    return lambda figures: min((one[name] for one in figures["methods"]), default=None)


def _scan(figures: dict[str, Any]) -> float | None:
    scan = figures["plane_scan"]
    return None if scan is None else float(scan["device_copy_fraction"])


SHARE = 0.1

TARGETS = (
    Target(what="all resident: median GTEPS", meant="kron24, kron26", measured=_gteps, at_least=100),
    Target(
        what="10 % budget, edges in host memory: time / (edge bytes / link bandwidth), median",
        meant="kron26",
        measured=_case("host", "median_each_edge_once_ratio", SHARE),
        at_most=0.25,
    ),
    Target(
        what="10 % budget, edges in host memory: bytes over the link / edge bytes, median",
        meant="kron26",
        measured=_case("host", "median_link_fraction", SHARE),
        at_most=0.06,
        needs_device=False,
    ),
    Target(
        what="10 % budget, edges on disk: time / max(disk, link, kernel), median",
        meant="kron26",
        measured=_case("disk", "median_slowest_tier_ratio", SHARE),
        at_most=1.3,
    ),
    Target(what="full scan of the planes / device copy bandwidth", meant="kron24, kron26", measured=_scan, at_least=0.7),
    Target(
        what="Scan+Warp+CTA: speed-up over one thread per vertex, largest frontiers",
        meant="kron24",
        measured=_least("serial_to_hybrid"),
        at_least=3,
    ),
    Target(
        what="Scan+Warp+CTA: speed-up over warp alone and scan alone",
        meant="kron24",
        measured=_least("best_other_to_hybrid"),
        at_least=1,
    ),
)

PREPARATION = Target(
    what="dependency subgraph of 10 % of 16 M vertices, counts on the host: milliseconds",
    meant="16 M vertices",
    measured=lambda figures: 1e3 * figures["seconds"] if figures else None,
    at_most=0.4,
)


def judged(graphs: Sequence[dict[str, Any]], preparation: dict[str, Any] | None, *, emulated: bool) -> list[dict[str, Any]]:
    """Return the rows of all graphs, and that of the preparation, which no graph is needed for."""
    rows = [target.judge(figures, emulated=emulated) for figures in graphs for target in TARGETS]
    return [*rows, PREPARATION.judge(preparation or {}, emulated=emulated)]


def _reason(figures: dict[str, Any]) -> str:
    """Say why there is no figure."""
    if not figures:
        return "too little device memory"
    refused = [case["case"] for case in figures["cases"] if case["refused"] is not None]
    if refused:
        return f"refused: {'; '.join(refused)}"
    return figures["unmeasured"] or "this run has no such case"
