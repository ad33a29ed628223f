"""The command line: a graph in, an answer on stdout, exit code 0; anything wrong is one message and another exit code.

0 done; 1 a benchmark found an invalid result; 2 bad input, usage, budget or cluster; 130 interrupted (nothing is left behind),
143 terminated likewise. ``oocgraph`` and ``dask oocgraph`` are the same commands.
"""

from __future__ import annotations

import importlib
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

import oocgraph
from oocgraph.errors import OocGraphError

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

COMMANDS = {
    "demo": "Build and search a small real graph, and check the result.",
    "generate": "Make a synthetic graph, or its edge list.",
    "build": "Turn an edge list into a graph store.",
    "info": "Say what a graph store holds.",
    "check": "Check the structure and checksums of a graph store.",
    "export": "Write a graph as an edge list for other programs.",
    "partition": "Cut a graph into partitions by a policy.",
    "bfs": "Search breadth-first from one or several sources.",
    "plan": "Predict a search over 1D and 2D partitions: bytes, messages, time, memory.",
    "pagerank": "Rank every vertex by PageRank.",
    "bench": "Measure, beside a peer on the same graph.",
}
"""Name and short help; a command's module is imported when it is called."""


class _BadInput(click.ClickException):
    exit_code = EXIT_BAD_INPUT


@contextmanager
def _orderly_termination() -> Iterator[None]:
    """Let SIGTERM leave through the exits that remove temporary files, as Ctrl-C does: batch systems end jobs this way.

    Where it was started with SIGTERM ignored, it stays so, as Python leaves SIGINT (``nohup``, background jobs of a plain shell).
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(EXIT_TERMINATED)


class _Commands(click.Group):
    """Loads commands at first use; turns errors into one message and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"oocgraph.commands.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _orderly_termination():
                return super().invoke(ctx)
        except OocGraphError as error:
            raise _BadInput(str(error)) from error
        except MemoryError as error:
            raise _BadInput("out of memory; give a smaller --memory, or more memory to the process") from error
        except OSError as error:
            if error.errno is None or isinstance(error, BrokenPipeError):
                raise
            raise _BadInput(f"{error.filename or 'input or output'}: {error.strerror}") from error
        except KeyboardInterrupt:
            click.echo("interrupted; nothing was left behind", err=True)
            ctx.exit(EXIT_INTERRUPTED)


@click.group("oocgraph", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(oocgraph.__version__, prog_name="oocgraph")
def cli() -> None:
    """Breadth-first search of graphs whose edges do not fit in memory."""


def main() -> None:
    """Run the command line (the entry point of the ``oocgraph`` script)."""
    cli()


if __name__ == "__main__":
    main()
