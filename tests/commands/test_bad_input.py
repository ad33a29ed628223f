"""Each bad input: exit code 2, one message that names the place and the remedy, nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands.announced import ANNOUNCED
from tests.commands.conftest import ROOT, command, remains
from tests.processes import PATIENCE_SECONDS, program


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


INPUTS = {
    "missing file": (lambda d: d / "none.parquet", ["none.parquet", "no such file"]),
    "empty file": (lambda d: write(d / "empty.csv", ""), ["empty.csv", "empty"]),
    "missing column": (lambda d: table(d / "e.parquet", a=[1], b=[2], c=[3]), ["e.parquet", "which columns", "'a'"]),
    "nan id": (lambda d: table(d / "e.parquet", source=[1.0, float("nan")], target=[2.0, 3.0]), ["e.parquet", "row 1", "NaN"]),
    "negative id": (lambda d: write(d / "e.csv", "source,target\n1,2\n3,-4\n"), ["e.csv", "-4"]),
    "fractional id": (lambda d: write(d / "e.csv", "source,target\n1,2\n3,4.5\n"), ["e.csv", "4.5"]),
    "overflowing id": (lambda d: write(d / "e.csv", "source,target\n1,2\n3,18446744073709551615\n"), ["e.csv", "18446744073709551615"]),
    "ragged csv": (lambda d: write(d / "e.csv", "source,target\n1,2\n3,4,5\n"), ["e.csv"]),
    "binary csv": (lambda d: write(d / "e.csv", bytes(range(256)) * 20), ["e.csv"]),
    "truncated parquet": (
        lambda d: truncated(table(d / "e.parquet", source=list(range(9999)), target=list(range(9999)))),
        ["e.parquet"],
    ),
    "truncated mtx": (lambda d: write(d / "e.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 4\n1 2\n2 3\n"), ["e.mtx"]),
    "unknown extension": (lambda d: write(d / "e.xyz", "1 2\n"), ["e.xyz", "unknown extension"]),
}


@pytest.mark.parametrize(
    "arguments", [["build", "", "g.zarr"], ["build", "e.csv", ""], ["generate", "grid", "", "--rows", 2, "--columns", 2]]
)
def test_an_empty_path_is_not_the_current_folder(refused, tmp_path, monkeypatch, arguments):
    """A variable of the shell that is not set makes one."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "e.csv", "source,target\n1,2\n")
    before = remains(tmp_path)
    refused(*arguments, words=["is empty; name a file or a folder"])
    assert remains(tmp_path) == before


@pytest.mark.parametrize("name", INPUTS)
def test_bad_edge_list_is_refused(refused, tmp_path, name):
    """The message names the file and the place; no store, no temporary file."""
    make, words = INPUTS[name]
    source = make(tmp_path)
    before = remains(tmp_path)
    refused("build", source, tmp_path / "g.zarr", words=words)
    assert remains(tmp_path) == before


@pytest.mark.parametrize(("text", "vertices"), [("source,target\n", 0), ("source,target\n7,7\n", 1)])
def test_no_edges_or_one_vertex_is_a_graph(run, tmp_path, text, vertices):
    """Zero edges and one vertex are not errors."""
    write(tmp_path / "e.csv", text)
    assert run("build", tmp_path / "e.csv", tmp_path / "g.zarr", "--json").json["num_vertices"] == vertices
    if vertices:
        assert run("bfs", tmp_path / "g.zarr", "--source", 7, "--validate", "--json").json["num_reached"] == 1


@pytest.fixture
def damaged(kron, tmp_path):
    """Copy of a store that a test may damage."""
    copy = tmp_path / "damaged.zarr"
    shutil.copytree(kron, copy)
    return copy


def change_attributes(store, **changes):
    path = store / "zarr.json"
    stored = json.loads(path.read_text())
    stored["attributes"]["oocgraph"].update(changes)
    path.write_text(json.dumps(stored))


