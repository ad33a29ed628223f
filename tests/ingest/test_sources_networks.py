"""Files of DIMACS, METIS and KONECT: what they mean, and a reason for each that is refused."""

from contextlib import suppress

import networkx as nx
import numpy as np
import pytest

from oocgraph import build_csr
from oocgraph.errors import InputError
from oocgraph.ingest.sources import open_source
from tests.ingest.helpers import check, peak_anonymous_bytes, read, refused

ROADS = "c roads\nc\np sp 4 3\nc arcs\na 1 2 803\n\na 3 2 -4\n a\t4 1 774\n"


def write(path, text):
    path.write_text(text)
    return path


def test_arcs_of_dimacs(tmp_path):
    path = write(tmp_path / "usa.gr", ROADS)
    edges = [1, 3, 4], [2, 2, 1]
    check(open_source(path), edges, {"weight": [803, -4, 774]}, num_rows=3, num_vertices=None, directed=None, weight="weight")
    refused(path, "no column 'f0'", source_column="f0", target_column="f1")
    refused(path, "num_vertices = 4 is too few", "give 5", num_vertices=4)
    assert build_csr(write(tmp_path / "u.gr", ROADS.replace("-4", "4")), num_vertices=5).num_vertices == 5
    floats = build_csr(write(tmp_path / "f.gr", "p sp 3 1\na 1 2 1.5\n"), dtypes={"weight": "float64"})
    assert list(floats.to_networkx().edges(data="weight")) == [(1, 2, 1.5)]
    graph = build_csr(write(tmp_path / "us.gr", ROADS.replace("-4", "4")), directed=True)
    assert sorted(graph.to_networkx().edges(data="weight")) == [(1, 2, 803), (3, 2, 4), (4, 1, 774)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a 1 2 3\n", ("line 1", "'a 1 2 3'", "p sp VERTICES ARCS")),
        ("p tw 3 2\n1 2\n", ("line 1", "'p tw 3 2'")),
        ("c only\n", ("truncated", "no line 'p sp")),
        ("p sp 4 x\n", ("line 1", "'p sp 4 x'")),
        (ROADS + "e 1 2 3\n", ("line 9", "'e'", "is no arc")),
        (ROADS + "a 1 5 3\n", ("line 9", "'target'", "5 is not within 1 .. 4")),
        (ROADS + "a 0 1 3\n", ("line 9", "'source'", "0 is not within 1 .. 4")),
        (ROADS + "a 1 2\n", ("line 9", "3 columns")),
        (ROADS + "a 1 2 3.5\n", ("line 9", "'weight'", "'3.5'")),
        (ROADS + "a 1 2 3\n", ("too many lines", "4 arcs", "says 3")),
        ("p sp 4 3\na 1 2 3\nc long enough for three\n", ("truncated", "1 arcs", "says 3")),
        ("p sp 4 3000000\na 1 2 3\n", ("truncated", "bytes", "3000000 arcs")),
    ],
)
def test_what_is_no_dimacs(tmp_path, text, words):
    refused(write(tmp_path / "usa.gr", text), *words)


def lists(graph, *, weights=False, numbers=0):
    """Text of METIS for a graph with nodes 0 .. n - 1."""
    kind = f" {'0' if not numbers else '1'}{int(weights)}{f' {numbers}' if numbers else ''}" if weights or numbers else ""
    rows = [
        " ".join([*["9"] * numbers, *(f"{v + 1} {data['weight']}" if weights else str(v + 1) for v, data in graph.adj[u].items())])
        for u in range(len(graph))
    ]
    return f"% made\n{len(graph)} {graph.number_of_edges()}{kind}\n" + "\n".join(["% lists", *rows])


def drawn(seed, num_nodes=60):
    graph = nx.gnm_random_graph(num_nodes, 2 * num_nodes, seed=seed)
    for i, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = i + 1
    return graph


def test_a_byte_order_mark_before_lists(tmp_path):
    check(open_source(write(tmp_path / "g.graph", "\ufeff2 1\n2\n1\n")), ([0], [1]))


def test_lists_of_edges_as_networkx_writes_them(tmp_path):
    graph, path = drawn(3), tmp_path / "e.edgelist"
    nx.write_edgelist(graph, path)
    refused(path, "line 1", "has a dict, as NetworkX writes it", "data=['weight']")
    ends, weights = tuple(zip(*graph.edges, strict=True)), [data["weight"] for *_, data in graph.edges(data=True)]
    nx.write_edgelist(graph, path, data=["weight"])
    check(open_source(path, weight_column="f2"), ends, {"f2": weights})
    for *_, data in graph.edges(data=True):
        data.clear()
    nx.write_edgelist(graph, path)
    check(open_source(path), ends)


@pytest.mark.parametrize("end", ["", "\n", "\r\n\n"])
@pytest.mark.parametrize("numbers", [0, 1, 3])
@pytest.mark.parametrize("weights", [False, True])
def test_lists_of_metis(tmp_path, weights, numbers, end):
    graph = drawn(numbers)
    source = open_source(write(tmp_path / "g.graph", lists(graph, weights=weights, numbers=numbers) + end))
    assert (source.num_vertices, source.num_rows, source.directed) == (60, 120, False)
    for block_rows in (1, 7, 1000, 7):
        u, v, columns = read(source, block_rows)
        assert {(a, b): w for a, b, w in zip(u, v, columns.get("weight", [1] * 120), strict=True)} == {
            (min(a, b), max(a, b)): data["weight"] if weights else 1 for a, b, data in graph.edges(data=True)
        }


def test_metis_has_isolated_vertices_and_both_directions(tmp_path):
    path = write(tmp_path / "g.graph", "4 1\n\n3\n2\n\n")
    assert nx.utils.graphs_equal(build_csr(path).to_networkx(), nx.Graph({0: [], 1: [2], 2: [1], 3: []}))
    assert sorted(build_csr(path, directed=True).to_networkx().edges) == [(1, 2), (2, 1)]


