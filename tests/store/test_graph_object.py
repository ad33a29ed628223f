"""A graph as a Python object: what it contains, its length, its vertices one by one, how it shows itself."""

from __future__ import annotations

import copy
import pickle
import shutil

import networkx as nx
import numpy as np
import pytest

import oocgraph
from oocgraph import CorruptStoreError, StoreError, build_csr
from oocgraph.config import setting
from oocgraph.store import graph as graph_module
from tests.store.asked_graphs import directed, remote, strings, undirected

METHODS = {
    "degree", "edges", "ego", "has_edge", "ids_of", "neighbors", "random_walk", "sample_neighbors", "similarity", "subgraph", "to_scipy",
}  # fmt: skip
PROPERTIES = {"attributes", "edge_bytes", "index_dtype", "num_bytes", "num_edges", "num_rows", "num_vertices", "storage_options", "url"}
CHECKING = {"check_pages", "checked"}
NETWORKX = {"is_directed", "is_multigraph", "number_of_edges", "number_of_nodes", "to_networkx"}


def test_a_graph_contains_its_vertices(asked):
    assert all(v in asked.graph for v in asked.vertices[::17])
    for other in (10**15, -1, "none", 1.5, None, (1, 2), [0], asked.graph):
        assert other not in asked.graph


def test_a_graph_iterates_over_all_vertices(asked):
    assert list(asked.graph) == asked.vertices
    assert len(asked.graph) == asked.graph.num_vertices == len(asked.vertices)


def test_dir_shows_what_users_ask(tmp_path):
    """And nothing else: what is new and internal is named in `oocgraph.store.graph._INTERNAL`."""
    graph = undirected(tmp_path / "g.zarr").graph
    for one, more in ((graph, set()), (graph.subgraph([0, 1]), {"save"})):
        assert {name for name in dir(one) if not name.startswith("__")} == METHODS | PROPERTIES | CHECKING | NETWORKX | more
    assert graph.array("out/indices").length == graph.attributes.num_stored_edges  # still there


@pytest.mark.parametrize("make", [undirected, directed, strings])
def test_repr_begins_with_what_users_ask(tmp_path, make):
    graph = make(tmp_path / "g.zarr").graph
    text = repr(graph).split(": ", 1)[1]
    words = [
        "vertices",
        "isolated",
        "edges",
        "edges, directed" if graph.attributes.directed else "edges, undirected",
        "weighted",
        "columns kind",
        "iB",
    ]
    places = [text.index(word) for word in [*words, "ids", "order", "plane"]]
    assert places == sorted(places)
    assert f"{graph.num_vertices:,} vertices" in text
    assert f"{graph.num_edges:,} edges" in text


def test_the_size_is_that_of_the_files_or_the_arrays(tmp_path):
    asked = undirected(tmp_path / "g.zarr")
    assert asked.graph.num_bytes == sum(file.stat().st_size for file in (tmp_path / "g.zarr").rglob("*") if file.is_file())
    part = asked.graph.subgraph(range(200))
    assert part.num_bytes == sum(part.read(name).nbytes for name in part.array_names())
    assert remote(tmp_path / "r.zarr").graph.num_bytes is None


def test_a_table_of_html_escapes_names(tmp_path):
    html = build_csr(([0], [1]), tmp_path / "<g>.zarr")._repr_html_()
    assert "&lt;g&gt;" in html
    assert "<g>" not in html
    assert html.index(">vertices<") < html.index(">edges<") < html.index(">planes<")
    assert html.startswith("<div>")
    assert html.endswith("</div>")


REPLACED = "g.zarr was replaced since it was opened, .* open it again"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_graph_whose_files_were_replaced_is_refused(tmp_path, codec):
    """It was open while edges were added: what is read is no longer what its attributes say."""
    ring = np.arange(50)
    with setting("codec", codec):
        before = build_csr((ring, (ring + 1) % 50), tmp_path / "g.zarr", directed=False)
    assert before.neighbors(3).tolist() == [2, 4]
    oocgraph.append_edges(tmp_path / "g.zarr", ([0, 1, 2, 3], [20, 21, 22, 23]))
    with pytest.raises(StoreError, match=REPLACED):
        before.neighbors(3)
    assert oocgraph.open_graph(tmp_path / "g.zarr").neighbors(3).tolist() == [2, 23, 4]


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("again", ["built", "appended"])
def test_results_of_a_graph_that_was_replaced_are_refused(tmp_path, codec, again):
    """By one with the same vertices, whose ids have other numbers: read from there, each answer would be another vertex'."""
    path = tmp_path / "g.zarr"
    with setting("codec", codec):
        graph = build_csr(([10, 20, 30, 40], [20, 30, 40, 50]), path)
        levels, ranks, runtime = oocgraph.bfs(graph, 10), oocgraph.pagerank(graph), oocgraph.open_runtime(graph)
        pickled = pickle.dumps(levels)
        assert dict(pickle.loads(pickled)) == dict(copy.deepcopy(levels)) == dict(levels)
        more = ([50, 50, 50], [20, 30, 10])
        new = oocgraph.append_edges(graph, more) if again == "appended" else build_csr(more, path, overwrite=True)
    asked = {
        "reached": lambda: dict(levels.reached().items()),
        "path": lambda: levels.path(50),
        "value": lambda: levels[50],
        "vertices": lambda: levels.vertices,
        "top": lambda: ranks.top(1),
        "table": levels.to_pandas,
        "written": lambda: levels.write(tmp_path / "levels.csv"),
        "validated": lambda: oocgraph.verify_bfs(new, levels),
        "searched": lambda: oocgraph.bfs(graph, source=10),
        "copied": lambda: dict(copy.deepcopy(levels)),
        "searched, opened before": lambda: oocgraph.bfs(graph, 10, runtime=runtime).path(50),
        "multiplied, opened before": lambda: oocgraph.spmv(graph, np.ones(5), runtime=runtime),
        "of the new one, with the runtime of the old one": lambda: oocgraph.spmv(new, np.ones(5), runtime=runtime),
    }
    for name, ask in asked.items():
        with pytest.raises(StoreError, match=REPLACED):
            pytest.fail(f"{name}: {ask()}")
    with pytest.raises(StoreError, match="replaced since this was pickled; open it again"):
        pickle.loads(pickled)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["g.zarr"]
    assert oocgraph.bfs(new, 50)[10] == 1
    runtime.close()


