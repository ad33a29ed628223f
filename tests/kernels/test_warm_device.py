"""CUDA kernels are compiled once for all processes: by ``oocgraph warm``, or by the first that needs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import oocgraph
from oocgraph import arrays
from oocgraph.algorithms import devices as devices_module
from oocgraph.arrays import DeviceChoice
from oocgraph.arrays.cuda import CudaDevice
from oocgraph.cache_folder import VARIABLE
from oocgraph.cli import cli
from oocgraph.engine.device import DeviceRuntime
from oocgraph.kernels import cached
from oocgraph.kernels.warm_device import device_sources, uncompiled
from tests.arrays.fake_cupy import FakeCupy
from tests.cuda_on_cpu.build import needs_shim
from tests.cuda_on_cpu.device import CpuDevice
from tests.cuda_on_cpu.nvrtc import needs_nvrtc

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """Return a folder in which there is nothing yet."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def warm(*options):
    done = CliRunner().invoke(cli, ["warm", "--json", *options])
    return done.exit_code, json.loads(done.stdout)


def test_warm_compiles_for_the_gpus_that_are_there(cache, monkeypatch, tmp_path):
    """For two of a kind once; a new process finds all of it."""
    cupy = FakeCupy(count=2)
    devices = CudaDevice(cupy, 0), CudaDevice(cupy, 1)
    monkeypatch.setattr(arrays, "devices_choice", lambda _kind: (devices, "of the test"))
    monkeypatch.setattr(cached, "kernel_folder", lambda: tmp_path)
    cached.mark_as_warm()
    code, said = warm("--check")
    assert (code, said["warm"], said["devices"], cupy.nvrtc.compilations) == (1, False, "Fake GPU, Fake GPU", 0)
    code, said = warm()
    assert (code, said["warm"], cupy.nvrtc.compilations) == (0, True, len(device_sources()))
    assert uncompiled([CudaDevice(FakeCupy(), 0)]) == []
    assert warm("--check")[0] == 0
    assert len(list(cache.glob("cubins-*/*.cubin"))) == len(device_sources())


def test_warm_says_why_there_is_no_gpu(cache, monkeypatch, tmp_path):
    monkeypatch.setattr(arrays, "devices_choice", lambda _kind: ((), "no driver"))
    monkeypatch.setattr(cached, "kernel_folder", lambda: tmp_path)
    cached.mark_as_warm()
    assert warm()[1]["devices"] == "none (no driver)"


@pytest.mark.shim
@needs_shim[1]
def test_what_is_compiled_beforehand_is_what_is_used(monkeypatch, tmp_path):
    """Searches, products, shortest paths and parts load nothing else."""
    loaded = []

    class Noting(CpuDevice):
        def module(self, code, names):
            loaded.append((code, tuple(names)))
            return super().module(code, names)

    ends = {"source": [0, 1, 2], "target": [1, 2, 3]}
    graph = oocgraph.build_csr(pa.table(ends), tmp_path / "g.zarr", directed=False)
    of_integers, of_floats = (
        oocgraph.build_csr(pa.table({**ends, "weight": weights}), tmp_path / f"{i}.zarr", directed=False, weight="weight")
        for i, weights in enumerate(([1, 2, 3], [0.5, 1.0, 2.0]))
    )
    device = Noting()
    with DeviceRuntime.open(graph, device=device) as runtime:
        runtime.search(np.array([0]))
    monkeypatch.setattr(devices_module, "devices_choice", lambda _kind, **_: ((device,), "of the test"))
    monkeypatch.setattr(devices_module, "device_choice", lambda _kind, **_: DeviceChoice(device, "of the test"))
    for dtype in (np.float32, np.float64):
        oocgraph.spmv(graph, np.ones(4, dtype))
    for weighted in (of_integers, of_floats):
        oocgraph.sssp(weighted, 0, resources=oocgraph.Resources(device="cuda"))
    oocgraph.bfs(graph, 0, partition="1d", resources=oocgraph.Resources(device="cuda", num_partitions=2))
    assert {tuple(source) for source in device_sources()} == set(loaded)


REAL = """
import sys, time
from oocgraph.arrays import cubins
from oocgraph.arrays.compiler import Target
from oocgraph.kernels.gpu_spmv import product_source
from tests.cuda_on_cpu.nvrtc import CupyNvrtc
import numpy as np

nvrtc = CupyNvrtc(13)
source = product_source(np.dtype(np.uint32), np.dtype(np.float32))
began = time.perf_counter()
for option, is_binary in (("sm_90", True), ("compute_90", False)):
    compiled = cubins.compiled_for(nvrtc, source, Target("-arch=" + option, is_binary))
    assert list(compiled.lowered) == list(source.names)
    assert all(name.encode() in compiled.image for name in compiled.lowered.values())
    assert compiled.image.startswith(b"\\x7fELF" if is_binary else b"//"), compiled.image[:20]
print(nvrtc.compilations, time.perf_counter() - began, compiled.image.decode().count(".ftz"), compiled.image.decode().count(".f32"))
"""


@pytest.mark.nvrtc
@needs_nvrtc[1]
def test_the_second_process_finds_every_cubin_and_denormals_are_kept(cache):
    """Machine code and PTX of products of float32; the latter shows that nothing flushes denormals to zero."""
    environment = dict(os.environ)
    said = [
        subprocess.run([sys.executable, "-c", REAL], env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert [int(one[0]) for one in said] == [2, 0]
    assert float(said[1][1]) < 0.5 * float(said[0][1])
    assert [(one[2], int(one[3]) > 0) for one in said] == [("0", True)] * 2
