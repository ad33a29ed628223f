"""Outputs of every command: on a disk that is full at any moment, onto what exists, and to places that cannot be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from oocgraph import OutputError, bfs, export_graph, open_graph, open_partitions, pagerank
from tests import every_knob
from tests.commands.announced import ANNOUNCED
from tests.commands.conftest import ROOT, command, remains

WRITERS = {
    "g.zarr": ["generate", "kronecker", "OUT", "--scale", "8"],
    "e.parquet": ["generate", "kronecker", "--scale", "8", "--edges", "OUT"],
    "e.npy": ["generate", "kronecker", "--scale", "8", "--edges", "OUT"],
    "k.parquet": ["export", "GRAPH", "OUT"],
    "k.npz": ["export", "GRAPH", "OUT"],
    "k.sg": ["export", "GRAPH", "OUT"],
    "parts": ["partition", "GRAPH", "OUT", "--partitions", "2", "--slow"],
    "b.zarr": ["bfs", "GRAPH", "--source", "3", "--out", "OUT"],
    "b.parquet": ["bfs", "GRAPH", "--source", "3", "--out", "OUT"],
    "b.csv": ["bfs", "GRAPH", "--source", "3", "--out", "OUT"],
    "r.zarr": ["pagerank", "GRAPH", "--out", "OUT"],
    "r.csv": ["pagerank", "GRAPH", "--out", "OUT"],
}
"""An output of each kind, by every command that has one."""

FULL_DISKS = """
import json, os, sys
from pathlib import Path
from click.testing import CliRunner
from oocgraph.cli import cli

disk, writers, graph = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
for free in (0, 4, 12, 20, 40, 80):
    for name, arguments in writers.items():
        with (disk / "fill").open("wb") as file:
            file.write(bytes(1024 * (1024 - free)))
        told = [{"OUT": str(disk / name), "GRAPH": graph}.get(text, text) for text in arguments]
        done = CliRunner().invoke(cli, told)
        left = sorted(path.name for path in disk.iterdir())
        print(json.dumps([name, free, done.exit_code, done.stderr, left, repr(done.exception)]))
        (disk / "fill").unlink()
        os.system(f"rm -rf {disk}/* {disk}/.oocgraph*")
