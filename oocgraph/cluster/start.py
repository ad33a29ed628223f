"""Where a search on a cluster finds its workers: a scheduler that runs already, processes of this machine, or one worker per GPU.

In: what `oocgraph.cluster.scheduler` finds, or numbers of workers. Out: context managers that yield a `distributed.Client` and
close what they opened. `distributed` and `dask_cuda` are imported when a cluster is opened.
"""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from oocgraph.clients import wait_for_workers, why_lost
from oocgraph.cluster.scheduler import connect, import_distributed, logging_is_configured, quiet, reason
from oocgraph.config import num_cores, parse_bytes, settings
from oocgraph.errors import ClusterError, MissingDependencyError
from oocgraph.machine import cgroup_limit_bytes, deleted_folder
from oocgraph.memory import default_budget_bytes, format_bytes

if TYPE_CHECKING:
    from distributed import Client

Kind: TypeAlias = Literal["local", "cuda"]

MIN_WORKER_BYTES = 288 << 20
"""A worker with its imports has up to 110 MiB, and 145 MiB of libraries, mapped, before it has loaded anything; Dask counts both, and
restarts one that exceeds 95 % of its limit."""

SEMAPHORES = 6
"""Of each worker process, a page of memory in /dev/shm each: with 4 one does not start, with 6 it does."""

WITHOUT_GPU = "--cluster local works without a GPU"


@contextmanager
def open_client(
    *,
    scheduler: str | os.PathLike[str] | None = None,
    cluster: Kind | None = None,
    workers: int | None = None,
    threads_per_worker: int | None = None,
    worker_memory: str | int | None = None,
) -> Iterator[Client]:
    """Yield a client of whichever cluster the options name; see `connect`, `local_cluster` and `cuda_cluster`.

    Parameters
    ----------
    scheduler
        Address or scheduler file of a cluster that runs already.
    cluster
        Kind of cluster to start on this machine, and to stop afterwards.
    workers
        Workers to start; with a scheduler: workers to wait for.
    threads_per_worker, worker_memory
        Of each worker to start.

    Raises
    ------
    ClusterError
        The options contradict each other, or the cluster cannot be reached or started.
    MissingDependencyError
        A package that the cluster needs is not installed.
    """
    check_options(scheduler=scheduler, cluster=cluster, workers=workers, threads_per_worker=threads_per_worker, worker_memory=worker_memory)
    if scheduler is not None:
        with connect(scheduler) as client:
            _wait_for_workers(client, 1 if workers is None else workers)
            yield client
        return
    start = local_cluster if cluster == "local" else cuda_cluster
    with start(workers=workers, threads_per_worker=threads_per_worker, worker_memory=worker_memory) as client:
        yield client


def check_options(
    *,
    scheduler: str | os.PathLike[str] | None,
    cluster: str | None,
    workers: int | None,
    threads_per_worker: int | None,
    worker_memory: str | int | None,
) -> None:
    """Refuse options of `open_client` that contradict each other, before anything is started.

    Raises
    ------
    ClusterError
        The message names the options.
    """
    if scheduler is not None and cluster is not None:
        raise ClusterError(
            f"--scheduler {os.fspath(scheduler)} names a running cluster and --cluster {cluster} starts a new one; give one of them"
        )
    if scheduler is None and cluster is None:
        raise ClusterError("no cluster was named; give --scheduler ADDRESS|FILE, --cluster local or --cluster cuda")
    if cluster not in (None, "local", "cuda"):
        raise ClusterError(f"--cluster {cluster}: no such kind of cluster; choose local or cuda")
    given = {"--threads-per-worker": threads_per_worker, "--worker-memory": worker_memory}
    for option in (option for option, value in given.items() if value is not None and scheduler is not None):
        raise ClusterError(f"{option} is for workers to be started (--cluster); those of --scheduler {scheduler} run already")
    for option, number in {"--workers": workers, "--threads-per-worker": threads_per_worker}.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise ClusterError(f"{option} is {number!r}; it must be a whole number, 1 or more")


