import json
import sys
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import zarr

from oocgraph.errors import MissingDependencyError, OocGraphError, OutputError, StoreError, VertexNotFoundError
from oocgraph.results import base, writer
from oocgraph.results.bfs import BFSResult
from oocgraph.results.search import Iteration, PartMetrics, Search
from oocgraph.store.graph import open_graph
from oocgraph.store.vertices import VertexIds
from oocgraph.verify import verify_bfs
from tests.reference_build import reference_build
from tests.stores import random_edges, string_store
from tests.test_verify import plain_bfs


def result_of(store, source, *, dtype=np.uint8, **figures):
    """Search in Python and hand back what the engine would."""
    ids = VertexIds(store)
    given = ids.parse(source)
    numbers = ids.vertices_of(given)
    sources = numbers[numbers >= 0]
    parent, level = plain_bfs(store, sources.tolist(), dtype=dtype)
    reached = parent != np.iinfo(parent.dtype).max
    search = Search(
        sources=sources,
        parent=parent,
        level=level,
        num_reached=int(reached.sum()),
        num_reached_edges=12 if sources.size else 0,
        depth=int(level[reached].max(initial=0)),
        seconds=0.5,
        bytes_requested=30,
        bytes_read=40,
        iterations=(Iteration(1, "push", "few", 1, 0, 0.1, 30),),
    )
    return BFSResult(search=search, ids=ids, source=source, isolated_sources=given[numbers < 0].tolist(), **figures)


@pytest.fixture
def numbers(tmp_path):
    """Ids 0 .. 9: a path 1-2-3-4, the edge 7-8, the rest isolated."""
    reference_build([1, 2, 3, 7], [2, 3, 4, 8], tmp_path / "g.zarr", implied=(0, 10))
    return open_graph(tmp_path / "g.zarr")


@pytest.fixture
def names(tmp_path):
    return string_store(tmp_path / "s.zarr", ["b", "é", "x"], ["é", "", "y"], others=["alone", "z"])


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
@pytest.mark.parametrize("block", [1, 3, 100])
def test_arrays_are_aligned_with_every_input_id(numbers, monkeypatch, dtype, block):
    """For ids 0 .. n-1 ``level[v]`` just works."""
    monkeypatch.setattr(base, "BLOCK_VERTICES", block)
    result = result_of(numbers, 2, dtype=dtype)
    assert result.vertices.tolist() == list(range(10))
    assert result.level.tolist() == [-1, 1, 0, 1, 2, -1, -1, -1, -1, -1]
    assert result.parent.tolist() == [-1, 2, 2, 2, 3, -1, -1, -1, -1, -1]
    assert (result.level.dtype, result.parent.dtype) == (np.int32, np.int64)
    assert result.level is result.level


def test_string_parents_are_none_where_unreached(names):
    result = result_of(names, "b")
    assert result.vertices.tolist() == ["", "alone", "b", "x", "y", "z", "é"]
    assert result.level.tolist() == [2, -1, 0, -1, -1, -1, 1]
    assert result.parent.tolist() == ["é", None, "b", None, None, None, "b"]
    assert result.vertices.dtype == result.parent.dtype == object


def test_some_ids_are_looked_up_alone(numbers, names):
    """One id gives a value, several an array; neither joins everything."""
    result = result_of(numbers, 2)
    assert (result.level_of(4), result.level_of("7"), result.level_of(0)) == (2, -1, -1)
    assert result.level_of([4, 4, 9]).tolist() == [2, 2, -1]
    assert (result.parent_of(4), result.parent_of(2), result.parent_of(8)) == (3, 2, -1)
    assert isinstance(result.level_of(4), int)
    assert "level" not in vars(result)
    result = result_of(names, "b")
    assert (result.level_of("é"), result.parent_of("é"), result.parent_of("z"), result.parent_of("y")) == (1, "b", None, None)
    assert result.parent_of(["b", "z"]).tolist() == ["b", None]
    with pytest.raises(VertexNotFoundError):
        result.level_of("nobody")


