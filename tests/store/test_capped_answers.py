"""What an answer promises to hold, it holds, under a control group that would kill it otherwise; what does not fit is refused."""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pytest

from oocgraph import build_csr
from oocgraph.ingest.generators.kronecker import KroneckerEdges
from tests.capped import run_capped
from tests.commands.conftest import ROOT
from tests.store.asking import QUESTIONS

pytestmark = pytest.mark.capped

MOST_REFUSALS = {"neighbors": 2, "columns": 2, "subgraph": 2, "ego": 2}
"""Budgets that are refused before one suffices: what is known by then grows with what is read. Of the other questions one."""


@pytest.fixture(scope="module")
def graph(disk_path_factory):
    """About a million edges with weights."""
    source, target = KroneckerEdges(16, edge_factor=16, seed=1).edges(0, 16 << 16)
    table = pa.table({"source": source, "target": target, "weight": np.ones(source.size, np.float32)})
    return build_csr(table, disk_path_factory.mktemp("capped") / "g.zarr", weight="weight", num_vertices=1 << 16)


@pytest.fixture(scope="module")
def answers(graph):
    """All answers at the smallest budgets that are named, one after the other."""
    expected = {name: ask(graph) for name, ask in QUESTIONS.items()}  # kernels are compiled, too
    done = run_capped(600 << 20, [sys.executable, "-m", "tests.store.asking", graph.url], env={"PYTHONPATH": str(ROOT)}, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return expected, json.loads(done.stdout)


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_holds_what_it_promises(answers, question):
    expected, found = answers[0][question], answers[1][question]
    assert found["found"] == expected
    assert 40 << 20 < found["peak_host_bytes"] <= found["budget"]
    assert 1 <= found["refusals"] <= MOST_REFUSALS.get(question, 1)
