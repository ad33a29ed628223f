"""A preload for workers: it writes down each step they take, and holds a search at one of them.

``OOCGRAPH_TEST_HOLD`` names a folder. Each step is a file ``<start of the job>.<step>.<partition>`` in it. While the folder holds a file
``hold``, step `HELD_STEP` of the job's first start does not go on; nothing is left of a worker that Slurm ends there but what it has
logged. Later starts are not held, so the file may stay until the first has ended for certain: Slurm counts a restart while the processes
of the start before are still ending, and one that is let go then may finish the search.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from oocgraph.cluster.worker import OocGraphPlugin

HELD_STEP = 1


def dask_setup(worker):
    """Watch the steps of a worker; Dask calls this as the worker starts."""
    OocGraphPlugin.on_phase = _at_phase


def _at_phase(phase, step, partition):
    folder = Path(os.environ["OOCGRAPH_TEST_HOLD"])
    if phase != "kernel":
        return
    start = os.environ.get("SLURM_RESTART_COUNT", "0")
    (folder / f"{start}.{step}.{partition}").touch()
    while start == "0" and step == HELD_STEP and (folder / "hold").exists():
        time.sleep(0.05)


def steps_taken(folder, start):
    """Return the steps of all partitions that a start of the job (0, 1, ...) has begun."""
    return {int(path.name.split(".")[1]) for path in folder.glob(f"{start}.*.*")}
