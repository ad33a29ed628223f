"""Exports as text: what other programs read from them, and the stores that are built from them again."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.io

from oocgraph import Resources, build_csr, export_graph, open_graph
from oocgraph.errors import BudgetError, OutputError
from oocgraph.export import edge_tables, text
from tests.ingest.helpers_build import assert_same_store

AWKWARD = ['say "hi"', "a,b", "tab\there", "ü", " padded ", "plain"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks that cut rows."""
    monkeypatch.setattr(edge_tables, "BLOCK_ENTRIES", 101)
    monkeypatch.setattr(text, "BLOCK_ENTRIES", 103)


def edges_of(kind, *, num_edges=900):
    """Edges with self-loops and duplicates, of a graph with isolated vertices."""
    rng = np.random.default_rng(5)
    source, target = rng.integers(0, 130, (2, num_edges))
    frame = pd.DataFrame(
        {"source": source, "target": target, "weight": rng.standard_normal(num_edges) * 1e-7, "n": rng.integers(-9, 9, num_edges)}
    )
    if kind == "sparse":
        frame[["source", "target"]] *= 10**14
    if kind == "strings":
        frame[["source", "target"]] = [[f"{AWKWARD[a % 6]}{a}", f"{AWKWARD[b % 6]}{b}"] for a, b in zip(source, target, strict=True)]
    return frame


