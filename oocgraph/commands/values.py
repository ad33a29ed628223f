"""What commands share whose answer is a few values of every vertex: options in, metrics and the largest values out.

In: the name of a public function, which returns a `oocgraph.results.values.ValuesResult`, and its own options, named like its parameters.
Out: the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from inspect import cleandoc
from typing import Any

import click

from oocgraph.commands.clusters import Place, client_options
from oocgraph.commands.common import (
    check_pages_option,
    check_result_path,
    emit,
    resources_options,
)
from oocgraph.commands.running import result_options, running
from oocgraph.commands.tables import SHOWN_BINS, print_histogram, print_table

Option = Callable[[Any], Any]
"""What `click.option` returns."""


_ON_CLUSTER = """\
It runs in this process, or on a Dask cluster (--cluster, --scheduler); --memory and --threads are then of each worker.

"""

_METRICS = """\
Metrics: seconds are of the {}, load_seconds of what comes before; bytes_read is the larger of the bytes requested and the device bytes of
this process."""


def values_command(
    name: str, function: str, text: str, timed: str, *options: Option, num_shown: int | None = 10, on_cluster: bool = False
) -> click.Command:  # fmt: skip
    """Return a command that calls a public function of oocgraph.

    Parameters
    ----------
    name
        Of the command.
    function
        Name of the function; it takes a graph, `resources`, `progress`, and the options.
    text
        Help; a paragraph about clusters and one about metrics follow it.
    timed
        What `seconds` of the result are of.
    options
        Its own options, in the order of the help.
    num_shown
        How many of the largest values, or groups, are shown unless that is asked for; None: they are of no interest.
    on_cluster
        Whether the function takes a client.
    """

    def call(
        *, graph: str, check_pages: bool, resources: Any, out: str | None, overwrite: bool, as_json: bool,
        place: Place | None = None, num_top: int = 0, **own: Any,
    ) -> None:  # fmt: skip
        import oocgraph

        if place is not None:
            place.check()
        store = oocgraph.open_graph(graph, check_pages=check_pages)
        check_result_path(out, overwrite=overwrite)
        with running(resources, place) as run:
            result = getattr(oocgraph, function)(store, resources=run.resources, progress=run.progress, **with_weight(own))
            run.finish(result, out, overwrite=overwrite)
            best = [] if num_shown is None else result.top(num_top)
        fields = run.fields(result)
        column = next(iter(result.columns))
        if result.groups:
            emit_groups(result, fields, best, as_json=as_json)
        elif num_shown is None:
            emit(fields, as_json=as_json, title=repr(result), answer=lambda: print_histogram(result.histogram(SHOWN_BINS)))
        else:
            fields["top"] = [{"vertex": vertex, column: value} for vertex, value in best]
            rows = [{"vertex": str(vertex), column: value} for vertex, value in best]
            emit(fields, as_json=as_json, title=repr(result), answer=lambda: print_table(rows))

    help_text = f"{cleandoc(text)}\n\n{_ON_CLUSTER if on_cluster else ''}{_METRICS.format(timed)}"
    cluster = (client_options,) if on_cluster else ()
    top_options = () if num_shown is None else (top_option(num_shown),)
    shared: tuple[Option, ...] = (resources_options, check_pages_option, *cluster, *top_options, result_options("vertices and values"))
    decorated = reduce(lambda command, option: option(command), reversed((*options, *shared)), call)
    return click.command(name, help=help_text)(click.argument("graph", metavar="GRAPH")(decorated))


def top_option(num_shown: int) -> Option:
    """Return ``--top``, of the largest values, or of groups of which none are shown by default."""
    what = (
        "Vertices to show, those with the largest values." if num_shown else "Groups to show, the largest, with their numbers of vertices."
    )
    return click.option("--top", "num_top", type=click.IntRange(min=0), default=num_shown, show_default=True, help=what)


def emit_groups(result: Any, fields: dict[str, Any], best: Iterable[tuple[Any, int]], *, as_json: bool) -> None:
    """Print metrics of groups of vertices, how many there are of each size, and the largest if they are asked for."""
    name = next(iter(result.columns))
    rows = [{name: group, "num_vertices": size} for group, size in best]

    def show() -> None:
        print_histogram(result.histogram(SHOWN_BINS))
        if rows:
            print_table({**row, name: str(row[name])} for row in rows)

    emit(fields | ({"top": rows} if rows else {}), as_json=as_json, title=repr(result), answer=show)


def weight_options(command: Any) -> Any:
    """Add ``--weight`` and ``--unweighted``."""
    weight = click.option("--weight", metavar="COLUMN", help="Edge column of the weights.  [default: the graph's weight, if it has one]")
    return weight(click.option("--unweighted", is_flag=True, help="Count each edge as 1.")(command))


def rank_options(command: Any) -> Any:
    """Add ``--damping``, ``--tol`` and ``--max-iter`` of ranks."""
    text = "Stop when all changes sum to less than N * tol; 0: after --max-iter."
    tol = click.option("--tol", type=float, default=1e-6, show_default=True, help=text)
    damping = click.option("--damping", type=float, default=0.85, show_default=True, help="Probability of following an edge, below 1.")
    return damping(tol(_max_iter(command)))


def iteration_options(command: Any) -> Any:
    """Add ``--tol`` and ``--max-iter``."""
    text = "End when values change by less; 0: --max-iter times."
    return click.option("--tol", type=float, default=1e-6, show_default=True, help=text)(_max_iter(command))


def _max_iter(command: Any) -> Any:
    text = "Most iterations; more are an error, unless --tol is 0."
    return click.option("--max-iter", type=int, default=100, show_default=True, help=text)(command)


def with_weight(own: dict[str, Any]) -> dict[str, Any]:
    """Return options with ``weight`` as functions take it.

    Raises
    ------
    OocGraphError
        --weight and --unweighted are both given.
    """
    from oocgraph.errors import OocGraphError

    if own.pop("unweighted", False):
        if own["weight"] is not None:
            raise OocGraphError("--weight and --unweighted exclude each other; give one of them")
        own["weight"] = False
    return own
