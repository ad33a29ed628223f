"""``oocgraph build --append`` and ``oocgraph merge``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.capped import run_capped
from tests.commands.conftest import ROOT, command
from tests.ingest.helpers_build import assert_same_store, files_of


def test_edges_are_appended_and_stores_merged(run, tmp_path):
    """Both give the store of one build; what contradicts the store is refused."""
    (tmp_path / "old.csv").write_text("source,target\n1,2\n2,3\n")
    (tmp_path / "new.csv").write_text("source,target\n3,4\n1,2\n")
    (tmp_path / "all.csv").write_text("source,target\n1,2\n2,3\n3,4\n")
    stores = {name: str(tmp_path / f"{name}.zarr") for name in ("old", "new", "all", "merged")}
    for name in ("old", "new", "all"):
        assert run("build", tmp_path / f"{name}.csv", stores[name]).code == 0
    fields = run("merge", stores["old"], stores["new"], stores["merged"], "--json").json
    assert (fields["num_edges"], fields["num_vertices"]) == (3, 4)
    for options, words in (
        (["--codec", "zstd"], "--codec cannot be given with --append"),
        (["--overwrite"], "--overwrite and --append exclude each other"),
        (["--directed"], "was built with --undirected, and --directed is asked for"),
        (["--duplicates", "keep"], "was built with --duplicates drop"),
    ):
        refused = run("build", tmp_path / "new.csv", stores["old"], "--append", *options)
        assert refused.code == 2
        assert words in " ".join(refused.stderr.split())
    fields = run("build", tmp_path / "new.csv", stores["old"], "--append", "--json").json
    assert fields["num_rows"] == 2
    assert_same_store(stores["all"], stores["old"])
    assert_same_store(stores["all"], stores["merged"])


def test_what_is_no_store_cannot_grow(run, tmp_path):
    """A path where nothing is."""
    (tmp_path / "e.csv").write_text("source,target\n1,2\n")
    refused = run("build", tmp_path / "e.csv", tmp_path / "none.zarr", "--append")
    assert refused.code == 2
    assert "no such file or folder" in refused.stderr


@pytest.mark.capped
def test_an_append_holds_what_it_promises(run, tmp_path):
    """At the smallest budget that works, under a cap that leaves the rest for mapped libraries and page cache."""
    place, edges = tmp_path / "kron17.zarr", tmp_path / "kron16.parquet"
    assert run("generate", "kronecker", place, "--scale", 17).code == 0
    assert run("generate", "kronecker", "--scale", 16, "--seed", 2, "--edges", edges).code == 0
    shutil.copytree(place, tmp_path / "first.zarr")
    assert run("build", edges, tmp_path / "first.zarr", "--append").code == 0  # kernels compiled: a compiler needs more than the cap
    told = run_capped(512 << 20, command("build", edges, place, "--append", "--memory", "20M"), env={"PYTHONPATH": str(ROOT)}).stderr
    least = int(told.rpartition("at least ")[2].strip().rstrip("M")) << 20
    done = run_capped(
        int(least * 1.18), command("build", edges, place, "--append", "--memory", least, "--json"), env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert 50 << 20 < found["peak_host_bytes"] <= found["memory_budget"] == least
    assert_same_store(tmp_path / "first.zarr", place)


def test_a_killed_append_leaves_the_store_as_it_was(run, tmp_path):
    """The next output there removes what it left."""
    place = tmp_path / "g.zarr"
    assert run("generate", "kronecker", place, "--scale", 8).code == 0
    before = {name: path.read_bytes() for name, path in files_of(place).items()}
    (tmp_path / "e.csv").write_text("source,target\n1,200\n")
    die = (
        "import os, sys; from oocgraph.store.writer import StoreWriter; from oocgraph import append_edges;"
        "real = StoreWriter.publish; published = [];"  # the store of the new edges first
        "StoreWriter.publish = lambda self, *a: os._exit(9) if published else (published.append(1), real(self, *a));"
        "append_edges(sys.argv[1], sys.argv[2])"
    )
    done = subprocess.run([sys.executable, "-c", die, place, tmp_path / "e.csv"], check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 9
    assert {name: path.read_bytes() for name, path in files_of(place).items()} == before
    assert run("build", tmp_path / "e.csv", place, "--append").code == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["e.csv", "g.zarr"]
