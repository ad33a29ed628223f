"""``oocgraph spmv``: what it writes is what `oocgraph.spmv` returns, and what it cannot do is one message."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oocgraph import build_csr, spmv
from tests.ingest.helpers_build import ArraySource


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    rng = np.random.default_rng(0)
    ends, weights = rng.integers(0, 300, (2, 2000)), rng.random(2000)
    source = ArraySource(*ends, {"weight": weights}, weight="weight", directed=True)
    return build_csr(source, tmp_path_factory.mktemp("graph") / "g.zarr", duplicates="min")


@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "or_and", "plus_second"])
@pytest.mark.parametrize("transpose", [False, True])
def test_what_is_written_is_the_product(run, graph, tmp_path, semiring, transpose):
    x = np.random.default_rng(1).random(graph.attributes.num_input_vertices)
    x = x < 0.3 if semiring == "or_and" else x
    np.save(tmp_path / "x.npy", x)
    options = ["--semiring", semiring, *(["--transpose"] if transpose else [])]
    outcome = run("spmv", graph.url, "--x", tmp_path / "x.npy", *options, "--out", tmp_path / "y.csv", "--json", "--quiet")
    expected = spmv(graph, x, semiring=semiring, transpose=transpose)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "y.csv")["value"], expected.astype(float))
    finite = expected[np.isfinite(expected)]
    assert (outcome.json["num_values"], outcome.json["num_finite"], outcome.json["dtype"]) == (
        expected.size,
        finite.size,
        str(expected.dtype),
    )
    assert outcome.json["sum"] == pytest.approx(finite.sum())
    assert outcome.stderr == ""


def test_ones_are_the_default(run, graph):
    outcome = run("spmv", graph.url, "--semiring", "plus_second", "--json")
    assert outcome.json["sum"] == graph.num_edges


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--x", "{folder}/absent.npy"], ["--x", "no vector can be read", "numpy.save"]),
        (["--x", "{folder}/text.npy"], ["no vector can be read"]),
        (["--x", "{folder}/short.npy"], ["x has 2 elements", "vertices"]),
        (["--weight", "cost"], ["'cost' is no numeric edge column"]),
        (["--workers", "2"], ["add --cluster local"]),
        (["--memory", "1M"], ["set --memory to at least"]),
        (["--device", "cpu", "--device-memory", "1G"], ["--device-memory is given, but the product would run on the processor"]),
    ],
)
def test_what_cannot_be_done_is_one_message(run, graph, tmp_path, arguments, words):
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "short.npy", np.ones(2))
    outcome = run("spmv", graph.url, *(one.format(folder=tmp_path) for one in arguments))
    assert outcome.code == 2
    assert outcome.stdout == ""
    for word in words:
        assert word in outcome.stderr
