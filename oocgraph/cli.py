"""The command line: a graph in, an answer on stdout, exit code 0; anything wrong is one message and another exit code.

0 done; 1 a benchmark found an invalid result, or ``warm --check`` something to compile; 2 bad input, usage, budget or cluster; 130
interrupted (nothing is left behind), 143 terminated and 129 left by its terminal likewise; 141 the program that read the output has
ended. ``oocgraph`` and ``dask oocgraph`` are the same commands.
"""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any

import click

import oocgraph
from oocgraph.errors import OocGraphError

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
"""As of a program that SIGPIPE ends: 128 + 13."""

ENDING = {signal.SIGINT: EXIT_INTERRUPTED, signal.SIGTERM: 143, signal.SIGHUP: 129}
"""Signals that end a command, and its exit codes: Ctrl-C; those of batch systems, and of terminals that are closed."""

DEAF_SECONDS = 5.0
"""Time after a signal in which others are dropped: what ends is not to be interrupted."""

AGAIN_SECONDS = 0.05
"""Time after which a signal that was dropped is sent again: the call that dropped it has mostly returned by then."""

GARBAGE = 100_000
"""Objects between two collections of garbage: a fifth of the time of imports is saved. By default 700."""

ALLOCATOR = "ARROW_DEFAULT_MEMORY_POOL", "system"
"""Arrow's reader of Parquet uses the allocator that Arrow began with, whatever is set later, and Arrow's own one keeps what is freed:
a build from Parquet with dictionaries held 217 MB in place of 178, and took 11.7 s in place of 10."""

BLAS = "OPENBLAS_THREAD_TIMEOUT", "4"
"""NumPy starts a thread for every processor but one when it is imported, and each spins for 0.1 s before it sleeps (2**26 ticks; now 2**4):
nothing here multiplies dense matrices. It must be set before that, so nothing that this module imports may import NumPy."""

COMMANDS = {
    "demo": "Build and search a small real graph, and check the result.",
    "generate": "Make a synthetic graph, or its edge list.",
    "estimate": "Estimate disk, memory and time of a build and a search.",
    "build": "Turn an edge list into a graph store.",
    "merge": "Merge two graph stores into one.",
    "info": "Show what a graph store holds.",
    "check": "Check the structure and checksums of a graph store.",
    "export": "Write a graph as an edge list for other programs.",
    "neighbors": "Print the edges of some vertices.",
    "sample": "Draw neighbours of some vertices at random.",
    "partition": "Cut a graph into partitions by a policy.",
    "bfs": "Search breadth-first from one or several sources.",
    "plan": "Predict a search over 1D and 2D partitions: bytes, messages, time, memory.",
    "pagerank": "Rank every vertex by PageRank.",
    "sssp": "Find shortest paths from one vertex, or from the nearest of several.",
    "path": "Find a shortest path from one vertex to another.",
    "hits": "Find hubs and authorities.",
    "katz": "Find the Katz centrality of every vertex.",
    "eigenvector": "Find the eigenvector centrality of every vertex.",
    "betweenness": "Find the betweenness centrality of every vertex.",
    "multi-source-bfs": "Search breadth-first from many vertices, 64 at a time.",
    "closeness": "Find the closeness centrality of vertices.",
    "harmonic": "Find the harmonic centrality of vertices.",
    "eccentricity": "Find the eccentricity of vertices.",
    "diameter": "Find the diameter, or bounds of it.",
    "components": "Find the connected components.",
    "personalized-pagerank": "Rank every vertex as each of some vertices sees it.",
    "spanning-forest": "Find a minimum spanning forest.",
    "biconnected-components": "Find the biconnected components, and the bridges.",
    "coloring": "Give every vertex a colour that no neighbour has.",
    "independent-set": "Find a maximal independent set.",
    "scc": "Find the strongly connected components.",
    "condensation": "Build the graph of the strongly connected components.",
    "topological-generations": "Find the generations of a graph without cycles.",
    "label-propagation": "Find communities by label propagation.",
    "louvain": "Find communities of high modularity.",
    "core": "Find the core number of every vertex.",
    "triangles": "Count the triangles of every vertex.",
    "spmv": "Multiply a graph's adjacency matrix and a vector.",
    "warm": "Compile all kernels beforehand.",
    "bench": "Measure, beside a peer on the same graph.",
}
"""Name and short help; a command's module is imported when it is called."""

MODULES = {
    **dict.fromkeys(
        (
            "hits", "katz", "eigenvector", "betweenness", "closeness", "harmonic", "eccentricity", "personalized-pagerank",
            "spanning-forest", "biconnected-components", "coloring",
            "independent-set", "scc", "topological-generations", "label-propagation", "louvain", "triangles",
        ),
        "analyses",
    ),
    "sample": "neighbors",
}  # fmt: skip
"""Modules of commands that share one with others; all others have their own."""


