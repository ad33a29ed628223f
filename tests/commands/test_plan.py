"""``oocgraph plan``: tables, one JSON object, and what it refuses."""

from __future__ import annotations

import pytest


def test_tables_and_json_say_the_same(run, kron):
    """A line for each number of workers and dimension, then each iteration of each; nothing else on stdout with --json."""
    arguments = ("plan", kron, "--workers", "4,9", "--memory", "1G", "--source", 3)
    told = run(*arguments, "--json").json
    assert [(case["dimension"], case["num_workers"]) for case in told["cases"]] == [("1d", 4), ("2d", 4), ("1d", 9), ("2d", 9)]
    assert (told["source"], told["memory_bytes"]) == (3, 1 << 30)
    assert {case["fits"] for case in told["cases"]} == {"yes"}
    assert all(len(case["iterations"]) == told["depth"] + 1 for case in told["cases"])
    assert {"edge_seconds", "hop_seconds"} < set(told["constants"])
    text = run(*arguments)
    assert text.code == 0
    assert "2d with 9 workers, 3 x 3" in text.stdout
    assert "level" not in run(*arguments, "--no-levels").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--workers", "0"), ["a number of workers is 0"]),
        (("--workers", "4,many"), ["is no list of whole numbers", "4,16,64"]),
        (("--workers", ""), ["is no list of whole numbers"]),
        (("--workers", "1000000"), ["1000000", "give whole numbers from 1 to"]),
        (("--memory", "lots"), ["not a size"]),
        (("--source", "x"), ["x"]),
        (("--source", "99999999"), ["99999999"]),
    ],
)
def test_bad_options(refused, kron, options, words):
    """Refused before anything is searched."""
    refused("plan", kron, *options, words=words)


def test_a_graph_that_is_not_there(refused, tmp_path):
    """As other commands say it."""
    refused("plan", tmp_path / "nothing.zarr", words=["no such file or folder"])
