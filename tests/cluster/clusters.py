"""Clusters of real processes, whose workers can be stopped where a phase of a step begins, and killed there."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from distributed import Client

from oocgraph.clients import workers_of
from oocgraph.cluster.worker import OocGraphPlugin
from oocgraph.engine.part import bounds_of
from oocgraph.engine.shard_plan import ShardPlan
from oocgraph.partition.vertex_partition import partition_vertices
from tests import forks
from tests.processes import PATIENCE_SECONDS as PATIENCE

ROOT = Path(__file__).parents[2]


class Cluster:
    """A scheduler and workers, each started as a process of its own; all are killed with the context.

    Parameters
    ----------
    folder
        Where they write.
    workers, threads
        How many, and threads of each.
    nanny
        Whether workers have a process beside them that starts them again.
    ports
        Of the workers, one each; by default any.
    **env
        Environment variables of all of them.
    """

    def __init__(self, folder, *, workers=3, threads=1, nanny=False, ports=(), **env):
        self.folder, self.num_workers, self.threads, self.nanny, self.ports = Path(folder), workers, threads, nanny, list(ports)
        self._processes = []
        self._env = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_LOGGING__DISTRIBUTED": "error", **env}

    def __enter__(self):
        file = self.folder / "scheduler.json"
        options = ["--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", ":0", "--scheduler-file", str(file)]
        self.scheduler = self._start("distributed.cli.dask_scheduler", *options)
        try:
            self.client = Client(scheduler_file=str(file), timeout=PATIENCE, set_as_default=False)
            self.address = self.client.scheduler.address
            self.refill()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if hasattr(self, "client"):
            self.client.close(timeout=1)
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a nanny and its worker are one group
            process.wait()

    def _start(self, module, *options):
        log = self.folder / f"{module}-{len(self._processes)}.log"
        self._processes.append(forks.start(module, options, folder=self.folder, log=log, env=self._env))
        return self._processes[-1]

    def refill(self):
        """Start workers in place of those that are gone, unless nannies do, and wait until all are there."""
        options = ["--nanny" if self.nanny else "--no-nanny", "--nthreads", str(self.threads), "--memory-limit", "0", "--no-dashboard"]
        there = len(self._processes) - 1 if self.nanny else len(self.workers())
        for _ in range(self.num_workers - there):
            port = ["--worker-port", str(self.ports.pop())] if self.ports else []
            where = ["--local-directory", str(self.folder), "--host", "127.0.0.1"]
            self._start("distributed.cli.dask_worker", self.address, *options, *where, *port)
        self.client.wait_for_workers(self.num_workers, timeout=PATIENCE)

    def workers(self):
        """Addresses of the workers that the scheduler knows."""
        return sorted(workers_of(self.client))

    def pid(self, address):
        """Process of a worker."""
        return self.client.run(os.getpid, workers=[address])[address]

    def kill(self, *addresses):
        """Kill workers, and wait until the scheduler has noticed."""
        for pid in [self.pid(address) for address in addresses]:
            os.kill(pid, signal.SIGKILL)
        self.on_scheduler(gone, addresses)

    def on_scheduler(self, condition, *arguments):
        """Wait there until `condition(scheduler, *arguments)` holds."""
        assert self.client.run_on_scheduler(wait_until, condition, arguments)

    def on_worker(self, address, condition, *arguments):
        """Wait there until `condition(worker, *arguments)` holds."""
        assert self.client.run(wait_until, condition, arguments, workers=[address])[address]


async def wait_until(condition, arguments, dask_scheduler=None, dask_worker=None):
    """Run on a server: look at it between its own doings."""

    async def look():
        while not condition(dask_scheduler or dask_worker, *arguments):
            await asyncio.sleep(0.005)
        return True

    return await asyncio.wait_for(look(), PATIENCE)


def gone(scheduler, addresses):
    """Whether the scheduler knows none of some workers."""
    return not any(address in scheduler.workers for address in addresses)


def finished(scheduler, step, partition):
    """Whether the result of a step is with its worker, and nowhere else."""
    steps = [task for key, task in scheduler.tasks.items() if isinstance(key, tuple) and key[1:] == (step, partition)]
    return any(task.state == "memory" and len(task.who_has) == 1 for task in steps)


def fetching(worker, peer):
    """Whether a worker waits for what a peer is to send."""
    return peer in worker.state.in_flight_workers


def in_background(call, *arguments, **options):
    """Call in a thread that nobody has to wait for; returns a future."""
    found = Future()

    def run():
        try:
            found.set_result(call(*arguments, **options))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return found


class Trap:
    """Stops workers where a phase begins, and tells which: each keeps a connection open as long as it is stopped.

    Parameters
    ----------
    client
        Of their cluster.
    phase, step, partition
        Where; None means any.
    workers
        Their addresses; by default all.
    """

    def __init__(self, client, phase, step=None, partition=None, *, workers=None):
        self._server = socket.create_server(("127.0.0.1", 0))
        self._address = self._server.getsockname()
        self._held = []
        client.run(set_trap, self._address, (phase, step, partition), workers=workers)

    def __enter__(self):
        return self

    def watch(self, search):
        """Return `search`, a future; when it is done nobody waits for a worker to be stopped any more."""
        search.add_done_callback(self._give_up)
        return search

    def _give_up(self, _):
        with suppress(OSError), socket.create_connection(self._address) as told:
            told.sendall(b"{}\n")

    def wait(self):
        """Return who has been stopped, and where."""
        self._server.settimeout(PATIENCE)
        held, _ = self._server.accept()
        held.settimeout(PATIENCE)
        self._held.append(held)
        caught = json.loads(held.makefile().readline())
        assert caught, "the search ended before anybody was stopped"
        return caught

    def kill(self):
        """Kill the first that is stopped, at this very place; returns where it was."""
        caught = self.wait()
        self._server.close()
        os.kill(caught["pid"], signal.SIGKILL)
        assert self._held[-1].recv(1) == b"", "it went on"  # closed by its death alone
        return caught

    def let_go(self):
        """Have all go on, and stop nobody else."""
        self._server.close()
        for held in self._held:
            held.close()

    def __exit__(self, *_):
        self.let_go()


def set_trap(address, wanted, dask_worker=None):
    """Run on a worker: stop, once, where (phase, step, partition) begins, None meaning any."""
    lock, caught = threading.Lock(), []

    def hook(*at):
        with lock:
            if caught or not all(want in (None, here) for want, here in zip(wanted, at, strict=True)):
                return
            caught.append(at)
        with suppress(ConnectionError), socket.create_connection(address) as told:
            told.sendall(json.dumps({"worker": dask_worker.address, "pid": os.getpid(), "at": at}).encode() + b"\n")
            told.recv(1)

    OocGraphPlugin.on_phase = hook


def bounds(store, stored):
    """Return what the logs of a search of a graph can name."""
    return bounds_of(partition_vertices(store, stored.num_partitions, stored.shares))


def last_step(store, stored):
    """Return the last step that all logs of a search of a graph have."""
    return stored.last_step(bounds(store, stored))


def note_phases():
    """Run on a worker: note each phase that begins; `noted_phases` returns them."""
    noted.clear()
    OocGraphPlugin.on_phase = lambda *at: noted.append(at)


def noted_phases():
    """Run on a worker: return what was noted."""
    return noted


noted: list[tuple[str, int, int]] = []


def cramp(share):
    """Run on a worker: keep one plane and this share of the edges in memory, so that steps read the rest, whatever the budget."""
    plan = ShardPlan.residency

    def residency(self, **options):
        found = plan(self, **options)
        return replace(found, num_planes=1, num_resident=tuple(int(share * m) for m in found.num_resident), cache_slots=256, num_kept=4096)

    ShardPlan.residency = residency


def tell_of_loads():
    """Run on a worker: loading a partition is a phase too, "load" of step -1."""
    load = ShardPlan.load

    def told(self, *arguments):
        if OocGraphPlugin.on_phase is not None:
            OocGraphPlugin.on_phase("load", -1, self.partition)
        return load(self, *arguments)

    ShardPlan.load = told
