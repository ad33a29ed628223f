"""The CUDA sources compile for every GPU, from sm_50 (CUDA 12) and sm_75 (CUDA 13) up, without spilling registers to memory."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph.kernels import gpu_parts, gpu_paths, gpu_spmv
from oocgraph.kernels.gpu import cuda_source, kernel_names
from tests.cuda_on_cpu.nvrtc import CompileError, Nvrtc, compile_for, needs_nvrtc, registers, table

pytestmark = needs_nvrtc

SAMPLE = """
template <class T> __global__ void add(const T* x, T* y) { y[threadIdx.x] += x[threadIdx.x]; }
extern "C" __global__ void share(int* x) { __shared__ int s[32]; s[threadIdx.x] = x[0]; __syncthreads(); x[1] = s[x[2]]; }
template <int SIZE> __global__ void __launch_bounds__(1024) hold(float* x) {
  float a[SIZE];
#pragma unroll
  for (int i = 0; i < SIZE; i++) a[i] = x[i * threadIdx.x];
  for (int k = 0; k < 3; k++) {
#pragma unroll
    for (int i = 0; i < SIZE; i++) a[i] = a[i] * a[(i + 7) % SIZE] + a[i * 5 % SIZE];
  }
#pragma unroll
  for (int i = 0; i < SIZE; i++) x[i * blockIdx.x] = a[i];
}
"""
NAMES = ["add<float>", "add<long long>", "share", "hold<4>", "hold<200>"]


IDS = [np.dtype(np.uint32), np.dtype(np.int64)]
KERNELS = {
    "search": (cuda_source(), {name for ids in IDS for name in kernel_names(ids)}),
    "product": (
        cuda_source(gpu_spmv.SOURCES),
        {name for ids in IDS for kind in (np.float32, np.float64) for name in gpu_spmv.product_names(ids, np.dtype(kind))},
    ),
    "parts": (cuda_source(gpu_parts.SOURCES), {name for ids in IDS for name in gpu_parts.part_names(ids)}),
    "paths": (
        cuda_source(gpu_paths.SOURCES),
        {name for ids in IDS for kind in (np.int32, np.int64, np.float64) for name in gpu_paths.path_names(ids, np.dtype(kind))},
    ),
}


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param((name, False), id=f"{name}-oldest-and-newest") for name in KERNELS),
        *(pytest.param((name, True), id=f"{name}-every", marks=pytest.mark.slow) for name in KERNELS),
    ],
)
def compiled(request):
    """Compile the project's kernels for ids of both widths: for the oldest and the newest target of each CUDA, or for all."""
    name, every_target = request.param
    source, names = KERNELS[name]
    return compile_for(source, sorted(names), every_target=every_target)


@pytest.fixture
def targets(compiled):
    """Names of the targets, by release of CUDA."""
    found = [one.target.split() for one in compiled]
    return {release: {name for _, version, name in found if version.startswith(release)} for release in ("12", "13")}


def test_targets_are_from_the_oldest_to_the_newest_that_cuda_supports(compiled, targets, request):
    """Nothing in between is left out where every one is asked for."""
    assert len(compiled) == sum(map(len, targets.values()))
    assert "sm_50" in targets["12"]
    assert {"sm_75", "sm_121"} <= targets["13"]
    if "every" in request.node.callspec.id:
        assert {"sm_75", "sm_90"} <= targets["12"]
        assert "sm_90" in targets["13"]
        assert len(compiled) >= 32


def test_no_kernel_spills(compiled):
    """Registers suffice on every target."""
    spilling = {(one.target, name): use for one in compiled for name, use in one.kernels.items() if use.spill_bytes}
    assert not spilling


def test_no_warnings(compiled):
    """Neither of the language nor of ptxas, such as launch bounds that a target cannot keep."""
    assert not {warning: one.target for one in compiled for warning in one.warnings}


def test_registers_are_recorded(compiled, record_property):
    """A thread has at most 255 registers, and so few that a block of its kernel's size can run."""
    most = {name: max(by_target.values()) for name, by_target in registers(compiled).items()}
    for name, number in most.items():
        record_property(f"registers {name}", number)
    print(table(compiled))
    assert all(0 < number <= 255 for number in most.values())


def test_what_ptxas_says_is_read():
    """Spills and shared memory show, by the name that was asked for."""
    kernels = Nvrtc(13).compile(SAMPLE, 90, NAMES).kernels
    assert sorted(kernels) == sorted(NAMES)
    assert kernels["hold<200>"].spill_bytes > 0
    assert kernels["hold<4>"].spill_bytes == kernels["share"].spill_bytes == 0
    assert kernels["share"].shared_bytes >= 128
    assert kernels["add<float>"].shared_bytes == 0
    assert kernels["hold<200>"].registers > kernels["hold<4>"].registers


def test_warnings_and_errors_are_told():
    """With the line of the source."""
    compiled = Nvrtc(12).compile('extern "C" __global__ void f() {\n  int unused;\n}', 80, ["f"])
    assert len(compiled.warnings) == 1
    assert "kernels.cu(2): warning" in compiled.warnings[0]
    with pytest.raises(CompileError, match=r"kernels\.cu\(1\): error"):
        Nvrtc(12).compile("__global__ void f() { nonsense(); }", 80, ["f"])
