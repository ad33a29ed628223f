"""``oocgraph plan``: what a search over 1D and 2D partitions would send, how long it would take, and what workers need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.common import check_size, emit, json_option, parse_numbers, progress_bars
from oocgraph.commands.tables import SHOWN_LEVELS, print_table

if TYPE_CHECKING:
    from oocgraph.plan.forecast import BFSPlan, PlannedBFS


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.option(
    "--workers",
    metavar="N,N,...",
    default="4,16,64,256,1024",
    show_default=True,
    callback=parse_numbers,
    help="Numbers of workers, each with one partition.",
)
@click.option(
    "--memory", metavar="SIZE", callback=check_size, help="Memory of each worker, such as 16G.  [default: what this machine leaves]"
)
@click.option("--source", metavar="ID", help="Vertex to start from.  [default: the one with most edges]")
@click.option("--threads-per-worker", "threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads of each worker.")
@click.option("--calibrate", is_flag=True, help="Measure this machine first: some seconds, with two worker processes.")
@click.option("--levels/--no-levels", default=True, help="Show each iteration, not only each search.  [default: levels]")
@json_option
def plan(
    graph: str, *, workers: list[int], memory: str | None, source: str | None, calibrate: bool, levels: bool, as_json: bool, threads: int
) -> None:
    """Predict searches of the graph store GRAPH over 1D and 2D partitions: bytes, messages and time of each iteration, and memory.

    Nothing is partitioned and no cluster is needed. One real search in this process gives the frontiers; what parts would exchange is
    counted in the lists of all vertices. Bytes are those of messages, without what a transport adds; time is by constants that were
    measured on the project's machine, or on this one (--calibrate). Counts that do not fit memory are refused: name fewer workers.
    """
    from oocgraph.algorithms.plan_bfs import plan_bfs
    from oocgraph.plan.timing import STORED
    from oocgraph.resources import Resources
    from oocgraph.store.graph import open_graph
    from oocgraph.store.vertices import VertexIds

    store = open_graph(graph)
    start = None
    if source is not None:
        ids = VertexIds(store)
        (start,) = ids.parse([source]).tolist()
        ids.vertices_of([start])  # before anything is measured: a wrong id is reported at once
    with progress_bars() as progress:
        constants = STORED
        if calibrate:
            from oocgraph.algorithms.calibrate import calibrate as measure

            constants = measure(progress)
        each = Resources(memory_budget=memory, threads=threads)
        found = plan_bfs(store, workers, source=start, constants=constants, resources=each, progress=progress)
    if as_json:
        emit(found.summary(), as_json=True, title="")
        return
    _print(found, levels=levels)


def _print(found: BFSPlan, *, levels: bool) -> None:
    emit(
        {name: getattr(found, name) for name in ("source", "num_reached", "depth", "memory_bytes", "threads")},
        as_json=False, title=f"searches of {found.graph}, predicted", figures_asked=True,
    )  # fmt: skip
    print_table(_case_row(case) for case in found.cases)
    for case in found.cases if levels else ():
        click.echo(f"{case.dimension} with {case.num_workers:,} workers, {case.rows} x {case.columns}")
        print_table(
            {
                "level": one.level, "frontier": one.frontier, "edges": one.edges, "sent_bytes": one.num_bytes,
                "messages": one.num_messages, "seconds": one.seconds,
            }
            for one in case.iterations[:SHOWN_LEVELS]
        )  # fmt: skip
        if len(case.iterations) > SHOWN_LEVELS:
            click.echo(f"  ... and {len(case.iterations) - SHOWN_LEVELS:,} more levels")


def _case_row(case: PlannedBFS) -> dict[str, Any]:
    return {
        "partition": case.dimension, "workers": case.num_workers, "grid": f"{case.rows} x {case.columns}", "sent_bytes": case.num_bytes,
        "messages": case.num_messages, "seconds": case.seconds, "worker_bytes": case.worker_bytes, "fits": case.fits,
        "advice": case.advice,
    }  # fmt: skip