def test_metis_is_read_wherever_it_is_cut(tmp_path, monkeypatch):
    graph = drawn(5)
    path = write(tmp_path / "g.graph", lists(graph, weights=True, numbers=2))
    expected = read(open_source(path), 50)
    for num_bytes in (2, 3, 7, 64, path.stat().st_size, path.stat().st_size + 1, path.stat().st_size + 2):
        monkeypatch.setattr("oocgraph.ingest.sources.metis.CHUNK_BYTES", num_bytes)
        assert read(open_source(path), 50) == expected


def test_a_line_of_metis_may_be_long(tmp_path):
    num = 400_000
    path = write(tmp_path / "g.graph", f"{num} {num - 1}\n" + " ".join(map(str, range(2, num + 1))) + "\n1" * (num - 1))
    grown, num_edges = peak_anonymous_bytes(path)
    assert num_edges == num - 1
    assert grown < 24 << 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3\n", ("line 1", "'3'", "VERTICES EDGES")),
        ("3 1 7\n2\n1\n\n", ("line 1", "'3 1 7'")),
        ("3 x\n", ("line 1", "'3 x'")),
        ("% c\n-3 1\n", ("line 2", "'-3 1'")),
        ("3 1\n2 x\n1\n\n", ("line 2", "something else than whole numbers")),
        ("3 1\n2.5\n1\n\n", ("line 2", "something else")),
        ("3 1\n2 % c\n1\n\n", ("line 2", "something else")),
        ("3 1\n\n4\n\n", ("line 3", "no vertex")),
        ("3 1\n\n0\n\n", ("line 3", "no vertex")),
        ("3 1\n1\n1\n\n", ("line 2", "its own neighbour")),
        ("3 1 1\n2\n1 5\n\n", ("line 2", "no weight")),
        ("2 1\n2\n1\n\n1\n", ("line 5", "more lines than vertices")),
        ("3 1\n2 9999999999999999999\n1\n\n", ("line 2", "18 digits")),
        ("3 1\n2\n\n\n", ("says 3 vertices and 1 edges", "1 neighbours, 1 of which")),
        ("3 1\n2 3\n1\n1\n", ("says 3 vertices and 1 edges", "4 neighbours, 2 of which")),
        ("3 1\n2\n\n1\n", ("an edge is not in the lines of both",)),
        ("2 1 1\n2 5\n1 6\n", ("an edge is not in the lines of both", "same weight")),
        ("2 1 11 2\n1 1 2 5\n1\n", ("line 3", "fewer numbers")),
        ("2 1 1 1\n2 5\n1 5\n", ("line 1", "'2 1 1 1'")),
        (f"2 1 11 {10**20}\n1\n1\n", ("line 1", "VERTICES EDGES")),
        (f"{10**20} 1\n2\n1\n", ("line 1", "VERTICES EDGES")),
        ("3 1\n2\n1", ("says 3 vertices and 1 edges", "2 lines follow")),
        ("3 3000\n2\n1\n\n", ("is truncated", "3000 edges")),
    ],
)
def test_what_is_no_metis(tmp_path, text, words):
    refused(write(tmp_path / "g.graph", text), *words)


def test_networks_of_konect(tmp_path):
    path = write(tmp_path / "out.karate", "% sym posweighted\n% 3 3 3\n1 2 5 100\n2\t3 1 101 \n1 3 1 99\n")
    check(open_source(path), ([1, 2, 1], [2, 3, 3]), directed=False, id_kind="int64")
    check(open_source(path, weight_column="weight", edge_columns=["time"]), ([1, 2, 1], [2, 3, 3]),
          {"weight": [5, 1, 1], "time": [100, 101, 99]})  # fmt: skip
    assert build_csr(path, directed=True).attributes.num_edges == 6
    directed = write(tmp_path / "out.ucidata-zachary", "% asym unweighted\n1 2\n2 1\n")
    check(open_source(directed), ([1, 2], [2, 1]), directed=None)
    check(open_source(write(tmp_path / "out.csv", "a,b\n1,2\n")), ([1], [2]))
    folder = tmp_path / "network"
    folder.mkdir()
    path.rename(folder / "out.karate")
    check(open_source(folder), ([1, 2, 1], [2, 3, 3]), directed=False)
    write(folder / "README.karate", "About the network\n")
    refused(folder, "README.karate is of no format that is read here", "name those to be read")
    refused(tmp_path / "out.nothing", "no such file", "check the path")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 2\n", ("line 1", "'1 2'", "% sym", "rename it .txt")),
        ("% bip unweighted\n1 1\n", ("line 1", "bipartite", "awk")),
        ("% sym\n1\n", ("one column only",)),
        ("% sym\n1 2\n1 2 3\n", ("line 3", "3 columns")),
    ],
)
def test_what_is_no_konect(tmp_path, text, words):
    refused(write(tmp_path / "out.network", text), *words)


def test_kernel_of_metis_never_writes_outside(tmp_path):
    """Any bytes behind a header: an answer or a refusal, and arrays as long as the edges that are announced."""
    rng = np.random.default_rng(3)
    for seed in range(300):
        body = bytes(rng.choice(np.frombuffer(b"0123456789 \n%\t", np.uint8), rng.integers(0, 60)))
        (tmp_path / "g.graph").write_bytes(b"5 4" + (b" 1\n" if seed % 2 else b"\n") + body)
        with suppress(InputError):
            u, v, _ = read(open_source(tmp_path / "g.graph"), 3)
            assert len(u) == 4
            assert all(0 <= a < b < 5 for a, b in zip(u, v, strict=True))
