"""``bench load``: loads beside reads of the same bytes."""

from __future__ import annotations

import dask
import numpy as np
import pytest

import oocgraph
from oocgraph.bench.load import bench_load, read_seconds
from oocgraph.errors import ArgumentError
from oocgraph.types import ignore_progress


def edges():
    return np.random.default_rng(1).integers(0, 3000, (20_000, 2))


def test_what_is_loaded_is_compared_with_reads_of_as_many_bytes(tmp_path):
    """All neighbours are read, twice where planes hold some of them, and each load is followed by one more search than asked for."""
    store = oocgraph.build_csr(edges(), tmp_path / "g.zarr")
    metrics = bench_load(store, num_rounds=2, num_searches=3, memory_budget=None, progress=ignore_progress).metrics
    assert metrics["resident_bytes"] >= store.array("out/indices").length * store.index_dtype.itemsize
    assert [len(one["searches"]) for one in metrics["loads"]] == [4, 4]
    assert {one["resident_bytes"] for one in metrics["loads"]} == {metrics["resident_bytes"]}
    assert min(metrics["ratio_to_read"], metrics["ratio_to_pass"], metrics["first_to_median_search"]) > 0


def test_reads_leave_no_file_open(tmp_path):
    """Files are closed, also where a chunk is missing."""
    store = oocgraph.build_csr(edges(), tmp_path / "g.zarr")
    array = store.array("out/indices")
    assert read_seconds({array: array.length * 4}, keep=True) > 0
    array.chunk_path(0).unlink()
    with pytest.raises(oocgraph.OocGraphError, match="missing"):
        read_seconds({array: array.length * 4}, keep=False)


def test_a_compressed_graph_is_refused(tmp_path):
    """Its files are not what is loaded."""
    with dask.config.set({"oocgraph.codec": "zstd"}):
        store = oocgraph.build_csr(edges(), tmp_path / "g.zarr")
    with pytest.raises(ArgumentError, match="without a codec"):
        bench_load(store, num_rounds=1, num_searches=1, memory_budget=None, progress=ignore_progress)
