"""A graph in memory has the attributes and arrays of the store that a build on disk makes of the same edges, bit for bit."""

from __future__ import annotations

import gc
import json
import pickle
import re
import sys
import weakref

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, DuplicateEdgeError, InputError, open_graph
from oocgraph.config import setting
from oocgraph.memory import host_bytes
from oocgraph.store import memory_build
from oocgraph.store.in_memory import MemoryGraph, build_in_memory
from tests.capped import run_capped
from tests.ingest.helpers_build import ArraySource, assert_same_store

NUM_CASES = 48


def assert_same_arrays(graph, store):
    assert graph.attributes == store.attributes
    assert graph.array_names() == store.array_names()
    for name in store.array_names():
        here, there = graph.read(name), store.read(name)
        assert here.dtype == there.dtype, name
        assert here.tobytes() == there.tobytes(), name


def random_case(seed):
    """Edges of a few ids of every kind, and options of a build."""
    rng = np.random.default_rng(seed)
    size, num_ids = int(rng.choice([0, 1, 5, 60])), int(rng.integers(1, 12))
    source, target = rng.integers(0, num_ids, (2, size))
    options = {"directed": bool(rng.integers(2)), "keep_self_loops": bool(rng.integers(2))}
    kind = ("range", "offset", "sparse", "strings", "declared", "mostly isolated")[seed % 6]
    names = np.arange(num_ids) + (1000 if kind == "offset" else 0)
    if kind == "sparse":
        names = rng.permutation(2**40 * (1 + names))
    if kind == "strings":
        names = np.array([f"{'é' * (i % 3)}{i * 7919 % 101}" for i in range(num_ids)], object)
    if kind in ("declared", "mostly isolated"):
        options["num_vertices"] = num_ids + (3 if kind == "declared" else 10**7)
    text = pa.large_string() if kind == "strings" else pa.int64()
    columns = {"source": pa.array(names[source].tolist(), text), "target": pa.array(names[target].tolist(), text)}
    columns["cost"] = pa.array(rng.integers(-2, 4, size) / (2.0 if seed % 4 else 1), pa.float64() if seed % 4 else pa.int8(), safe=False)
    columns["kind"] = pa.array(rng.choice(["a", "b", "ü", ""], size).tolist(), pa.string())
    if rng.integers(2):
        options["weight"] = "cost"
    options["columns"] = ("source", "target", *(["kind"] if rng.integers(2) else []))
    options["duplicates"] = str(rng.choice(["drop", "keep", "min", "max", "sum", "first"]))
    return pa.table(columns), options, ("degree", "original", "locality", "auto")[seed // 6 % 4]


@pytest.mark.parametrize("seed", range(NUM_CASES))
def test_arrays_are_those_of_a_build_on_disk(tmp_path, seed):
    edges, options, order = random_case(seed)
    with setting("vertex-order", order):
        store = oocgraph.build_csr(edges, tmp_path / "store.zarr", **options)
        graph = oocgraph.build_csr(edges, **options)
    assert isinstance(graph, MemoryGraph)
    assert_same_arrays(graph, store)


@pytest.mark.parametrize("directed", [False, True])
def test_a_graph_of_many_edges_too(tmp_path, directed):
    """Rows longer than the planes, and vertices of every degree."""
    rng = np.random.default_rng(7)
    edges = (5000 * rng.random(40_000) ** 3).astype(np.int64), rng.integers(0, 5000, 40_000)
    assert_same_arrays(oocgraph.build_csr(edges, directed=directed), oocgraph.build_csr(edges, tmp_path / "g.zarr", directed=directed))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_rename_parts_of_the_edges(tmp_path, monkeypatch, threads, directed, weighted):
    """Each leaves gaps where self-loops have no second entry."""
    monkeypatch.setattr(memory_build, "MANY_KEYS", 1)
    monkeypatch.setattr(memory_build, "RENAME_SECONDS", 1.0)
    rng = np.random.default_rng(9)
    ends = rng.integers(0, 60, (2, 900))
    edges = pa.table({"source": ends[0], "target": np.where(rng.random(900) < 0.3, *ends), "weight": rng.integers(0, 9, 900)})
    options = {"directed": directed, "keep_self_loops": True, "duplicates": "keep", "weight": "weight" if weighted else None}
    with setting("threads", threads):
        graph = oocgraph.build_csr(edges, columns=("source", "target"), **options)
    assert graph.attributes.num_self_loops > 200
    assert_same_arrays(graph, oocgraph.build_csr(edges, tmp_path / "g.zarr", columns=("source", "target"), **options))


@pytest.mark.parametrize(("order", "codec"), [("degree", "none"), ("original", "zstd")])
def test_save_writes_the_files_of_a_build_on_disk(tmp_path, order, codec):
    edges, options, _ = random_case(9)
    with setting("vertex-order", order), setting("codec", codec):
        oocgraph.build_csr(edges, tmp_path / "store.zarr", **options)
        saved = oocgraph.build_csr(edges, **options).save(tmp_path / "saved.zarr")
    assert saved.url == str(tmp_path / "saved.zarr")
    assert_same_store(tmp_path / "store.zarr", tmp_path / "saved.zarr", ignore=())
    oocgraph.check_store(saved)


def test_save_replaces_only_when_it_is_told_to(tmp_path):
    graph = oocgraph.build_csr(([0], [1]))
    graph.save(tmp_path / "g.zarr")
    with pytest.raises(oocgraph.OutputError, match="overwrite"):
        graph.save(tmp_path / "g.zarr")
    assert graph.save(tmp_path / "g.zarr", overwrite=True).num_edges == 1


@pytest.mark.parametrize("labels", [int, str, lambda v: 10**12 * v])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_networkx_graphs_with_isolated_nodes(tmp_path, kind, labels):
    peer = kind([(labels(u), labels(v)) for u, v in [(0, 1), (1, 2), (2, 0), (2, 0), (5, 5)]])
    peer.add_nodes_from(map(labels, (7, 9, 1)))
    graph = oocgraph.build_csr(peer)
    assert graph.num_vertices == 6 == peer.number_of_nodes()
    assert graph.attributes.num_isolated == 3
    assert_same_arrays(graph, oocgraph.build_csr(peer, tmp_path / "g.zarr"))


@pytest.mark.parametrize("num_streams", [1, 3])
def test_a_source_that_does_not_know_its_rows(tmp_path, num_streams):
    rng = np.random.default_rng(3)
    source = ArraySource(*rng.integers(0, 50, (2, 200)), {"w": rng.random(200)}, weight="w", num_streams=num_streams)
    for duplicates in ("first", "sum"):
        store = oocgraph.build_csr(source, tmp_path / f"{duplicates}.zarr", duplicates=duplicates)
        assert_same_arrays(oocgraph.build_csr(source, duplicates=duplicates), store)


@pytest.mark.parametrize(
    ("edges", "options", "error"),
    [
        (([1, 2, 2], [2, 3, 1]), {"duplicates": "error"}, DuplicateEdgeError),
        ((["a", "b", "a"], ["b", "c", "b"]), {"duplicates": "error"}, DuplicateEdgeError),
        (([0, -1], [1, 2]), {}, InputError),
        (([0, 5], [1, 2]), {"num_vertices": 5}, InputError),
        (pa.table({"source": [0, 0], "target": [1, 1], "w": pa.array([100, 100], pa.int8())}),
         {"weight": "w", "duplicates": "sum"}, InputError),
        ("nothing.csv", {}, InputError),
    ],
)  # fmt: skip
def test_bad_edges_are_refused_as_on_disk(tmp_path, edges, options, error):
    """By the same message."""
    with pytest.raises(error) as here:
        oocgraph.build_csr(edges, **options)
    with pytest.raises(error, match=f"^{re.escape(str(here.value))}$"):
        oocgraph.build_csr(edges, tmp_path / "g.zarr", **options)


def test_overwrite_needs_a_path():
    with pytest.raises(ArgumentError, match="overwrite is True, but there is no path"):
        oocgraph.build_csr(([0], [1]), overwrite=True)


def test_a_graph_has_a_url_for_as_long_as_it_is_there():
    graph, other = (oocgraph.build_csr(([0, 1], [1, 2])) for _ in range(2))
    assert graph.url != other.url
    assert open_graph(graph) is open_graph(graph.url) is graph
    assert open_graph(graph, check_pages=True) is graph
    gone, url = weakref.ref(graph), graph.url
    del graph
    gc.collect()
    assert gone() is None
    with pytest.raises(oocgraph.StoreError, match=url):
        open_graph(url)


def test_a_copy_in_another_process_has_the_same_arrays():
    graph = oocgraph.build_csr((["a", "b"], ["b", "c"]), directed=True)
    copy = pickle.loads(pickle.dumps(graph))
    assert copy.url != graph.url
    assert_same_arrays(copy, graph)
    assert oocgraph.bfs(copy, "a").level.tolist() == [0, 1, 2]


def test_arrays_are_those_of_a_store_for_those_who_ask():
    graph = oocgraph.build_csr(([0, 1], [1, 2]))
    assert graph.has_array("out/planes/offsets")
    assert not graph.has_array("in/indices")
    assert graph.get("zarr.json") is None
    with pytest.raises(ArgumentError, match="has no array 'in/indices'; it has out/"):
        graph.array("in/indices")
    array = graph.array("out/indices")
    assert np.shares_memory(array.held, graph.held["out/indices"])
    assert not np.shares_memory(array.read(0, 2), array.held)  # each read returns an array of its own


def test_edges_of_callers_within():
    """As subgraphs are made: arrays of ids, vertices without edges, columns."""
    graph = build_in_memory(
        np.array([3, 9]), np.array([9, 4]), directed=True, columns={"w": np.array([0.5, 2.0]), "kind": pa.array(["x", "y"])},
        weight="w", vertices=np.array([1, 3]),
    )  # fmt: skip
    assert (graph.num_vertices, graph.num_edges, graph.attributes.num_isolated) == (4, 2, 1)
    assert graph.attributes.columns == {"kind": "string", "weight": "float64"}
    assert graph.to_scipy(weight="weight", dtype=np.float64).toarray().tolist() == [[0] * 4, [0, 0, 0, 0.5], [0] * 4, [0, 0, 2, 0]]


class TestMemory:
    """What a build in memory holds is charged before it is held."""

    def test_a_refusal_names_a_store_on_disk_and_a_budget_that_works(self, steady_memory):
        rng = np.random.default_rng(1)
        edges = rng.integers(0, 10_000, (2, 200_000))
        with pytest.raises(BudgetError, match=r"edges in memory needs .* or give build_csr a path: a store on disk") as refused:
            oocgraph.build_csr(tuple(edges), memory_budget=host_bytes() + (1 << 20))
        least = re.search(r"at least (\d+)M", str(refused.value))[1]
        assert oocgraph.build_csr(tuple(edges), memory_budget=f"{least}M").num_edges > 190_000

    def test_edges_are_counted_as_they_come(self, steady_memory):
        """Of a source that does not know how many there are."""
        rng = np.random.default_rng(1)
        source = ArraySource(*rng.integers(0, 10_000, (2, 200_000)))
        with pytest.raises(BudgetError, match="give build_csr a path"):
            oocgraph.build_csr(source, memory_budget=host_bytes() + (1 << 20))

    @pytest.mark.capped
    @pytest.mark.parametrize("weight", [None, "w"])
    def test_what_was_charged_is_enough(self, tmp_path, weight):
        """Under a control group that would kill it otherwise, at the smallest budget that works; then PageRank, beside the graph."""
        told = json.loads(run_capped(900 << 20, [sys.executable, "-c", PEAK, "20M", weight or ""]).stdout)
        least = re.search(r"at least (\d+)M", told["refused"])[1]
        limit = int(int(least) * 1.18) << 20
        done = run_capped(limit, [sys.executable, "-c", PEAK, f"{least}M", weight or ""])
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["num_edges"] > 500_000
        assert 50 << 20 < found["peak"] <= int(least) << 20


PEAK = """
import json, sys
import numpy as np, pyarrow as pa
import oocgraph
from oocgraph.memory import PeakSampler

budget, weight = sys.argv[1:]
rng = np.random.default_rng(1)
columns = {"source": rng.integers(0, 100_000, 600_000), "target": rng.integers(0, 100_000, 600_000)}
if weight:
    columns[weight] = rng.random(600_000)
table, small = pa.table(columns), oocgraph.build_csr(([0, 1], [1, 2]))
oocgraph.pagerank(small)
try:
    with PeakSampler() as sampler:
        graph = oocgraph.build_csr(table, weight=weight or None, memory_budget=budget)
        rank = oocgraph.pagerank(graph, memory_budget=budget, tol=1e-3)
    print(json.dumps({"peak": sampler.peak_bytes, "num_edges": graph.num_edges}))
except oocgraph.BudgetError as error:
    print(json.dumps({"refused": str(error)}))
"""


@pytest.mark.parametrize("edges", [([1], [1]), ([], [])], ids=["a loop", "none"])
def test_a_graph_without_edges_has_the_arrays_of_its_store(tmp_path, edges):
    options = {"num_vertices": 2}
    graph = oocgraph.build_csr(edges, **options)
    assert_same_arrays(graph, oocgraph.build_csr(edges, tmp_path / "g.zarr", **options))
    graph.save(tmp_path / "saved.zarr")
    assert_same_store(tmp_path / "saved.zarr", tmp_path / "g.zarr")
    with oocgraph.open_runtime(graph) as runtime:
        assert oocgraph.connected_components(graph, runtime=runtime).num_components == 2
        assert oocgraph.pagerank(graph, runtime=runtime).rank.tolist() == [0.5, 0.5]
        assert oocgraph.triangles(graph, runtime=runtime).num_triangles == 0
        assert oocgraph.bfs(graph, 0, runtime=runtime).num_reached == 1
