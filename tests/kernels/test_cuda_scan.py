"""Prefix sums by look-back, whose tiles run side by side and wait for each other: here each is a warp of one block."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.on_device import DEVICES, Bench, open_device, source

CODE = r"""
// A warp for each tile, numbered as warps come; some of them linger before they publish anything.
template <class Combine>
__device__ void scan_by_warps(const i64* x, i64 num_tiles, u64* tickets, u64* entries, u64 launch, i64* before, Combine combine) {
  for (;;) {
    i64 tile = 0;
    if (lane_id() == 0) tile = (i64)atomicAdd(tickets, (u64)1);
    tile = __shfl_sync(FULL, tile, 0);
    if (tile >= num_tiles) break;
    for (i64 k = 0; k < x[tile] % 5; k++) __nanosleep(20);
    i64 value = value_before(entries, tile, launch, x[tile], combine);
    if (lane_id() == 0) before[tile] = value;
  }
}
extern "C" __global__ void sums(const i64* x, i64 num_tiles, u64* tickets, u64* entries, u64 launch, i64* before) {
  scan_by_warps(x, num_tiles, tickets, entries, launch, before, PlusI64());
}
extern "C" __global__ void maxima(const i64* x, i64 num_tiles, u64* tickets, u64* entries, u64 launch, i64* before) {
  scan_by_warps(x, num_tiles, tickets, entries, launch, before, MaxI64());
}
extern "C" __global__ void numbers(i64 num_tiles, u64* tickets, i64* taken) {
  __shared__ i64 tile;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) tile = take_tile(tickets, num_tiles);
    __syncthreads();
    if (tile >= num_tiles) break;
    if (threadIdx.x == 0) atomicAdd((u64*)&taken[tile], (u64)1);
  }
}
"""


@pytest.fixture(scope="module", params=DEVICES)
def bench(request):
    return Bench(open_device(request.param), source("common", "scan") + CODE, ["sums", "maxima", "numbers"])


@pytest.mark.parametrize("num_tiles", [1, 2, 31, 33, 64, 65, 1000])
@pytest.mark.parametrize("num_warps", [1, 5, 32])
def test_a_tile_waits_for_those_before_it(bench, num_tiles, num_warps):
    """Sums and maxima, launch after launch over the same entries; values up to the widest that an entry holds."""
    entries = bench.put(np.zeros(num_tiles, np.uint64))
    for launch, name in enumerate(("sums", "maxima", "sums"), start=1):
        values = np.random.default_rng(launch).integers(0, (2**48 - 1) // num_tiles, num_tiles)
        before = bench.put(np.full(num_tiles, -1, np.int64))
        arrays = bench.put(np.zeros(1, np.uint64)), entries
        bench.launch(name, 1, 32 * num_warps, bench.put(values), np.int64(num_tiles), *arrays, np.uint64(launch), before)
        combine = np.cumsum if name == "sums" else np.maximum.accumulate
        assert bench.get(before).tolist() == [0, *combine(values)[:-1].tolist()]


@pytest.mark.parametrize(("num_tiles", "grid"), [(1, 1), (1, 7), (5, 2), (40, 8)])
def test_each_tile_is_taken_once_and_the_tickets_are_0_again(bench, num_tiles, grid):
    tickets, taken = bench.put(np.zeros(1, np.uint64)), bench.put(np.zeros(num_tiles, np.int64))
    for launch in (1, 2, 3):
        bench.launch("numbers", grid, 64, np.int64(num_tiles), tickets, taken)
        assert bench.get(taken).tolist() == [launch] * num_tiles
        assert bench.get(tickets).tolist() == [0]