@contextmanager
def local_cluster(
    *, workers: int | None = None, threads_per_worker: int | None = None, worker_memory: str | int | None = None
) -> Iterator[Client]:
    """Yield a client of worker processes on this machine.

    Parameters
    ----------
    workers
        Processes; by default one for each core, or for each group of `threads_per_worker` cores.
    threads_per_worker
        By default the cores that this process may use, divided by the workers.
    worker_memory
        Limit of each process; by default an equal share of what the machine and the control group leave.

    Raises
    ------
    ClusterError
        The workers cannot be started, or the memory does not suffice for them.
    """
    distributed = import_distributed()
    if workers is None:
        workers = max(1, num_cores() // (threads_per_worker or 1))
    threads_per_worker = threads_per_worker or max(1, num_cores() // workers)
    with _started(distributed.LocalCluster, workers, threads_per_worker, worker_memory, remedy="") as client:
        yield client


@contextmanager
def cuda_cluster(
    *, workers: int | None = None, threads_per_worker: int | None = None, worker_memory: str | int | None = None
) -> Iterator[Client]:
    """Yield a client of dask-cuda's workers on this machine: one process for each GPU, with a CUDA_VISIBLE_DEVICES of its own.

    Parameters
    ----------
    workers
        GPUs to use; by default all that CUDA_VISIBLE_DEVICES leaves.
    threads_per_worker, worker_memory
        As in `local_cluster`; the memory is the host's.

    Raises
    ------
    ClusterError
        There is no driver, no GPU, or fewer GPUs than asked for.
    MissingDependencyError
        dask-cuda is not installed.
    """
    import_distributed()
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise MissingDependencyError(
            f"--cluster cuda needs dask-cuda ({error}): pip install 'oocgraph[cuda13]' (or 'oocgraph[cuda12]'); {WITHOUT_GPU}"
        ) from error
    num_gpus = _num_gpus()
    if workers is not None and workers > num_gpus:
        raise ClusterError(f"--workers {workers} asks for more GPUs than the {num_gpus} that can be seen; there is one worker for each GPU")
    workers = workers or num_gpus
    threads_per_worker = threads_per_worker or max(1, num_cores() // workers)
    with _started(LocalCUDACluster, workers, threads_per_worker, worker_memory, remedy=f"; {WITHOUT_GPU}") as client:
        yield client


def _num_gpus() -> int:
    """Return how many GPUs the driver and CUDA_VISIBLE_DEVICES show, at least one."""
    import pynvml

    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    try:
        pynvml.nvmlInit()
        installed: int = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        raise ClusterError(f"--cluster cuda needs a GPU with NVIDIA's driver: {error}; {WITHOUT_GPU}") from error
    chosen = installed if visible is None else num_named(visible)
    if not installed or not chosen:
        why = "the driver finds none" if not installed else f"CUDA_VISIBLE_DEVICES is {visible!r}"
        raise ClusterError(f"--cluster cuda needs a GPU: {why}; {WITHOUT_GPU}")
    return chosen


def num_named(visible: str) -> int:
    """Return how many devices CUDA_VISIBLE_DEVICES names: numbers, UUIDs of GPUs, or UUIDs of MIG instances, up to the first -1.

    Examples
    --------
    >>> num_named("0,GPU-8932f937"), num_named("MIG-6f9dd59a,MIG-GPU-8932f937/1/0"), num_named("1,-1,2"), num_named("")
    (2, 2, 1, 0)
    """
    names = [name.strip() for name in visible.split(",")]
    return len([name for name in names[: names.index("-1") if "-1" in names else None] if name])


@contextmanager
def _started(
    make: Callable[..., Any], workers: int, threads_per_worker: int, worker_memory: str | int | None, *, remedy: str
) -> Iterator[Client]:
    """Start a cluster, yield its client, stop it."""
    import distributed

    dashboard = settings().dashboard_address
    options = {
        "n_workers": workers,
        "threads_per_worker": threads_per_worker,
        "memory_limit": _worker_bytes(workers, worker_memory),
        "dashboard_address": dashboard,
        # the scheduler serves its health page even without a dashboard; any free port will do
        "scheduler_kwargs": {} if dashboard else {"dashboard_address": "127.0.0.1:0"},
        "silence_logs": False if logging_is_configured() else logging.CRITICAL,
    }
    with quiet(), _start(make, options, remedy) as cluster, distributed.Client(cluster, timeout=settings().worker_timeout) as client:
        yield client


@contextmanager
def _start(make: Callable[..., Any], options: dict[str, Any], remedy: str) -> Iterator[Any]:
    """Start a cluster whose processes leave Ctrl-C, and the end of the terminal, to this one, which then stops them.

    It is made in a thread that blocks SIGINT and SIGHUP: its event loop and the worker processes, also those restarted later, inherit that;
    so does multiprocessing's tracker, which removes semaphores when all have ended, SIGHUP.
    """
    import dask

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        _check_semaphores(options["n_workers"])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    made: Future[Any] = Future()

    def start() -> None:
        if made.set_running_or_notify_cancel():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
            resource_tracker.ensure_running()  # when it starts later it lifts the block of SIGINT
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                made.set_result(make(**options))
            except BaseException as error:
                made.set_exception(error)

    with dask.config.set(_memory_rules()):
        try:
            threading.Thread(target=start, name="oocgraph-start-cluster", daemon=True).start()
            made.result()
        except Exception as error:
            raise ClusterError(f"the workers did not start: {_why(reason(error))}{remedy}") from error
        except BaseException:  # Ctrl-C: what has begun to start is stopped
            if not made.cancel() and made.exception() is None:
                made.result().close()
            raise
    with made.result() as cluster:
        yield cluster


def _why(said: str) -> str:
    """Return what Dask says of workers that did not start, in words where it names the state of one only."""
    if not said.startswith("Status."):
        return said
    return deleted_folder() or f"one ended before it was ready ({said}); see that memory (ulimit -v) suffices"


def _check_semaphores(num_workers: int) -> None:
    """Refuse to start processes that could not talk to this one; Dask only says that a worker's status is still "init"."""
    context = multiprocessing.get_context("spawn")
    try:
        _ = [context.Lock() for _ in range(SEMAPHORES * num_workers)]
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "remove what nobody uses there" if is_full else "mount it (mount -t tmpfs tmpfs /dev/shm)"
        raise ClusterError(
            f"worker processes need POSIX semaphores, which are kept in /dev/shm, and that cannot be used ({error.strerror}); {remedy}, or "
            "search in this process, without --cluster"
        ) from error


def _worker_bytes(workers: int, worker_memory: str | int | None) -> int:
    """Return the memory limit of each of `workers` processes."""
    if worker_memory is None:
        num_bytes, source = default_budget_bytes() // workers, f"what is free, divided by {workers} workers,"
    else:
        num_bytes, source = parse_bytes(worker_memory), "--worker-memory"
        machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        room = min(machine_bytes, cgroup_limit_bytes() or machine_bytes)
        if workers * num_bytes > room:
            raise ClusterError(
                f"{workers} workers of {format_bytes(num_bytes)} need {format_bytes(workers * num_bytes)}, but the machine (or its control "
                f"group) has {format_bytes(room)}; give a smaller --worker-memory or fewer --workers"
            )
    if num_bytes < MIN_WORKER_BYTES:
        raise ClusterError(
            f"{source} is {format_bytes(num_bytes)}, but a worker needs at least {format_bytes(MIN_WORKER_BYTES)} to load its libraries; "
            "give more --worker-memory or fewer --workers"
        )
    return num_bytes


def _memory_rules() -> dict[str, Any]:
    """Return settings for workers whose data is within a budget and cannot be spilled: pausing them would only stop the search.

    What the user has configured stays; a worker that exceeds its limit is still ended ("terminate").
    """
    import dask
    from distributed.config import defaults

    packaged = defaults["distributed"]["worker"]["memory"]
    names = {name: f"distributed.worker.memory.{name}" for name in ("target", "spill", "pause")}
    return {key: False for name, key in names.items() if dask.config.get(key) == packaged[name]}


def _wait_for_workers(client: Client, num_workers: int) -> None:
    timeout = settings().worker_timeout
    if (found := wait_for_workers(client, num_workers, timeout)) < num_workers:
        raise ClusterError(
            f"{found} of {num_workers} workers are there after {timeout:g} s; see the logs of `dask worker`, or raise "
            f"oocgraph.worker-timeout (DASK_OOCGRAPH__WORKER_TIMEOUT){why_lost(client)}"
        )
