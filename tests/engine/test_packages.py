"""Where threads work: groups of cores that share a cache, as a machine or a test describes them."""

from __future__ import annotations

import os

import numpy as np
import pytest

import oocgraph
from oocgraph.config import setting
from oocgraph.engine import blocks, packages
from oocgraph.engine.packages import Thread, filled, place_threads
from oocgraph.errors import ArgumentError
from oocgraph.sparse.placement import cache_groups, topology

TWO = topology({0: 2, 1: 2})


@pytest.mark.parametrize(("num_threads", "expected"), [(1, [0]), (2, [0, 1]), (4, [0, 0, 1, 1]), (6, [0, 0, 0, 0, 1, 1])])
def test_threads_are_distributed(num_threads, expected):
    placed = place_threads(num_threads, TWO)
    assert [thread.package for thread in placed] == expected
    assert all(thread.core in TWO[thread.package].workers for thread in placed)


def test_none_is_bound_in_one_group_or_where_that_is_not_wanted():
    assert place_threads(3, topology({0: 4})) == [Thread(0, None)] * 3
    with setting("pin-threads", "never"):
        assert place_threads(3, TWO) == [Thread(0, None)] * 3


@pytest.mark.parametrize(("shared", "expected"), [("0-1", 1), (None, 1), ("each", 2)])
def test_groups_are_read(tmp_path, shared, expected):
    cores = sorted(os.sched_getaffinity(0))[:2]
    nodes = tmp_path / "nodes" / "node0"
    nodes.mkdir(parents=True)
    (nodes / "cpulist").write_text(",".join(map(str, cores)))
    for core in cores if shared else []:
        folder = tmp_path / f"cpu{core}" / "cache" / "index3"
        folder.mkdir(parents=True)
        (folder / "shared_cpu_list").write_text(str(core) if shared == "each" else ",".join(map(str, cores)))
    assert len(cache_groups(tmp_path, tmp_path / "nodes")) == min(expected, len(cores))


def test_arrays_are_filled_by_their_groups(monkeypatch):
    bound = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cores: bound.append((process, cores)))
    array = filled(1001, 7, np.dtype(np.int32), place_threads(4, TWO))
    assert (array == 7).all()
    assert array.dtype == np.int32
    assert sorted(min(cores) for _, cores in bound) == [0, 1, 2, 3]


def test_paths_are_the_same_in_two_groups(tmp_path, monkeypatch):
    """Threads that are bound, lists of two packages, and the smallest of chunks."""
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)
    with setting("vertex-order", "locality"):
        store = oocgraph.generate_grid((60, 50), tmp_path / "g", keep=0.9, weights=(1, 255))
    alone = oocgraph.sssp(store, 1234)
    monkeypatch.setattr(packages, "cache_groups", lambda: TWO)
    with setting("chunk-items", 8):
        found = oocgraph.sssp(store, 1234, resources=oocgraph.Resources(threads=4))
    np.testing.assert_array_equal(found.distance, alone.distance)
    np.testing.assert_array_equal(found.parent, alone.parent)


def test_a_list_that_is_too_small_leaves_the_rest_to_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "SHIFT", 5)
    with setting("vertex-order", "locality"):
        store = oocgraph.generate_grid((40, 50), tmp_path / "g", weights=(1, 255))
    alone = oocgraph.sssp(store, 777, schedule="buckets")
    real = blocks.new_list
    monkeypatch.setattr(blocks, "new_list", lambda _, *given, **options: real(8, *given, **options))
    found = oocgraph.sssp(store, 777, resources=oocgraph.Resources(threads=3))
    np.testing.assert_array_equal(found.distance, alone.distance)
    oocgraph.verify_sssp(store, found)


@pytest.mark.parametrize("items", [7, 65, True, "8", 8.0])
def test_a_size_of_chunks_is_checked(items):
    with setting("chunk-items", items), pytest.raises(ArgumentError, match=r"chunk-items is .* from 8 to 64"):
        oocgraph.config.settings()