KINDS = ["dense", "sparse", "strings"]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ["g.csv", "g.tsv", "g.csv.gz", "g.tsv.gz"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_build_from_exported_text_gives_the_same_store(tmp_path, kind, directed, name):
    options = {"columns": (None, None, "n"), "weight": "weight", "directed": directed, "duplicates": "keep", "keep_self_loops": True}
    graph = build_csr(edges_of(kind), tmp_path / "first", **options)
    report = export_graph(graph, tmp_path / name)
    assert (report.num_edges, report.num_vertices) == (graph.num_edges, graph.num_rows)
    build_csr(tmp_path / name, tmp_path / "again", **options)
    assert_same_store(tmp_path / "first", tmp_path / "again")


def test_other_readers_see_a_header_and_the_values(tmp_path):
    """Python's own reader; each edge once."""
    frame = pd.DataFrame({"source": AWKWARD, "target": AWKWARD[::-1], "kind": ["x", 'quote"', "y,z", "", "ü", "x"], "weight": range(6)})
    graph = build_csr(frame, tmp_path / "g", columns=(None, None, "kind"), weight="weight", directed=True)
    export_graph(graph, tmp_path / "g.csv")
    with (tmp_path / "g.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["source", "target", "kind", "weight"]
    assert sorted(rows) == sorted([source, target, kind, str(weight)] for source, target, kind, weight in frame.itertuples(index=False))
    found = pd.read_csv(tmp_path / "g.csv", keep_default_na=False)
    assert found.dtypes["weight"] == np.int64


def test_a_graph_without_edges(tmp_path):
    graph = build_csr(([], []), tmp_path / "g", num_vertices=3)
    export_graph(graph, tmp_path / "g.csv")
    assert (tmp_path / "g.csv").read_text() == '"source","target"\n'
    export_graph(graph, tmp_path / "g.mtx")
    assert (tmp_path / "g.mtx").read_text() == "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 0\n"
    for name in ("g.csv", "g.mtx"):
        build_csr(tmp_path / name, tmp_path / "again", num_vertices=3, overwrite=True)
        assert_same_store(tmp_path / "g", tmp_path / "again", ignore=("source", "weighted", "columns"))


@pytest.mark.parametrize("name", ["g.mtx", "g.mtx.gz"])
@pytest.mark.parametrize("weight", [None, "weight", "n"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_build_from_an_exported_matrix_gives_the_same_store(tmp_path, directed, weight, name):
    options = {"directed": directed, "duplicates": "keep", "keep_self_loops": True}
    graph = build_csr(edges_of("dense"), tmp_path / "first", weight=weight, num_vertices=150, **options)
    report = export_graph(graph, tmp_path / name)
    assert (report.num_edges, report.num_vertices) == (graph.num_edges, 150)
    build_csr(tmp_path / name, tmp_path / "again", **options)
    assert_same_store(tmp_path / "first", tmp_path / "again", ignore=("source", "weight_name"))  # a matrix names no weight


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("directed", [False, True])
def test_scipy_reads_the_matrix(tmp_path, kind, directed):
    """By position among the ids, ascending, as `to_scipy` has it."""
    graph = build_csr(edges_of(kind), tmp_path / "g", weight="weight", directed=directed, keep_self_loops=True)
    export_graph(graph, tmp_path / "g.mtx")
    found = scipy.io.mmread(tmp_path / "g.mtx", spmatrix=False).tocsr()
    assert abs(found - graph.to_scipy()).max() == 0
    lines = (tmp_path / "g.mtx").read_text().splitlines()
    assert lines[0].split()[3:] == ["real", "general" if directed else "symmetric"]
    assert lines[1].startswith("% Row and column i are of the i-th vertex id, ascending")


def test_a_matrix_in_store_order(tmp_path):
    graph = build_csr(edges_of("sparse"), tmp_path / "g", directed=True)
    report = export_graph(graph, tmp_path / "g.mtx", order="store")
    found = scipy.io.mmread(tmp_path / "g.mtx", spmatrix=False).tocsr()
    assert found.shape == (report.num_vertices,) * 2 == (graph.num_rows,) * 2
    np.testing.assert_array_equal(found.indptr, graph.read("out/indptr"))


@pytest.mark.parametrize("name", ["g.csv", "g.csv.gz", "g.mtx", "g.mtx.gz"])
def test_the_same_bytes_however_blocks_are_cut(tmp_path, name, monkeypatch):
    graph = build_csr(edges_of("dense"), tmp_path / "g")
    monkeypatch.setattr(text, "PIECE_BYTES", 1000)
    export_graph(graph, tmp_path / f"a{name}", resources=Resources(threads=1))
    for module in (text, edge_tables):
        monkeypatch.setattr(module, "BLOCK_ENTRIES", 333)
    export_graph(graph, tmp_path / f"b{name}", resources=Resources(threads=3))
    assert (tmp_path / f"a{name}").read_bytes() == (tmp_path / f"b{name}").read_bytes()


@pytest.mark.parametrize("name", ["g.csv", "g.tsv.gz", "g.parquet"])
def test_an_edge_list_has_no_order_of_the_store(tmp_path, name):
    with pytest.raises(OutputError, match=r"order is 'store'.*an edge list has their ids; leave it out"):
        export_graph(build_csr(([1], [2])), tmp_path / name, order="store")
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["g.csv", "g.tsv", "g.mtx", "g.mtx.gz"])
@pytest.mark.parametrize("value", [2**63 - 1, 2**63])
def test_integers_that_no_build_reads_from_text_are_refused(tmp_path, name, value):
    table = pa.table({"source": [0, 1], "target": [1, 2], "weight": pa.array([1, value], pa.uint64())})
    graph = build_csr(table, weight="weight")
    if value < 2**63:
        export_graph(graph, tmp_path / name)
        again = build_csr(tmp_path / name, weight="weight")
        assert [batch.to_pydict() for batch in again.edges()] == [batch.to_pydict() for batch in graph.edges()]
        return
    with pytest.raises(OutputError, match=f"weight {value} is .* no build reads from text; export to .parquet"):
        export_graph(graph, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["g.csv", "g.mtx"])
def test_a_budget_that_is_too_small_is_refused(tmp_path, name):
    graph = build_csr(edges_of("dense"), tmp_path / "g")
    with pytest.raises(BudgetError, match="set memory_budget to at least"):
        export_graph(graph, tmp_path / name, memory_budget="1M")
    assert not (tmp_path / name).exists()


def test_outputs_are_refused_before_any_work(tmp_path):
    graph = build_csr(edges_of("dense"), tmp_path / "g")
    with pytest.raises(OutputError, match=r"unknown extension.*\.csv\.gz.*\.mtx"):
        export_graph(graph, tmp_path / "g.xlsx")
    (tmp_path / "there.csv").write_text("mine")
    with pytest.raises(OutputError, match="overwrite=True"):
        export_graph(graph, tmp_path / "there.csv")
    assert (tmp_path / "there.csv").read_text() == "mine"
    export_graph(graph, tmp_path / "there.csv", overwrite=True)
    clash = build_csr(
        edges_of("dense").rename(columns={"source": "a", "target": "b", "n": "source"}), tmp_path / "c", columns=("a", "b", "source")
    )
    with pytest.raises(OutputError, match="'source' has the name of a column of ids"):
        export_graph(clash, tmp_path / "c.csv")
    assert not (tmp_path / "c.csv").exists()


def test_the_command_exports_text(tmp_path):
    from click.testing import CliRunner

    from oocgraph.cli import cli

    build_csr(edges_of("strings"), tmp_path / "g")
    for name in ("g.csv", "g.mtx.gz"):
        done = CliRunner().invoke(cli, ["export", str(tmp_path / "g"), str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    assert gzip.decompress((tmp_path / "g.mtx.gz").read_bytes()).startswith(b"%%MatrixMarket")
    assert len((tmp_path / "g.csv").read_text().splitlines()) == 1 + open_graph(tmp_path / "g").num_edges


@pytest.mark.parametrize("name", ["e.csv", "e.tsv", "e.csv.gz"])
@pytest.mark.parametrize(
    ("ids", "told"),
    [
        (("a", "b\nc"), r"target 'b\\nc' has a line break"), (("a\rb", "c"), r"source 'a\\rb' has a line break"),
        (("a", "b\0"), "has a line break or NUL"), (("", "x"), "source '' is empty"), (('q"x', '""'), None),
    ],
)  # fmt: skip
def test_strings_that_no_build_reads_from_text_are_refused(tmp_path, name, ids, told):
    """Nothing is left behind; Parquet has them."""
    graph = build_csr(([ids[0]], [ids[1]]), tmp_path / "g")
    if told is None:
        export_graph(graph, tmp_path / name)
        assert sorted(build_csr(tmp_path / name)) == sorted(ids)
        return
    with pytest.raises(OutputError, match=told):
        export_graph(graph, tmp_path / name)
    assert [one.name for one in tmp_path.iterdir()] == ["g"]
    export_graph(graph, tmp_path / "e.parquet")
    assert sorted(build_csr(tmp_path / "e.parquet")) == sorted(ids)
