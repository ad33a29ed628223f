"""Before anything is loaded: is the client open, are there workers, and do they see the same store with the same oocgraph.

In: a client. Out: what each worker says of itself, or one error that names the worker and the remedy.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oocgraph
from oocgraph.clients import ask, wait_for_worker, why_lost
from oocgraph.config import settings
from oocgraph.errors import ArgumentError, ClusterError, OutputError
from oocgraph.store.layout import FORMAT

ATTEMPTS = 3
"""How often workers are asked, when one goes while it is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFolder:
    """A folder that every worker must see and be able to write to.

    Attributes
    ----------
    path
        Where this is tried, with a file that is removed at once.
    place
        Folder that messages name: where the user wants the output.
    what
        Contents of the output: ``results``, ``partitions``.
    remedy
        End of messages: what to choose instead.
    """

    path: Path
    place: Path
    what: str
    remedy: str


def results_folder(path: str | os.PathLike[str] | None) -> SharedFolder | None:
    """Return the folder of results at `path`; None if there is none."""
    if path is None:
        return None
    place = Path(os.path.abspath(path))
    remedy = "set oocgraph.result-folder, or result_store, to a folder that every worker sees"
    return SharedFolder(path=place, place=place, what="results", remedy=remedy)


def device_sharers(workers: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how many workers use the same GPU first, at the most; `workers` are replies of `check_workers`."""
    return max(Counter((said["host"], said["first_gpu"]) for said in workers.values()).values(), default=1)


def check_device_is_used(requested: str | int | None, compute: str, said: Sequence[tuple[str, str, str]]) -> None:
    """Refuse a budget of device memory that no worker can heed.

    Parameters
    ----------
    requested
        The budget; None: there is none.
    compute
        What workers do, in the message: a verb.
    said
        Of each share of the work its worker, name of the device on which that computes (``cpu`` for the processor), and why.

    Raises
    ------
    ArgumentError
        All compute on the processor.
    """
    if requested is not None and said and all(device == "cpu" for _, device, _ in said):
        worker, _, reason = said[0]
        raise ArgumentError(
            f"device_memory_budget is given, but no worker would {compute} on a GPU; worker {worker}: {reason}; leave it out"
        )


def clients_of(client: Any) -> set[str]:
    """Return the names of the clients that the scheduler knows."""

    def names(dask_scheduler: Any = None) -> list[str]:
        """Sent by value: the scheduler may have no oocgraph."""
        return list(dask_scheduler.clients)

    return set(ask(client, client.run_on_scheduler, names))


def has_no_worker(client: Any, key: str) -> bool:
    """Whether a task waits for a worker that may run it, as Dask does for one by address that never comes back."""

    def found(key: str, dask_scheduler: Any = None) -> bool:
        """Sent by value: the scheduler may have no oocgraph."""
        return key in dask_scheduler.tasks and dask_scheduler.tasks[key].state == "no-worker"

    return bool(ask(client, client.run_on_scheduler, found, key))


def check_workers(client: Any, url: str | None, fingerprint: str | None, folder: SharedFolder | None = None) -> dict[str, dict[str, Any]]:
    """Ask every worker for its version and whether it sees the store, if there is one, and the folder of the output.

    Each also says its ``host`` and its ``numa_node``: None where it runs on several.

    Raises
    ------
    ClusterError
        One has another version or format, or does not see the same store, or the folder.
    OutputError
        The folder of the output is missing or cannot be written.
    """

    def describe(url: str | None, token: str | None, dask_worker: Any = None) -> dict[str, Any]:
        """Sent by value: a worker's own oocgraph may be another, or none."""
        import os

        said: dict[str, Any] = {"nanny": bool(dask_worker.nanny), "host": dask_worker.ip}
        said["first_gpu"] = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]
        try:
            import oocgraph
        except ImportError as error:
            return {**said, "error": f"it cannot import oocgraph ({error})"}
        said["version"] = oocgraph.__version__
        try:
            from oocgraph.sparse.placement import own_node
            from oocgraph.store.fingerprint import graph_fingerprint
            from oocgraph.store.graph import open_graph
            from oocgraph.store.layout import FORMAT

            said["format"], said["numa_node"] = FORMAT, own_node()
            said["fingerprint"] = None if url is None else graph_fingerprint(open_graph(url))
        except Exception as error:
            said["store"] = str(error) or type(error).__name__
        said["token"] = token is None or os.path.exists(token)
        said["writable"] = token is None or os.access(os.path.dirname(token), os.W_OK)
        return said

    where = os.path.abspath(url) if url is not None and "://" not in url else url
    token = None if folder is None else _leave_token(folder)
    try:
        for _ in range(ATTEMPTS):
            replies = ask(client, client.run, describe, where, None if token is None else os.fspath(token), on_error="return")
            if not replies:  # all have been lost, and may be started again
                wait_for_worker(client, settings().worker_timeout)
            elif not any(isinstance(said, OSError) for said in replies.values()):
                break  # else one has gone meanwhile
    finally:
        if token is not None:
            token.unlink()
    for address, said in sorted(replies.items()):
        if isinstance(said, BaseException):
            raise ClusterError(f"worker {address} could not be asked what it sees: {said!r}{why_lost(client)}") from said
        _check_reply(address, said, where, fingerprint, folder)
    if not replies:
        raise ClusterError(f"the scheduler at {client.scheduler.address} has lost its workers; start some and try again")
    return dict(replies)


def _check_reply(address: str, said: dict[str, Any], url: str | None, fingerprint: str | None, folder: SharedFolder | None) -> None:
    name = f"worker {address} on {said.get('host')}"
    if "error" in said:
        raise ClusterError(f"{name}: {said['error']}; install oocgraph {oocgraph.__version__} there")
    if said["version"] != oocgraph.__version__ or said.get("format", FORMAT) != FORMAT:
        raise ClusterError(
            f"{name} has oocgraph {said['version']} (store format {said.get('format', 'unknown')}), the client has {oocgraph.__version__} "
            f"(format {FORMAT}); install the same on both"
        )
    if "store" in said:
        raise ClusterError(f"{name} cannot open the graph at {url}: {said['store']}. Put it on a file system that every worker sees")
    if said["fingerprint"] != fingerprint:
        raise ClusterError(f"{name} sees another graph at {url} than the client; give a path that means the same on every machine")
    if folder is not None and not (said["token"] and said["writable"]):
        failure = "cannot write to" if said["token"] else "does not see"
        raise ClusterError(f"{name} {failure} the folder of {folder.what} {folder.place}; {folder.remedy}")


def _leave_token(folder: SharedFolder) -> Path:
    """Make an empty file that workers are to find."""
    token = folder.path / f".oocgraph-token-{uuid.uuid4().hex[:12]}"
    try:
        token.touch()
    except OSError as error:
        raise OutputError(f"{folder.place}: {folder.what} cannot be written here ({error.strerror}); {folder.remedy}") from error
    return token
