"""Edge column names are data, not paths: each works as it is, or is refused before anything is written."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph import InputError, StoreError, build_csr, check_store, export_graph, open_graph
from tests import every_knob
from tests.ingest.helpers_build import ArraySource

REFUSED = [
    "", ".", "..", "...", "/", "a/b", "../evil", "../../../evil", "/tmp/evil", "a\\b", "a\x00b", "a\nb", "\x7f", "\ud800", "x" * 256,
    "é" * 128, "indptr", "indices", "degrees", "planes", "zarr.json", ".zgroup", "__meta",
]  # fmt: skip

WORKING = [
    "a b",
    "a.b",
    ".hidden",
    "c",
    "checksums",
    "out",
    "offsets",
    "bytes",
    "value",
    "x" * 255,
    "é" * 127,
    "数",
    "a:b*?",
    "%2e%2e",
    "-o",
]


def edges(name, *, text=False):
    values = ["p", "q", "p"] if text else np.array([5, 7, 9], np.int32)
    return ArraySource(np.array([0, 1, 2]), np.array([1, 2, 3]), {name: pa.array(values, pa.large_string()) if text else values})


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_cannot_be_in_a_store_is_refused(tmp_path, name):
    (tmp_path / "below").mkdir()
    with pytest.raises(InputError, match=r"the edge column name .*; rename the column"):
        build_csr(edges(name), tmp_path / "below" / "g.zarr")
    assert [path.name for path in tmp_path.rglob("*")] == ["below"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("name", WORKING)
def test_any_other_name_works(tmp_path, name, codec):
    """Numbers and strings; the store is sound, another Zarr reader finds the column, and it is exported under its name."""
    for text in (False, True):
        path = tmp_path / f"{text}.zarr"
        graph = every_knob.build(edges(name, text=text), path, codec=codec, directed=True)
        check_store(graph)
        assert zarr.open_group(str(path), mode="r")["out"][name].shape == (3,)
        export_graph(graph, tmp_path / f"{text}.parquet")
        got = pq.read_table(tmp_path / f"{text}.parquet").sort_by("source")
        assert got.column(name).to_pylist() == (["p", "q", "p"] if text else [5, 7, 9])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(alphabet=st.sampled_from("a./\\_\x00\n é\ud800") | st.characters(), max_size=12))
def test_no_name_writes_outside_of_the_store(tmp_path_factory, name):
    folder = tmp_path_factory.mktemp("names")
    try:
        graph = build_csr(edges(name), folder / "g.zarr")
    except InputError:
        assert not list(folder.iterdir())
    else:
        assert [path.name for path in folder.iterdir()] == ["g.zarr"]
        assert sorted(graph.array(f"out/{name}").read(0, 6).tolist()) == [5, 5, 7, 7, 9, 9]


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_in_metadata_is_judged_likewise(tmp_path, name):
    """A store is input, too: it does not name files elsewhere."""
    build_csr(edges("size"), tmp_path / "g.zarr")
    file = tmp_path / "g.zarr" / "zarr.json"
    root = json.loads(file.read_text())
    root["attributes"]["oocgraph"]["columns"] = {name: "int32"}
    file.write_text(json.dumps(root))
    with pytest.raises(StoreError, match="the edge column name"):
        open_graph(tmp_path / "g.zarr")
