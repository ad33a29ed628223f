"""Replaces a file by `AtomicOutput`, for `tests.every_line`."""

from __future__ import annotations

import os

from oocgraph.store.atomic_output import AtomicOutput

FILES = ["store/atomic_output.py", "store/publish.py", "store/remains.py", "store/outputs.py"]


def prepare(folder):
    """Make the old one."""
    (folder / "r.csv").write_text("old")


def work(folder):
    """Replace it."""
    with AtomicOutput(folder / "r.csv", overwrite=True) as staged:
        staged.path.write_text("new")
        staged.publish()


def check(folder, how):
    """Judge what is there, and that it is all."""
    assert (folder / "r.csv").read_text() in ("old", "new")
    if how == "interrupt":
        assert [path.name for path in folder.iterdir()] == ["r.csv"], "something was left behind"
    for left in folder.glob(".oocgraph-building-*/"):  # a folder without owner is left alone while somebody may just be making it
        for path in (*left.rglob("*"), left):
            os.utime(path, (0, 0))
    with AtomicOutput(folder / "other") as staged:
        staged.path.write_text("x")
        staged.publish()
    assert sorted(path.name for path in folder.iterdir()) == ["other", "r.csv"]
