"""What the benchmarks' commands share: options, a generated graph, how one is run, and how a report ends the command."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.bfs import DIRECTIONS
from oocgraph.commands.common import Command, emit, note, progress_bars

if TYPE_CHECKING:
    from oocgraph.bench.harness import Report
    from oocgraph.store.graph import CSRStore
    from oocgraph.types import Progress

EXIT_INVALID = 1

graph_argument = click.argument("graph", metavar="GRAPH")
seed_option = click.option("--seed", type=int, default=1, show_default=True, help="The same seed draws the same sources.")
scale_option = click.option(
    "--scale", type=int, default=20, show_default=True, help="Scale of the Kronecker graph that is generated without GRAPH."
)
direction_option = click.option(
    "--direction", type=click.Choice(DIRECTIONS), default="auto", show_default=True, help="Rule that chooses push or pull."
)


def count_option(*names: str, default: int, text: str) -> Callable[[Command], Command]:
    """Return an option that takes a whole number from 1."""
    return click.option(*names, type=click.IntRange(min=1), default=default, show_default=True, help=text)


def num_sources_option(*names: str) -> Callable[[Command], Command]:
    """Return ``--num-sources``, with other names for it if there are some."""
    return count_option(*names, "--num-sources", "num_sources", default=16, text="Sources to draw from vertices with edges.")


def folder_option(name: str, text: str) -> Callable[[Command], Command]:
    """Return an option that takes a folder in which files can be made."""
    return click.option(name, metavar="DIR", type=click.Path(exists=True, file_okay=False, writable=True), help=text)


def peer_option(text: str) -> Callable[[Command], Command]:
    """Return ``--peer``."""
    return click.option("--peer", metavar="NAME", help=text)


def generated(stack: ExitStack, scale: int, folder: str | None, memory: str | None, progress: Progress) -> CSRStore:
    """Make a Kronecker graph that is removed when the run ends."""
    from oocgraph.bench.disk import drop_page_cache
    from oocgraph.ingest.generators.kronecker import generate_kronecker

    path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oocgraph-bench-", dir=folder))) / f"kron{scale}.zarr"
    store = generate_kronecker(scale, path, memory_budget=memory, progress=progress)
    drop_page_cache(path.rglob("*"))
    return store


def run_benchmark(
    benchmark: str, /, *, as_json: bool, show: Callable[[Mapping[str, Any]], None] | None = None, graph: str | None = None, **options: Any
) -> None:  # fmt: skip
    """Run ``oocgraph.bench.NAME.bench_NAME``, of the store of a `graph` where one is given, and print its report.

    Modules of benchmarks are imported here, so that help is quick.
    """
    run = getattr(import_module(f"oocgraph.bench.{benchmark}"), f"bench_{benchmark}")
    if graph is not None:
        from oocgraph.store.graph import open_graph

        options["store"] = open_graph(graph)
    if "memory" in options:
        options["memory_budget"] = options.pop("memory")
    with progress_bars() as progress:
        report = run(progress=progress, **options)
    finish(report, as_json=as_json, show=show)


def finish(report: Report, *, as_json: bool, show: Callable[[Mapping[str, Any]], None] | None = None) -> None:
    """Print a report, for people with the tables that `show` prints; end with exit code 1 if a result is invalid."""
    emit(report.metrics, as_json=as_json, title=report.title, figures_asked=True)
    if show is not None and not as_json:
        show(report.metrics)
    exit_if_invalid(report)


def exit_if_invalid(report: Report) -> None:
    """End with exit code 1 if a result is invalid."""
    if report.invalid:
        note(f"{len(report.invalid)} results are invalid; the first: {report.invalid[0]}")
        click.get_current_context().exit(EXIT_INVALID)
