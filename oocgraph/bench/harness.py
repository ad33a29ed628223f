"""What every benchmark shares: rounds in which all subjects take turns, ratios inside a round, scratch files, and one kind of report.

In: subjects (the code measured and its peers) and inputs. Out: what each subject returned for each input, then a `Report`.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from oocgraph.types import Progress

Input = TypeVar("Input")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a benchmark.

    Attributes
    ----------
    title
        First line of the listing for people.
    metrics
        What ``--json`` prints.
    invalid
        Every rule that a result breaks, in words that name the result.
    """

    title: str
    metrics: dict[str, Any]
    invalid: tuple[str, ...] = ()


def in_turn(
    subjects: Mapping[str, Callable[[Input], Any]], inputs: Sequence[Input], progress: Progress, *, phase: str, alternate: bool = False
) -> dict[str, list[Any]]:
    """Call every subject with each input, round by round, so that other load on the machine falls on all of them.

    Parameters
    ----------
    subjects
        Functions by name.
    inputs
        One for each round.
    progress
        Called with (`phase`, calls done, calls).
    alternate
        Reverse the order in every second round: who comes second finds pages and caches that the first has filled.

    Returns
    -------
    dict
        For each subject what it returned, in the order of the inputs.

    Examples
    --------
    >>> from oocgraph.types import ignore_progress
    >>> in_turn({"double": lambda x: 2 * x, "square": lambda x: x * x}, [1, 3], ignore_progress, phase="computing")
    {'double': [2, 6], 'square': [1, 9]}
    """
    found: dict[str, list[Any]] = {name: [] for name in subjects}
    num_done, num_calls = 0, len(inputs) * len(subjects)
    progress(phase, num_done, num_calls)
    for number, value in enumerate(inputs):
        names = list(subjects)
        for name in names[::-1] if alternate and number % 2 else names:
            found[name].append(subjects[name](value))
            num_done += 1
            progress(phase, num_done, num_calls)
    return found


def timed(call: Callable[[], Any]) -> Callable[[Any], float]:
    """Return a subject of `in_turn` that makes a call, whatever the input is, and returns its seconds."""

    def run(_: Any) -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    return run


def paired_ratios(name: str, ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """Return the median of ours by theirs in each round as `name`, and the lower and upper quartile beside it.

    Examples
    --------
    >>> paired_ratios("ratio", [1.0, 4.0, 9.0], [2.0, 4.0, 3.0])
    {'ratio': 1.0, 'ratio_quartiles': [0.75, 2.0]}
    """
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return {name: statistics.median(ratios), f"{name}_quartiles": np.quantile(ratios, (0.25, 0.75)).tolist()}


def medians(rows: Sequence[Mapping[str, Any]], *names: str) -> dict[str, Any]:
    """Return the median of each column, as ``median_`` and its name."""
    return {f"median_{name}": statistics.median(row[name] for row in rows) for name in names}


def extremes(rows: Sequence[Mapping[str, Any]], *names: str) -> dict[str, Any]:
    """Return the median and the largest value of each column.

    Examples
    --------
    >>> extremes([{"seconds": 1.0}, {"seconds": 4.0}, {"seconds": 2.0}], "seconds")
    {'median_seconds': 2.0, 'worst_seconds': 4.0}
    """
    metrics: dict[str, Any] = {}
    for name in names:
        metrics |= {**medians(rows, name), f"worst_{name}": max(row[name] for row in rows)}
    return metrics


@contextmanager
def scratch_folder(parent: str | Path | None) -> Iterator[Path]:
    """Yield a new folder, removed at the end with all that is in it."""
    with tempfile.TemporaryDirectory(prefix="oocgraph-bench-", dir=parent) as folder:
        yield Path(folder)
