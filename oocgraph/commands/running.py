"""What commands share whose function returns a result of every vertex: it is computed, validated and written, and each is measured.

In: the resources and the place of a command, and its result. Out: the fields of the result, with what the run took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.clusters import Place
from oocgraph.commands.common import Command, json_option, overwrite_option, progress_bars

if TYPE_CHECKING:
    from oocgraph.memory import PeakSampler
    from oocgraph.resources import Resources
    from oocgraph.types import Progress


def result_options(what: str) -> Callable[[Command], Command]:
    """Return a decorator that adds ``--out``, whose file holds `what`, ``--overwrite`` and ``--json``."""
    out = click.option("--out", metavar="FILE", help=f"Write {what}: .zarr, .parquet or .csv.")
    return lambda command: out(overwrite_option(json_option(command)))


def validate_option(command: Command) -> Command:
    """Add ``--validate``, of a result that one of the verifiers judges."""
    text = "Check the result by a code that shares nothing with it, reading every edge once."
    return click.option("--validate", is_flag=True, help=text)(command)


class Run:
    """A computation of a command.

    Attributes
    ----------
    resources
        What it may use, the client of its cluster included.
    progress
        Bars on the terminal.
    """

    def __init__(self, resources: Resources, progress: Progress, sampler: PeakSampler) -> None:
        self.resources = resources
        self.progress = progress
        self._sampler = sampler
        self._seconds: dict[str, float] = {}

    def finish(self, result: Any, out: str | None, *, overwrite: bool, verify: Callable[..., Any] | None = None) -> None:
        """Judge a result, if there is a verifier, and write it, if there is a file for it."""
        began = perf_counter()
        if verify is not None:
            verify(result, memory_budget=self.verification_budget)
        validated = perf_counter()
        if out is not None:
            result.write(out, overwrite=overwrite)
        self._seconds["result_seconds"] = perf_counter() - validated
        if verify is not None:
            self._seconds["validation_seconds"] = validated - began

    @property
    def verification_budget(self) -> str | int | None:
        """Memory of a verifier, which runs in this process: with a cluster, --memory is that of each worker."""
        return None if self.resources.client else self.resources.memory_budget

    def figures(self) -> dict[str, Any]:
        """Return what the run took, when it has ended; on a cluster the peak of this process is the client's alone."""
        peak = "client_peak_host_bytes" if self.resources.client else "peak_host_bytes"
        return {**self._seconds, peak: self._sampler.peak_bytes}

    def fields(self, result: Any) -> dict[str, Any]:
        """Return the metrics of a result, and what the run took: the peak is that of the whole run."""
        fields = result.summary()
        fields.pop("peak_host_bytes")
        return {**fields, **self.figures()}


@contextmanager
def running(resources: Resources, place: Place | None = None) -> Iterator[Run]:
    """Return a context in which a command computes: the cluster of its place, if it has one, bars, and the peak of memory."""
    from oocgraph.memory import PeakSampler

    with PeakSampler() as sampler, nullcontext() if place is None else place.client() as client, progress_bars() as progress:
        yield Run(replace(resources, client=client), progress, sampler)
