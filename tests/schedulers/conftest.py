"""A batch system of stubs for all tests of this folder: commands on PATH that record what is submitted, and run it here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.processes import PATIENCE_SECONDS
from tests.schedulers import stub
from tests.slurm.cluster import poll
from tests.slurm.conftest import CONFIGS, SOURCE, graph, levels  # noqa: F401 - fixtures

ROOT = CONFIGS.parent

COMMANDS = {"pbs": ["qsub", "qdel", "pbsdsh"], "lsf": ["bsub", "bkill", "blaunch"], "sge": ["qsub", "qdel", "qrsh"]}


class Stubs:
    """The commands of one batch system.

    Parameters
    ----------
    system
        ``pbs``, ``lsf`` or ``sge``.
    folder
        Where they lie, and record.
    """

    def __init__(self, system, folder):
        self.system, self.folder = system, folder
        for command in COMMANDS[system]:
            path = folder / command
            path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{stub.__file__}" "{folder}" {system} {command} "$@"\n')
            path.chmod(0o755)

    @property
    def calls(self):
        """Commands with their arguments, in order."""
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def submitted(self, job):
        """Return options of a job: those in its script, then those of the command."""
        found = json.loads((self.folder / f"{job}.json").read_text())
        return [tuple(option) for option in [*found["directives"], *found["options"]]]

    def submit(self, script, options, variables, *, cwd):
        """Submit a batch script as configs/README.md says; return the job's number."""
        given = ",".join(f"{name}={value}" for name, value in variables.items())
        if self.system == "lsf":
            command = f"bsub {options} -env 'all, {given.replace(',', ', ')}' < {script}"
        else:
            command = f"qsub {options} -v '{given}' {script}"
        path = f"{self.folder}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], cwd=cwd, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
        )
        return int("".join(filter(str.isdigit, done.stdout)))

    def code(self, job):
        """Return the exit code of a job, once it has ended."""
        path = self.folder / f"{job}.code"
        poll(path.exists, PATIENCE_SECONDS, lambda: f"job {job} to end")
        return int(path.read_text())

    def kill_all(self):
        """Leave no process of any job."""
        for path in self.folder.glob("*.pid"):
            with suppress(ProcessLookupError):
                os.killpg(int(path.read_text()), signal.SIGKILL)


@pytest.fixture(params=COMMANDS)
def stubs(request, tmp_path):
    """One batch system after the other."""
    folder = tmp_path / "stubs"
    folder.mkdir()
    found = Stubs(request.param, folder)
    yield found
    found.kill_all()


@pytest.fixture
def folder(tmp_path):
    """Copy the files of ``configs/`` into a folder, from which jobs are submitted."""
    return shutil.copytree(CONFIGS, tmp_path / "submitted from here")


@pytest.fixture
def submit(stubs, folder, graph):  # noqa: F811 - the fixture
    """Submit a batch script for a search of the graph on two small nodes; it writes ``levels.parquet``."""
    small = {"pbs": "-l select=2:ncpus=1:mem=2gb", "lsf": "-n 2 -R 'span[ptile=1]'", "sge": f"-pe mpi {2 * stub.SLOTS_OF_A_NODE}"}

    def submit_script(script, options=None, **variables):
        given = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "PYTHONPATH": ROOT,
            "GRAPH": graph.url,
            "SOURCE": SOURCE,
            "RESULT": folder / "result.zarr",
            "OUT": folder / "levels.parquet",
            "MEMORY_GIB": 2,
            **variables,
        }
        return stubs.submit(script, small[stubs.system] if options is None else options, given, cwd=folder)

    return submit_script


def output(folder, job):
    """Return what the job printed, and the end of its logs."""
    files = [folder / f"oocgraph.o{job}", *sorted(folder.glob(f"oocgraph-{job}.*/*.log"))]
    return "\n".join(f"--- {path.name}: {path.read_text()[-3000:]}" for path in files if path.exists())
