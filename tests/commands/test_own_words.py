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
from oocgraph import InputError
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

    assert strict(run("neighbors", far, 1, 2, "--column", "other", "--json").stdout)["other"] == [None] * 4
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
