"""``oocgraph neighbors`` and ``oocgraph sample``: what they print, and what they refuse."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import oocgraph

MEASURED = """
import re, sys, threading, time
from oocgraph.cli import main
peak, done = 0, False
def watch():
    global peak
    while not done:
        peak = max(peak, int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1]))
        time.sleep(0.001)
thread = threading.Thread(target=watch)
thread.start()
try:
    main()
except SystemExit:
    pass
finally:
    done = True
    thread.join()
    print(peak << 10, file=sys.stderr)
"""
"""Runs a command, and prints what it has held."""


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """Make a small directed graph of strings, with a column."""
    table = pa.table({"source": ["b", "a", "a", "c"], "target": ["a", "b", "c", "a"], "kind": ["x", "y", "x", "z"]})
    path = tmp_path_factory.mktemp("kinds") / "g.zarr"
    oocgraph.build_csr(table, path, directed=True, columns=("source", "target", "kind"))
    return path


def test_neighbours_are_printed_an_edge_a_line(run, kinds, kron):
    assert sorted(run("neighbors", kinds, "a", "b").stdout.splitlines()) == ["a\tb", "a\tc", "b\ta"]
    assert sorted(run("neighbors", kinds, "a", "--direction", "in", "--column", "kind").stdout.splitlines()) == ["b\ta\tx", "c\ta\tz"]
    found = run("neighbors", kron, 3, 3, "--json").json
    expected = oocgraph.open_graph(kron).neighbors(3).tolist()
    assert found == {"source": [3] * 2 * len(expected), "target": expected * 2}


def test_samples_are_printed_with_their_hop(run, kinds, kron):
    lines = [line.split("\t") for line in run("sample", kinds, "b", "--fanout", "2,1").stdout.splitlines()]
    assert lines[0] == ["0", "b", "a"]
    assert lines[1][:2] == ["1", "a"]
    assert len(lines) == 2
    found = run("sample", kron, 3, 5, "--fanout", "3", "--seed", 4, "--json").json
    expected = oocgraph.open_graph(kron).sample_neighbors([3, 5], 3, seed=4)
    assert found == {"hop": expected.hop.tolist(), "source": expected.source.tolist(), "target": expected.target.tolist()}
    again = run("sample", kron, 5, 3, "--fanout", "3", "--seed", 4, "--replace", "--json").json
    assert again["hop"] == [0] * 6


def test_more_edges_than_are_printed_at_once(run, tmp_path):
    oocgraph.build_csr((np.zeros(10_000, np.int64), np.arange(1, 10_001)), tmp_path / "g.zarr", directed=True)
    lines = run("neighbors", tmp_path / "g.zarr", 0).stdout.splitlines()
    assert sorted(int(line.split("\t")[1]) for line in lines) == list(range(1, 10_001))
    found = run("neighbors", tmp_path / "g.zarr", 7, 0, 9, 0, "--json").json
    assert found["source"] == [0] * 20_000
    assert found["target"] == 2 * [int(line.split("\t")[1]) for line in lines]
    into = run("neighbors", tmp_path / "g.zarr", 7, 0, 9, "--direction", "in", "--json").json
    assert into == {"source": [0, 0], "target": [7, 9]}
    assert run("neighbors", tmp_path / "g.zarr", 7, "--json").json == {"source": [], "target": []}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("options", [(), ("--json",), ("--column", "weight", "--json")])
def test_a_hub_is_printed_within_the_budget_that_is_named(tmp_path, options):
    """One message names it; a million numbers as objects took 30 MB beside, and twice that as JSON."""
    leaves = np.arange(1, 1_000_001)
    oocgraph.build_csr(pa.table({"source": 0 * leaves, "target": leaves, "weight": leaves % 9}), tmp_path / "g.zarr", weight="weight")
    command = [sys.executable, "-c", MEASURED, "neighbors", str(tmp_path / "g.zarr"), "0", *options, "--memory"]
    refused = subprocess.run([*command, "1M"], capture_output=True, text=True, check=False).stderr
    named = int(refused.partition("at least ")[2].split("M")[0]) << 20
    done = subprocess.run([*command, str(named)], capture_output=True, text=True, check=True)
    assert int(done.stderr.split()[-1]) <= named
    assert len(done.stdout) > 6_000_000


def test_an_edge_is_a_line_whatever_its_strings_are(run, tmp_path):
    """Of ids and columns; JSON has them as they are."""
    odd, kind = "x\ny\t\r", "back\\slash\n"
    oocgraph.build_csr(pa.table({"source": ["a"], "target": [odd], "kind": [kind]}), tmp_path / "g.zarr", columns=(None, None, "kind"))
    assert run("neighbors", tmp_path / "g.zarr", "a").stdout == "a\tx\\ny\\t\\r\n"
    assert run("neighbors", tmp_path / "g.zarr", "a", "--column", "kind").stdout == "a\tx\\ny\\t\\r\tback\\\\slash\\n\n"
    assert run("sample", tmp_path / "g.zarr", "a", "--fanout", "1").stdout == "0\ta\tx\\ny\\t\\r\n"
    assert run("neighbors", tmp_path / "g.zarr", "a", "--column", "kind", "--json").json == {
        "source": ["a"],
        "target": [odd],
        "kind": [kind],
    }


def test_what_cannot_be_done_is_refused(run, refused, kinds, kron, tmp_path):
    refused("neighbors", tmp_path / "no.zarr", "a", words=["no.zarr"])
    refused("neighbors", kinds, words=["ID..."])
    refused("neighbors", kinds, "q", words=["'q' is not in", "the nearest"])
    refused("neighbors", kron, "x", words=["'x' is not a vertex of"])
    refused("neighbors", kinds, "a", "--column", "time", words=["no edge column 'time'"])
    refused("neighbors", kron, "3", "--memory", "20M", words=["set --memory to at least"])
    refused("sample", kron, "3", "--fanout", "-1", words=["fanout is [-1]; it must be"])
    refused("sample", kron, "3", "--fanout", "many", words=["'many' is no list of whole numbers", "such as 15,10"])
