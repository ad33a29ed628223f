"""Partitions that search on a device find what one process finds: the contract of `test_part`, whatever is where."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph.engine import device_part, transfers
from oocgraph.engine.cpu_engine import TinyLimits
from oocgraph.engine.part import SearchOptions
from oocgraph.errors import CorruptStoreError, DeviceError
from oocgraph.exchange.parts import make_part
from oocgraph.store.graph import open_graph
from tests.cuda_on_cpu.device import CpuDevice
from tests.engine.device_parts import open_device_parts
from tests.engine.parts import run_parts
from tests.engine.test_part import DIRECTIONS, judge, make_store
from tests.reference_build import reference_build
from tests.stores import rewrite

pytestmark = pytest.mark.shim

NONE = TinyLimits(0, 0)
"""No level is tiny: the device takes all."""


@given(
    seed=st.integers(0, 2**20), num_partitions=st.integers(1, 3), direction=st.sampled_from(DIRECTIONS), directed=st.booleans(),
    order=st.sampled_from(["degree", "original"]), cramp=st.booleans(), depth_limit=st.one_of(st.none(), st.integers(0, 3)),
    few=st.sampled_from([NONE, TinyLimits(20, 60), None]), deferred=st.booleans(),
)  # fmt: skip
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_partitions_find_what_one_process_finds(
    tmp_path_factory, seed, num_partitions, direction, directed, order, cramp, depth_limit, few, deferred
):
    """Whatever is on the device, page-locked or on disk, and whichever direction is taken."""
    store = make_store(tmp_path_factory.mktemp("g") / "g.zarr", seed, directed=directed, vertex_order=order)
    device = CpuDevice(seed=seed, deferred=deferred)
    parts = open_device_parts(store, num_partitions, device, cramp=seed if cramp else None, check_pages=bool(seed % 2))
    states, _ = run_parts(parts, [1, 5], direction=direction, last_level=2**31 - 2 if depth_limit is None else depth_limit, few=few)
    judge(store, parts, states, [1, 5], depth_limit)
    while parts:
        parts.pop().close()
    assert device.allocated_bytes == 0
    assert device.peak_bytes <= device.total_bytes


@pytest.mark.parametrize("codec", ["zstd"])
def test_compressed_stores_come_through_windows(tmp_path, codec):
    """Host threads decode what the batches of all partitions ask for."""
    make_store(tmp_path / "plain.zarr", 5, num_ids=600, num_edges=9000)
    store = rewrite(tmp_path / "plain.zarr", tmp_path / "g.zarr", codec=codec)
    for direction in ("auto", "push", "pull"):
        parts = open_device_parts(store, 2, CpuDevice(), cramp=7)
        states, _ = run_parts(parts, [1], direction=direction)
        judge(store, parts, states, [1])


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_bitmaps_cross_the_link_without_a_wait_for_each_piece(tmp_path, direction, monkeypatch):
    """A level has a few waits, however many pieces its bitmaps are cut into."""
    reference_build(*np.random.default_rng(2).integers(0, 20000, (2, 60000)), tmp_path / "g")
    store, stream_waits, levels = open_graph(tmp_path / "g"), [], []
    for slot_bytes in (1 << 20, 64):
        monkeypatch.setattr(transfers, "SLOT_BYTES", slot_bytes)
        device = CpuDevice()
        parts = open_device_parts(store, 1, device)
        before, copied = device.waits["stream"], device.calls["copy"]
        states, _ = run_parts(parts, [1], direction=direction, few=NONE)
        levels.append(len(drained(states)))
        stream_waits.append(device.waits["stream"] - before)
        copied = device.calls["copy"] - copied
        parts.pop().close()
    assert stream_waits[0] == stream_waits[1] <= 3 * levels[1]
    assert copied > 50 * levels[1], "each bitmap in many pieces"


def drained(states):
    """Return figures of all levels that were not tiny."""
    return [one for state in states for one in state.log.drain() if not isinstance(one, np.ndarray)]


def test_figures_tell_what_crossed_the_link(tmp_path):
    """Edges that are neither in device memory nor needed cross it never."""
    store = make_store(tmp_path / "g.zarr", 3, num_ids=600, num_edges=9000)
    parts = open_device_parts(store, 2, CpuDevice(), cramp=3)
    states, _ = run_parts(parts, [1], direction="push", few=NONE)
    moved = drained(states)
    assert all(one.device is not None for one in moved)
    assert sum(one.device.link_bytes for one in moved) > 0
    assert any("link" in one.reason or "bytes" in one.reason for one in moved if one.device.link_bytes)
    everything = open_device_parts(store, 2, CpuDevice())
    states, _ = run_parts(everything, [1], direction="push", few=NONE)
    assert sum(one.device.link_bytes for one in drained(states)) == 0


@pytest.mark.parametrize("few", [NONE, TinyLimits(50, 200)])
def test_state_is_made_again_from_the_logs(tmp_path, few):
    """After any step, partitions that know the logs alone go on to the same levels; parents of dense records are found on the device."""
    store = make_store(tmp_path / "g.zarr", 3, num_ids=600, num_edges=2000, directed=False)
    device, options = CpuDevice(seed=1), {"direction": "alpha-beta", "few": few}
    total = run_parts(open_device_parts(store, 3, device), [2], **options)[1]
    for stop in range(total + 1):
        logs = [[], [], []]
        run_parts(open_device_parts(store, 3, device, cramp=stop + 5), [2], logs=logs, stop_after=stop, **options)
        parts = open_device_parts(store, 3, device, cramp=stop)
        blind = [dataclasses.replace(record, parent=record.parent[:0], early_parent=record.early_parent[:0]) for record in logs[0]]
        states = [part.resume([blind if q == 0 != p else log for q, log in enumerate(logs)]) for p, part in enumerate(parts)]
        states, _ = run_parts(parts, [2], logs=logs, states=states, **options)
        judge(store, parts, states, [2])


def test_depths_above_one_byte(tmp_path):
    """A path of 270 vertices needs int32 levels, which the host makes of what the device has noted in bytes; and after a resume."""
    src = np.arange(270)
    reference_build(src, src + 1, tmp_path / "g.zarr", directed=False)
    store = open_graph(tmp_path / "g.zarr")
    source = int(np.flatnonzero(store.read("vertices/id") == 0)[0])
    for direction, stop in (("push", None), ("pull", 253), ("pull", 254), ("pull", 255)):
        parts, logs, options = open_device_parts(store, 2, CpuDevice()), [[], []], {"direction": direction, "few": NONE}
        states, _ = run_parts(parts, [source], logs=logs, stop_after=stop, **options)
        if stop is not None:
            states = [part.resume(logs) for part in parts]
            states, _ = run_parts(parts, [source], logs=logs, states=states, **options)
        judge(store, parts, states, [source])


@pytest.mark.parametrize("flush_vertices", [64, 1 << 18])
def test_two_searches_take_turns_on_one_device(tmp_path, monkeypatch, flush_vertices):
    """What the device has noted of one goes to the host before the other takes its arrays."""
    monkeypatch.setattr(device_part, "FLUSH_VERTICES", flush_vertices)
    store = make_store(tmp_path / "g.zarr", 3, num_ids=600, num_edges=2000)
    parts = open_device_parts(store, 2, CpuDevice(), cramp=3)
    sources, states = [[2], [570]], [None, None]
    searches = [take_steps(parts, source, direction) for source, direction in zip(sources, ["push", "alpha-beta"], strict=True)]
    for last in itertools.zip_longest(*searches):
        states = [found or before for found, before in zip(last, states, strict=True)]
    for found, source in zip(states, sources, strict=True):
        judge(store, parts, found, source)


def take_steps(parts, sources, direction):
    """Take the steps of a search, and note them in a log as a worker does; yields the states after each."""
    options, found, step = SearchOptions(direction, 2**31 - 2, NONE), None, 0
    states = [part.start(np.array(sources)) for part in parts]
    while not all(state.ended for state in states):
        found = [part.step(state, options, found) for part, state in zip(parts, states, strict=True)]
        for part, state in zip(parts, states, strict=True):
            record = part.record(state, step)
            assert record.dense or record.found.size == record.parent.size
        step += 1
        yield states


def test_a_search_goes_on_when_its_partition_is_loaded_anew(tmp_path):
    """What the device had noted of it has come to the host; a device that has failed loses it, and says so."""
    store = make_store(tmp_path / "g.zarr", 3, num_ids=600, num_edges=2000)
    for lost in (False, True):
        device = CpuDevice()
        (part,) = open_device_parts(store, 1, device)
        states, _ = run_parts([part], [2], direction="pull", few=NONE, stop_after=1, logs=[[]])
        device.fail_after = device.calls.total() if lost else None
        part.close()
        assert states[0].lost == lost
        if not lost:
            parts = open_device_parts(store, 1, device, cramp=5)
            parts[0].adopt(states[0])
            continue_steps(parts, states)
            judge(store, parts, states, [2])


def continue_steps(parts, states):
    """Take the steps that are left of a search of one partition."""
    options = SearchOptions("pull", 2**31 - 2, NONE)
    part, state = parts[0], states[0]
    new = state.visited & ~state.before
    found = make_part(new, int(np.bitwise_count(new).sum()), state.level, part.own_blocks, part.store.index_dtype)
    while not state.ended:
        found = part.step(state, options, [found])


@pytest.mark.parametrize("calls", [1, 2, 5, 20, 50, 100])
def test_a_device_that_is_lost_in_a_step(tmp_path, calls):
    """Partition and level are named, and later steps do not touch it."""
    store = make_store(tmp_path / "g.zarr", 3, num_ids=600, num_edges=2000)
    device = CpuDevice()
    parts = open_device_parts(store, 1, device, cramp=5)
    device.fail_after = device.calls.total() + calls
    with pytest.raises(DeviceError, match=r"partition 0, level \d+: CPU \(shim\): the device was lost"):
        run_parts(parts, [2], few=NONE)
    assert parts[0].has_failed
    used = device.calls.total()
    with pytest.raises(DeviceError, match="the device failed in an earlier search"):
        run_parts(parts, [2], few=NONE)
    assert device.calls.total() == used
    parts[0].close()


def test_a_device_that_is_lost_while_it_is_loaded(tmp_path):
    """Everything that was opened is closed again."""
    store = make_store(tmp_path / "g.zarr", 3)
    for calls in (1, 3, 10, 30, 60):
        device = CpuDevice(fail_after=calls)
        with pytest.raises(DeviceError, match="partition 0, as it was loaded: CPU"):
            open_device_parts(store, 1, device)
        assert device.allocated_bytes == 0


def test_a_damaged_page_is_found_where_it_is_gathered(tmp_path):
    """By a thread of a step: the message names the file, partition and level; the next search finds it again."""
    store = make_store(tmp_path / "g.zarr", 3, num_ids=600, num_edges=9000)
    parts = open_device_parts(store, 2, CpuDevice(), cramp=3, check_pages=True)
    chunk = next((tmp_path / "g.zarr" / "out" / "indices").glob("c/*"))
    content = bytearray(chunk.read_bytes())
    content[-100:] = b"x" * 100
    chunk.write_bytes(content)
    for _ in range(2):
        with pytest.raises(CorruptStoreError, match=r"partition \d, level \d+: .*differs from its checksum"):
            run_parts(parts, [1], direction="push", few=NONE)


@pytest.mark.parametrize("edges", [[(0, 1)], [(0, 0), (0, 1), (1, 2)], [(0, i) for i in range(1, 70)], [(0, 1), (2, 3), (4, 5)]])
def test_tiny_graphs(tmp_path, edges):
    """An edge, a path, a star, components; as many partitions as vertices, some of which own none."""
    src, dst = np.array(edges).T
    reference_build(src, dst, tmp_path / "g.zarr")
    store = open_graph(tmp_path / "g.zarr")
    for num_partitions in (1, 2, min(4, store.num_rows)):
        for direction in ("push", "pull", "auto"):
            parts = open_device_parts(store, num_partitions, CpuDevice())
            states, _ = run_parts(parts, [1], direction=direction, few=NONE)
            judge(store, parts, states, [1])
