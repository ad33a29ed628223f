"""A graph that was opened by a relative path is the same one when the program works in another folder."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import oocgraph
from oocgraph import append_edges, bfs, build_csr, open_graph, open_partitions, partition_graph
from oocgraph.errors import StoreError

SIZE = 300


@pytest.fixture
def moved(tmp_path, monkeypatch):
    """Return a cycle, 0 -> 1 -> 2 ..., that was built in a folder by its name; in the folder of now another graph has that name."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    order = np.random.default_rng(0).permutation(SIZE)
    graph = build_csr((np.arange(SIZE), np.roll(np.arange(SIZE), -1)), "g.zarr", directed=True)
    build_csr((order, np.roll(order, -1)), "../b/g.zarr", directed=True)
    monkeypatch.chdir(tmp_path / "b")
    return graph


def test_a_runtime_knows_its_graph_by_any_name(moved, tmp_path):
    with oocgraph.open_runtime(moved) as runtime:
        folder = tmp_path / "a/g.zarr"
        for name in ("../a/g.zarr", folder, f"file://{folder}", f"{tmp_path}/b/../a/g.zarr", open_graph("../a/g.zarr")):
            assert bfs(name, 0, runtime=runtime)[5] == 5
        for name in ("g.zarr", open_graph("g.zarr")):
            with pytest.raises(oocgraph.ArgumentError, match=r"has loaded .*a/g\.zarr, not .*g\.zarr; open another"):
                bfs(name, 0, runtime=runtime)


@pytest.mark.parametrize("partition", [None, "1d", "2d"])
def test_searches(moved, partition):
    assert bfs(moved, 0, partition=partition)[5] == 5


def test_searches_on_workers(moved, threads_client, monkeypatch):
    """Also of a runtime that was opened before."""
    for partition in (None, "1d"):
        assert bfs(moved, 0, client=threads_client, partition=partition)[5] == 5
    with oocgraph.open_runtime(moved, client=threads_client) as runtime:
        monkeypatch.chdir("..")
        assert bfs(moved, 0, runtime=runtime)[5] == 5
    assert oocgraph.pagerank(moved, client=threads_client)[7] == pytest.approx(1 / SIZE)


def test_partitions(moved, tmp_path, monkeypatch):
    parts = partition_graph(moved, 2, policy="cvc", path="p")
    assert sum(part.num_edges for part in parts) == SIZE
    opened = open_partitions("p")
    monkeypatch.chdir("..")
    assert bfs(moved, 0, partition=opened)[5] == bfs(moved, 0, partition=parts)[5] == 5


def test_edges_are_added_to_the_graph_that_was_opened(moved, tmp_path):
    before = (tmp_path / "b/g.zarr/zarr.json").read_bytes()
    assert append_edges(moved, ([1], [77])).num_edges == SIZE + 1
    assert open_graph(tmp_path / "a/g.zarr").num_edges == SIZE + 1
    assert (tmp_path / "b/g.zarr/zarr.json").read_bytes() == before


def test_a_graph_that_was_removed_is_not_called_damaged(moved, tmp_path):
    shutil.rmtree(tmp_path / "a/g.zarr")
    for ask in (lambda: bfs(moved, 0), lambda: moved.neighbors(0), lambda: oocgraph.pagerank(moved)):
        with pytest.raises(StoreError, match="or it was removed"):
            ask()
