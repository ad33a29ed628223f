"""dask-jobqueue's `SLURMCluster`: each worker is a job of its own, the scheduler is in the Python process."""

from __future__ import annotations

import dask
import numpy as np
import pytest
from distributed import Client

import oocgraph
from tests.slurm.conftest import SOURCE

pytestmark = pytest.mark.slurm


@pytest.fixture
def configured(slurm, folder, monkeypatch):
    """Slurm's commands reach the cluster, and Dask is configured by ``slurm-cpu.yaml``."""
    path = str(folder / "slurm-cpu.yaml")
    for name, value in {**slurm.environment, "DASK_CONFIG": path}.items():
        monkeypatch.setenv(name, value)
    with dask.config.set(dask.config.merge(dask.config.config, *dask.config.collect_yaml([path]))):
        yield


def test_search_on_workers_that_are_jobs(slurm, configured, graph, levels, tmp_path):
    """The lines of configs/README.md, on small jobs and the loopback interface."""
    jobqueue = pytest.importorskip("dask_jobqueue")
    with (
        jobqueue.SLURMCluster(cores=1, memory="1500MiB", interface="lo", local_directory=str(tmp_path)) as cluster,
        Client(cluster) as client,
    ):
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=60)
        result = oocgraph.bfs(graph, SOURCE, client=client)
        assert np.array_equal(result.level, levels)
    slurm.cancel_all()