def flip(path, position):
    raw = bytearray(path.read_bytes())
    raw[position] ^= 0x10
    path.write_bytes(raw)


@pytest.mark.parametrize("name", ["bfs", "info", "check", "export"])
def test_what_is_no_store_is_refused(refused, tmp_path, name):
    """A missing path and a folder of something else."""
    more = {"bfs": ["--source", 1], "export": [tmp_path / "out.sg"]}.get(name, [])
    refused(name, tmp_path / "none.zarr", *more, words=["none.zarr", "no such file"])
    (tmp_path / "folder").mkdir()
    refused(name, tmp_path / "folder", *more, words=["folder", "not a graph store"])


@pytest.mark.parametrize("name", ["info", "generate", "bfs"])
def test_a_folder_that_was_deleted_is_named(refused, kron, tmp_path, monkeypatch, name):
    """The shell is still in it: relative paths lead nowhere, and no worker begins there."""
    more = {"generate": ["kronecker", "k.zarr", "--scale", 5], "info": ["k.zarr"]}
    more["bfs"] = [kron, "--source", 3, "--cluster", "local", "--workers", 1]
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    refused(name, *more[name], words=["the current folder has been deleted", "change to another"])


def test_newer_and_incomplete_stores_are_refused(refused, damaged):
    """Both say what to do."""
    change_attributes(damaged, format=99)
    refused("info", damaged, words=["format 99", "upgrade"])
    change_attributes(damaged, format=1, complete=False)
    refused("bfs", damaged, "--source", 1, words=["incomplete", "build it again"])


def test_missing_chunk_is_named(refused, damaged):
    """By a search and by check."""
    chunk = damaged / "out" / "indices" / "c" / "0"
    chunk.unlink()
    refused("bfs", damaged, "--source", 3, words=[str(chunk), "missing"])
    refused("check", damaged, words=["out/indices", "missing"])


def test_truncated_chunk_is_named(refused, damaged):
    """By a search and by check."""
    chunk = truncated(damaged / "out" / "indices" / "c" / "0")
    refused("bfs", damaged, "--source", 3, words=[str(chunk), "bytes"])
    refused("check", damaged, words=["out/indices"])


def test_flipped_byte_is_found(refused, damaged):
    """Check names the page; a search finds it when asked to."""
    flip(damaged / "out" / "indices" / "c" / "0", 3 * 4096 + 17)
    refused("check", damaged, words=["out/indices", "page 3"])


def test_source_that_is_no_vertex_is_refused(refused, kron, tmp_path):
    """Unknown id, and text where ids are integers; no result file."""
    refused("bfs", kron, "--source", 1 << 12, "--out", tmp_path / "r.csv", words=["4096", "not in"])
    refused("bfs", kron, "--source", "python3", "--out", tmp_path / "r.csv", words=["python3", "integers"])
    assert remains(tmp_path) == []


def test_budget_too_small_names_the_smallest(refused, kron, tmp_path):
    """For a search and for a build."""
    refused("bfs", kron, "--source", 3, "--memory", "10M", words=["memory budget", "--memory", "at least"])
    refused("generate", "kronecker", tmp_path / "g.zarr", "--scale", 12, "--memory", "10M", words=["memory budget", "--memory", "at least"])
    assert remains(tmp_path) == []


@pytest.mark.parametrize("size", ["3X", "-5M", "0", "much"])
def test_wrong_size_is_refused(refused, kron, size):
    """A size that is no size."""
    refused("bfs", kron, "--source", 3, f"--memory={size}", words=["not a size", "640M"])


