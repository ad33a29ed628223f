"""``configs/slurm-gpu.sbatch`` and `SLURMCluster` with dask-cuda: one worker for each GPU, shown by a fake driver.

These tests run where dask-cuda is installed, as those of ``tests/fake_gpu``.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from distributed import Client

import oocgraph
from oocgraph.store.search_store import SearchStore
from tests.fake_gpu.driver import build_driver, needs_fake_gpus
from tests.processes import PATIENCE_SECONDS
from tests.slurm.cluster import GPUS_PER_NODE
from tests.slurm.conftest import SOURCE, on_this_machine
from tests.slurm.outcome import assert_right, output

pytestmark = needs_fake_gpus


@pytest.fixture
def driver(tmp_path_factory):
    """Variables under which programs see as many GPUs as Slurm counts on a node."""
    folder = build_driver(tmp_path_factory.mktemp("driver"))
    return {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML_GPUS": str(GPUS_PER_NODE)}


def test_every_gpu_of_every_node_has_a_worker(slurm, submit, folder, levels, driver):
    """Two nodes of two GPUs: four workers, four partitions, and a right result."""
    job = submit("slurm-gpu.sbatch", "--nodes=2", "--gpus-per-node=2", "--mem=3900M", env=driver)
    assert slurm.wait_ended(job)["JobState"] == "COMPLETED", output(folder, job)
    assert_right(folder, levels)
    logs = [(folder / f"oocgraph-{job}.0" / f"workers-{node}.log").read_text() for node in range(2)]
    assert [log.count("Start worker at") for log in logs] == [2, 2]
    assert SearchStore.open(str(folder / "result.zarr")).fields["num_partitions"] == 4


def test_gpus_of_a_job_of_slurm_cluster(slurm, configured, graph, levels, driver, tmp_path, monkeypatch):
    """One job, one worker for each of its GPUs, which sees its own first."""
    jobqueue = pytest.importorskip("dask_jobqueue")
    for name, value in driver.items():
        monkeypatch.setenv(name, value)
    configured("slurm-gpu.yaml")
    job = {"processes": 2, "cores": 2, "memory": "3GiB", "job_extra_directives": ["--gpus-per-node=2"]}
    with jobqueue.SLURMCluster(**job, **on_this_machine(tmp_path)) as cluster, Client(cluster) as client:
        cluster.scale(jobs=1)
        client.wait_for_workers(2, timeout=PATIENCE_SECONDS)
        devices = client.run(os.getenv, "CUDA_VISIBLE_DEVICES")
        result = oocgraph.bfs(graph, SOURCE, client=client)
        assert np.array_equal(result.level.compute(), levels)
    assert sorted(devices.values()) == ["0,1", "1,0"]
