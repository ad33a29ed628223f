"""What the shim executes is CUDA: primitives, atomics, order of threads; and what it must report."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from tests.cuda_on_cpu.build import BuildError, needs_shim
from tests.cuda_on_cpu.module import SANITIZE_VARIABLE, CpuRawModule, KernelError

pytestmark = needs_shim

CODE = r"""
#define FULL 0xffffffffu
typedef long long i64;

extern "C" __global__ void ballot(const int* x, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned bits = __ballot_sync(FULL, i < n && x[i] > 0);
  if ((threadIdx.x & 31) == 0) out[i / 32] = bits;
}

__global__ void votes(int* out) {
  int lane = threadIdx.x & 31;
  int all = __all_sync(FULL, lane < 32), none = __any_sync(FULL, lane > 31);
  int some = __any_sync(FULL, lane == 7), not_all = __all_sync(FULL, lane != 7);
  out[threadIdx.x] = all | none << 1 | some << 2 | not_all << 3;
}

template <class T>
__global__ void shuffles(T* out) {
  int lane = threadIdx.x & 31, n = blockDim.x, t = threadIdx.x;
  T x = T(lane) * 3 + 1;
  out[t] = __shfl_sync(FULL, x, 5);
  out[n + t] = __shfl_up_sync(FULL, x, 3);
  out[2 * n + t] = __shfl_down_sync(FULL, x, 3);
  out[3 * n + t] = __shfl_xor_sync(FULL, x, 9);
  out[4 * n + t] = __shfl_up_sync(FULL, x, 1, 8);
}

__global__ void halves(int* out) {  // the halves of a warp go their own ways
  int lane = threadIdx.x & 31;
  if (lane < 16) for (int k = 0; k < 3; k++) out[threadIdx.x] = __popc(__ballot_sync(0x0000ffffu, 1)) + k;
  else out[threadIdx.x] = __shfl_xor_sync(0xffff0000u, lane, 1);
  __syncwarp();
}

template <class T, bool WITH_BARRIER>
__global__ void block_sum(const T* x, T* out) {
  __shared__ T sums[256];
  int t = threadIdx.x;
  sums[t] = x[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (t < k) sums[t] += sums[t + k];
    if (WITH_BARRIER) __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}

__global__ void rotate(const int* x, int* out) {
  __shared__ int shared_x[1024];
  int t = threadIdx.x;
  shared_x[t] = x[t];
  int odd = __syncthreads_count(x[t] & 1);
  out[t] = shared_x[(t + 1) % blockDim.x] + odd * 10000;
}

__global__ void leave_early(int* out) {  // a barrier waits for those who have not ended
  if (threadIdx.x >= 40) return;
  __syncthreads();
  out[threadIdx.x] = __popc(__ballot_sync(FULL, 1));
}

__global__ void atomics(i64* out, int* ints, float* floats, double* doubles, unsigned* old) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd((unsigned long long*)&out[0], 1ull);
  atomicMin(&out[1], (i64)-i);
  atomicMax(&out[2], (i64)i << 33);
  atomicOr((unsigned long long*)&out[3], 1ull << (i & 63));
  atomicAnd((unsigned long long*)&out[4], ~(1ull << (i & 63)));
  if (atomicCAS((unsigned long long*)&out[5], 0ull, (unsigned long long)i + 1) == 0) atomicExch((unsigned long long*)&out[6], 77ull);
  atomicAdd(&ints[0], 2);
  atomicMin(&ints[1], -i);
  atomicXor(&ints[2], i);
  atomicSub(&ints[3], 1);
  atomicAdd(floats, 0.5f);
  atomicAdd(doubles, 0.25);
  old[atomicAdd((unsigned*)&ints[4], 1u)] = i;
}

__global__ void bits(const unsigned long long* x, int* out) {
  unsigned long long v = x[threadIdx.x];
  int* o = out + 8 * threadIdx.x;
  o[0] = __popc((unsigned)v), o[1] = __popcll(v), o[2] = __clz((int)v), o[3] = __clzll((i64)v);
  o[4] = __ffs((int)v), o[5] = __ffsll((i64)v);
  o[6] = (int)__ldg(&x[threadIdx.x]), o[7] = (int)min(max(3ll, (i64)threadIdx.x), 5ll);
}