def test_isolated_sources_reach_themselves(numbers, names):
    """Alone, and beside a source with edges; depth 0 and one reached vertex each."""
    result = result_of(numbers, 5)
    assert (result.num_reached, result.depth, result.level_of(5), result.parent_of(5)) == (1, 0, 0, 5)
    assert result.level.tolist() == [-1] * 5 + [0] + [-1] * 4
    assert result.path(5).tolist() == [5]
    result = result_of(numbers, [5, 7, 5])
    assert result.num_reached == 3
    assert result.parent.tolist() == [-1] * 5 + [5, -1, 7, 7, -1]
    result = result_of(names, ["z", "x"])
    assert result.level.tolist() == [-1, -1, -1, 0, 1, 0, -1]
    assert result.parent.tolist() == [None, None, None, "x", "x", "z", None]


def test_isolated_sources_may_be_text(numbers):
    """The command line has only text."""
    result = result_of(numbers, "5")
    result = BFSResult(search=result.search, ids=result.ids, source="5", isolated_sources=["5", "5"])
    assert (result.num_reached, result.level_of(5), result.parent_of("5")) == (1, 0, 5)
    assert verify_bfs(numbers, result).num_reached == 0


def test_paths_lead_from_the_source(numbers, names):
    assert result_of(numbers, 1).path(4).tolist() == [1, 2, 3, 4]
    assert result_of(names, "b").path("").tolist() == ["b", "é", ""]
    with pytest.raises(OocGraphError, match="no path to 9"):
        result_of(numbers, 1).path(9)


def test_figures_and_repr(numbers):
    """Each figure is what the search measured, or follows from it."""
    result = result_of(numbers, 1, edge_bytes=400, load_seconds=1.5, peak_host_bytes=7, memory_budget=9, planes_resident=2)
    assert result.teps == 24
    assert result.read_fraction == 0.1
    assert repr(result).startswith("<BFSResult from 1: 4 of 10 vertices reached, depth 3; 0.5 s, ")
    twice = result_of(numbers, 1, edge_bytes=20)
    assert repr(twice).endswith("read the edges 2 times>")
    summary = result.summary()
    assert summary["iterations"][0]["direction"] == "push"
    assert {"source": 1, "num_reached": 4, "depth": 3, "bytes_read": 40, "planes_resident": 2}.items() <= summary.items()


def test_pandas_frame(names, monkeypatch):
    frame = result_of(names, "b").to_pandas()
    assert list(frame.columns) == ["vertex", "level", "parent"]
    assert frame.set_index("vertex").level["é"] == 1
    assert pd.isna(frame.parent[1])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"pip install pandas`; result\.vertices, result\.level and result\.parent are arrays"):
        result_of(names, "b").to_pandas()


@pytest.fixture(params=["integers", "strings"])
def result(request, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "BLOCK_VERTICES", 64)
    if request.param == "integers":
        src, dst = random_edges(7)
        reference_build(src * 10**15, dst * 10**15, tmp_path / "g.zarr")
        return result_of(open_graph(tmp_path / "g.zarr"), int(src[0]) * 10**15)
    src, dst = ([f"{'n' * (i % 9)}{i}" for i in side] for side in random_edges(8))
    return result_of(string_store(tmp_path / "g.zarr", src, dst, others=["a,b", 'q"']), src[0])


def test_parquet_holds_the_result(result, tmp_path):
    result.write(tmp_path / "r.parquet")
    table = pq.read_table(tmp_path / "r.parquet")
    assert table.column_names == ["vertex", "level", "parent"]
    for name, wanted in zip(table.column_names, (result.vertices, result.level, result.parent), strict=True):
        assert table[name].to_pylist() == wanted.tolist()


def test_csv_holds_the_result(result, tmp_path):
    result.write(tmp_path / "r.csv")
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    table = pyarrow.csv.read_csv(tmp_path / "r.csv", convert_options=options)
    for name, wanted in zip(("vertex", "level", "parent"), (result.vertices, result.level, result.parent), strict=True):
        assert table[name].to_pylist() == wanted.tolist()


