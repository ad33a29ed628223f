"""dask-jobqueue's clusters for PBS, LSF and Grid Engine with the settings of ``configs/``: each worker is a job of its own."""

from __future__ import annotations

import os
import re
from pathlib import Path

import dask
import pytest

from tests.processes import PATIENCE_SECONDS
from tests.schedulers.conftest import CONFIGS, ROOT
from tests.slurm.cluster import poll
from tests.slurm.conftest import on_this_machine
from tests.slurm.outcome import assert_right

CLUSTERS = {"pbs": "PBSCluster", "lsf": "LSFCluster", "sge": "SGECluster"}

ASKED = {
    "pbs": {
        ("-S", "/bin/bash"),
        ("-N", "dask-worker"),
        ("-l", "select=1:ncpus=1:mem=1500MB"),
        ("-l", "walltime=01:00:00"),
        ("-r", "y"),
        ("-j", "oe"),
    },
    "lsf": {("-J", "dask-worker"), ("-n", "1"), ("-M", "1573"), ("-W", "01:00"), ("-r", None)},
    "sge": {
        ("-S", "/bin/bash"),
        ("-N", "dask-worker"),
        ("-pe", "smp 8"),
        ("-l", "h_vmem=4G"),
        ("-l", "h_rt=01:00:00"),
        ("-r", "y"),
        ("-cwd", None),
    },
}
"""Options of a job of one CPU and 1500 MiB: those of the settings, and those that dask-jobqueue makes of them."""

CANCEL = {"pbs": "qdel", "lsf": "bkill", "sge": "qdel"}


@pytest.fixture
def configured(stubs, tmp_path, monkeypatch):
    """Configure Dask by a file of ``configs/`` and small jobs on the loopback interface; its clusters then submit to the stubs."""
    pytest.importorskip("dask_jobqueue")
    monkeypatch.setenv("PATH", f"{stubs.folder}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    small = {"cores": 1, "memory": "1500MiB", "job_script_prologue": [f"export PYTHONPATH={ROOT}"], **on_this_machine(tmp_path)}
    if stubs.system == "lsf":
        small["lsf_units"] = "mb"
    (content,) = dask.config.collect_yaml([str(CONFIGS / f"{stubs.system}-cpu.yaml")])
    own = {f"jobqueue.{stubs.system}.{name.replace('_', '-')}": value for name, value in small.items()}
    with dask.config.set(dask.config.merge(dask.config.config, content)), dask.config.set(own):
        yield


@pytest.mark.usefixtures("configured")
def test_search_of_the_readme_on_workers_that_are_jobs(stubs, graph, levels, tmp_path):
    """The lines of configs/README.md: two jobs, two workers of their names, a result store; the jobs are cancelled at the end."""
    cluster = CLUSTERS[stubs.system]
    blocks = re.findall(r"^```python\n(.*?)^```$", (CONFIGS / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    (lines,) = [block.replace("PBSCluster", cluster) for block in blocks if "PBSCluster" in block]
    (tmp_path / "graph.zarr").symlink_to(graph.url)
    found = {}
    exec(compile(lines, "configs/README.md", "exec"), found)
    assert_right(tmp_path, levels)
    assert (tmp_path / "result.zarr" / "zarr.json").exists()

    address = found["cluster"].scheduler.address
    scripts = [(stubs.folder / f"{job}.script").read_text() for job in (1, 2)]
    started = [re.search(rf"-m distributed.cli.dask_worker {address} --name (\S+) --nthreads 1 .*--nanny", script)[1] for script in scripts]
    assert sorted(started) == [f"{cluster}-0", f"{cluster}-1"]
    for job in (1, 2):
        assert ASKED[stubs.system] <= set(stubs.submitted(job))
    assert {call[1] for call in stubs.calls if call[0] == CANCEL[stubs.system]} == {"1", "2"}
    poll(lambda: not running(stubs.folder), PATIENCE_SECONDS, lambda: "jobs to end")


def running(folder):
    """Return processes of jobs that have not ended."""
    return [path for path in folder.glob("*.pid") if Path(f"/proc/{path.read_text()}").exists()]


@pytest.mark.parametrize(
    ("stubs", "resources"),
    [("pbs", [("-l", "select=1:ncpus=32:ngpus=4:mem=200gb")]), ("lsf", [("-n", "32"), ("-gpu", "num=4")])],
    indirect=["stubs"],
)
def test_jobs_of_gpu_settings_ask_for_a_worker_for_each_gpu(stubs, resources):
    """The job's script, which is what would be submitted: dask-cuda starts a worker for each GPU that it finds."""
    jobqueue = pytest.importorskip("dask_jobqueue")
    (content,) = dask.config.collect_yaml([str(CONFIGS / f"{stubs.system}-gpu.yaml")])
    with dask.config.set(dask.config.merge(dask.config.config, content)):
        job = getattr(jobqueue, CLUSTERS[stubs.system]).job_cls("tcp://127.0.0.1:1", "worker")
    script = job.job_script()
    assert re.search(r"-m dask_cuda.cli \S+ --name worker --nthreads 8 --memory-limit 50.00GiB", script)
    prefix = {"pbs": "#PBS", "lsf": "#BSUB"}[stubs.system]
    for option, value in resources:
        assert f"{prefix} {option} {value}\n" in script
