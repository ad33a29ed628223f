"""What a person reads of a search."""

from __future__ import annotations

import io
import sys

import numpy as np

from oocgraph.commands import tables
from oocgraph.results.histogram import Histogram
from oocgraph.results.search import Iteration, PartMetrics


def test_a_histogram_has_a_line_for_each_bin(capsys):
    """The longest bar has 40 characters; nothing that is there is invisible; long gaps are one line."""
    counts = np.array([1, 0, 0, 0, 80, 0, 2000])
    tables.print_histogram(Histogram("level", "vertices", np.arange(8), counts))
    lines = capsys.readouterr().out.splitlines()
    assert rows("\n".join(lines)) == [
        ["level", "vertices"], ["0", "1", "█"], ["...", "0"], ["4", "80", "██"], ["5", "0"], ["6", "2,000", "█" * 40],
    ]  # fmt: skip
    assert (lines[0], lines[-1]) == ("", "")
    assert len({line.index("█") for line in lines if "█" in line}) == 1
    tables.print_histogram(Histogram("level", "vertices", np.zeros(1, int), np.zeros(0, int)))
    assert capsys.readouterr().out == ""


def test_terminals_without_blocks_get_other_bars(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    tables.print_histogram(Histogram("level", "vertices", np.arange(2), np.array([3])))
    sys.stdout.seek(0)
    assert rows(sys.stdout.read())[-1] == ["0", "3", "#" * 40]


def levels(num_levels, workers):
    """Make iterations in which worker number w is busy w + 1 seconds."""
    parts = tuple(PartMetrics(w, f"tcp://h:{w}", "push", w + 1.0, 10, 2048, 3) for w in range(workers))
    return [Iteration(level, "push", "few edges", 7, 0, 2.0, 10 * workers, parts=parts) for level in range(1, num_levels + 1)]


def rows(text):
    """Cells of each line."""
    return [line.split() for line in text.splitlines() if line.strip()]


def test_levels_in_process_have_no_columns_of_workers(capsys):
    tables.print_levels(levels(2, workers=0))
    lines = rows(capsys.readouterr().out)
    assert lines[0] == ["level", "direction", "frontier", "undecided", "seconds", "bytes", "read", "reason"]
    assert len(lines) == 4


def test_levels_on_a_cluster_tell_how_evenly_the_workers_were_busy(capsys):
    """Shares, imbalance and bytes sent in each level; the sums of each worker below."""
    tables.print_levels([*levels(2, workers=2), Iteration(3, "push", "tiny", 7, 0, 2.0, 0)])
    text = capsys.readouterr().out
    assert "busy" in text
    lines = rows(text)
    assert [line[7:13] for line in lines if line[0] in "12"] == [["B", "33", ":", "67", "%", "1.33"]] * 2
    assert "4.0 KiB" in text
    tiny = next(line for line in lines if line[0] == "3")
    assert tiny[-5:] == ["-", "-", "0", "B", "tiny"]
    assert ["tcp://h:1", "1", "4", "s", "20", "B", "4.0", "KiB", "6"] in lines
    assert "busiest worker: 1.33 x the mean" in text


def test_many_workers_are_summed_up(capsys):
    """No share of each in a line; not every worker a line."""
    tables.print_levels(levels(1, workers=50))
    text = capsys.readouterr().out
    assert "busy" not in text.splitlines()[1]
    assert "imbalance" in text
    assert "... and 10 more workers" in text


def test_a_worker_of_many_partitions_names_a_few(capsys):
    """Text stays short."""
    parts = tuple(PartMetrics(p, "w", "push", 1.0, 1, 1, 1) for p in range(9))
    tables.print_levels([Iteration(1, "push", "", 1, 0, 1.0, 9, parts=parts)])
    assert "0, 1, 2, 3, ... (9)" in capsys.readouterr().out


def test_a_long_reason_leaves_the_figures_whole(capsys):
    """Only the last column is cut."""
    parts = tuple(PartMetrics(w, f"tcp://10.0.0.{w}:40000", "pull", 0.01, 10**9, 10**6, 5) for w in range(4))
    reason = "cost: push moves 1.93e+08 B in memory and 0 B from disk, pull 1.14e+07 B and as much again, " * 2
    tables.print_levels([Iteration(7, "pull", reason, 123_456_789, 54_321, 0.00002, 4 * 10**9, parts=parts)])
    text = capsys.readouterr().out
    level = next(line for line in text.splitlines() if line.strip().startswith("7"))
    assert "cost: push moves" in level
    assert "123,456,789" in level
    assert "25 : 25 : 25 : 25 %" in level
    assert level.rstrip().endswith("…")
    assert len(level) <= tables.FILE_WIDTH
    assert text.count("…") == 1


def test_ids_are_printed_as_they_are(capsys):
    """What looks like markup is text; a long id leaves room for what is beside it."""
    tables.print_table({"id": id_, "rank": 0.125} for id_ in ("[/a]", "[red]", ":smile:", "x" * 3000))
    found = rows(capsys.readouterr().out)
    assert found[-4:-1] == [["[/a]", "0.125"], ["[red]", "0.125"], [":smile:", "0.125"]]
    assert (found[-1][0][:70], found[-1][0][-3:], found[-1][1]) == ("x" * 70, "...", "0.125")
