"""Progress bars: on a terminal (stderr), or in a notebook; nothing anywhere else.

In: calls ``progress(phase, done, total)``, total 0 where it is not known. Out: one bar for each phase. The two phases of a
search, `LEVEL` and `REACHED`, share a bar: it is as long as the vertices reached so far. A search of one of many components
ends before its bar does.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

from oocgraph.types import Progress, ProgressOption, ignore_progress

LEVEL = "level"
"""Phase of a search whose `done` is the level it has come to; the total is not known."""

REACHED = "vertices reached"
"""Phase of a search whose `done` is the number of vertices reached, of all that have an edge."""

REDRAW_SECONDS = 0.1
"""Time between two pictures in a notebook: each is a message to the browser. (A terminal is redrawn by rich, in a thread.)"""


@dataclass(slots=True)
class Bar:
    """What one bar shows.

    Attributes
    ----------
    title
        What is being done.
    done, total
        How far; total 0 where it is not known.
    note
        Text beside the bar.
    """

    title: str
    done: int = 0
    total: int = 0
    note: str = ""


class Bars:
    """A `Progress` that keeps one `Bar` for each phase, and tells `draw` of all of them, in the order in which they began."""

    def __init__(self, draw: Callable[[list[Bar]], None]) -> None:
        self._draw, self._bars = draw, dict[str, Bar]()

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Take notice that `phase` has come to `done` of `total`."""
        key = LEVEL if phase == REACHED else phase
        bar = self._bars.setdefault(key, Bar(key))
        if phase == LEVEL:
            bar.title = f"level {done:,}"
        else:
            bar.done, bar.total = done, total
        if phase == REACHED:
            bar.note = f"{done:,} of {total:,} vertices reached"
        self._draw(list(self._bars.values()))


@contextmanager
def progress_bars(otherwise: Progress = ignore_progress) -> Iterator[Progress]:
    """Yield a `Progress` that draws bars in a notebook or on a terminal.

    Parameters
    ----------
    otherwise
        What is called where there is neither.
    """
    if _in_notebook():
        picture = _NotebookPicture()
        try:
            yield Bars(picture.draw)
        finally:
            picture.show(at_end=True)
    elif sys.stderr is not None and sys.stderr.isatty():  # None: a process without standard streams
        with _terminal_drawer() as draw:
            yield Bars(draw)
    else:
        yield otherwise


@contextmanager
def watched(progress: ProgressOption) -> Iterator[Progress]:
    """Yield what to call for an argument `progress`: True draws bars, False and None do nothing, a function is called itself."""
    if progress is True:
        with progress_bars() as bars:
            yield bars
    else:
        yield progress or ignore_progress


def sum_of_threads(progress: Progress, phase: str, total: int) -> Callable[[int], None]:
    """Return a function that threads call with what each has done: `progress` is called with the sum, in the thread that calls this one."""
    caller, adding, done = threading.get_ident(), threading.Lock(), 0

    def add(num: int) -> None:
        nonlocal done
        with adding:
            done += num
        if threading.get_ident() == caller:
            progress(phase, done, total)

    return add


@contextmanager
def _terminal_drawer() -> Iterator[Callable[[list[Bar]], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as rows:
        tasks: list[TaskID] = []

        def draw(bars: list[Bar]) -> None:
            tasks.extend(rows.add_task("", note="") for _ in bars[len(tasks) :])
            for task, bar in zip(tasks, bars, strict=True):
                rows.update(task, description=bar.title, completed=bar.done, total=bar.total or None, note=bar.note)

        yield draw


def _in_notebook() -> bool:
    """Whether this runs in a kernel, whose front end shows HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class _NotebookPicture:
    """Bars in the output of a cell, where the last picture stays; HTML's own element needs no widgets."""

    def __init__(self) -> None:
        self._bars: list[Bar] = []
        self._began, self._due = time.monotonic(), 0.0
        self._output: Any = None

    def draw(self, bars: list[Bar]) -> None:
        """Show the bars, unless the last picture is very new."""
        self._bars = bars
        if time.monotonic() >= self._due:
            self.show()

    def show(self, *, at_end: bool = False) -> None:
        """Show the bars as they are, if there are any; at the end nothing moves any more."""
        if not self._bars:
            return
        from IPython.display import HTML, display

        picture = HTML("".join(f"{_html(bar, at_end=at_end)}<br>" for bar in self._bars) + f"{time.monotonic() - self._began:.1f} s")
        if self._output is None:
            self._output = display(picture, display_id=True)
        else:
            self._output.update(picture)
        self._due = time.monotonic() + REDRAW_SECONDS


def _html(bar: Bar, *, at_end: bool) -> str:
    extent = f' value="{bar.done}" max="{bar.total}"' if bar.total else ""
    line = "" if at_end and not bar.total else f" <progress{extent}></progress>"  # without an extent it moves to and fro
    return f"{escape(bar.title)}{line} {escape(bar.note)}"