class _BadInput(click.ClickException):
    exit_code = EXIT_BAD_INPUT

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message, if stderr has a reader."""
        try:
            super().show(file)
        except BrokenPipeError:
            _discard_broken_pipes()


class _Ending:
    """Has signals leave through the exits that remove temporary files, each once in `DEAF_SECONDS`: a second Ctrl-C would break off that.

    Where a signal is ignored at the start it stays so, as Python leaves SIGINT (``nohup``, background jobs of a plain shell).
    """

    def __init__(self) -> None:
        self._deaf_until = 0.0

    @contextmanager
    def orderly(self) -> Iterator[None]:
        """Handle signals, where this is the main thread."""
        here = [] if threading.current_thread() is not threading.main_thread() else [one for one in ENDING if _is_heard(one)]
        before = {one: signal.signal(one, self._end) for one in here}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def listen(self) -> None:
        """Handle the next signal, whatever came before it."""
        self._deaf_until = 0.0

    def _end(self, number: int, _frame: FrameType | None) -> None:
        if time.monotonic() < self._deaf_until:
            return
        self._deaf_until = time.monotonic() + DEAF_SECONDS
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(ENDING[signal.Signals(number)])


def _is_heard(number: signal.Signals) -> bool:
    """Whether a signal is not ignored; of Ctrl-C, whether nobody else handles it."""
    handler = signal.getsignal(number)
    return handler is signal.default_int_handler if number == signal.SIGINT else handler is not signal.SIG_IGN


@contextmanager
def _signals_not_lost(ending: _Ending) -> Iterator[None]:
    """Send a signal again that Python has dropped: what its handler raises in a ``__del__``, or in a callback of the garbage collector.

    Dask measures collections of garbage by such a callback, in the main thread, too.
    """
    before, again = sys.unraisablehook, list[threading.Timer]()

    def hook(dropped: Any) -> None:
        number = _signal_of(dropped.exc_value)
        if number is None or threading.current_thread() is not threading.main_thread():
            before(dropped)
            return
        if any(timer.is_alive() for timer in again):  # it is on its way
            return
        ending.listen()
        # Later, or it would be raised, and dropped, in here.
        again.append(threading.Timer(AGAIN_SECONDS, signal.pthread_kill, (threading.main_thread().ident, number)))
        again[-1].daemon = True
        again[-1].start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in again:
            timer.cancel()
            timer.join()  # what it sends is received in here


def _signal_of(error: BaseException | None) -> int | None:
    """Return the signal whose handler raises an error."""
    if isinstance(error, KeyboardInterrupt):
        return signal.SIGINT
    return next((number for number, code in ENDING.items() if isinstance(error, SystemExit) and error.code == code), None)


@contextmanager
def _ending_with_the_reader() -> Iterator[None]:
    """End quietly, with the exit code that shells know, when the reader of stdout or stderr has ended (``| head -1``)."""
    try:
        yield
    except BrokenPipeError as error:
        if not _discard_broken_pipes():  # another pipe, to a process of our own
            raise _BadInput(f"input or output: {error.strerror}") from error
        raise click.exceptions.Exit(EXIT_BROKEN_PIPE) from error


def _failure(error: OSError) -> str:
    """Return what has failed of input or output, in words."""
    from oocgraph.machine import deleted_folder

    remedy = "; choose a shorter name" if error.errno == errno.ENAMETOOLONG else ""
    return deleted_folder() or f"{error.filename or 'input or output'}: {error.strerror}{remedy}"


def _discard_broken_pipes() -> bool:
    """Send what is still written to stdout and stderr nowhere, where they have no reader; return whether that was so."""
    broken = [descriptor for descriptor in (1, 2) if _has_no_reader(descriptor)]
    for descriptor in broken:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
    return bool(broken)


def _has_no_reader(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _open_standard_streams() -> None:
    """Open what a caller has closed (``2>&-``), to nowhere.

    Otherwise the next file that is opened gets the number of stderr, and messages of libraries are written into it.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            try:
                os.fstat(descriptor)
            except OSError:
                os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - open as long as the process lives


_GIVEN = "oocgraph.arguments"
"""Where a context keeps the arguments as they were given."""


class _Commands(click.Group):
    """Loads commands at first use; turns errors into one message and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = importlib.import_module(f"oocgraph.commands.{MODULES.get(cmd_name, name)}")
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().main(*arguments, **options)
        except BrokenPipeError:  # the message about a wrong option is printed here
            _discard_broken_pipes()
            sys.exit(EXIT_BAD_INPUT)

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **options: Any) -> click.Context:
        given = tuple(args)
        with _ending_with_the_reader():  # the help is printed here
            ctx = super().make_context(info_name, args, *rest, **options)
        ctx.meta[_GIVEN] = given
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        ending = _Ending()
        try:
            with ending.orderly(), _signals_not_lost(ending), _ending_with_the_reader():
                return super().invoke(ctx)
        except OocGraphError as error:
            from oocgraph.commands.wording import in_options

            raise _BadInput(in_options(str(error), ctx.meta[_GIVEN])) from error
        except MemoryError as error:
            raise _BadInput("out of memory; give a smaller --memory, or more memory to the process") from error
        except OSError as error:
            if error.errno is None:
                raise
            raise _BadInput(_failure(error)) from error
        except KeyboardInterrupt:
            click.echo("interrupted; nothing was left behind", err=True)
            ctx.exit(EXIT_INTERRUPTED)


@click.group("oocgraph", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(oocgraph.__version__, prog_name="oocgraph")
def cli() -> None:
    """Breadth-first search, shortest paths, components, cores, PageRank and products of graphs whose edges do not fit in memory."""


def main() -> None:
    """Run the command line (the entry point of the ``oocgraph`` script)."""
    gc.set_threshold(GARBAGE)
    atexit.register(gc.freeze)  # the process ends: to look through all that libraries hold takes 0.1 s
    for name, value in (ALLOCATOR, BLAS):
        os.environ.setdefault(name, value)
    _open_standard_streams()
    cli()


if __name__ == "__main__":
    main()