__global__ void index(unsigned* out) {  // named like a function of the C library
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] += block * 1000 + thread;
}

__global__ void order(int* out, int* size) { out[atomicAdd(size, 1)] = blockIdx.x * blockDim.x + threadIdx.x; }
__global__ void shared_is_not_zero(int* out) { __shared__ int x; if (blockIdx.x) x = 1; out[0] = x; }
__global__ void lost_update(int* x) { int old = x[0]; atomicAdd(x + 1, 1); x[0] = old + 1; }

__global__ void stuck_at_barrier(int* out) { if (threadIdx.x < 16) __syncwarp(); else __syncthreads(); out[0] = 1; }
__global__ void stuck_at_shuffle(int* out) { if (threadIdx.x != 3) out[0] = __shfl_sync(FULL, 1, 0); else __syncthreads(); }
__global__ void different_primitives(int* out) { if (threadIdx.x & 1) __syncwarp(); else out[0] = __ballot_sync(FULL, 1); }
__global__ void bad_address(int* out, i64 at) { out[at] = 1; }
__global__ void bad_division(int* out) { out[0] = 100 / out[1]; }
__global__ void endless_stack(int* out) { volatile char big[1 << 20]; big[out[0]] = 1; out[1] = big[1]; }
__global__ void trap() { __trap(); }
"""

NAMES = [
    *(
        "ballot",
        "votes",
        "shuffles<int>",
        "shuffles<i64>",
        "shuffles<double>",
        "halves",
        "rotate",
        "leave_early",
        "atomics",
        "bits",
        "index",
        "order",
    ),
    *("block_sum<int, true>", "block_sum<int, false>", "block_sum<long long, true>", "shared_is_not_zero", "lost_update"),
    *("stuck_at_barrier", "stuck_at_shuffle", "different_primitives", "bad_address", "bad_division", "endless_stack", "trap"),
]

SEEDS = range(4)

not_sanitized = pytest.mark.skipif(SANITIZE_VARIABLE in os.environ, reason="faults are left to the address sanitizer's report")


def launch(name, grid, block, *arguments, seed=0):
    CpuRawModule(CODE, NAMES, seed=seed).get_function(name)((grid,), (block,), arguments)


@pytest.mark.parametrize("seed", SEEDS)
def test_ballot(seed):
    """Each warp gets the bits of its own lanes."""
    x = np.random.default_rng(0).integers(-1, 2, 100).astype(np.int32)
    out = np.zeros(4, np.uint32)
    launch("ballot", 2, 64, x, out, np.int32(100), seed=seed)
    assert (np.unpackbits(out.view(np.uint8), bitorder="little")[:100] == (x > 0)).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_votes(seed):
    """All and any are about all lanes of the mask."""
    out = np.zeros(64, np.int32)
    launch("votes", 1, 64, out, seed=seed)
    assert (out == 0b0101).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
@pytest.mark.parametrize("seed", SEEDS)
def test_shuffles(dtype, seed):
    """A lane gets the value of the lane that it names, or its own where there is none."""
    name = {np.int32: "shuffles<int>", np.int64: "shuffles<i64>", np.float64: "shuffles<double>"}[dtype]
    out = np.zeros((5, 64), dtype)
    launch(name, 1, 64, out, seed=seed)
    lane = np.tile(np.arange(32), 2)
    up, down, up_in_eight = (
        np.where(ok, source, lane) for ok, source in ((lane >= 3, lane - 3), (lane < 29, lane + 3), (lane % 8 > 0, lane - 1))
    )
    for row, source in zip(out, (np.full(64, 5), up, down, lane ^ 9, up_in_eight), strict=True):
        assert (row == source * 3 + 1).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_halves_of_a_warp_meet_on_their_own(seed):
    """Groups of lanes with different masks do not disturb each other."""
    out = np.zeros(32, np.int32)
    launch("halves", 1, 32, out, seed=seed)
    assert (out == np.concatenate([np.full(16, 18), np.arange(16, 32) ^ 1])).all()


@pytest.mark.parametrize(("name", "dtype"), [("block_sum<int, true>", np.int32), ("block_sum<long long, true>", np.int64)])
@pytest.mark.parametrize("seed", SEEDS)
def test_block_sum(name, dtype, seed):
    """Shared memory belongs to a block, and to one instance of a template."""
    x, out = np.arange(1024, dtype=dtype), np.zeros(4, dtype)
    launch(name, 4, 256, x, out, seed=seed)
    assert (out == x.reshape(4, 256).sum(axis=1)).all()


def test_a_missing_barrier_is_found_by_another_order():
    """Without the barrier the sum is wrong under some order of the threads."""
    x = np.arange(256, dtype=np.int32)
    sums = np.zeros((6, 1), np.int32)
    for seed in range(6):
        launch("block_sum<int, false>", 1, 256, x, sums[seed], seed=seed)
    assert (sums != x.sum()).any()


def test_a_lost_update_is_found_by_another_order():
    """Threads give way at atomics: what another one has read and not yet written shows."""
    lost = []
    for seed in range(4):
        x = np.zeros(2, np.int32)
        launch("lost_update", 4, 64, x, seed=seed)
        assert x[1] == 256
        lost.append(256 - x[0])
    assert lost[0] == 0
    assert min(lost[1:]) > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_of_1024_threads(seed):
    """The largest block; a barrier that counts."""
    x, out = np.arange(1024, dtype=np.int32), np.zeros(1024, np.int32)
    launch("rotate", 1, 1024, x, out, seed=seed)
    assert (out == np.roll(x, -1) + 5120000).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_threads_that_have_ended_are_not_waited_for(seed):
    """Barriers and warp primitives are of the threads that are left."""
    out = np.zeros(64, np.int32)
    launch("leave_early", 1, 64, out, seed=seed)
    assert (out == np.repeat([32, 8, 0], [32, 8, 24])).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_atomics(seed):
    """Integers of both sizes, float and double."""
    out = np.array([0, 0, 0, 0, -1, 0, 0], np.int64)
    ints, floats, doubles, old = np.zeros(5, np.int32), np.zeros(1, np.float32), np.zeros(1), np.zeros(1024, np.uint32)
    launch("atomics", 8, 128, out, ints, floats, doubles, old, seed=seed)
    assert out[:5].tolist() == [1024, -1023, 1023 << 33, -1, 0]
    assert 1 <= out[5] <= 1024
    assert out[6] == 77
    assert ints.tolist() == [2048, -1023, 0, -1024, 1024]
    assert (floats[0], doubles[0]) == (512, 256)
    assert sorted(old) == list(range(1024))


def test_bits():
    """Counting bits, and the smaller and larger of two numbers."""
    x = np.array([0, 1, 1 << 31, 1 << 32, 2**64 - 1, 0xF0F0], np.uint64)
    out = np.zeros((x.size, 8), np.int32)
    launch("bits", 1, x.size, x, out)
    for t, (value, row) in enumerate(zip(x.tolist(), out.tolist(), strict=True)):
        low = value & 0xFFFFFFFF
        expected = [low.bit_count(), value.bit_count(), 32 - low.bit_length(), 64 - value.bit_length()]
        expected += [(low & -low).bit_length(), (value & -value).bit_length()]
        assert row[:6] == expected
        assert row[6] == np.uint32(low).view(np.int32)
        assert row[7] == min(max(3, t), 5)


@pytest.mark.parametrize("seed", SEEDS)
def test_three_dimensions_and_names_of_the_c_library(seed):
    """Every thread of every block runs once."""
    out = np.zeros(24 * 30, np.uint32)
    CpuRawModule(CODE, NAMES, seed=seed).get_function("index")((2, 3, 4), (5, 3, 2), (out,))
    assert (out == np.add.outer(np.arange(24) * 1000, np.arange(30)).ravel()).all()


def test_the_seed_decides_the_order():
    """0 is the order of the numbers; any other seed gives one that is its own, and the same each time."""
    seen = []
    for seed in (0, 1, 2, 1):
        out, size = np.zeros(256, np.int32), np.zeros(1, np.int32)
        launch("order", 4, 64, out, size, seed=seed)
        assert sorted(out) == list(range(256))
        seen.append(out.tolist())
    assert seen[0] == list(range(256))
    assert seen[1] == seen[3]
    assert len({tuple(order) for order in seen}) == 3


@not_sanitized
def test_shared_memory_has_any_content():
    """A kernel that counts on zeros is found."""
    out = np.zeros(1, np.int32)
    launch("shared_is_not_zero", 1, 1, out)
    assert out[0] != 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("stuck_at_barrier", (), "deadlock: 0 of 64 threads have ended, 48 wait at a block barrier, 16 at a warp primitive"),
        ("stuck_at_shuffle", (), "deadlock"),
        ("different_primitives", (), "different primitives"),
        pytest.param("bad_address", (np.int64(1 << 44),), "fault: bad address", marks=not_sanitized),
        pytest.param("bad_division", (), "fault: division by zero", marks=not_sanitized),
        pytest.param("endless_stack", (), "fault: bad address or stack overflow", marks=not_sanitized),
    ],
)
def test_deadlocks_and_faults_are_errors(name, arguments, message, seed):
    """A kernel that fails raises, names block and thread, and leaves everything fit for the next one."""
    with pytest.raises(KernelError, match=rf"{name}: block \(\d, 0, 0\), thread \(\d+, 0, 0\): .*{message}"):
        launch(name, 2, 64, np.zeros(4, np.int32), *arguments, seed=seed)
    test_block_sum("block_sum<int, true>", np.int32, seed)


def test_a_trap_is_an_error():
    """And a kernel may have no parameters."""
    with pytest.raises(KernelError, match="__trap"):
        launch("trap", 1, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros(4, np.int32),),
        (np.zeros(4, np.int32), np.int32(1)),
        (np.zeros(4, np.int32), 1),
        (np.zeros(4, np.int32), np.float64(1)),
        (np.zeros((4, 4), np.int32)[:, 1], np.int64(1)),
        (np.int64(4), np.int64(1)),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments):
    """Number, kind and size of the arguments are those of the parameters."""
    with pytest.raises(KernelError, match=r"bad_address: .*argument"):
        launch("bad_address", 1, 1, *arguments)


@pytest.mark.parametrize(("grid", "block"), [(0, 32), (1, 0), (1, 1025)])
def test_impossible_launches_are_refused(grid, block):
    """As on a GPU."""
    with pytest.raises(KernelError, match="is not possible"):
        launch("trap", grid, block)


@not_sanitized
def test_a_null_pointer_is_an_argument():
    """Faults, where the kernel does not look."""
    with pytest.raises(KernelError, match="bad address"):
        launch("bad_address", 1, 1, None, np.int64(0))


def test_a_source_that_does_not_compile():
    """The compiler's message has the line of the source."""
    with pytest.raises(BuildError, match=r"kernels\.cu:2"):
        CpuRawModule("\n__global__ void f() { nonsense(); }", ["f"])


def test_several_threads_launch_at_the_same_time():
    """Each has shared memory and fibers of its own; atomics are between them too."""
    x, total = np.arange(1024, dtype=np.int32), np.zeros(2, np.int32)
    failures = []

    def work(seed):
        module = CpuRawModule(CODE, NAMES, seed=seed)
        for _ in range(50):
            out, sums = np.zeros(1024, np.int32), np.zeros(4, np.int32)
            module.get_function("rotate")((1,), (1024,), (x, out))
            module.get_function("block_sum<int, true>")((4,), (256,), (x, sums))
            module.get_function("lost_update")((1,), (64,), (total,))
            if (out != np.roll(x, -1) + 5120000).any() or (sums != x.reshape(4, 256).sum(axis=1)).any():
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert total[1] == 4 * 50 * 64
