"""A Slurm cluster for all tests of this folder, a graph, and jobs that are submitted as a user would."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import dask
import pytest

import oocgraph
from tests.slurm.cluster import missing, slurm_cluster

CONFIGS = Path(__file__).parents[2] / "configs"
SOURCE = 3


@pytest.fixture(scope="session")
def slurm():
    """Two virtual nodes, idle."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with slurm_cluster(nodes=2) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def graph(tmp_path_factory):
    """Make a Kronecker graph, large enough that its levels are exchanged."""
    return oocgraph.generate_kronecker(16, tmp_path_factory.mktemp("slurm") / "kron.zarr")


@pytest.fixture(scope="session")
def levels(graph):
    """Find the level of every vertex in this process."""
    return oocgraph.bfs(graph, SOURCE).level


@pytest.fixture
def folder(tmp_path):
    """Copy the files of ``configs/`` into a folder, from which jobs are submitted."""
    for path in CONFIGS.glob("slurm-*"):
        shutil.copy(path, tmp_path)
    return tmp_path


@pytest.fixture
def submit(slurm, folder, graph):
    """Submit one of the batch scripts with options of sbatch; its search writes ``levels.parquet``."""

    def submit_script(script, *options, env=None):
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        arguments = [graph.url, SOURCE, folder / "result.zarr", folder / "levels.parquet"]
        return slurm.submit(
            "--output=%j.txt", "--cpus-per-task=1", *options, script, *arguments, cwd=folder, env={"PATH": path, **(env or {})}
        )

    yield submit_script
    slurm.cancel_all()


@pytest.fixture
def configured(slurm, folder, monkeypatch):
    """Let Slurm's commands reach the cluster from this process, and configure Dask by one of the files."""

    def configure(name):
        path = str(folder / name)
        for variable, value in {**slurm.environment, "DASK_CONFIG": path}.items():
            monkeypatch.setenv(variable, value)
        stack.enter_context(dask.config.set(dask.config.merge(dask.config.config, *dask.config.collect_yaml([path]))))

    with ExitStack() as stack:
        yield configure
    slurm.cancel_all()


def on_this_machine(folder):
    """Return arguments of `SLURMCluster` for virtual nodes: where jobs talk, and where they write."""
    return {
        "interface": "lo",
        "local_directory": str(folder),
        "log_directory": str(folder),
        "scheduler_options": {"dashboard_address": ":0"},
    }
