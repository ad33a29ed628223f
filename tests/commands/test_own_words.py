"""What users give is said again as they gave it; JSON is JSON, whatever the numbers are."""

from __future__ import annotations

import json
import math

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import oocgraph
from oocgraph import ArgumentError, InputError
from oocgraph.commands.wording import in_options


@pytest.mark.parametrize("given", ["max_iter/g.zarr", "weight=1", "k is", "tol."])
def test_arguments_are_not_taken_for_parameters(given):
    assert in_options(f"{given}: no such file; set memory_budget", ["bfs", given]) == f"{given}: no such file; set --memory"
    assert in_options(f"{given}: no such file; set memory_budget", [f"--out={given}"]) == f"{given}: no such file; set --memory"


def test_what_is_quoted_stays():
    assert in_options("vertex 'tol' is not in the workers' graph; give 'num_vertices' or tol") == (
        "vertex 'tol' is not in the workers' graph; give 'num_vertices' or --tol"
    )
    assert in_options("duplicates='drop' or device='cpu'") == "--duplicates drop or --device cpu"


def test_messages_name_what_was_given(refused, kron, tmp_path):
    refused("bfs", tmp_path / "max_iter" / "g.zarr", "--source", 1, words=[f"{tmp_path}/max_iter/g.zarr: no such"])
    oocgraph.build_csr((["a"], ["b"]), tmp_path / "g.zarr")
    refused("bfs", tmp_path / "g.zarr", "--source", "tol", words=["vertex 'tol' is not in"])
    refused("bfs", tmp_path / "g.zarr", "--source", "a", "--where=weight==1", words=["where is 'weight==1'"])
    oocgraph.build_csr(([1, 1], [1, 2]), tmp_path / "loop.zarr", keep_self_loops=True)
    refused("core", tmp_path / "loop.zarr", words=["build it without --keep-self-loops"])


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """Make a graph whose sums are infinite, and whose other column has no numbers."""
    path = tmp_path_factory.mktemp("far") / "g.zarr"
    edges = pa.table({"source": [1, 1, 2], "target": [2, 3, 3], "weight": [8e307] * 3, "other": [math.nan, math.inf, -math.inf]})
    oocgraph.build_csr(edges, path, weight="weight", columns=("source", "target", "other"))
    return path


def test_json_has_no_infinity(run, far):
    def strict(text):
        return json.loads(text, parse_constant=pytest.fail)

    assert strict(run("neighbors", far, 1, 2, "--column", "other", "--json").stdout)["other"] == [None, "Infinity", None, "-Infinity"]
    assert strict(run("spmv", far, "--json").stdout)["sum"] is None
    found = strict(run("sssp", far, "--source", 2, "--validate", "--json").stdout)
    assert (found["source"], found["num_reached"]) == (2, 3)
    assert strict(run("spanning-forest", far, "--json").stdout)
    searches = strict(run("multi-source-bfs", far, "--source", 2, "--source", 3, "--json").stdout)["searches"]
    assert [one["source"] for one in searches] == [2, 3]


def test_a_build_takes_the_codec_that_is_set(run, tmp_path, monkeypatch):
    (tmp_path / "e.csv").write_text("1,2\n2,3\n")
    with oocgraph.config.setting("codec", "zstd"):
        assert run("build", tmp_path / "e.csv", tmp_path / "g.zarr", "--json").json["codec"] == "zstd"
        assert run("build", tmp_path / "e.csv", tmp_path / "h.zarr", "--codec", "none", "--json").json["codec"] == "none"
    assert run("build", tmp_path / "e.csv", tmp_path / "i.zarr", "--json").json["codec"] == "none"


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda bad: (["a", bad], ["b", "c"]), "pair of arrays, row 1 (counted from 0), column 'source'"),
        (lambda bad: np.array([["a", "b"], ["c", bad]]), "edge array, row 1 (counted from 0), column 'target'"),
        (lambda bad: nx.Graph([("a", "b"), ("b", bad)]), "row 1"),
        (lambda bad: pd.DataFrame({"source": ["a", bad], "target": ["b", "c"]}, dtype=object), "column 'source'"),
    ],
)
def test_text_that_is_not_unicode_is_refused(make, place):
    with pytest.raises(InputError) as refused:
        oocgraph.build_csr(make("x\ud800"))
    assert place in str(refused.value)
    assert "not Unicode text" in str(refused.value)


