"""What every command shares: options, the one JSON object, text for people, progress bars.

Stdout carries the answer and nothing else; everything on the way to it (bars, notes) goes to stderr.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from oocgraph import progress
from oocgraph.config import parse_bytes
from oocgraph.listing import human, is_single, label
from oocgraph.types import DeviceKind, IdKind, Progress, ignore_progress

if TYPE_CHECKING:
    from oocgraph.store.graph import CSRStore

_QUIET = "oocgraph.quiet"

MOST_CHARACTERS = 400
"""Of the first sentence of a command's help."""

Command = TypeVar("Command", bound=Callable[..., Any])


class WholeHelps(click.Group):
    """A group of commands whose list has the first sentence of each, whole; click cuts it to 45 characters."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(limit=MOST_CHARACTERS)) for name, one in commands if one is not None])


def json_option(command: Command) -> Command:
    """Add ``--json`` and ``--quiet``: how a command speaks."""
    quiet = click.option(
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=_set_quiet,
        help="Show the answer, in one line if possible, and errors only: no progress, remarks or metrics.",
    )
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")(quiet(command))


def _set_quiet(context: click.Context, _option: click.Parameter, value: bool) -> None:
    context.meta[_QUIET] = value
    if value:
        logger = logging.getLogger("oocgraph")
        context.call_on_close(partial(logger.setLevel, logger.level))
        logger.setLevel(logging.ERROR)


def is_quiet() -> bool:
    """Return whether the command was called with ``--quiet``."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def check_pages_option(command: Command) -> Command:
    """Add ``--check-pages``."""
    return click.option("--check-pages", is_flag=True, help="Compare everything that is read of GRAPH with its checksums.")(command)


def memory_option(command: Command) -> Command:
    """Add ``--memory``, checked where it is given."""
    text = "Memory the process may hold, such as 640M or 2G.  [default: what the machine leaves]"
    return click.option("--memory", metavar="SIZE", callback=check_size, help=text)(command)


def threads_option(command: Command) -> Command:
    """Add ``--threads``."""
    return click.option("--threads", type=click.IntRange(min=1), help="Compute threads.  [default: all cores]")(command)


def device_options(command: Command) -> Command:
    """Add ``--device`` and ``--device-memory``; the command takes them as `device` and `device_memory_budget`."""
    kind = click.option(
        "--device",
        type=click.Choice(get_args(DeviceKind)),
        help="auto: a GPU if one can be used and its start pays; cuda: a GPU, or an error without one.  [default: as configured, auto]",
    )
    text = "Device memory that a search on a GPU may hold, such as 4G.  [default: most of what is free]"
    size = click.option("--device-memory", "device_memory_budget", metavar="SIZE", callback=check_size, help=text)
    return kind(size(command))


def resources_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--memory`` and ``--threads``; the command takes them together, as `resources`."""

    @wraps(command)
    def call(*, memory: str | None, threads: int | None, **options: Any) -> Any:
        from oocgraph.resources import Resources

        return command(resources=Resources(memory_budget=memory, threads=threads), **options)

    decorated: Callable[..., Any] = memory_option(threads_option(call))
    return decorated


def device_resources_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--memory``, ``--threads``, ``--device`` and ``--device-memory``; the command takes them together, as `resources`."""

    @wraps(command)
    def call(*, resources: Any, device: Any, device_memory_budget: str | None, **options: Any) -> Any:
        return command(resources=replace(resources, device=device, device_memory_budget=device_memory_budget), **options)

    return resources_options(device_options(call))


def overwrite_option(command: Command) -> Command:
    """Add ``--overwrite``."""
    return click.option("--overwrite", is_flag=True, help="Replace an output that exists.")(command)


def output_options(command: Command) -> Command:
    """Add what every command that makes a file or a store takes: ``--memory``, ``--threads``, ``--overwrite`` and ``--json``."""
    return memory_option(threads_option(overwrite_option(json_option(command))))


def id_kind_option(command: Command) -> Command:
    """Add ``--id-kind``."""
    return click.option(
        "--id-kind",
        type=click.Choice(get_args(IdKind)),
        help="Ids of a text file: string takes 007 and 7 as two.  [default: string where half or more of the first ones are no numbers]",
    )(command)


def vertex_order_option(command: Command) -> Command:
    """Add ``--vertex-order``."""
    return click.option(
        "--vertex-order", type=click.Choice(["auto", "degree", "locality", "original"]),
        help="Order in the store: degree, highest first; locality, neighbours together, for graphs without hubs; original, by id; auto: "
        "locality where degrees are low and alike, else degree.  [default: the setting oocgraph.vertex-order]",
    )(command)  # fmt: skip


def check_size(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Refuse a text that is no size (a callback of click)."""
    if value is not None:
        parse_bytes(value)
    return value


def parse_numbers(_context: click.Context, option: click.Parameter, value: str) -> list[int]:
    """Turn a text such as ``15,10`` into numbers (a callback of click); their range the library checks."""
    try:
        return [int(one) for one in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of whole numbers, such as {option.default}") from None


where_option = click.option(
    "--where", metavar="CONDITION", help="Use only edges whose columns meet it, as in 'year < 2020 and kind == \"a\"'; in this process."
)


def emit(
    fields: Mapping[str, Any], *, as_json: bool, title: str, answer: Callable[[], object] | None = None, figures_asked: bool = False
) -> None:
    """Print a command's answer: one JSON object, or a title and a listing, in which units follow the names of the fields.

    `answer` prints what is shown between both. With ``--quiet`` there is only the title, unless the figures of the listing are what was
    asked for (`figures_asked`).
    """
    if as_json:
        click.echo(as_json_text(fields))
        return
    click.echo(title)
    if is_quiet() and not figures_asked:
        return
    if answer is not None:
        answer()
    shown = [(label(name), human(name, value)) for name, value in fields.items() if is_single(value)]
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        click.echo(f"  {name:<{width}}  {text}")


def graph_fields(path: str, graph: CSRStore) -> dict[str, Any]:
    """Return what the root of a store says, in the words of Python: vertices are all that the input has."""
    stored = graph.attributes.to_json()
    stored["num_vertices"] = stored.pop("num_input_vertices")
    return {"path": path, **stored, "edge_bytes": graph.edge_bytes}


def as_json_text(fields: Any) -> str:
    """Return fields as JSON, which has no infinity and no NaN: they are null."""
    try:
        return json.dumps(fields, default=_plain, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(fields, default=_plain), parse_constant=lambda _: None))


def _plain(value: Any) -> Any:
    """Turn what JSON does not know (NumPy scalars and arrays, paths) into what it knows."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def progress_bars() -> AbstractContextManager[Progress]:
    """Return a context whose `Progress` draws bars on stderr when it is a terminal."""
    return nullcontext(ignore_progress) if is_quiet() else progress.progress_bars()


def note(text: str) -> None:
    """Print a remark beside the answer; a reader that has ended does not stop the work."""
    if not is_quiet():
        with suppress(BrokenPipeError):
            click.echo(text, err=True)


def check_result_path(path: str | None, *, overwrite: bool) -> None:
    """Check, before the work, that a result can be written to `path`, if one is to be written.

    Raises
    ------
    OutputError
        It exists and `overwrite` is false, its extension is unknown, or its folder is missing or cannot be written.
    """
    if path is None:
        return
    from oocgraph.errors import OutputError
    from oocgraph.results.writer import result_place

    folder = result_place(path, overwrite=overwrite).parent
    if not folder.is_dir():
        raise OutputError(f"{folder}: no such folder; create it or write elsewhere")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{folder}: no permission to write; choose another folder")
