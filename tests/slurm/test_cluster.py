"""The cluster that other tests rely on is Slurm, with GPUs to give out, and leaves nothing behind."""

from __future__ import annotations

import os

import pytest

from tests.slurm.cluster import slurm_cluster

pytestmark = pytest.mark.slurm


def test_job_gets_the_gpus_it_asks_for(slurm, tmp_path):
    """Slurm sets CUDA_VISIBLE_DEVICES on each node of a job."""
    job = slurm.submit("--output=%j.txt", "--nodes=2", "--gpus-per-node=2", "--wrap=srun printenv CUDA_VISIBLE_DEVICES", cwd=tmp_path)
    assert slurm.wait_ended(job)["JobState"] == "COMPLETED"
    assert (tmp_path / f"{job}.txt").read_text().split() == ["0,1", "0,1"]


def test_cluster_stops_its_jobs_and_daemons(slurm):
    """A second cluster beside the first one ends with its job, and takes its folder with it."""
    with slurm_cluster(nodes=1) as second:
        job = second.submit("--output=/dev/null", "--wrap=sleep 1000")
        second.wait(job, "RUNNING")
        pids = [int(path.read_text()) for path in second.folder.glob("*.pid")]
        assert len(pids) >= 2
    assert not second.folder.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert slurm.command("squeue", "--noheader") == ""
