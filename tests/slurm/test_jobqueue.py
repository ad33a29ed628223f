"""dask-jobqueue's `SLURMCluster`: each worker is a job of its own, the scheduler is in the Python process."""

from __future__ import annotations

import numpy as np
import pytest
from distributed import Client

import oocgraph
from tests.slurm.conftest import SOURCE, on_this_machine

pytestmark = pytest.mark.slurm


def test_search_on_workers_that_are_jobs(slurm, configured, graph, levels, tmp_path):
    """The lines of configs/README.md, on small jobs and the loopback interface."""
    jobqueue = pytest.importorskip("dask_jobqueue")
    configured("slurm-cpu.yaml")
    with jobqueue.SLURMCluster(cores=1, memory="1500MiB", **on_this_machine(tmp_path)) as cluster, Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=60)
        result = oocgraph.bfs(graph, SOURCE, client=client)
        assert np.array_equal(result.level.compute(), levels)