"""


def out(folder, name, graph):
    """Return the command that writes an output."""
    return [{"OUT": folder / name, "GRAPH": graph}.get(text, text) for text in WRITERS[name]]


@pytest.fixture(scope="module")
def small(run, tmp_path_factory):
    """Build a store of 2**8 vertices; not to be changed."""
    path = tmp_path_factory.mktemp("small") / "kron8.zarr"
    assert run("generate", "kronecker", path, "--scale", 8).code == 0
    return path


@pytest.mark.namespaces
def test_disk_that_is_full_at_any_moment(tmp_path, small):
    """From the first byte, which says whose folder it is, to the last: one message, and the disk is empty again."""
    (disk := tmp_path / "disk").mkdir()
    script = f'mount -t tmpfs -o size=1m tmpfs {disk} && exec "$@"'
    inside = ["unshare", "-m", "sh", "-c", script, "sh"]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs root and mount namespaces")
    call = [*inside, sys.executable, "-c", FULL_DISKS, str(disk), json.dumps(WRITERS), str(small)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    refused = set()
    for line in done.stdout.splitlines():
        name, free, code, stderr, left, exception = json.loads(line)
        said = f"{name} with {free} KiB free: {code} {stderr} {left} {exception}"
        if code == 0:
            assert left == sorted(["fill", name]), said
            continue
        message = stderr.removeprefix(ANNOUNCED)
        assert code == 2, said
        assert message.startswith("Error: "), said
        assert "the disk is full" in message, said
        assert "nothing was left behind" in message, said
        assert left == ["fill"], said
        refused.add(name)
    assert refused == set(WRITERS)


@pytest.mark.parametrize("name", WRITERS)
def test_output_is_replaced_only_when_asked(run, refused, small, tmp_path, name):
    """Every writer takes --overwrite, and its message names it."""
    assert run(*out(tmp_path, name, small)).code == 0
    before = os.stat(tmp_path / name)
    refused(*out(tmp_path, name, small), words=[name, "exists already", "--overwrite"])
    assert os.stat(tmp_path / name) == before
    assert run(*out(tmp_path, name, small), "--overwrite").code == 0
    assert os.stat(tmp_path / name).st_ino != before.st_ino
    assert remains(tmp_path) == [name]


@pytest.mark.parametrize("name", WRITERS)
def test_foreign_output_stays(refused, small, tmp_path, name):
    """What is of another kind is not replaced, even when asked."""
    place = tmp_path / name
    if name.endswith(".zarr") or name == "parts":
        place.write_text("precious")
    else:
        place.mkdir()
    refused(*out(tmp_path, name, small), "--overwrite", words=[name, "so it is not overwritten"])
    assert remains(tmp_path) == [name]


@pytest.mark.parametrize("name", WRITERS)
def test_url_is_no_place_for_an_output(refused, small, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    told = [{"OUT": f"https://bucket/{name}", "GRAPH": small}.get(text, text) for text in WRITERS[name]]
    refused(*told, words=[f"https://bucket/{name}", "local file systems only"])
    assert remains(tmp_path) == []


class TestFromPython:
    """The same of functions and methods."""

    @pytest.fixture
    def graph(self, small):
        return open_graph(small)

    @pytest.mark.parametrize("name", ["r.zarr", "r.parquet", "r.csv"])
    @pytest.mark.parametrize("make", [lambda graph: bfs(graph, 3), pagerank], ids=["bfs", "pagerank"])
    def test_results(self, graph, tmp_path, monkeypatch, make, name):
        result = make(graph)
        result.write(tmp_path / name)
        with pytest.raises(OutputError, match="exists already; choose another name or pass overwrite=True"):
            result.write(tmp_path / name)
        result.write(str(tmp_path / name), overwrite=True)
        monkeypatch.chdir(tmp_path)
        with pytest.raises(OutputError, match=f"https://bucket/{name}: outputs are written to local file systems only"):
            result.write(f"https://bucket/{name}")
        assert remains(tmp_path) == [name]

    def test_new_result_is_what_stands_there(self, graph, tmp_path):
        bfs(graph, 3).write(tmp_path / "r.parquet")
        other = bfs(graph, 4)
        other.write(tmp_path / "r.parquet", overwrite=True)
        np.testing.assert_array_equal(pq.read_table(tmp_path / "r.parquet")["level"].to_numpy(), other.level)

    def test_exports_and_partitions(self, graph, tmp_path, monkeypatch):
        for parts in (2, 3):
            every_knob.partition(graph, parts, "EEC", tmp_path / "p", compiled=False, overwrite=parts == 3)
        assert open_partitions(tmp_path / "p").num_partitions == 3
        with pytest.raises(OutputError, match="exists already; choose another name or pass overwrite=True"):
            every_knob.partition(graph, 2, "EEC", tmp_path / "p", compiled=False)
        monkeypatch.chdir(tmp_path)
        for write in (lambda url: every_knob.partition(graph, 2, "EEC", url), lambda url: export_graph(graph, f"{url}.sg")):
            with pytest.raises(OutputError, match=r"s3://bucket/x.*local file systems only"):
                write("s3://bucket/x")
        with pytest.raises(OutputError, match="local file systems only"):
            pagerank(graph, checkpoint="s3://bucket/c")
        assert remains(tmp_path) == ["p"]

    def test_partitions_are_replaced_through_a_link(self, graph, tmp_path):
        (tmp_path / "link").symlink_to("p")
        for parts in (2, 3):
            made = every_knob.partition(graph, parts, "EEC", tmp_path / "link", compiled=False, overwrite=True)
        assert (tmp_path / "link").is_symlink()
        assert made.num_partitions == open_partitions(tmp_path / "p").num_partitions == 3
        assert remains(tmp_path) == ["link", "p"]


@pytest.mark.kill
def test_killed_build_leaves_the_old_graph_and_the_next_one_replaces_it(run, tmp_path):
    """With SIGKILL, while the new one is being built."""
    assert run("generate", "kronecker", tmp_path / "g.zarr", "--scale", 8).code == 0
    arguments = command("generate", "kronecker", tmp_path / "g.zarr", "--scale", "21", "--overwrite")
    with subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        while not list(tmp_path.glob(".oocgraph-building-*/scratch/*")):
            assert process.poll() is None
        process.kill()
    assert run("bfs", tmp_path / "g.zarr", "--source", 3, "--validate").code == 0
    assert run("generate", "kronecker", tmp_path / "g.zarr", "--scale", 9, "--overwrite").code == 0
    assert open_graph(tmp_path / "g.zarr").attributes.num_input_vertices == 512
    assert remains(tmp_path) == ["g.zarr"]


@pytest.mark.parametrize("name", ["g.zarr", "k.sg", "parts"])
def test_time_of_the_final_sync_is_told_apart(run, small, tmp_path, name):
    told = run(*out(tmp_path, name, small), "--json").json
    sync = told["phases"]["sync"]["seconds"] if name == "g.zarr" else told["sync_seconds"]
    assert 0 < sync < told["seconds"]
