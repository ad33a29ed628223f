"""``oocgraph bench imbalance``: a cluster of which one worker is held up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from oocgraph.commands.bench_options import direction_option, folder_option, graph_argument, num_sources_option, run_benchmark, seed_option
from oocgraph.commands.clusters import Place, place_options
from oocgraph.commands.common import json_option, memory_option


@click.command("imbalance")
@graph_argument
@num_sources_option()
@seed_option
@place_options
@memory_option
@direction_option
@click.option(
    "--share", "shares", multiple=True, type=click.FloatRange(0, 1, min_open=True), default=[1.0], show_default=True,
    help="Setting oocgraph.take-over to compare with 0; may be repeated.",
)  # fmt: skip
@folder_option("--scratch", "Folder for temporary files.")
@json_option
def bench_imbalance(*, place: Place, **options: Any) -> None:
    """Search GRAPH on workers of this host, one of which shares its core with a busy process, with and without taking over work.

    By default --cluster local. All search the same sources in turn, quiet and busy; ratios are to searches in which nothing is taken
    over. Every result is validated, one invalid result is exit code 1.
    """
    if place.scheduler is None and place.cluster is None:
        place = replace(place, cluster="local")
    place.check()
    run_benchmark("imbalance", open_client=place.client, **options)
