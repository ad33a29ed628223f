"""Progress is drawn where somebody can see it: on a terminal, in a notebook, nowhere else."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import oocgraph
from oocgraph import Resources, progress
from oocgraph.ingest.generators.edge_file import write_edges
from oocgraph.ingest.generators.kronecker import KroneckerEdges
from oocgraph.progress import LEVEL, REACHED, Bar, Bars, progress_bars, watched
from oocgraph.types import ignore_progress
from tests import every_knob
from tests.processes import PATIENCE_SECONDS, on_terminal

ROOT = Path(__file__).parents[1]

SEARCH = """
from oocgraph.progress import watched
with watched(True) as tell:
    for level, reached in ((1, 5), (2, 1200), (3, 4000)):
        tell("level", level, 0)
        tell("vertices reached", reached, 5000)
"""


def last(*calls):
    """Bars after some calls."""
    drawn = []
    tell = Bars(drawn.append)
    for call in calls:
        tell(*call)
    return drawn[-1]


def test_a_search_has_one_bar():
    """Its title is the level; its length the vertices reached, where they are known."""
    assert last((LEVEL, 1, 0), (LEVEL, 2, 0)) == [Bar("level 2")]
    assert last((LEVEL, 2, 0), (REACHED, 1200, 5000)) == [Bar("level 2", 1200, 5000, "1,200 of 5,000 vertices reached")]
    assert last((LEVEL, 2, 0), (REACHED, 7, 9), (LEVEL, 3, 0)) == [Bar("level 3", 7, 9, "7 of 9 vertices reached")]


def test_other_phases_have_bars_of_their_own():
    """In the order in which they began."""
    assert last(("read edges", 5, 0), ("sort edges", 1, 8), ("read edges", 6, 6)) == [Bar("read edges", 6, 6), Bar("sort edges", 1, 8)]


def test_nobody_watches_a_pipe(capsys):
    """Neither terminal nor notebook: the function for that case is called, by default one that does nothing."""
    with watched(True) as tell:
        tell(LEVEL, 1, 0)
    assert tell is ignore_progress
    with progress_bars(otherwise=print) as tell:
        assert tell is print
    assert capsys.readouterr() == ("", "")


def test_a_function_is_called_itself():
    """As an argument `progress` may be one; False is silence."""
    with watched(print) as tell:
        assert tell is print
    with watched(False) as tell:
        assert tell is ignore_progress


def test_a_terminal_shows_level_and_vertices():
    """On stderr; stdout stays clean."""
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    done = on_terminal([sys.executable, "-c", SEARCH], env=env)
    drawn = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", done.stderr.decode())
    assert "level 3" in drawn
    assert "80%" in drawn
    assert "4,000 of 5,000 vertices reached" in drawn
    assert done.stdout == b""


def test_a_notebook_shows_level_and_vertices(monkeypatch):
    """A real kernel sends one picture and updates it; the last one stays."""
    from jupyter_client.manager import start_new_kernel

    messages = []
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        reply = client.execute_interactive(SEARCH, output_hook=messages.append, timeout=PATIENCE_SECONDS)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok"
    pictures = [one for one in messages if one["msg_type"].endswith("display_data")]
    shown = [one["content"]["data"]["text/html"] for one in pictures]
    assert [one["msg_type"] for one in pictures] == ["display_data"] + ["update_display_data"] * (len(pictures) - 1)
    assert len({one["content"]["transient"]["display_id"] for one in pictures}) == 1
    assert shown[0].startswith("level 1 <progress></progress>")
    assert shown[-1].startswith('level 3 <progress value="4000" max="5000"></progress> 4,000 of 5,000 vertices reached<br>')


def test_nothing_moves_in_a_notebook_at_the_end():
    """A bar of unknown length goes; one of known length stays where it is."""
    assert progress._html(Bar("level <7>"), at_end=False) == "level &lt;7&gt; <progress></progress> "
    assert progress._html(Bar("level <7>"), at_end=True) == "level &lt;7&gt; "
    assert progress._html(Bar("a", 1, 2), at_end=True) == 'a <progress value="1" max="2"></progress> '


def test_a_notebook_is_not_flooded(monkeypatch):
    """A hundred levels within a second are ten pictures."""
    clock, shown = [0.0], []

    class Picture(progress._NotebookPicture):
        def show(self, *, at_end=False):
            shown.append(self._bars[0].title)
            self._due = clock[0] + progress.REDRAW_SECONDS

    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    tell = Bars(Picture().draw)
    for level in range(1, 101):
        tell(LEVEL, level, 0)
        clock[0] += 0.01
    assert shown[0] == "level 1"
    assert 9 <= len(shown) <= 11


@pytest.fixture
def drawn(monkeypatch):
    """Draw bars into a list: phases, in the order of the calls."""
    phases = []

    @contextmanager
    def record(otherwise=ignore_progress):
        yield lambda phase, done, total: phases.append(phase)

    monkeypatch.setattr(progress, "progress_bars", record)
    return phases


def test_every_function_that_takes_progress_draws_when_it_is_true(tmp_path, drawn):
    """And takes a path where it takes a graph."""
    path = tmp_path / "g.zarr"

    def phases_of(call):
        drawn.clear()
        call()
        return set(drawn)

    assert "read edges" in phases_of(lambda: oocgraph.build_csr((np.array([0, 1]), np.array([1, 2])), path, progress=True))
    assert "read edges" in phases_of(lambda: oocgraph.generate_kronecker(5, tmp_path / "k.zarr", progress=True))
    assert phases_of(lambda: oocgraph.export_graph(path, tmp_path / "g.parquet", progress=True)) == {"export"}
    assert phases_of(lambda: oocgraph.check_store(path, progress=True)) == {"checksums", "structure"}
    assert LEVEL in phases_of(lambda: oocgraph.bfs(path, 0, progress=True, resources=Resources(device="cpu"), direction="pull"))
    assert "iterations" in phases_of(lambda: oocgraph.pagerank(path, progress=True))
    assert phases_of(lambda: oocgraph.plan_bfs(path, [2], progress=True))
    assert phases_of(lambda: every_knob.partition(path, 2, "EEC", tmp_path / "p", progress=True))
    assert "writing edges" in phases_of(lambda: write_edges(KroneckerEdges(5, edge_factor=4, seed=1), tmp_path / "k.npy", progress=True))
    oocgraph.open_runtime(path, progress=True, resources=Resources(device="cpu")).close()


def test_silence_is_none_or_false(tmp_path, drawn):
    for quiet in (None, False):
        oocgraph.build_csr((np.array([0, 1]), np.array([1, 2])), tmp_path / f"{quiet}.zarr", progress=quiet)
    assert not drawn
