"""A scheduler that runs already, or that a batch job is about to start: find it, and connect to it.

In: an address or a scheduler file. Out: a `distributed.Client`, or one error that says what was found there. Before a client is
made the server is asked who it is: a client would wait for ever for a server that accepts a connection and stays silent.
Dask's own log messages are held back meanwhile, unless its configuration has ``logging``. `distributed` is
imported when something is opened.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oocgraph.clients import POLL_SECONDS
from oocgraph.config import require_proc, settings
from oocgraph.errors import ClusterError, MissingDependencyError

if TYPE_CHECKING:
    from distributed import Client

ATTEMPT_SECONDS = 5.0
"""How long one address of a scheduler file is tried before the file is read again: a new scheduler may have replaced it."""

_ADDRESS = re.compile(r"[a-z]+://.*|[^/\s]+:[0-9]+")


@contextmanager
def connect(scheduler: str | os.PathLike[str]) -> Iterator[Client]:
    """Yield a client of a scheduler that runs already, or that a batch job is about to start.

    Parameters
    ----------
    scheduler
        Address (``tcp://host:port`` or ``host:port``), or path of a scheduler file, which may not exist yet. Both are waited for,
        for the setting ``worker-timeout``.

    Raises
    ------
    ClusterError
        Nothing answers in time, or what answers is no scheduler.
    """
    distributed = import_distributed()
    with quiet():
        address = _find_scheduler(os.fspath(scheduler), settings().worker_timeout)
        try:
            client = distributed.Client(address, timeout=settings().worker_timeout)
        except (OSError, ValueError) as error:
            raise ClusterError(f"--scheduler {os.fspath(scheduler)}: {reason(error)}") from error
        with client:
            yield client


class _NotYetError(Exception):
    """No scheduler answers so far; the text says why."""


def _find_scheduler(scheduler: str, timeout: float) -> str:
    """Return the address at which a scheduler answers; a scheduler file is read again while none does."""
    is_file = os.path.exists(scheduler) or not _ADDRESS.fullmatch(scheduler)
    deadline = time.monotonic() + timeout
    while True:
        left = max(POLL_SECONDS, deadline - time.monotonic())
        try:
            address = _address_in(scheduler) if is_file else scheduler
            _check_scheduler(address, min(left, ATTEMPT_SECONDS) if is_file else left)
            return address
        except _NotYetError as not_yet:
            if time.monotonic() >= deadline:
                option = f" --scheduler-file {scheduler}" if is_file else ""
                old = "; the file may be left over from a scheduler that has ended" if os.path.exists(scheduler) else ""
                raise ClusterError(
                    f"--scheduler {scheduler}: {not_yet} after {timeout:g} s{old}; start one with `dask scheduler{option}`, or raise "
                    "oocgraph.worker-timeout (DASK_OOCGRAPH__WORKER_TIMEOUT)"
                ) from not_yet.__cause__
        except ClusterError as error:
            raise ClusterError(f"--scheduler {scheduler}: {error}") from error
        time.sleep(POLL_SECONDS)


def _address_in(path: str) -> str:
    """Return the address that a scheduler file names; one that is missing or half written may yet come."""
    try:
        text = Path(path).read_text()
        found = json.loads(text)
    except FileNotFoundError as error:
        raise _NotYetError("there is no such file (an address is written host:port)") from error
    except OSError as error:
        raise ClusterError(f"{error.strerror}; give a scheduler file, or an address as tcp://host:port") from error
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError) and text[:1] in ("", "{"):
            raise _NotYetError("the file is not complete") from error
        raise ClusterError("not a scheduler file: it is no JSON; `dask scheduler --scheduler-file FILE` writes one") from error
    if not isinstance(found, dict) or not isinstance(found.get("address"), str):
        raise ClusterError("not a scheduler file: it names no address; `dask scheduler --scheduler-file FILE` writes one")
    return str(found["address"])


def _check_scheduler(address: str, seconds: float) -> None:
    """Return when a scheduler answers at an address; a client would wait for ever for a server that accepts and stays silent."""
    answer: Future[dict[str, Any]] = Future()

    def ask() -> None:
        try:
            answer.set_result(asyncio.run(_identity(address, seconds)))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=ask, name="oocgraph-find-scheduler", daemon=True).start()  # the caller's thread may have a loop of its own
    try:
        identity = answer.result()
    except OSError as error:  # refused, closed, timed out, unknown host
        raise _NotYetError(f"nothing answers at {address} ({reason(error)})") from error
    except (TypeError, ValueError) as error:
        raise ClusterError(f"{error}; an address is written tcp://host:port") from error
    except Exception as error:
        raise ClusterError(f"what answers at {address} is no Dask scheduler") from error
    if identity.get("type") != "Scheduler":
        kind, its = identity.get("type", "server of another kind"), identity.get("scheduler")
        raise ClusterError(f"{address} is a Dask {kind}, not a scheduler{f'; its scheduler is {its}' if its else ''}")


async def _identity(address: str, seconds: float) -> dict[str, Any]:
    """Ask a Dask server who it is."""
    from distributed import Security
    from distributed.comm import connect

    async def ask() -> Any:
        comm = await connect(address, timeout=seconds, **Security().get_connection_args("client"))
        try:
            await comm.write({"op": "identity", "reply": True})
            return await comm.read()
        finally:
            comm.abort()

    answer: dict[str, Any] = await asyncio.wait_for(ask(), seconds + POLL_SECONDS)  # later than `connect` gives up: it knows why
    return answer


def reason(error: BaseException) -> str:
    """Return the innermost cause in one line: Dask's own messages repeat addresses and name objects."""
    while error.__cause__ is not None and not isinstance(error.__cause__, asyncio.CancelledError):
        error = error.__cause__
    text = str(error).rpartition(">: ")[2] or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)
    return " ".join(text.split())


def import_distributed() -> Any:
    """Import and return `distributed`, or say what is missing."""
    require_proc()
    try:
        import distributed
    except ImportError as error:
        raise MissingDependencyError(f"a cluster needs the package distributed ({error}): pip install 'dask[distributed]'") from error
    return distributed


@contextmanager
def quiet() -> Iterator[None]:
    """Hold back what Dask logs in this process: lost connections, late heartbeats, tasks cut off by Ctrl-C. Errors tell it better."""
    from distributed.utils import silence_logging_cmgr

    if logging_is_configured():
        yield
        return
    events = logging.getLogger("asyncio")
    level = events.level
    events.setLevel(logging.CRITICAL)
    try:
        with silence_logging_cmgr(logging.CRITICAL):
            yield
    except BaseException:
        gc.collect()  # tasks that were cut off are reported when they are collected
        raise
    finally:
        events.setLevel(level)


def logging_is_configured() -> bool:
    """Tell whether the user has asked Dask for logs."""
    import dask

    return bool(dask.config.get("logging", None) or dask.config.get("distributed.logging", None))
