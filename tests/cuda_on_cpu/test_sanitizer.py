"""The address sanitizer finds a kernel that reads or writes one entry too far, and lets right ones pass."""

from __future__ import annotations

import re

import pytest

from tests.cuda_on_cpu.build import needs_shim
from tests.cuda_on_cpu.sanitizer import run_pytest, run_python

pytestmark = needs_shim

SCRIPT = r'''
import sys
import numpy as np
from tests.cuda_on_cpu.device import CpuDevice

CODE = """
extern "C" __global__ void set(int* x, long long n) { for (long long i = threadIdx.x; i < n; i += blockDim.x) x[i] = i; }
extern "C" __global__ void get(const int* x, int* y, long long i) { if (x[i] == 123456) y[0] = 1; }
extern "C" __global__ void rotate(int* x, int by) {
  __shared__ int before[64];
  __shared__ int after[64];
  before[threadIdx.x] = x[threadIdx.x];
  after[threadIdx.x] = 0;
  __syncthreads();
  after[threadIdx.x] = before[threadIdx.x + by];
  __syncthreads();
  x[threadIdx.x] = after[threadIdx.x];
}
extern "C" __global__ void local(int* x, int i) { int a[4] = {1, 2, 3, 4}; __syncwarp(); x[0] = a[(i + threadIdx.x) & 7]; }
"""
device = CpuDevice(seed=3)
functions = device.module(CODE, ["set", "get", "rotate", "local"])
stream, x, y = device.stream(), device.empty(100, np.int32), device.empty(1, np.int32)
pinned = device.pinned(400).view(np.int32)

def launch(name, *arguments):
    device.launch(functions.get_function(name), 1, 64, arguments, stream)

launch("set", x, np.int64(100))
launch("get", x, y, np.int64(99))
launch("rotate", x, np.int32(0))
device.copy(x, pinned, stream)
assert pinned.tolist() == list(range(100))
case = sys.argv[1]
if case == "write": launch("set", x, np.int64(101))
if case == "part": launch("set", x[10:], np.int64(91))
if case == "read": launch("get", x, y, np.int64(100))
if case == "before": launch("get", x, y, np.int64(-1))
if case == "mapped": launch("set", device.mapped(pinned), np.int64(101))
if case == "shared": launch("rotate", x, np.int32(1))
if case == "local": launch("local", y, np.int32(4))
print("passed")
'''


def test_right_kernels_pass():
    """Fibers, shared memory and copies are no false alarm."""
    done = run_python("-c", SCRIPT, "nothing")
    assert done.stdout == "passed\n", done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("case", "kernel", "report"),
    [
        ("write", "set", "heap-buffer-overflow"),
        ("part", "set", "heap-buffer-overflow"),
        ("read", "get", "heap-buffer-overflow"),
        ("before", "get", "heap-buffer-overflow"),
        ("mapped", "set", "heap-buffer-overflow"),
        ("shared", "rotate", "global-buffer-overflow"),
        ("local", "local", "stack-buffer-overflow"),
    ],
)
def test_one_entry_too_far_is_found(case, kernel, report):
    """In device memory, in a view of it, in page-locked, shared and local memory; the report names the kernel and its line."""
    done = run_python("-c", SCRIPT, case)
    assert done.returncode != 0
    assert "passed" not in done.stdout
    assert re.search(rf"SUMMARY: AddressSanitizer: {report} .*kernels\.cu:\d+ in .*{kernel}", done.stderr), done.stderr


def test_the_shim_passes_its_own_tests():
    """Deadlocks, abandoned fibers and several launching threads included."""
    done = run_pytest("tests/cuda_on_cpu/test_shim.py")
    assert done.returncode == 0, done.stdout + done.stderr
