"""dask-jobqueue's `SLURMCluster`: each worker is a job of its own, the scheduler is in the Python process."""

from __future__ import annotations

import re
from pathlib import Path

import dask
import pytest

from tests.slurm.conftest import CONFIGS, on_this_machine
from tests.slurm.outcome import assert_right

pytestmark = pytest.mark.slurm


def test_search_of_the_readme_on_workers_that_are_jobs(slurm, configured, folder, graph, levels, monkeypatch):
    """The lines of configs/README.md with the settings of ``slurm-cpu.yaml``, on small jobs and the loopback interface."""
    pytest.importorskip("dask_jobqueue")
    blocks = re.findall(r"^```python\n(.*?)^```$", (CONFIGS / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    (lines,) = [block for block in blocks if "SLURMCluster" in block]
    configured("slurm-cpu.yaml")
    job = {"cores": 1, "memory": "1500MiB", **on_this_machine(folder)}
    (folder / "graph.zarr").symlink_to(Path(graph.url))
    monkeypatch.chdir(folder)
    with dask.config.set({f"jobqueue.slurm.{name.replace('_', '-')}": value for name, value in job.items()}):
        exec(compile(lines, "configs/README.md", "exec"), {})
    assert_right(folder, levels)