def test_zarr_holds_the_result(result, tmp_path):
    """Any Zarr reader opens it; it does not pass for a graph."""
    result.write(tmp_path / "r.zarr")
    group = zarr.open_group(tmp_path / "r.zarr", mode="r")
    assert group.attrs["oocgraph_result"]["num_reached"] == result.num_reached
    np.testing.assert_array_equal(group["level"][:], result.level)
    for name, wanted in (("vertices", result.vertices), ("parent", result.parent)):
        if result.ids.kind == "int64":
            np.testing.assert_array_equal(group[name][:], wanted)
        else:
            raw, offsets = group[f"{name}/bytes"][:].tobytes(), group[f"{name}/offsets"][:]
            assert [raw[a:b].decode() for a, b in pairwise(offsets)] == [one or "" for one in wanted]
    with pytest.raises(StoreError, match="not a graph store"):
        open_graph(tmp_path / "r.zarr")


@pytest.mark.parametrize("name", ["r.zarr", "r.parquet", "r.csv"])
def test_existing_outputs_are_refused(numbers, tmp_path, name):
    result = result_of(numbers, 1)
    result.write(tmp_path / name)
    with pytest.raises(OutputError, match="exists already"):
        result.write(tmp_path / name)


def test_unknown_extensions_are_refused(numbers, tmp_path):
    with pytest.raises(OutputError, match=r"unknown extension '\.txt'"):
        result_of(numbers, 1).write(tmp_path / "r.txt")


@pytest.mark.parametrize("name", ["r.zarr", "r.parquet", "r.csv"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_nothing(numbers, tmp_path, monkeypatch, name, error):
    """The disk fills up, or the user stops it, in the second block."""
    result, values_of = result_of(numbers, 1, memory_budget=1 << 40), BFSResult.values_of

    def failing(self, columns, vertices, numbers, start):
        if start:
            raise error
        return values_of(self, columns, vertices, numbers, start)

    monkeypatch.setattr(BFSResult, "values_of", failing)
    monkeypatch.setattr(base, "BLOCK_VERTICES", 5)
    monkeypatch.setattr(writer, "MIN_ROWS", 4)
    (tmp_path / "out").mkdir()
    expected = pytest.raises(OutputError, match="disk is full") if isinstance(error, OSError) else pytest.raises(KeyboardInterrupt)
    with expected:
        result.write(tmp_path / "out" / name)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_result_of_no_edges(tmp_path):
    reference_build([], [], tmp_path / "g.zarr", implied=(0, 1))
    result = result_of(open_graph(tmp_path / "g.zarr"), 0)
    assert (result.level.tolist(), result.parent.tolist(), result.num_reached, result.read_fraction) == ([0], [0], 1, 0)
    for name in writer.EXTENSIONS:
        result.write(tmp_path / f"r{name}")


def on_two_workers(numbers):
    """Make a result whose two levels were done in three parts by two workers; one took a part over from the other."""

    def parts(*names):
        return tuple(PartMetrics(p, name, "push", 0.1 * (p + 1), 2, 3 + p, 4) for p, name in enumerate(names))

    levels = {1: parts("b", "a", "a"), 2: parts("b", "b", "a")}
    iterations = tuple(Iteration(level, "push", "few", 1, 0, 0.5, 6, parts=found) for level, found in levels.items())
    result = result_of(numbers, 2)
    return replace(result, search=replace(result.search, iterations=iterations))


def test_workers_are_summed_over_the_whole_search(numbers):
    """Seconds, bytes and vertices of each worker, in the order of their partitions."""
    workers = on_two_workers(numbers).workers
    assert list(workers) == ["b", "a"]
    assert (workers["b"].partitions, workers["a"].partitions) == ((0, 1), (1, 2))
    assert (workers["b"].busy_seconds, workers["a"].busy_seconds) == (pytest.approx(0.4), pytest.approx(0.8))
    assert (workers["b"].bytes_read, workers["b"].sent_bytes, workers["b"].num_found) == (6, 10, 12)
    assert result_of(numbers, 2).workers == {}


def test_summary_is_plain_json(numbers):
    """Parts and workers included; every field of an iteration under its name."""
    result = on_two_workers(numbers)
    read = json.loads(json.dumps(result.summary()))
    assert read["iterations"] == json.loads(json.dumps([asdict(one) for one in result.iterations]))
    assert read["workers"]["a"]["partitions"] == [1, 2]
