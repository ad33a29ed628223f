"""What can be opened at all: paths that cannot, and why."""

import os
import resource
from contextlib import suppress

import numpy as np
import pytest
import zarr

from oocgraph.errors import InputError
from oocgraph.ingest.sources import open_source
from tests.ingest.helpers import refused


@pytest.mark.parametrize("extension", [".parquet", ".csv", ".tsv.gz", ".npy", ".npz", ".mtx", ".mtx.gz", ".sg", ".el", ".unknown"])
def test_missing_file(tmp_path, extension):
    refused(tmp_path / f"edges{extension}", "no such file", "check the path")


@pytest.mark.parametrize("extension", [".parquet", ".csv", ".csv.gz", ".npy", ".npz", ".mtx", ".sg", ".wel"])
def test_empty_file(tmp_path, extension):
    path = tmp_path / f"edges{extension}"
    path.touch()
    refused(path, "empty (0 bytes)")


def test_unknown_extension_lists_the_known_ones(tmp_path):
    path = tmp_path / "edges.xlsx"
    path.touch()
    refused(path, "'.xlsx'", ".parquet", ".csv", ".mtx", ".npz", ".sg", ".el", ".graph", ".zst", "rename it .txt")


def test_extension_in_capitals(tmp_path):
    path = tmp_path / "EDGES.CSV"
    path.write_text("1,2\n")
    assert open_source(path).id_kind == "int64"


def test_folders(tmp_path):
    refused(tmp_path, "holds no edge list", ".parquet", ".csv")
    zarr.create_group(tmp_path / "graph.zarr")
    refused(tmp_path / "graph.zarr", "a graph store already", "open_graph")
    refused(str(tmp_path / "*.parquet"), "no file matches")
    (tmp_path / "a.csv").write_text("1,2\n")
    (tmp_path / "b.csv").write_text("1,2\n")
    refused(tmp_path, "a.csv has no header", f"{tmp_path}/*.csv")
    assert open_source(str(tmp_path / "*.csv")).description == str(tmp_path / "*.csv")
    (tmp_path / "b.csv").rename(tmp_path / "b.npy")
    refused(str(tmp_path / "[ab].*"), "b.npy cannot be read together with", "a.csv", "convert")
    refused([tmp_path / "b.npy", tmp_path / "a.csv"], "b.npy cannot be read together with", "a.csv")
    assert open_source(str(tmp_path / "a*.csv")).id_kind == "int64"
    (tmp_path / "one").mkdir()
    np.save(tmp_path / "one/a.npy", np.array([[1, 2]]))
    assert open_source(tmp_path / "one").num_rows == 1


def test_file_without_permission(tmp_path, monkeypatch):
    """Root may read everything, so the refusal is provoked."""

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    for name in ("edges.csv", "edges.npy", "edges.parquet"):
        (tmp_path / name).write_bytes(b"1,2\n")
        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", refuse)
            with pytest.raises(InputError, match="no permission to read it"):
                open_source(str(tmp_path / name))


def test_too_many_open_files_are_no_fault_of_the_input(tmp_path):
    (tmp_path / "edges.csv").write_bytes(b"1,2\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_source(tmp_path / "edges.csv")  # imports what it needs
    taken, low = [], len(os.listdir("/proc/self/fd")) + 8
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(low, soft), hard))
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(InputError, match=r"too many files open; raise the limit \(ulimit -n\)"):
            open_source(tmp_path / "edges.csv")
    finally:
        for one in taken:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_remote_path():
    refused("s3://bucket/edges.csv", "only Parquet", "copy it here first")


@pytest.mark.parametrize("thing", [5, object(), [1, 2, 3], None])
def test_objects_that_are_no_edges(thing):
    refused(thing, "cannot read edges from", "give a path")


def test_block_rows_must_be_positive(tmp_path):
    with pytest.raises(ValueError, match="at least 1"):
        open_source(([1], [2])).streams(0)
