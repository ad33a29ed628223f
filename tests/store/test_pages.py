"""Pages that are kept between questions: the same answers, of the graph as it is, and no more of them than there may be."""

from __future__ import annotations

import pickle
import shutil
import threading

import numpy as np
import pandas as pd
import pytest

from oocgraph import build_csr, open_graph
from oocgraph.errors import BudgetError, CorruptStoreError, StoreError
from oocgraph.store import answering, pages, vertex_degrees
from oocgraph.store.pages import Pages

KINDS = ["range", "sparse", "string"]


def names_of(kind):
    """Ids of 5,000 vertices."""
    numbers = np.arange(5000)
    return (
        numbers
        if kind == "range"
        else 7 * numbers + 900
        if kind == "sparse"
        else np.array([f"user/{7 * i % 5003:05d}" for i in numbers], object)
    )


@pytest.fixture(scope="module", params=KINDS)
def stored(request, tmp_path_factory):
    """Build a graph with loops, isolated vertices where ids are a range, and edges that are repeated; and its edges."""
    rng, names = np.random.default_rng(3), names_of(request.param)
    source, target = names[rng.integers(0, 4000, (2, 20_000))]
    loops = names[rng.integers(0, 200, 300)]
    table = pd.DataFrame({"source": np.concatenate([source, loops, loops]), "target": np.concatenate([target, loops, loops])})
    path = tmp_path_factory.mktemp("pages") / "g.zarr"
    extra = {"num_vertices": 5000} if request.param == "range" else {}
    return build_csr(table, path, duplicates="keep", keep_self_loops=True, **extra), table


def test_pages_that_were_wanted_least_recently_go(monkeypatch):
    monkeypatch.setattr(pages, "NUM_PAGES", 3)
    kept = Pages()
    for number in range(3):
        kept.put(("a", number), np.array([number]))
    assert kept.get(("a", 0)) is not None
    kept.put(("b", 0), np.array([9]))
    assert kept.get(("a", 1)) is None
    assert [kept.get(key).tolist() for key in (("a", 0), ("a", 2), ("b", 0))] == [[0], [2], [9]]


@pytest.mark.parametrize("most", [2, 1024])
def test_one_vertex_after_another_has_what_all_have_together(stored, monkeypatch, most):
    monkeypatch.setattr(pages, "NUM_PAGES", most)
    monkeypatch.setattr(vertex_degrees, "LOOP_BLOCK", 16)
    graph, table = open_graph(stored[0].url), stored[1]
    some = list(graph)[::37]
    near = {}
    for u, v in zip(table["source"].tolist(), table["target"].tolist(), strict=True):
        near.setdefault(u, []).append(v)
        if u != v:
            near.setdefault(v, []).append(u)
    together = graph.degree(some).tolist()
    for vertex, degree in zip(some, together, strict=True):
        found = graph.neighbors(vertex).tolist()
        assert sorted(found) == sorted(near.get(vertex, []))
        assert graph.degree(vertex) == degree == len(found) + found.count(vertex)
        assert vertex in graph
        assert not found or graph.has_edge(vertex, found[0])
    assert all(f"{one}x" not in graph if isinstance(one, str) else one + 100_000 not in graph for one in some)


def test_a_graph_that_was_replaced_is_refused_though_its_pages_are_kept(stored, tmp_path):
    shutil.copytree(stored[0].url, tmp_path / "g.zarr")
    graph = open_graph(tmp_path / "g.zarr")
    vertex = next(iter(graph))
    graph.neighbors(vertex)
    build_csr(([0, 1], [1, 2]), tmp_path / "g.zarr", overwrite=True)
    with pytest.raises(StoreError, match="was replaced"):
        graph.neighbors(vertex)
    with pytest.raises(StoreError, match="was replaced"):
        graph.degree(vertex)
    with pytest.raises(StoreError, match="was replaced"):
        assert vertex in graph


def test_a_damaged_page_is_refused_each_time(stored, tmp_path):
    shutil.copytree(stored[0].url, tmp_path / "g.zarr")
    with open(tmp_path / "g.zarr/vertices/order/c/0", "r+b") as file:
        file.write(b"\xff" * 4096)
    graph = open_graph(tmp_path / "g.zarr")
    for _ in range(2):
        with pytest.raises(CorruptStoreError, match="vertices/order"):
            graph.neighbors(next(iter(graph)))


def test_compared_pages_are_kept_apart_from_others(stored, tmp_path):
    shutil.copytree(stored[0].url, tmp_path / "g.zarr")
    graph = open_graph(tmp_path / "g.zarr")
    array = graph.array("out/indices")
    before = array.read(5, 6)[0]
    with open(tmp_path / "g.zarr/out/indices/c/0", "r+b") as file:
        file.seek(20)
        file.write((int(before) ^ 1).to_bytes(4, "little"))
    assert array.read(5, 6)[0] == before  # kept
    with pytest.raises(CorruptStoreError, match="differs from its checksum"):
        graph.checked().array("out/indices").read(5, 6)
    assert array.without_rule().read(5, 6)[0] == before ^ 1


def test_what_is_read_may_be_changed(stored):
    array = open_graph(stored[0].url).array("vertices/order")
    first = array.read(3, 9)
    first[:] = 0
    assert array.read(3, 9).any()
    np.testing.assert_array_equal(array.read(1000, 1030), array.read(0, array.length)[1000:1030])  # of two pages


def test_other_processes_keep_other_pages(stored):
    array = open_graph(stored[0].url).array("vertices/order")
    before = array.read(3, 9)
    other = pickle.loads(pickle.dumps(array))
    np.testing.assert_array_equal(other.read(3, 9), before)
    assert other._pages is not array._pages


def test_threads_may_ask_at_once(stored, monkeypatch):
    monkeypatch.setattr(pages, "NUM_PAGES", 4)
    graph = open_graph(stored[0].url)
    some = list(graph)[::50]
    expected, wrong = [graph.neighbors(one).tolist() for one in some], []

    def ask(order):
        wrong.extend(i for i in order if graph.neighbors(some[i]).tolist() != expected[i])

    threads = [threading.Thread(target=ask, args=(np.random.default_rng(seed).permutation(len(some)),)) for seed in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_what_the_machine_leaves_is_asked_once_an_answer_is_large(stored, monkeypatch):
    monkeypatch.setattr(answering, "default_budget_bytes", lambda: 1 << 20)
    graph = open_graph(stored[0].url)
    assert len(graph.neighbors(next(iter(graph)))) >= 0  # asks nothing
    with pytest.raises(BudgetError, match=r"memory budget 1\.0 MiB"):
        graph.neighbors(list(graph))
    with pytest.raises(BudgetError, match=r"memory budget 1\.0 MiB"):
        graph.neighbors(next(iter(graph)), memory_budget="1M")
