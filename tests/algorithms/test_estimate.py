"""Estimates of builds and searches bracket what these take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from oocgraph import InputError, bfs, build_csr, estimate
from oocgraph.algorithms import estimate as module
from oocgraph.ingest.build import build_with_report
from oocgraph.ingest.build_job import BuildOptions

FACTOR = 1.25
"""Of the disk that a store of integer ids takes."""


def kronecker(scale=15, edge_factor=16, seed=3):
    rng = np.random.default_rng(seed)
    ends = np.zeros((2, edge_factor << scale), np.int64)
    for bit in range(scale):
        place = rng.choice(4, ends.shape[1], p=[0.57, 0.19, 0.19, 0.05])
        ends += np.stack([place >> 1, place & 1]) << bit
    return rng.permutation(1 << scale)[ends]


def uniform(n=30_000, m=400_000):
    return np.random.default_rng(1).integers(0, n, (2, m))


def grid(side=500):
    at = np.arange(side * side).reshape(side, side)
    return np.concatenate([np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()]), np.stack([at[:-1].ravel(), at[1:].ravel()])], axis=1)


def disk_bytes(folder):
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


@pytest.fixture(params=["all", "sample"])
def sampled(request, monkeypatch):
    """Whether all edges are read or a twentieth."""
    if request.param == "sample":
        monkeypatch.setattr(module, "SAMPLE_ROWS", 1 << 11)
        monkeypatch.setattr(module, "SAMPLE_BLOCKS", 8)
    return request.param == "sample"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("shape", [kronecker, uniform, grid])
def test_size_of_a_store_is_met(tmp_path, shape, directed, sampled):
    source, target = shape()
    pq.write_table(
        pa.table({"source": source, "target": target, "w": np.ones(source.size, np.float32)}), tmp_path / "e.parquet", row_group_size=50_000
    )
    found = estimate(tmp_path / "e.parquet", directed=directed, weight="w")
    graph = build_csr(tmp_path / "e.parquet", tmp_path / "g.zarr", directed=directed, weight="w")
    assert found.is_exact is not sampled
    assert 1 / FACTOR < found.store_bytes / disk_bytes(tmp_path / "g.zarr") < FACTOR
    if not sampled:
        assert (found.num_edges, found.num_vertices) == (graph.num_edges, graph.num_rows)
    assert estimate(graph).num_edges == graph.num_edges


@pytest.mark.parametrize("directed", [True, False])
def test_budgets_work_and_are_kept(tmp_path, directed):
    """A build and a search within the least budgets, and no more memory than the ample ones."""
    source, target = kronecker()
    np.save(tmp_path / "e.npy", np.stack([source, target], axis=1))
    found = estimate(tmp_path / "e.npy", directed=directed)
    options = BuildOptions(directed=directed, memory_budget=found.build_least_bytes)
    graph, report = build_with_report(str(tmp_path / "e.npy"), tmp_path / "g.zarr", options)
    assert report.peak_host_bytes <= found.build_ample_bytes
    for sizes in (found, estimate(graph)):
        assert bfs(graph, int(source[0]), memory_budget=sizes.search_least_bytes).num_reached > 1000
        held = bfs(graph, int(source[0]), memory_budget=sizes.search_ample_bytes)
        assert held.num_reached > 1000
        assert held.bytes_read == 0


def test_names_and_lines_are_counted_from_the_beginning(tmp_path):
    """Of a text file neither the number of edges nor that of names is known before all is read."""
    source, target = (np.char.add("vertex-", column.astype(str)) for column in kronecker(scale=14))
    pyarrow.csv.write_csv(pa.table({"source": source, "target": target}), tmp_path / "e.csv")
    found = estimate(tmp_path / "e.csv")
    graph = build_csr(tmp_path / "e.csv", tmp_path / "g.zarr", directed=False)
    assert found.num_edges == graph.num_edges
    assert 0.5 < found.store_bytes / disk_bytes(tmp_path / "g.zarr") < 2


def test_lines_of_a_long_text_are_estimated(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_ROWS", 1 << 11)
    source, target = uniform()
    pyarrow.csv.write_csv(pa.table({"source": source, "target": target}), tmp_path / "e.csv")
    assert estimate(tmp_path / "e.csv").num_edges == pytest.approx(source.size, rel=0.05)


def test_what_does_not_fit_is_told(monkeypatch):
    monkeypatch.setattr(module, "available_bytes", lambda: 1 << 20)
    monkeypatch.setattr(module, "_free_bytes", lambda path: 100)
    found = estimate(([0, 1], [1, 2]))
    disk, build, search = found.shortages
    assert disk.startswith("a build does not fit on this disk: it needs ")
    assert disk.endswith("and 100 B are free")
    assert build.startswith("a build does not fit in memory")
    assert search.startswith("a search does not fit in memory")


def test_a_graph_without_edges_is_estimated():
    found = estimate((np.empty(0, np.int64), np.empty(0, np.int64)))
    assert (found.num_edges, found.num_vertices) == (0, 0)


def test_a_source_that_is_none_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.parquet"):
        estimate(tmp_path / "nothing.parquet")
