"""``oocgraph partition``, and what ``check`` and ``info`` say of partitions."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

from oocgraph import open_graph, open_partitions
from tests.commands.conftest import remains

POLICY = """
import oocgraph

def in_turn(prop, v):
    return v % prop.num_partitions

def to_destination(prop, src, dst, src_master, dst_master):
    return dst_master

turn = oocgraph.Policy("turn", in_turn, to_destination, compiled=False)
wrong = oocgraph.Policy("wrong", lambda prop, v: v + 1, to_destination, compiled=False)
"""


@pytest.fixture
def policy_file(tmp_path):
    """Write a file that defines two policies."""
    (tmp_path / "my.py").write_text(POLICY)
    return tmp_path / "my.py"


def test_answer_says_how_good_they_are_and_what_a_search_sends(run, kron, tmp_path):
    said = run("partition", kron, tmp_path / "parts", "--partitions", 3, "--policy", "EEC", "--report", "--check", "--slow", "--json").json
    made, store = open_partitions(tmp_path / "parts"), open_graph(kron)
    assert said["valid"] is True
    assert said["edges_compared"] == store.attributes.num_stored_edges
    proxies = sum(part.num_vertices + part.num_isolated for part in made)
    assert said["replication_factor"] == pytest.approx(proxies / store.num_rows)
    edges = np.array([part.num_edges for part in made])
    assert said["edge_balance"] == pytest.approx(edges.max() / edges.mean())
    assert [part["num_edges"] for part in said["parts"]] == edges.tolist()
    assert said["bfs_exchanged_bytes"] > 0
    assert said["bfs_num_messages"] > 0


def test_chunks_are_a_policy_by_name(run, kron, tmp_path):
    """In any case of letters; contiguous, none empty, and right by the check."""
    said = run("partition", kron, tmp_path / "p", "--partitions", 3, "--policy", "Chunk", "--slow", "--report", "--check", "--json").json
    made = open_partitions(tmp_path / "p")
    assert made.policy == "chunk"
    assert said["valid"] is True
    assert np.unique(made.masters.read(0, made.num_vertices)).tolist() == [0, 1, 2]
    assert (np.diff(made.masters.read(0, made.num_vertices)) >= 0).all()


def test_in_lists_of_an_undirected_graph_are_searched_too(run, kron, tmp_path):
    """They are its out-lists."""
    said = run("partition", kron, tmp_path / "p", "--partitions", 2, "--policy", "CVC", "--slow", "--read", "in", "--report", "--json").json
    assert said["bfs_num_messages"] > 0


def test_a_file_defines_the_policy(run, kron, policy_file, tmp_path):
    run("partition", kron, tmp_path / "parts", "--partitions", 2, "--policy", f"{policy_file}:turn", "--json")
    made = open_partitions(tmp_path / "parts")
    assert made.policy == "turn"
    masters = made.masters.read(0, made.num_vertices)
    np.testing.assert_array_equal(masters, np.arange(made.num_vertices) % 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--partitions", 0], "--partitions is 0.*whole number from 1 to"),
        (["--partitions", 1000000], "--partitions is 1000000, but .* has .* vertices"),
        (["--partitions", 2, "--policy", "XYZ"], "there is no policy 'XYZ'; choose one of EEC"),
        (["--partitions", 2, "--policy", "none.py:p"], "there is no file none.py"),
        (["--partitions", 2, "--policy", "{file}:absent"], "defines no oocgraph.Policy 'absent'; it defines turn, wrong"),
        (["--partitions", 2, "--policy", "{file}"], r"is a file; name the oocgraph.Policy in it, too, as .*\.py:policy"),
        (["--partitions", 2, "--policy", "{file}:wrong"], "returned 2 for vertex 1 .*partitions are 0 to 1"),
        (["--partitions", 2, "--workers", 2], "add --cluster local"),
        (["--partitions", 2, "--memory", "32M"], "set --memory to at least"),
    ],
)
def test_what_cannot_be_done_is_one_message(run, kron, policy_file, tmp_path, arguments, message):
    """Exit code 2, and nothing is left behind."""
    outcome = run("partition", kron, tmp_path / "parts", *(str(argument).format(file=policy_file) for argument in arguments))
    assert outcome.code == 2
    assert re.search(message, outcome.stderr.replace("\n", " ")), outcome.stderr
    assert not (tmp_path / "parts").exists()
    assert remains(tmp_path) == [policy_file.name]


@pytest.mark.parametrize(("text", "message"), [("x = (", "SyntaxError"), ("1 / 0", "ZeroDivisionError: division by zero")])
def test_a_policy_file_that_cannot_be_run_is_named(run, kron, tmp_path, text, message):
    (tmp_path / "broken.py").write_text(text)
    outcome = run("partition", kron, tmp_path / "parts", "--partitions", "2", "--policy", f"{tmp_path / 'broken.py'}:policy")
    assert (outcome.code, len(outcome.stderr.strip().splitlines())) == (2, 1)
    assert f"broken.py cannot be run ({message}" in outcome.stderr


def test_an_output_that_exists_is_kept(run, kron, tmp_path):
    (tmp_path / "parts").mkdir()
    outcome = run("partition", kron, tmp_path / "parts", "--partitions", 2)
    assert outcome.code == 2
    assert "exists already" in outcome.stderr


@pytest.fixture(scope="module")
def parts(run, kron, tmp_path_factory):
    """Return partitions by plain Python."""
    out = tmp_path_factory.mktemp("parts") / "parts"
    assert run("partition", kron, out, "--partitions", 2, "--policy", "CVC", "--slow").code == 0
    return out


def test_check_compares_them_with_their_graph(run, kron, parts):
    said = run("check", parts, "--json").json
    assert said["valid"] is True
    assert said["num_edges"] == open_graph(kron).attributes.num_stored_edges


def test_check_of_a_damaged_part_names_it(run, parts, tmp_path):
    damaged = shutil.copytree(parts, tmp_path / "parts")
    chunk = damaged / "part-00001" / "out" / "indices" / "c" / "0"
    data = bytearray(chunk.read_bytes())
    data[100] ^= 0xFF
    chunk.write_bytes(data)
    outcome = run("check", damaged)
    assert outcome.code == 2
    assert "part-00001" in outcome.stderr


def test_info_reads_what_they_are(run, parts):
    said = run("info", parts, "--json").json
    assert (said["policy"], said["num_partitions"]) == ("CVC", 2)
    assert len(said["parts"]) == 2
    assert json.dumps(said)


def test_a_part_that_is_missing_is_named(run, parts, tmp_path):
    damaged = shutil.copytree(parts, tmp_path / "parts")
    shutil.rmtree(damaged / "part-00001")
    for command in ("info", "check"):
        outcome = run(command, damaged)
        assert outcome.code == 2
        assert "part 1 of 2 is missing" in outcome.stderr
