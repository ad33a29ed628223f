"""``oocgraph bench calls``: what a call of each function costs on a graph of ten vertices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from oocgraph.commands.bench_options import count_option, finish
from oocgraph.commands.common import json_option, progress_bars


@click.command("calls")
@count_option("--num-rounds", default=20, text="Calls of each function.")
@json_option
def bench_calls(*, as_json: bool, num_rounds: int) -> None:
    """Call every function on a graph in memory of ten vertices, and convert 1,000 edges: milliseconds of each."""
    from oocgraph.bench.calls import bench_calls as run

    with progress_bars() as progress:
        report = run(num_rounds=num_rounds, progress=progress)
    finish(report, as_json=as_json, show=_print_calls)


def _print_calls(metrics: Mapping[str, Any]) -> None:
    from oocgraph.commands.tables import print_table

    print_table(metrics["calls"])
