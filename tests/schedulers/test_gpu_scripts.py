"""Batch scripts for GPU nodes of PBS and LSF: one worker for each GPU, shown by a fake driver.

These tests run where dask-cuda is installed, as those of ``tests/fake_gpu``.
"""

from __future__ import annotations

from oocgraph.store.search_store import SearchStore
from tests.fake_gpu.driver import build_driver, needs_fake_gpus
from tests.schedulers.conftest import output
from tests.slurm.outcome import assert_right

pytestmark = needs_fake_gpus

SCRIPTS = {"pbs": "pbs-gpu.pbs", "lsf": "lsf-gpu.bsub", "sge": "sge-cpu.sge"}

TWO_GPUS = {
    "pbs": "-l select=1:ncpus=2:ngpus=2:mem=3gb",
    "lsf": "-n 2 -R 'span[ptile=2]' -gpu num=2",
    "sge": "-pe mpi 2 -l gpu=2",
}


def test_every_gpu_of_a_node_has_a_worker(stubs, submit, folder, levels, tmp_path_factory):
    """Two GPUs: two workers, two partitions, and a right result."""
    driver = build_driver(tmp_path_factory.mktemp("driver"))
    job = submit(SCRIPTS[stubs.system], TWO_GPUS[stubs.system], GPUS=2, MEMORY_GIB=3, LD_LIBRARY_PATH=driver, FAKE_NVML_GPUS=2)
    assert stubs.code(job) == 0, output(folder, job)
    assert_right(folder, levels)
    (log,) = (folder / f"oocgraph-{job}.0").glob("worker-*.log")
    assert log.read_text().count("Start worker at") == 2
    assert SearchStore.open(str(folder / "result.zarr")).fields["num_partitions"] == 2