def test_existing_output_is_kept(run, refused, kron, tmp_path):
    """Stores, edge lists, exports and results are not overwritten; a foreign folder not even when asked."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    edges = write(tmp_path / "e.csv", "source,target\n1,2\n")
    assert run("build", edges, tmp_path / "g.zarr").code == 0
    refused("build", edges, tmp_path / "g.zarr", words=["exists already", "--overwrite"])
    assert run("build", edges, tmp_path / "g.zarr", "--overwrite").code == 0
    refused("build", edges, tmp_path / "mine", "--overwrite", words=["not a graph store"])
    refused("bfs", kron, "--source", 3, "--out", write(tmp_path / "r.csv", "x"), words=["r.csv", "exists already"])
    refused("export", kron, write(tmp_path / "k.sg", "x"), words=["k.sg", "exists already"])
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"
    assert (tmp_path / "r.csv").read_text() == (tmp_path / "k.sg").read_text() == "x"


@pytest.fixture
def mounted(tmp_path):
    """Prefix that runs a command with a file system of its own at ``tmp_path/disk``; needs root."""
    (tmp_path / "disk").mkdir()

    def prefix(options):
        disk = tmp_path / "disk"
        script = f'mount -t tmpfs -o {options} tmpfs {disk} && "$@"; code=$?; ls -A {disk} >&2; exit $code'
        before = ["unshare", "-m", "sh", "-c", script, "sh"]
        if not shutil.which("unshare") or subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
            pytest.skip("needs root and mount namespaces")
        return before

    return prefix


@pytest.mark.parametrize("out", ["g.zarr", "edges.parquet", "edges.npy"])
def test_full_disk_during_a_write(spawn, tmp_path, mounted, out):
    """A disk of 1 MiB: one message, and the disk is empty again."""
    target = ["--edges"] if out.startswith("edges") else []
    done = spawn("generate", "kronecker", "--scale", 16, *target, tmp_path / "disk" / out, before=mounted("size=1m"))
    assert done.code == 2, done.stderr
    message = done.stderr.removeprefix(ANNOUNCED)
    assert message.startswith("Error: ")
    assert "the disk is full" in message
    assert message.count("\n") == 1, "the listing of the disk after the message must be empty"


@pytest.mark.parametrize("out", ["g.zarr", "edges.parquet"])
def test_no_permission_to_write(spawn, tmp_path, mounted, out):
    """A read-only disk: one message."""
    target = ["--edges"] if out.startswith("edges") else []
    done = spawn("generate", "kronecker", "--scale", 10, *target, tmp_path / "disk" / out, before=mounted("ro"))
    assert done.code == 2
    assert "no permission to write" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_interrupted_build_leaves_nothing(tmp_path, number, code):
    """Ctrl-C, or a batch system's end of a job, while the build has temporary files."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = command("generate", "kronecker", tmp_path / "g.zarr", "--scale", "21")
    with program(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        while not list(tmp_path.rglob("scratch/*")):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == code, stderr
    assert stdout == ""
    assert "Traceback" not in stderr
    assert remains(tmp_path) == []


def test_unknown_option_and_choice_are_usage_errors(refused, kron):
    """Click's own errors have exit code 2 too."""
    refused("bfs", kron, words=["--source"])
    refused("bfs", kron, "--source", 3, "--direction", "sideways", words=["sideways"])
    refused("frobnicate", words=["frobnicate"])


def test_operating_system_error_is_one_message(run, kron, monkeypatch):
    """Whatever else the system refuses is told without a traceback."""

    def fail(*_arguments, **_options):
        raise PermissionError(13, "Permission denied", "secret.parquet")

    monkeypatch.setattr("oocgraph.store.graph.open_graph", fail)
    outcome = run("info", kron)
    assert (outcome.code, outcome.stderr) == (2, "Error: secret.parquet: Permission denied\n")


def test_out_of_memory_is_one_message(run, kron, monkeypatch):
    """With the setting that helps."""

    def fail(*_arguments, **_options):
        raise MemoryError

    monkeypatch.setattr("oocgraph.store.graph.open_graph", fail)
    outcome = run("info", kron)
    assert outcome.code == 2
    assert "--memory" in outcome.stderr
