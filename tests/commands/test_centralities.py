"""`oocgraph hits`, `katz`, `eigenvector`: what they print and write, and what they refuse."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import oocgraph


@pytest.mark.parametrize(
    ("command", "function", "options", "keywords"),
    [
        ("hits", "hits", ["--max-iter", "50"], {"max_iter": 50}),
        ("katz", "katz_centrality", ["--alpha", "0.001", "--beta", "2", "--absolute"], {"alpha": 0.001, "beta": 2, "normalized": False}),
        ("eigenvector", "eigenvector_centrality", ["--tol", "1e-7", "--unweighted"], {"tol": 1e-7, "weight": False}),
    ],
)
def test_values_are_those_of_the_function(run, kron, tmp_path, command, function, options, keywords):
    said = run(command, kron, *options, "--top", 3, "--out", tmp_path / "v.parquet", "--json").json
    result = getattr(oocgraph, function)(kron, **keywords)
    assert said["num_iterations"] == result.num_iterations
    column = next(iter(result.columns))
    assert [(one["vertex"], one[column]) for one in said["top"]] == result.top(3)
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.column_names == ["vertex", *result.columns]
    assert table[column].to_pylist() == getattr(result, column).tolist()


def test_values_are_printed_for_people(run, kron):
    said = run("hits", kron).stdout
    assert "HitsResult" in said
    assert "iterations" in said


def test_what_cannot_be_done_is_refused(refused, kron, tmp_path):
    refused("hits", tmp_path / "no.zarr", words=["no.zarr"])
    refused("hits", kron, "--weight", "w", "--unweighted", words=["--weight and --unweighted exclude each other"])
    refused("katz", kron, "--alpha", "0", words=["--alpha is 0.0; it must be a number, above 0"])
    refused("katz", kron, "--alpha", "3", words=["has not converged", "raise --max-iter or --tol"])
    refused("eigenvector", kron, "--memory", "20M", words=["vectors", "set --memory to at least"])
    refused("hits", kron, "--out", tmp_path / "v.txt", words=["v.txt"])
