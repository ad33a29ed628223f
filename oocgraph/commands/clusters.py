"""Options of commands that can run on a Dask cluster, and the client that they name.

Without any of them a command runs in this process and imports nothing of Dask's scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.common import check_size

if TYPE_CHECKING:
    from distributed import Client

_CLIENT = ("scheduler", "cluster", "workers", "threads_per_worker", "worker_memory")
"""Options that say which cluster; the others say what is done there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a command runs: the cluster options as given; None where not."""

    scheduler: str | None
    cluster: Any
    workers: int | None
    threads_per_worker: int | None
    worker_memory: str | None
    partitions: int | None = None
    result_store: str | None = None
    resume: str | None = None

    def check(self, *, in_process: tuple[str, ...] = ()) -> None:
        """Refuse options that contradict each other, before anything is read or started.

        Parameters
        ----------
        in_process
            Options that mean something without a cluster, too.

        Raises
        ------
        click.UsageError
            A cluster's options without a cluster, or two places for the result.
        ClusterError
            See `oocgraph.cluster.start.check_options`.
        """
        given = [f"--{field.name.replace('_', '-')}" for field in fields(self) if getattr(self, field.name) is not None]
        given = [name for name in given if name not in in_process]
        if not self.is_cluster:
            if given:
                raise click.UsageError(f"{given[0]} is for a cluster; add --cluster local, --cluster cuda or --scheduler")
            return
        if self.result_store is not None and self.resume is not None:
            raise click.UsageError("--resume names the result store itself; leave --result-store out")
        from oocgraph.cluster.start import check_options

        check_options(**self._client_options())

    @contextmanager
    def client(self) -> Iterator[Client | None]:
        """Connect to the cluster or start it, which then ends with the context; None when the command runs in this process."""
        if not self.is_cluster:
            yield None
            return
        from oocgraph.cluster.start import open_client

        with open_client(**self._client_options()) as client:
            yield client

    def result_options(self) -> dict[str, Any]:
        """Return arguments of `oocgraph.bfs` that only a search on a cluster has."""
        return {"result_store": self.result_store, "resume": self.resume}

    @property
    def is_cluster(self) -> bool:
        """Whether a cluster was named."""
        return self.scheduler is not None or self.cluster is not None

    def _client_options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _CLIENT}


_PLACE_OPTIONS = [
    click.option("--scheduler", metavar="ADDRESS|FILE", help="Run on the workers of a running Dask scheduler, or its scheduler file."),
    click.option("--cluster", type=click.Choice(["local", "cuda"]), help="Start workers on this machine: processes, or one for each GPU."),
    click.option("--workers", type=click.IntRange(min=1), help="Workers to start, or to wait for.  [default: one for each core or GPU]"),
    click.option("--threads-per-worker", type=click.IntRange(min=1), help="Cores of each worker to start.  [default: an equal share]"),
    click.option("--worker-memory", metavar="SIZE", callback=check_size, help="Limit of each worker to start.  [default: an equal share]"),
    click.option(
        "--partitions", type=click.IntRange(min=1), help="Parts into which the vertices are divided.  [default: one for each worker]"
    ),
]

_RESULT_OPTIONS = [
    click.option("--result-store", metavar="DIR", help="Folder for what the workers find; all must see it.  [default: beside the graph]"),
    click.option("--resume", metavar="DIR", help="Resume the search in this result store, or start it there if there is none."),
]


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command takes them together, as `place`."""
    return _with_place(command, [*_PLACE_OPTIONS, *_RESULT_OPTIONS])


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options but those that say where a result goes, for a command that has many; it takes them as `place`."""
    return _with_place(command, _PLACE_OPTIONS)


def client_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which cluster, for a command that has partitions of its own; it takes them as `place`."""
    return _with_place(command, _PLACE_OPTIONS[:-1])


def _with_place(command: Callable[..., Any], choices: list[Callable[..., Any]]) -> Callable[..., Any]:
    @wraps(command)
    def call(**options: Any) -> Any:
        place = Place(**{field.name: options.pop(field.name) for field in fields(Place) if field.name in options})
        return command(place=place, **options)

    decorated: Callable[..., Any] = call
    for option in reversed(choices):
        decorated = option(decorated)
    return decorated
