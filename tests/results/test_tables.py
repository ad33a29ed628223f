"""Results are read by libraries of tables, without pandas and in batches, and by xarray."""

from __future__ import annotations

import json
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import oocgraph
from oocgraph.errors import ArgumentError, MissingDependencyError
from oocgraph.results import base, writer
from tests.commands.conftest import ROOT
from tests.reference_build import reference_build
from tests.results.test_bfs import result_of
from tests.stores import string_store

ROWS = {"vertex": [0, 1, 2, 3, 4], "level": [-1, 1, 0, 1, -1], "parent": [-1, 2, 2, 2, -1]}


@pytest.fixture
def numbers(tmp_path):
    """Return a search from 2 of the path 1-2-3; 0 and 4 are isolated."""
    reference_build([1, 2], [2, 3], tmp_path / "g.zarr", implied=(0, 5))
    return result_of(oocgraph.open_graph(tmp_path / "g.zarr"), 2, memory_budget=1 << 40)


@pytest.fixture
def names(tmp_path):
    return result_of(string_store(tmp_path / "s.zarr", ["b", "x"], ["é", "y"], others=["alone"]), "b", memory_budget=1 << 40)


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_arrow_reads_batches(numbers, names, monkeypatch, rows):
    """Of as many rows as there is room for; a stream may be taken again; the result keeps nothing."""
    monkeypatch.setattr(base, "BLOCK_VERTICES", rows)
    reader = pa.RecordBatchReader.from_stream(numbers)
    assert [batch.num_rows for batch in reader] == [rows] * (5 // rows) + [5 % rows] * (5 % rows > 0)
    assert pa.table(numbers).to_pydict() == pa.table(numbers).to_pydict() == ROWS
    assert pa.table(numbers).schema.types == [pa.int64(), pa.int32(), pa.int64()]
    table = pa.table(names)
    assert table.schema.types == [pa.large_string(), pa.int32(), pa.large_string()]
    assert table.to_pydict() == {
        "vertex": ["alone", "b", "x", "y", "é"],
        "level": [-1, 0, -1, -1, 1],
        "parent": [None, "b", None, None, "b"],
    }
    assert not {"vertices", "level", "parent"} & set(vars(numbers))


def test_batches_are_as_large_as_the_budget_allows(numbers, monkeypatch):
    """Those of a file, too."""
    monkeypatch.setattr(writer, "MIN_ROWS", 2)
    object.__setattr__(numbers, "memory_budget", 1)
    assert [batch.num_rows for batch in pa.RecordBatchReader.from_stream(numbers)] == [2, 2, 1]


def test_polars_and_duckdb_read_results(numbers, names):
    """A result itself is a mapping to Polars; it takes the stream."""
    assert pl.DataFrame(numbers.to_arrow()).to_dict(as_series=False) == ROWS
    assert pl.DataFrame(names.to_arrow())["parent"].to_list() == [None, "b", None, None, "b"]
    assert duckdb.sql("select count(parent) from names").fetchall() == [(2,)]
    stream = numbers.to_arrow()
    assert duckdb.sql("select level, count(*) from stream group by level order by level").fetchall() == [(-1, 2), (0, 1), (1, 2)]
    del stream


def test_reading_by_arrow_does_not_import_pandas(numbers):
    """It takes 23 MiB and half a second."""
    program = (
        "import sys, oocgraph, pyarrow as pa\n"
        f"table = pa.RecordBatchReader.from_stream(oocgraph.bfs({numbers.ids.store.url!r}, 2)).read_all()\n"
        "assert table.num_rows == 5\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, timeout=300)


NAMED_BY_TEXT = """
import json, sys
import oocgraph

class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise AssertionError("pandas is imported")

sys.meta_path[:0] = [] if "with" in sys.argv else [Refusal()]
if "with" in sys.argv:
    import pandas
folder = sys.argv[1]
with open(f"{folder}/e.csv", "w") as file:
    file.write("source,target,kind,weight\\n" + "".join(f"v{i},v{i * i % 97},{'äb'[i % 2]},{i % 5}\\n" for i in range(1, 90)))
edges = dict(columns=("source", "target", "kind"), weight="weight")
graph = oocgraph.build_csr(f"{folder}/e.csv", f"{folder}/g.zarr", overwrite=True, **edges)
arcs = oocgraph.build_csr(f"{folder}/e.csv", directed=True, **edges)
ranks, found, paths = oocgraph.pagerank(graph), oocgraph.bfs(graph, ["v1", "v2"]), oocgraph.sssp(graph, "v2")
for name in ("r.parquet", "r.csv", "r.zarr"):
    ranks.write(f"{folder}/{name}", overwrite=True)
    found.write(f"{folder}/{name}", overwrite=True)
for name in ("x.csv", "x.parquet"):
    oocgraph.export_graph(graph, f"{folder}/{name}", overwrite=True)
print(json.dumps([
    list(graph), graph.neighbors("v4").tolist(), graph.neighbors(["v4", "v9"]).to_pylist(), graph.degree(["v1"]).tolist(), "v3" in graph,
    graph.neighbors(["v4"], columns=["kind"]).to_pydict(), sorted(graph.ego("v4")), sorted(graph.subgraph(["v4", "v16"])),
    graph.sample_neighbors(["v4"], [2], seed=1).target.tolist(), graph.random_walk(["v4"], 3, seed=1).tolist(),
    ranks.top(3), list(ranks), dict(ranks), found.vertices.tolist(), found.parent.tolist(), found.path("v16").tolist(), dict(found),
    paths.path("v16").tolist(), paths["v16"], oocgraph.connected_components(arcs).component.tolist(),
    oocgraph.strongly_connected_components(arcs).component.tolist(), dict(oocgraph.core_numbers(graph)),
    dict(oocgraph.bfs(graph, "v2", where="kind == 'ä'")), dict(oocgraph.bfs(graph, "v3", where="kind in ['b'] and weight > 1")),
    dict(oocgraph.louvain(graph, seed=1)), oocgraph.check_store(graph).num_arrays,
]))
"""


def test_ids_that_are_text_do_not_import_pandas(tmp_path):
    """Which takes up to half a second, and 23 to 35 MiB; where it is there, all is the same."""
    command = [sys.executable, "-c", NAMED_BY_TEXT, tmp_path]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    without, beside = (subprocess.run([*command, *more], check=True, env=environment, timeout=300, capture_output=True, text=True)
                       for more in ([], ["with"]))  # fmt: skip
    assert without.stdout == beside.stdout
    assert len(json.loads(without.stdout)) == 26


def test_a_series_is_indexed_by_id(numbers):
    """Because pandas knows mappings."""
    assert pd.Series(numbers).to_dict() == dict(zip(ROWS["vertex"], ROWS["level"], strict=True))


def test_xarray_has_vertices_as_coordinate(numbers, names):
    found = numbers.to_xarray()
    assert list(found.data_vars) == ["level", "parent"]
    assert found.level.sel(vertex=3) == 1
    assert found.parent.sel(vertex=[1, 4]).values.tolist() == [2, -1]
    assert found.attrs == {"algorithm": "bfs", "graph": numbers.ids.store.url}
    assert names.to_xarray().parent.sel(vertex="é").item() == "b"
    np.testing.assert_array_equal(found.vertex, ROWS["vertex"])


@pytest.mark.parametrize("package", ["pandas", "xarray"])
def test_without_a_package_the_remedy_is_named(numbers, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"needs {package}.*`pip install {package}`; result\.vertices, .* arrays"):
        getattr(numbers, f"to_{package}")()


def test_a_search_from_many_sources_without_levels_is_no_table(tmp_path):
    reference_build([1, 2], [2, 3], tmp_path / "g.zarr", implied=(0, 5))
    found = oocgraph.multi_source_bfs(tmp_path / "g.zarr", [1])
    for read in (pa.table, type(found).to_pandas, type(found).to_xarray, lambda result: result.write(tmp_path / "r.csv")):
        with pytest.raises(ArgumentError, match="no levels"):
            read(found)
    assert not (tmp_path / "r.csv").exists()
    assert json.loads(json.dumps(found.summary()))["num_reached"] == [3]
