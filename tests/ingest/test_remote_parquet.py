"""Edge lists at URLs."""

from __future__ import annotations

import dask.config
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oocgraph import build_csr, export_graph
from oocgraph.errors import InputError, InputNotFoundError, MissingDependencyError
from oocgraph.ingest.sources import open_source
from tests.ingest.helpers import read, refused
from tests.ingest.helpers_build import assert_same_store
from tests.store import keyed


@pytest.fixture
def edges(tmp_path):
    """Return a Parquet file of a graph with isolated vertices, and its store."""
    rng = np.random.default_rng(2)
    table = pa.table({"source": rng.integers(0, 90, 500), "target": rng.integers(0, 90, 500), "weight": rng.random(500)})
    graph = build_csr(table, tmp_path / "expected", weight="weight", num_vertices=100)
    export_graph(graph, tmp_path / "edges.parquet")
    return tmp_path / "edges.parquet"


@pytest.fixture
def memory():
    """Give fsspec's memory file system; what a test leaves there goes, what others have there stays."""
    file_system = fsspec.filesystem("memory")
    before = file_system.ls("/", detail=False)
    yield file_system
    for left in set(file_system.ls("/", detail=False)).difference(before):
        file_system.rm(left, recursive=True)


def test_a_file_and_a_folder_at_a_url(edges, memory, tmp_path):
    """The vertices that the file declares are declared there, too."""
    memory.put(str(edges), "/lists/edges.parquet")
    pq.write_table(pq.read_table(edges).slice(0, 0), tmp_path / "empty.parquet")
    memory.put(str(tmp_path / "empty.parquet"), "/lists/empty.parquet")
    for number, url in enumerate(("memory://lists/edges.parquet", "memory://lists", f"file://{edges}")):
        build_csr(url, tmp_path / str(number), weight="weight")
        assert_same_store(tmp_path / "expected", tmp_path / str(number))


def test_what_is_hidden_in_a_folder_is_not_read_here_or_there(memory, tmp_path):
    """Neither a file nor what lies in a folder."""
    names = ["a.parquet", "kind=x/b.parquet", "_temporary/0/p.parquet", ".ipynb_checkpoints/p.parquet", "kind=x/.c/p.parquet", "_p.parquet"]
    for number, name in enumerate(names):
        path = tmp_path / "_base" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"source": [number], "target": [number + 10]}), path)
    memory.put(str(tmp_path / "_base"), "/_base", recursive=True)
    for place in (tmp_path / "_base", "memory://_base"):
        assert sorted(read(open_source(place))[0]) == [0, 1]


def test_options_come_from_the_configuration(edges, tmp_path):
    keyed.register()
    with dask.config.set({"oocgraph.storage-options": {"key": "secret"}}):
        build_csr(f"keyed://{edges}", tmp_path / "found", weight="weight")
    assert_same_store(tmp_path / "expected", tmp_path / "found")
    refused(f"keyed://{edges}", "MissingKeyError", "oocgraph.storage-options")


def test_what_is_not_there_is_refused(memory):
    with pytest.raises(InputNotFoundError, match="no such file"):
        build_csr("memory://lists/none.parquet")
    memory.mkdir("/empty")
    refused("memory://empty", "no Parquet file")
    memory.pipe("/damaged.parquet", b"PAR1 and no more")
    refused("memory://damaged.parquet", "no Parquet, or out of reach")
    with pytest.raises(InputError, match=r"ArrowInvalid|ValueError"):
        build_csr("nonsense-protocol://a/b.parquet")


def test_a_missing_package_is_named(monkeypatch):
    def missing(url, **options):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(MissingDependencyError, match=r"Install s3fs.*oocgraph\[s3\]"):
        build_csr("s3://bucket/edges.parquet")
