"""Partitions that search together find what one process finds: every shape of graph, direction and residency."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph.engine.levels import search
from oocgraph.engine.local import LocalRuntime
from oocgraph.store.graph import open_graph
from oocgraph.verify import verify_search
from tests.engine.parts import gather, open_parts, run_parts
from tests.reference_build import reference_build
from tests.stores import rewrite

DIRECTIONS = ["auto", "push", "pull", "half", "alpha-beta", "gemini"]


def make_store(path, seed, *, num_ids=300, num_edges=900, **options):
    """Build a random graph with a few hubs."""
    rng = np.random.default_rng(seed)
    src = (num_ids * rng.random(num_edges) ** 3).astype(np.int64)
    reference_build(src, rng.integers(0, num_ids, num_edges), path, **options)
    return open_graph(path)


def judge(store, parts, states, sources, depth_limit=None):
    """Check levels and parents by Graph500's rules, and levels against the search of one process."""
    level, parent = gather(parts, states)
    with LocalRuntime.open(store) as runtime:
        alone = search(runtime, np.asarray(sources), depth_limit=depth_limit)
    expected = alone.level.astype(np.int32)
    expected[alone.level == 255] = -1 if alone.level.dtype == np.uint8 else 255
    np.testing.assert_array_equal(level, expected)
    verify_search(store, np.asarray(sources), parent, level, depth_limit=depth_limit)


@given(
    seed=st.integers(0, 2**20), num_partitions=st.integers(1, 4), direction=st.sampled_from(DIRECTIONS), directed=st.booleans(),
    order=st.sampled_from(["degree", "original"]), cramp=st.booleans(), depth_limit=st.one_of(st.none(), st.integers(0, 3)),
)  # fmt: skip
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_partitions_find_what_one_process_finds(tmp_path_factory, seed, num_partitions, direction, directed, order, cramp, depth_limit):
    """Whatever is resident and whichever direction is taken, levels are the same and the tree is valid."""
    path = tmp_path_factory.mktemp("store") / "g.zarr"
    store = make_store(path, seed, directed=directed, vertex_order=order)
    sources = np.unique(np.random.default_rng(seed).integers(0, store.num_rows, 1 + seed % 3))
    shares = [1 + 7 * p for p in range(num_partitions)] if seed % 3 == 0 else None
    parts = open_parts(store, num_partitions, cramp=seed if cramp else None, shares=shares)
    last = 2**31 - 2 if depth_limit is None else depth_limit
    states, _ = run_parts(parts, sources, direction=direction, last_level=last)
    judge(store, parts, states, sources, depth_limit)
    for part in parts:
        part.close()


@pytest.mark.parametrize("codec", ["zstd", "blosc"])
def test_compressed_stores_are_searched_by_windows(tmp_path, codec):
    """A partition whose rows have gaps between them finds its vertices in windows of decoded edges."""
    make_store(tmp_path / "plain.zarr", 5, num_ids=3000, num_edges=40000)
    store = rewrite(tmp_path / "plain.zarr", tmp_path / "g.zarr", codec=codec)
    for direction in DIRECTIONS:
        parts = open_parts(store, 3, cramp=7)
        states, _ = run_parts(parts, [1], direction=direction)
        judge(store, parts, states, [1])


def test_partitions_that_hold_more_than_others_take_the_same_levels_alone(tmp_path):
    """A frontier of few edges on more pages than are read together; or in compressed chunks: easy for one that holds all edges."""
    rng = np.random.default_rng(1)
    reference_build(*rng.integers(0, 100_000, (2, 1_200_000)), tmp_path / "g.zarr", vertex_order="original")
    stores = [open_graph(tmp_path / "g.zarr"), rewrite(tmp_path / "g.zarr", tmp_path / "coded.zarr", codec="zstd")]
    sources = np.linspace(0, stores[0].num_rows - 1, 2400).astype(np.int64)
    for store in stores:
        parts = open_parts(store, 3, cramp=7, whole=[1])
        states, _ = run_parts(parts, sources)
        judge(store, parts, states, sources)


@pytest.mark.parametrize("tiny", [True, False])
def test_state_is_made_again_from_the_logs(tmp_path, monkeypatch, tiny):
    """After any step, partitions that know the logs alone go on to the same levels."""
    store = make_store(tmp_path / "g.zarr", 3, num_ids=5000, num_edges=9000, directed=False)
    direction = "auto" if tiny else "alpha-beta"
    total = run_parts(open_parts(store, 3), [2], direction=direction)[1]
    for stop in range(total + 1):
        logs = [[], [], []]
        run_parts(open_parts(store, 3), [2], direction=direction, logs=logs, stop_after=stop)
        parts = open_parts(store, 3, cramp=stop)
        blind = [dataclasses.replace(record, parent=record.parent[:0], early_parent=record.early_parent[:0]) for record in logs[0]]
        states = [part.resume([blind if q == 0 != p else log for q, log in enumerate(logs)]) for p, part in enumerate(parts)]
        states, _ = run_parts(parts, [2], direction=direction, logs=logs, states=states)
        judge(store, parts, states, [2])


def test_depths_above_one_byte(tmp_path):
    """A path of 700 vertices needs int32 levels, with and without tiny levels, and after a resume."""
    src = np.arange(700)
    reference_build(src, src + 1, tmp_path / "g.zarr", directed=False)
    store = open_graph(tmp_path / "g.zarr")
    for direction in ("auto", "pull"):
        for stop in (0, 253, 254, 255, 300):
            parts, logs = open_parts(store, 2), [[], []]
            source = int(np.flatnonzero(store.read("vertices/id") == 0)[0])
            states, _ = run_parts(parts, [source], direction=direction, logs=logs, stop_after=stop)
            states = [part.resume(logs) for part in parts] if direction == "pull" else states
            states, _ = run_parts(parts, [source], direction=direction, logs=logs, states=states)
            judge(store, parts, states, [source])