def test_a_parquet_file_whose_name_is_not_text_is_refused(tmp_path):
    path = tmp_path / "o\udcff.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="the name is not UTF-8"):
        oocgraph.build_csr(path)


def test_ids_of_text_are_of_the_kind_that_is_named(run, refused, tmp_path):
    """007 and 7 are two; an append reads what its graph has; other formats have their own kinds."""
    (tmp_path / "e.csv").write_text("source,target\n007,7\n7,0010\n")
    (tmp_path / "more.csv").write_text("source,target\n1,02\n")
    (tmp_path / "mixed.csv").write_text("source,target\n1,2\n3,a\n")
    (tmp_path / "m.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
    graph = tmp_path / "g.zarr"
    assert run("estimate", tmp_path / "e.csv", "--id-kind", "string", "--json").json["num_vertices"] == 3
    assert run("build", tmp_path / "e.csv", graph, "--id-kind", "string", "--json").json["id_kind"] == "string"
    assert sorted(oocgraph.open_graph(graph)) == sorted(oocgraph.build_csr(tmp_path / "e.csv", id_kind="string")) == ["0010", "007", "7"]
    assert run("build", tmp_path / "more.csv", graph, "--append", "--json").json["num_vertices"] == 5
    assert sorted(oocgraph.open_graph(graph)) == ["0010", "007", "02", "1", "7"]
    refused("build", tmp_path / "mixed.csv", tmp_path / "n.zarr", words=["line 3", "'a' is not a number", "give --id-kind string, which"])
    assert sorted(oocgraph.build_csr(tmp_path / "mixed.csv", id_kind="string")) == ["1", "2", "3", "a"]
    for source, asked in ((tmp_path / "m.mtx", "string"), (([1], [2]), "string"), ((["a"], ["b"]), "int64")):
        for place in (None, tmp_path / "n.zarr"):
            with pytest.raises(InputError, match=f"and id_kind='{asked}' is asked for"):
                oocgraph.build_csr(source, place, id_kind=asked)
    refused("build", tmp_path / "m.mtx", tmp_path / "n.zarr", "--id-kind", "string", words=["and --id-kind string is asked for"])
    refused("build", tmp_path / "more.csv", graph, "--append", "--id-kind", "int64", words=["its ids are int64, those of"])
    with pytest.raises(ArgumentError, match="id_kind is 'text'; it must be one of int64, string"):
        oocgraph.build_csr(tmp_path / "e.csv", id_kind="text")
    assert not (tmp_path / "n.zarr").exists()


def test_home_is_named_by_shells_alone(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    (tmp_path / "e.csv").write_text("1,2\n")
    refused("build", "e.csv", "~/g.zarr", words=["~/g.zarr: there is no folder ~ here", "give /home/me/g.zarr"])
    refused("build", "~/e.csv", "g.zarr", words=["~/e.csv: no such file; only shells know ~: give /home/me/e.csv"])
    with pytest.raises(oocgraph.OutputError, match="only shells know ~"):
        oocgraph.bfs(oocgraph.build_csr("e.csv"), 1).write("~/r.csv")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["e.csv"]
    (tmp_path / "~").mkdir()
    oocgraph.build_csr("e.csv", "~/g.zarr")  # who made such a folder means it


def test_a_folder_of_several_formats_is_refused(refused, tmp_path):
    folder = tmp_path / "edges"
    folder.mkdir()
    pd.DataFrame({"source": [1], "target": [2]}).to_parquet(folder / "a.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "notes.md").touch()
    assert oocgraph.build_csr(folder).num_edges == 1
    (folder / "b.csv").write_text("1,3\n")
    words = ["b.csv cannot be read together with", "a.parquet", "only Parquet files are, or only text"]
    refused("build", folder, tmp_path / "g.zarr", words=words)


def test_weights_that_are_declined(tmp_path):
    graph = oocgraph.build_csr(pa.table({"source": [1, 2], "target": [2, 3], "weight": [5, 7]}), weight="weight")
    assert oocgraph.spmv(graph, np.ones(3), weight=False).tolist() == [1, 2, 1]
    assert oocgraph.spmv(graph, np.ones(3)).tolist() == [5, 12, 7]
    assert graph.to_scipy(weight=False).toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    with pytest.raises(oocgraph.ArgumentError, match=r"weight is False; name a column of weights, or count edges by oocgraph\.bfs"):
        oocgraph.sssp(graph, 1, weight=False)
    with pytest.raises(oocgraph.ArgumentError, match="'' is no numeric edge column"):
        oocgraph.sssp(graph, 1, weight="")
