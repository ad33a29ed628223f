"""Staging to a device: every edge in its place whatever the device does first, overlap, and ends without threads when something fails."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from oocgraph.errors import DeviceError
from oocgraph.subgraph.staging import Stager, StagingMetrics
from tests.cuda_on_cpu.device import CpuDevice
from tests.processes import PATIENCE_SECONDS, own_threads

WAIT_SECONDS = PATIENCE_SECONDS
"""Only a test that fails waits so long."""

DEVICES = [pytest.param({}, id="immediate"), *[pytest.param({"seed": seed, "deferred": True}, id=f"deferred-{seed}") for seed in range(8)]]


class Search:
    """A stager with functions that gather known edges, and consume them by copying them to where they belong."""

    def __init__(self, device, *, buffer_edges=10, num_buffers=2, total=0, dtype=np.uint32):
        self.device, self.total, self.dtype = device, total, np.dtype(dtype)
        self.compute = device.stream()
        self.edges = np.random.default_rng(total).integers(0, 2**31, total).astype(dtype)
        self.arrived = device.empty(max(1, total), dtype)
        self.back = device.pinned(max(1, total) * self.dtype.itemsize)
        self.consumed = []
        self.gathering = 0
        self.lock = threading.Lock()
        self.stager = Stager(
            device, buffer_bytes=buffer_edges * self.dtype.itemsize, num_buffers=num_buffers, dtype=dtype, compute_stream=self.compute
        )

    def gather(self, e0, e1, out):
        with self.lock:
            self.gathering += 1
        try:
            assert out.size == e1 - e0
            out[:] = self.edges[e0:e1]
            return 2 * out.nbytes
        finally:
            with self.lock:
                self.gathering -= 1

    def consume(self, buffer, e0, e1):
        self.consumed.append((e0, e1))
        self.device.copy(buffer[: e1 - e0], self.arrived[e0:e1], self.compute)

    def run(self, gather=None, consume=None):
        return self.stager.run(self.total, gather or self.gather, consume or self.consume)

    def result(self):
        """Edges as they came to the device."""
        back = self.back.view(self.dtype)[: self.total]
        self.device.copy(self.arrived[: self.total], back, self.compute)
        self.device.synchronize(self.compute)
        return back.copy()


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = own_threads()
    yield
    assert own_threads() == before


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("num_buffers", [2, 3])
@pytest.mark.parametrize("total", [1, 9, 10, 11, 25, 203])
def test_every_edge_arrives_in_its_place(device, num_buffers, total):
    """A buffer that is overwritten too early would give wrong edges under some order of the device's work; twice with one stager."""
    search = Search(CpuDevice(**device), num_buffers=num_buffers, total=total, dtype=[np.uint32, np.int64][total % 2])
    for _ in range(2):
        search.consumed.clear()
        figures = search.run()
        np.testing.assert_array_equal(search.result(), search.edges)
        assert search.consumed == [(e, min(total, e + 10)) for e in range(0, total, 10)]
        assert (figures.num_pieces, figures.bytes_read) == (-(-total // 10), 2 * search.edges.nbytes)
    search.stager.close()


@pytest.mark.parametrize("device", DEVICES)
def test_sum_of_a_large_range(device):
    """Pieces of changing speed: a thread that gathers long meets one that is ready at once."""
    search = Search(CpuDevice(**device), buffer_edges=1000, num_buffers=3, total=100_000)
    search.run()
    assert search.result().sum(dtype=np.int64) == search.edges.sum(dtype=np.int64)
    search.stager.close()


def test_no_edges_take_no_step():
    device = CpuDevice()
    search = Search(device, total=0)
    before = device.calls.total()
    assert search.run() == StagingMetrics()
    assert device.calls.total() == before
    search.stager.close()


def test_times_are_those_of_the_devices_events():
    """Copies and kernels of one piece follow one another, so that all parts of the span are told."""
    search = Search(CpuDevice(), total=95)
    figures = search.run()
    search.stager.close()
    assert figures.read_seconds > 0
    assert figures.copy_seconds > 0
    assert figures.kernel_seconds > 0
    busy = figures.copy_seconds + figures.kernel_seconds
    assert figures.span_seconds == pytest.approx(figures.idle_seconds + busy)


def test_figures_of_several_runs_add_up():
    a = StagingMetrics(1, 3, 0.5, 1.5, 2.5, 3.5, 4.5)
    assert a + StagingMetrics() == a
    assert a + a == StagingMetrics(2, 6, 1.0, 3.0, 5.0, 7.0, 9.0)


def test_nothing_is_allocated_while_it_runs():
    device = CpuDevice(seed=2, deferred=True)
    search = Search(device, total=205, num_buffers=3)

    def made():
        return device.num_allocations, device.num_pinned_allocations, device.calls["stream"], device.calls["event"], device.calls["module"]

    before = made()
    for _ in range(3):
        search.run()
    assert made() == before
    search.stager.close()


def test_buffers_are_given_back():
    device = CpuDevice()
    stager = Stager(device, buffer_bytes=4096, num_buffers=3, dtype=np.uint32, compute_stream=device.stream())
    assert (device.allocated_bytes, device.pinned_bytes) == (3 * 4096, 3 * 4096)
    stager.close()
    assert (device.allocated_bytes, device.pinned_bytes) == (0, 0)


@pytest.mark.parametrize("num_buffers", [2, 3])
@pytest.mark.parametrize("device", DEVICES)
def test_next_piece_is_gathered_before_one_is_processed(device, num_buffers):
    """No piece goes to its kernels before the next one has been gathered: the run would hang here if the two did not overlap."""
    search = Search(CpuDevice(**device), total=95, num_buffers=num_buffers)
    gathered = [threading.Event() for _ in range(11)]
    gathered[10].set()

    def gather(e0, e1, out):
        num_bytes = search.gather(e0, e1, out)
        gathered[e0 // 10].set()
        return num_bytes

    def consume(buffer, e0, e1):
        assert gathered[min(e0 // 10 + num_buffers - 1, 9)].wait(WAIT_SECONDS), "the next piece is not gathered meanwhile"
        search.consume(buffer, e0, e1)

    search.run(gather, consume)
    np.testing.assert_array_equal(search.result(), search.edges)
    search.stager.close()


def test_two_pieces_are_gathered_at_a_time():
    """So that no reading thread is idle at the end of one."""
    search = Search(CpuDevice(), total=80)
    meeting = threading.Barrier(2)

    def gather(e0, e1, out):
        meeting.wait(WAIT_SECONDS)
        return search.gather(e0, e1, out)

    search.run(gather)
    np.testing.assert_array_equal(search.result(), search.edges)
    search.stager.close()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bad_piece", [0, 1, 2, 5, 9])
def test_gather_that_fails_ends_the_run(device, bad_piece):
    """What came before is processed, nothing after it; no read goes on; the stager works again."""
    search = Search(CpuDevice(**device), total=95, num_buffers=3)

    def gather(e0, e1, out):
        num_bytes = search.gather(e0, e1, out)
        if e0 == 10 * bad_piece:
            raise OSError("bad disk")
        return num_bytes

    with pytest.raises(OSError, match="bad disk"):
        search.run(gather)
    assert search.gathering == 0
    assert not search.compute.queue, "the device was still at work"
    assert search.consumed == [(e, e + 10) for e in range(0, 10 * bad_piece, 10)]
    search.consumed.clear()
    search.run()
    np.testing.assert_array_equal(search.result(), search.edges)
    search.stager.close()


def test_first_of_two_failures_is_raised():
    """Both gathers have failed by the time that the first is told."""
    search = Search(CpuDevice(), total=95)
    meeting = threading.Barrier(2)

    def gather(e0, e1, out):
        meeting.wait(WAIT_SECONDS)
        raise OSError(f"piece {e0 // 10}")

    with pytest.raises(OSError, match="piece 0"):
        search.run(gather)
    search.stager.close()


def test_reads_that_run_end_before_a_failure_is_told():
    search = Search(CpuDevice(), total=95, num_buffers=3)
    failed, begun, ended = threading.Event(), threading.Barrier(3), []

    def gather(e0, e1, out):
        if e0:
            begun.wait(WAIT_SECONDS)
            assert failed.wait(WAIT_SECONDS)
            ended.append(e0)
            return search.gather(e0, e1, out)
        return search.gather(e0, e1, out)

    def consume(buffer, e0, e1):
        begun.wait(WAIT_SECONDS)
        failed.set()
        raise RuntimeError("no such kernel")

    with pytest.raises(RuntimeError, match="no such kernel"):
        search.run(gather, consume)
    assert sorted(ended) == [10, 20]
    assert search.gathering == 0
    search.stager.close()


@pytest.mark.parametrize("deferred", [False, True])
def test_device_that_is_lost_at_any_call_ends_the_run(deferred):
    """Each call of the device in turn is the one at which it fails, from the first allocation to the last synchronisation."""
    whole = CpuDevice(seed=3, deferred=deferred)
    search = Search(whole, total=55)
    search.run()
    search.stager.close()
    made, fails = whole.calls.total(), 0
    for call in range(1, made + 1):
        device = CpuDevice(seed=3, deferred=deferred, fail_after=call)
        search = None
        try:
            search = Search(device, total=55)
            search.run()
        except DeviceError:
            fails += 1
        if search is not None:
            assert search.gathering == 0
            search.stager.close()
    assert fails == made


@pytest.mark.parametrize("options", [{"num_buffers": 1}, {"buffer_edges": 0}])
def test_too_few_or_too_small_buffers_are_refused(options):
    with pytest.raises(ValueError, match="at least 2 buffers of 4 bytes"):
        Search(CpuDevice(), **options)


@pytest.mark.gpu
def test_every_edge_arrives_on_a_gpu(cuda_device):
    """Pieces of a few KiB, so that many are on their way at once."""
    search = Search(cuda_device, buffer_edges=3000, num_buffers=3, total=1_000_003)
    for _ in range(3):
        figures = search.run()
        np.testing.assert_array_equal(search.result(), search.edges)
        assert 0 <= figures.idle_seconds < figures.span_seconds
        assert figures.copy_seconds > 0
    search.stager.close()
