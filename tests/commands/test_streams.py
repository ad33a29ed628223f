"""Standard streams that nobody reads, or that are closed: the exit code says it, and nothing else changes."""

from __future__ import annotations

import os
import subprocess

import pytest

from oocgraph.commands.common import note
from oocgraph.progress import progress_bars, watched
from oocgraph.types import ignore_progress
from tests.commands.conftest import ROOT, command

ENV = {**os.environ, "PYTHONPATH": str(ROOT)}


def without_reader(arguments, *streams):
    """Run a command whose streams are pipes that nobody reads; returns its exit code and what it wrote to the other ones."""
    reader, writer = os.pipe()
    os.close(reader)
    chosen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **dict.fromkeys(streams, writer)}
    done = subprocess.run(command(*arguments), **chosen, env=ENV, text=True, check=False, timeout=120)
    os.close(writer)
    return done.returncode, done.stdout or "", done.stderr or ""


@pytest.mark.parametrize("arguments", [("info",), ("info", "--json"), ("bfs", "--source", 3)], ids=str)
def test_an_answer_that_nobody_reads_ends_quietly(kron, arguments):
    """As a program does that SIGPIPE ends: 128 + 13, no message (``| head -1``)."""
    assert without_reader((arguments[0], kron, *arguments[1:]), "stdout") == (141, "", "")


@pytest.mark.parametrize("arguments", [("--help",), ("bfs", "--help"), ("--version",)], ids=str)
def test_help_that_nobody_reads_ends_quietly(arguments):
    assert without_reader(arguments, "stdout") == (141, "", "")


@pytest.mark.parametrize("arguments", [("info", "/none"), ("info",), ("info", "--none"), ("none",)], ids=str)
def test_bad_input_is_told_by_the_exit_code_alone(arguments):
    """Nobody reads stderr: nothing of the message comes elsewhere."""
    assert without_reader(arguments, "stderr") == (2, "", "")
    assert without_reader(arguments, "stdout", "stderr") == (2, "", "")


def test_an_answer_comes_even_if_nobody_reads_remarks(kron, monkeypatch):
    code, answer, _ = without_reader(("bfs", kron, "--source", 3, "--json"), "stderr")
    assert code == 0
    assert '"num_reached"' in answer


def test_a_remark_that_nobody_reads_does_not_stop_the_work(capfd, monkeypatch):
    def broken(*_, **__):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("click.echo", broken)
    note("compiling")


SEARCH = ("bfs", "--source", 3, "--out")


@pytest.mark.parametrize(
    ("arguments", "closed"), [(("info",), [2]), (SEARCH, [1, 2]), (("info",), [0, 1, 2]), (SEARCH, [0, 1, 2])], ids=str
)
def test_closed_streams_change_nothing(kron, tmp_path, arguments, closed):
    """Nothing takes the number of a closed stream, so no message gets into a file."""
    out = [tmp_path / "levels.csv"] if "--out" in arguments else []
    shell = " ".join(f"{fd}>&-" if fd else "<&-" for fd in closed)
    words = command(arguments[0], kron, *arguments[1:], *out)
    done = subprocess.run(["bash", "-c", f'"$@" {shell}', "-", *words], env=ENV, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (1 not in closed)
    if out:
        assert out[0].read_text().startswith('"vertex","level","parent"\n')


def test_bad_input_with_a_closed_stderr_is_no_answer(tmp_path):
    done = subprocess.run(
        ["bash", "-c", '"$@" 2>&-', "-", *command("info", tmp_path)], env=ENV, capture_output=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_full_disk_under_stdout_is_one_message(kron):
    with open("/dev/full", "w") as full:
        done = subprocess.run(command("info", kron), env=ENV, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr == "Error: input or output: No space left on device\n"


def test_no_bars_where_there_is_no_stderr(monkeypatch):
    """A process may have none at all (``sys.stderr`` is None)."""
    monkeypatch.setattr("sys.stderr", None)
    with watched(True) as tell, progress_bars() as other:
        assert tell is other is ignore_progress
