"""Stores that somebody made up, with right checksums: what they name is refused before it is waited for, allocated or indexed by."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import oocgraph
from oocgraph.errors import CorruptStoreError, OocGraphError
from oocgraph.store.search_store import SearchStore
from oocgraph.store.values import Offsets
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite


@pytest.fixture
def store(tmp_path):
    reference_build(*random_edges(1), tmp_path / "g.zarr", implied=(0, 230))
    return oocgraph.open_graph(tmp_path / "g.zarr")


@pytest.mark.parametrize("suffix", ["npz", "sg"])
def test_an_order_that_names_a_vertex_twice_is_no_order(store, tmp_path, suffix):
    """The other vertex would have no position but what happened to be in memory, and entries are placed by it."""
    order = store.read("vertices/order").copy()
    order[3] = order[8]
    twice = rewrite(store.url, tmp_path / "twice.zarr", arrays={"vertices/order": order})
    with pytest.raises(CorruptStoreError, match="names some vertices twice"):
        twice.to_scipy()
    with pytest.raises(CorruptStoreError, match="names some vertices twice"):
        oocgraph.export_graph(twice, tmp_path / f"g.{suffix}")


def test_offsets_below_zero_are_refused_wherever_reading_begins():
    """What stands before them was not compared: it may be below zero as well."""
    assert Offsets(10).broken(np.array([-4, -4, 3]), 5, 20, -4) == (0, "must not be negative")
    assert Offsets(10).broken(np.array([0, 4, 10]), 5, 20, 0) is None


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("file", ["zarr.json", "out/indptr/zarr.json", "out/indices/c/0", "vertices/order/c/0"])
@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_what_is_no_file_is_not_read(store, tmp_path, codec, file, kind):
    """A pipe has no writer to wait for, and a device no end."""
    damaged = rewrite(store.url, tmp_path / "damaged.zarr", codec=codec)
    place = Path(damaged.url) / file
    place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    with pytest.raises(OocGraphError):
        oocgraph.open_graph(damaged.url).to_scipy()
    with pytest.raises(OocGraphError):
        oocgraph.check_store(damaged.url)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_check_reads_no_more_of_a_chunk_than_one_can_have(store, tmp_path, codec):
    damaged = rewrite(store.url, tmp_path / "damaged.zarr", codec=codec)
    os.truncate(Path(damaged.url) / "out/indices/c/0", 1 << 40)
    with pytest.raises(CorruptStoreError, match="out/indices/c/0"):
        oocgraph.check_store(damaged.url)


def test_a_checkpoint_that_is_a_pipe_is_not_waited_for(store, tmp_path):
    os.mkfifo(tmp_path / "pagerank.state")
    with pytest.raises(CorruptStoreError, match="cannot be read"):
        oocgraph.pagerank(store, checkpoint=tmp_path)


def test_a_result_store_whose_metadata_are_pipes_is_not_waited_for(tmp_path):
    stored = SearchStore.create(tmp_path / "r.zarr", {"num_partitions": 1})
    stored.write_part(0, [(np.zeros(3, np.uint8), np.zeros(3, np.uint32))])
    for file in (tmp_path / "r.zarr/parts/0/level/zarr.json", tmp_path / "r.zarr/zarr.json"):
        file.unlink()
        os.mkfifo(file)
    with pytest.raises(CorruptStoreError):
        stored.part(0, "level")
    with pytest.raises(OocGraphError):
        SearchStore.open(tmp_path / "r.zarr")
