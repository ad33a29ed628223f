"""Draw what searches hold in memory and read from disk, beside libraries that hold the graph: the picture of README.md.

In: reports of ``oocgraph bench bfs --json``, one file for each run, named ``GRAPH-WHAT.json``. Out: a picture. How the reports are made is
in docs/measurements.md::

    python docs/picture.py reports/*.json --out docs/memory.svg
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

MB = 1e6

GRAPHS = {"hubs": "Kronecker, scale 22 (hubs)", "uniform": "uniform random, 2²² vertices", "grid": "grid 2000 x 2000, a fifth removed"}

OURS, PEERS = "#0072b2", "0.7"
"""Colours that do not rely on telling red from green."""


def bars_of(reports: dict[str, dict]) -> list[tuple[str, float, float | None, str]]:
    """Return the bars of one graph, from the top: label, megabytes held, share of the edges read, colour."""
    small = reports.pop("small")
    share, budget = small["median_bytes_read"] / small["edge_bytes"], small["memory_budget"] / (1 << 20)
    bars = [(f"oocgraph, edges on disk, budget {budget:.0f} MiB", small["peak_host_bytes"] / MB, share, OURS)]
    whole = next(iter(reports.values()))
    bars.append(("oocgraph, edges in memory", whole["peak_host_bytes"] / MB, None, OURS))
    for name, report in sorted(reports.items(), key=lambda pair: pair[1]["peer_peak_bytes"]):
        label = {"gapbs": "GAPBS", "scipy": "SciPy", "networkit": "NetworKit", "igraph": "igraph"}[name]
        bars.append((label, report["peer_peak_bytes"] / MB, None, PEERS))
    return bars


def draw(groups: dict[str, list[tuple[str, float, float | None, str]]]) -> Figure:
    """Draw a panel for each graph; a bar is memory, the text behind it what is read."""
    mpl.rcParams["svg.hashsalt"] = "oocgraph"  # the same picture, byte for byte, of the same reports
    figure = Figure(figsize=(9, 0.8 + 0.42 * sum(len(bars) + 1 for bars in groups.values())), layout="constrained")
    panels = figure.subplots(len(groups), 1, sharex=True, height_ratios=[len(bars) for bars in groups.values()], squeeze=False)[:, 0]
    for panel, (graph, bars) in zip(panels, groups.items(), strict=True):
        for place, (_, held, share, colour) in enumerate(bars):
            panel.barh(place, held, color=colour, height=0.7)
            read = _read(share)
            panel.text(held, place, f"  {held:,.0f} MB; {read}", va="center", fontsize="small")
        panel.set_yticks(range(len(bars)), [bar[0] for bar in bars])
        panel.invert_yaxis()
        panel.set_title(GRAPHS[graph], loc="left", fontsize="medium")
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlim(0, 1.45 * max(held for bars in groups.values() for _, held, *_ in bars))
    panels[-1].set_xlabel("peak memory of the process in MB, of peers with the conversion to their own form")
    return figure


def _read(share: float | None) -> str:
    """Say how much of the edges a search read."""
    if share is None:
        return "nothing read"
    return f"reads {100 * share:.2g} % of the edge bytes" if share < 1 else f"reads {share:.2g} x the edge bytes"


def main() -> None:
    """Read the reports, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    reports: dict[str, dict[str, dict]] = defaultdict(dict)
    for path in asked.reports:
        graph, _, what = path.stem.partition("-")
        reports[graph][what] = json.loads(path.read_text())
    groups = {graph: bars_of(reports[graph]) for graph in GRAPHS if graph in reports}
    draw(groups).savefig(asked.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