def test_a_pickled_result_is_of_any_copy_of_its_graph(tmp_path):
    """Which is put there from a backup, at another time."""
    path = tmp_path / "g.zarr"
    pickled = pickle.dumps(oocgraph.bfs(build_csr(([10, 20], [20, 30]), path), 10))
    shutil.copytree(path, tmp_path / "copy.zarr", copy_function=shutil.copyfile)
    shutil.rmtree(path)
    (tmp_path / "copy.zarr").rename(path)
    assert dict(pickle.loads(pickled)) == {10: 0, 20: 1, 30: 2}


@pytest.mark.parametrize("again", ["isolated", "weights"])
def test_a_pickled_result_is_of_no_other_isolated_vertices_or_weights(tmp_path, again):
    """Those have no part in the structure."""
    path = tmp_path / "g.zarr"

    def built(isolated, weight):
        graph = nx.Graph()
        graph.add_nodes_from(["a", "b", *isolated])
        graph.add_edge("a", "b", weight=weight)
        return build_csr(graph, path, weight="weight", overwrite=True)

    pickled = pickle.dumps(oocgraph.pagerank(built(["c", "e"], 2.0)))
    built(["c", "e"], 2.0)
    assert sorted(pickle.loads(pickled)) == ["a", "b", "c", "e"]
    built(["y", "z"], 2.0) if again == "isolated" else built(["c", "e"], 5.0)
    with pytest.raises(StoreError, match="replaced since this was pickled"):
        pickle.loads(pickled)


def test_a_graph_stays_where_it_is_when_the_folder_of_the_process_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = oocgraph.bfs(build_csr(([10, 20], [20, 30]), "g.zarr"), 10)
    pickled = pickle.dumps(result)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    build_csr(([1], [2]), "g.zarr")
    assert dict(result) == dict(pickle.loads(pickled)) == {10: 0, 20: 1, 30: 2}


def test_a_graph_that_is_replaced_as_it_is_opened_is_one_of_the_two(tmp_path, monkeypatch):
    """What it is known by is that of the attributes that were read."""
    path, read = tmp_path / "g.zarr", graph_module.read_json
    build_csr(([1], [2]), path)

    def replaced(file):
        monkeypatch.setattr(graph_module, "read_json", read)
        build_csr(([1, 2], [2, 3]), path, overwrite=True)
        return read(file)

    monkeypatch.setattr(graph_module, "read_json", replaced)
    graph = oocgraph.open_graph(path)
    assert graph.num_edges == 2
    assert sorted(graph) == [1, 2, 3]


def test_a_graph_that_is_replaced_while_an_array_is_opened_is_refused_as_such(tmp_path, monkeypatch):
    """The length of the new array is not what the attributes of the old graph make it."""
    before = build_csr((np.arange(50), np.arange(50) + 1), tmp_path / "g.zarr")
    shape = graph_module.CSRStore._shape

    def late(self, name):
        monkeypatch.undo()
        build_csr((np.arange(90), np.arange(90) + 1), tmp_path / "g.zarr", overwrite=True)
        return shape(self, name)

    monkeypatch.setattr(graph_module.CSRStore, "_shape", late)
    with pytest.raises(StoreError, match=REPLACED) as caught:
        before.array("vertices/order")
    assert not isinstance(caught.value, CorruptStoreError)


def test_a_check_of_a_graph_that_is_replaced_meanwhile_says_so(tmp_path, monkeypatch):
    """Not that it is damaged."""
    before = build_csr((np.arange(50), np.arange(50) + 1), tmp_path / "g.zarr")
    pages = graph_module.CSRStore.array_names

    def late(self):
        monkeypatch.undo()
        names = pages(self)
        build_csr((np.arange(90), np.arange(90) + 1), tmp_path / "g.zarr", overwrite=True)
        return names

    monkeypatch.setattr(graph_module.CSRStore, "array_names", late)
    with pytest.raises(StoreError, match=REPLACED) as caught:
        oocgraph.check_store(before)
    assert not isinstance(caught.value, CorruptStoreError)
