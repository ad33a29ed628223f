"""Replaces a folder by `AtomicOutput`, for `tests.every_line`; with OOCGRAPH_TEST_EXCHANGE=no as where folders cannot be exchanged."""

from __future__ import annotations

import json
import os

from oocgraph.store import forgotten, publish
from oocgraph.store.atomic_output import AtomicOutput
from oocgraph.store.outputs import output_place

FILES = ["store/atomic_output.py", "store/publish.py", "store/remains.py", "store/forgotten.py", "store/outputs.py"]

if os.environ.get("OOCGRAPH_TEST_EXCHANGE") == "no":
    publish._renameat2 = lambda: None


def write(folder, text):
    """Write a result of five files that hold the same text."""
    folder.mkdir()
    for name in ("a", "b", "c", "d"):
        (folder / name).write_text(text)
    (folder / "zarr.json").write_text(json.dumps({"attributes": {"oocgraph_result": text}}))


def whole(folder):
    """Return the text of a result, which must be whole."""
    assert folder.is_dir(), f"nothing stands at its place: {sorted(path.name for path in folder.parent.iterdir())}"
    texts = {(folder / name).read_text() for name in ("a", "b", "c", "d")}
    texts.add(json.loads((folder / "zarr.json").read_text())["attributes"]["oocgraph_result"])
    assert len(texts) == 1, f"a mixture: {texts}"
    return texts.pop()


def prepare(folder):
    """Make the old one."""
    write(folder / "r.zarr", "old")


def work(folder):
    """Replace it; what files held is freed by the thread where folders are exchanged."""
    if os.environ.get("OOCGRAPH_TEST_EXCHANGE") != "no":
        forgotten.LARGE_BYTES = 0
    with AtomicOutput(folder / "r.zarr", kind="result", overwrite=True) as staged:
        write(staged.path, "new")
        staged.publish()


def check(folder, how):
    """Judge what is there (after a kill where folders cannot be exchanged: once somebody asks for it), and after the next output."""
    place = folder / "r.zarr"
    if how == "kill" and os.environ.get("OOCGRAPH_TEST_EXCHANGE") == "no":
        output_place(place, kind="result", overwrite=True)
    assert whole(place) in ("old", "new")
    if how == "interrupt":
        assert [path.name for path in folder.iterdir()] == ["r.zarr"], "something was left behind"
    for left in folder.glob(".oocgraph-building-*/"):  # a folder without owner is left alone while somebody may just be making it
        for path in (*left.rglob("*"), left):
            os.utime(path, (0, 0))
    with AtomicOutput(folder / "other") as staged:
        staged.path.write_text("x")
        staged.publish()
    assert whole(place) in ("old", "new")
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["other", "r.zarr"], f"{left} are there"
