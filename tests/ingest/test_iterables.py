"""Edges from generators, cursors and other iterables, and from arrays of any library. Oracle: the build from a table in memory."""

from __future__ import annotations

import csv
import gc
import io
import itertools
import json
import sqlite3
import subprocess
import sys
import weakref

import dask.dataframe as dd
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr

import oocgraph
from oocgraph import build_csr
from oocgraph.errors import BudgetError, InputError
from oocgraph.ingest.sources import iterables, open_source
from oocgraph.ingest.sources.streamed import bytes_of
from tests.ingest.helpers import check, read, refused
from tests.ingest.helpers_build import assert_same_store, budget_of
from tests.ingest.test_streamed import IDS, OPTIONS, edge_frame

SIZES = [37, 2999, 3000]


@pytest.fixture(params=IDS)
def frame(request):
    """Edges with weights, text and duplicates."""
    return edge_frame(request.param)


@pytest.mark.parametrize("size", SIZES)
def test_tables_one_after_the_other(tmp_path, frame, size):
    build_csr(frame, tmp_path / "expected", **OPTIONS)
    chunks = [frame[a : a + size] for a in range(0, len(frame), size)]
    forms = {
        "frames": iter(chunks),
        "batches": (pa.RecordBatch.from_pandas(one) for one in chunks),
        "streams": (pa.Table.from_pandas(one).to_reader(max_chunksize=50) for one in chunks),
        "dicts": ({name: one[name].to_numpy() for name in one} for one in chunks),
    }
    for name, edges in forms.items():
        build_csr(edges, tmp_path / name, **OPTIONS)
        assert_same_store(tmp_path / "expected", tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"expected", *forms}
    build_csr(iter(chunks), **OPTIONS).save(tmp_path / "in memory")
    assert_same_store(tmp_path / "expected", tmp_path / "in memory")


@pytest.mark.parametrize("weighted", [False, True])
def test_edges_one_after_the_other(tmp_path, frame, weighted, monkeypatch):
    """More than are read together, as NetworkX takes them, from anything that can be iterated over."""
    monkeypatch.setattr(iterables, "PIECE_EDGES", 100)
    monkeypatch.setattr(iterables, "BATCH_BYTES", 1 << 16)
    columns = [frame[name] for name in ("source", "target", *(["weight"] if weighted else []))]
    edges = list(zip(*(one.tolist() for one in columns), strict=True))
    build_csr(edges, tmp_path / "expected", duplicates="first")
    forms = {
        "zip": zip(*columns, strict=True),
        "generator": (one for one in edges),
        "lists": map(list, edges),
        "rows": frame[[one.name for one in columns]].itertuples(index=False),
        "frozen": dict.fromkeys(edges).keys(),
    }
    for name, given in forms.items():
        build_csr(given, tmp_path / name, duplicates="first")
        assert_same_store(tmp_path / "expected", tmp_path / name)


def test_sets_views_cursors_and_readers(tmp_path):
    graph = nx.les_miserables_graph()
    expected = {frozenset(edge) for edge in graph.edges}
    assert {frozenset(edge) for edge in build_csr(set(graph.edges)).to_networkx().edges} == expected
    assert {frozenset(edge) for edge in build_csr(graph.edges).to_networkx().edges} == expected
    assert build_csr(graph.edges(data="weight")).attributes.weighted
    with sqlite3.connect(":memory:") as database:
        database.execute("create table edges (a, b, w)")
        database.executemany("insert into edges values (?, ?, ?)", graph.edges(data="weight"))
        found = build_csr(database.execute("select a, b, w from edges"), tmp_path / "cursor")
        database.row_factory = sqlite3.Row
        build_csr(database.execute("select a, b, w from edges"), tmp_path / "rows")
        assert_same_store(tmp_path / "cursor", tmp_path / "rows")
    assert {frozenset(edge) for edge in found.to_networkx().edges} == expected
    assert read(open_source(csv.reader(["a;b", "b;7"], delimiter=";"))) == (["a", "b"], ["b", "7"], {})
    text = io.StringIO("source,target,w\n1,2,5\n2,3,6\n1,3,7\n")
    assert read(open_source(pd.read_csv(text, chunksize=2), weight_column="w")) == ([1, 2, 1], [2, 3, 3], {"w": [5, 6, 7]})


def test_an_endless_one_is_refused_where_it_is_wrong():
    """Not when memory is full."""
    refused(itertools.chain([(1, 2)], itertools.repeat([1])), "element 1 is [1], not a tuple")


def test_paths_that_a_folder_gives(tmp_path):
    for name, edges in {"a": "1,2\n", "b": "2,3\n"}.items():
        (tmp_path / f"{name}.csv").write_text(edges)
    assert sorted(read(open_source(tmp_path.glob("*.csv")))[0]) == [1, 2]


def test_an_append(tmp_path):
    graph = build_csr(zip([1, 2], [2, 3], strict=True), tmp_path / "g")
    assert oocgraph.append_edges(graph, ((i, i + 1) for i in range(3, 9))).num_edges == 8


def test_one_element_is_held_at_a_time(tmp_path):
    references = []

    def tables():
        for i in range(9):
            gc.collect()
            assert not any(one() is not None for one in references)
            frame = pd.DataFrame({"source": [i], "target": [i + 1]})
            references.append(weakref.ref(frame))
            yield frame
            del frame

    assert build_csr(tables(), tmp_path / "g").num_edges == 9


def after(count, *edges):
    """Many good edges and then others."""
    return itertools.chain(((i, i + 1) for i in range(count)), edges)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], ("gives nothing", "num_vertices")),
        ([[], ()], ("gives nothing", "num_vertices")),
        (["a b"], ("first element is 'a b'", "path of their file")),
        ([None], ("first element is None",)),
        (range(5), ("first element is 0",)),
        (after(2000, (1, 2, 3)), ("chain, from element 0 on", "element 2000", "(1, 2, 3)")),
        (after(20000, ("a", "b")), ("chain, from element", "not a number as the first one is")),
        (after(20000, 5), ("chain, from element", "is 5, not a tuple")),
        (after(20000, [1]), ("is [1], not a tuple",)),
        (after(3, (-4, 2)), ("row 3", "-4 is negative")),
        ([nx.path_graph(3)], ("element 0 of list_iterator is a graph", "merge_graphs")),
        ([object()], ("element 0 of list_iterator: cannot read edges from builtins.object",)),
        (
            [pd.DataFrame({"source": [1], "target": [2]}), {"source": ["a"], "target": ["b"]}],
            ("element 1", "string ids", "int64 ids", "alike"),
        ),
        ([([1], [2]), ([1], [2, 3])], ("element 1 of list_iterator", "1 sources but 2 targets")),
        ([([1], [2]), ([1], [2], [0.5])], ("element 1", "weight: float64", "the first has int64 ids, no columns")),
        ([([1], [2], [1]), ([1], [2], [0.5])], ("element 1", "0.5 is no int64", "dtypes")),
        (nx.grid_2d_graph(2, 3).edges, ("EdgeView, from element 0 on", "source")),
        (nx.MultiGraph([(1, 2), (1, 2)]).edges, ("MultiEdgeView", "keys of edges", "the graph itself")),
        (pd.DataFrame({"source": [1], "target": [2]}).itertuples(), ("index of a DataFrame", "index=False")),
        ([(memoryview(b"ab"), memoryview(b"cd"))], ("from element 0 on",)),
        ([(True, 2), (3, 4)], ("row 0", "True is neither an integer nor a string")),
        ([(3, 4), (5, np.True_)], ("row 1", "column 'target'")),
        ([(10**5000, 1)], ("row 0", "of more than 128 bits overflows int64")),
        ([pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"c": [1], "d": [2]})], ("element 1", "has no column 'a'")),
        ([(b"a", b"b")], ("list_iterator, from element 0 on", "ids must be integers or strings")),
        ([(1, 2), np.array([3, 4])], ("element 1 is array([3, 4]), not a tuple",)),
        ([(1, 2), "x.csv"], ("element 1 is 'x.csv', not a tuple",)),
        ([("a", "b"), *["x.csv"] * 3000], ("element 1 is 'x.csv', not a tuple",)),
        ([([1], [2]), iter([([1], [2])])], ("element 1 of list_iterator: cannot read edges from builtins.list_iterator",)),
    ],
)
def test_what_is_refused(given, words):
    refused(given if "EdgeView" in type(given).__name__ else iter(given), *words)


def test_what_is_read_as_text_or_not_at_all(tmp_path):
    (tmp_path / "edges.csv").write_text("1,2\n")
    with open(tmp_path / "edges.csv") as file:
        refused(file, "cannot read edges from _io.TextIOWrapper", "give a path")
    refused(b"1,2", "cannot read edges from builtins.bytes")


def test_weights_that_become_floats_later(tmp_path):
    edges = [(i, i + 1, 1) for i in range(3)] + [(7, 8, 0.5)]
    graph = build_csr(itertools.chain([(9, 10, 1)] * 20000, edges), tmp_path / "g", weight="weight", dtypes={"weight": "float64"})
    assert graph.attributes.columns["weight"] == "float64"


def test_a_producer_that_fails_leaves_nothing(tmp_path):
    def edges():
        yield from ((i, i + 1) for i in range(5000))
        raise RuntimeError("the disk is on fire")

    with pytest.raises(InputError, match=r"broke off after 5,000 elements \(RuntimeError: the disk is on fire\)"):
        build_csr(edges(), tmp_path / "g")
    assert not list(tmp_path.iterdir())


def test_chunks_whose_columns_change_places(tmp_path):
    """And chunks without edges, of whatever kind, first or later."""
    frames = [{}, {"callee": ["b"], "caller": ["a"]}, {}, {"caller": ["c"], "callee": ["d"]}]
    chunks = [pd.DataFrame({"caller": [], "callee": [], **frame}) for frame in frames]
    graph = build_csr(iter([*chunks, [], ()]), columns=None, directed=True)
    assert sorted((row["source"], row["target"]) for batch in graph.edges() for row in batch.to_pylist()) == [("a", "b"), ("c", "d")]
    assert build_csr(iter([[], ([1], [2]), []])).num_edges == 1


def test_a_build_that_was_refused_may_be_called_again(tmp_path):
    """With the same iterator: nothing of it is lost."""
    edges = ((i, i + 1) for i in range(50_000))
    with pytest.raises(BudgetError):
        build_csr(edges, tmp_path / "g", memory_budget="1M")
    with pytest.raises(oocgraph.ArgumentError):
        build_csr(edges, tmp_path / "g", dtypes={"other": "float64"})
    assert build_csr(edges, tmp_path / "g").num_edges == 50_000
    chunks = pd.read_csv(io.StringIO("a,b,w\n" + "1,2,3\n4,5,6\n" * 3), chunksize=2)
    with pytest.raises(InputError, match="no column 'v'"):
        build_csr(chunks, columns=("a", "b"), weight="v")
    assert build_csr(chunks, columns=("a", "b"), weight="w", duplicates="keep").num_edges == 6
    with pytest.raises(InputError, match="gives nothing"):
        build_csr(edges)


def test_a_build_that_was_broken_off_may_not():
    """Of an iterator that it has read from."""
    edges = itertools.chain(((i, i + 1) for i in range(50_000)), [(-1, 2)], ((i, i + 1) for i in range(50_000)))
    with pytest.raises(InputError, match="-1 is negative"):
        build_csr(edges)
    for _ in range(2):
        with pytest.raises(InputError, match="chain: a build that was broken off has read from it; make it again"):
            build_csr(edges)
    with pytest.raises(InputError, match="generator: it can be read only once, by the build"):
        oocgraph.estimate((i, i + 1) for i in range(3))


def test_it_is_read_once():
    source = open_source(zip([1, 2], [3, 4], strict=True))
    assert read(source) == ([1, 2], [3, 4], {})
    with pytest.raises(InputError, match="read only once"):
        read(source)


def test_a_table_that_does_not_fit_is_refused(tmp_path):
    build_csr(([0], [1]), tmp_path / "first")  # what this process imports and compiles counts
    table = np.random.default_rng(1).integers(0, 1000, (4_000_000, 2))
    with pytest.raises(BudgetError, match=r"element 0 of generator needs 61\.0 MiB.*set memory_budget to at least"):
        build_csr((table for _ in range(2)), tmp_path / "g", memory_budget=budget_of(tmp_path, 20))
    assert not (tmp_path / "g").exists()


BUILD = """
import json, sys
from oocgraph.ingest.build import build_with_report
from oocgraph.ingest.build_job import BuildOptions
kind, path, budget = sys.argv[1:]
def edges():
    for i in range(400_000 if kind == "numbers" else 40_000):
        a, b = i * 7919 % 30_011 * 10**12, i * 104_729 % 30_011 * 10**12
        yield (a, b, i / 7) if kind == "numbers" else (f"{a:x>1000}", f"{b:x>1000}")
_, report = build_with_report(edges(), path, BuildOptions(memory_budget=budget))
print(json.dumps([report.peak_host_bytes, report.memory_budget, report.num_rows]))
"""


@pytest.mark.parametrize("kind", ["numbers", "long strings"])
def test_tuples_fit_the_least_budget_that_is_named(tmp_path, kind):
    command = [sys.executable, "-c", BUILD, kind, tmp_path / "g"]
    error = subprocess.run([*command, "1M"], capture_output=True, text=True, check=False).stderr
    least = error.rpartition("at least ")[2].split()[0]
    peak, budget, num_rows = json.loads(subprocess.run([*command, least], capture_output=True, text=True, check=True).stdout)
    assert peak <= budget
    assert num_rows == (400_000 if kind == "numbers" else 40_000)


class Sliced:
    """An array of another library, which gives rows and NumPy arrays of those."""

    __module__ = "torch"

    def __init__(self, values, most=10**9):
        self.values, self.shape, self.dtype, self.most = values, values.shape, values.dtype, most

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)

    def __getitem__(self, rows):
        return Sliced(self.values[rows], self.most)

    def __array__(self, dtype=None, copy=None):
        if len(self.values) > self.most:
            raise MemoryError(f"{len(self.values)} rows")
        return self.values


def test_arrays_of_other_libraries(tmp_path):
    edges = np.random.default_rng(3).integers(0, 50, (1000, 2))
    on_disk = zarr.create_array(tmp_path / "edges.zarr", shape=edges.shape, chunks=(64, 2), dtype="int64")
    on_disk[:] = edges
    for given in (on_disk, Sliced(edges, most=100)):
        check(open_source(given), edges.T.tolist(), num_rows=1000)
    assert read(open_source(iter([on_disk, on_disk])))[0] == [*edges[:, 0], *edges[:, 0]]
    for chunk_rows, block_rows in ((7, 3), (7, 20), (5000, 3)):
        chunked = zarr.create_array(tmp_path / f"{chunk_rows}-{block_rows}", shape=edges.shape, chunks=(chunk_rows, 2), dtype="int64")
        chunked[:] = edges
        assert read(open_source(chunked), block_rows)[:2] == (edges[:, 0].tolist(), edges[:, 1].tolist())
    with pytest.raises(InputError, match=r"torch Sliced, rows 0 to 1000: they cannot be read \(1000 rows\); give a NumPy array"):
        read(open_source(Sliced(edges, most=100)), 1000)
    refused(Sliced(edges.T), "torch Sliced has shape (2, 1000)", "transpose")
    refused(Sliced(edges[:, 0]), "shape (1000,)")
    refused(Sliced(edges + 0.5), "row 0 (counted from 0), column 'source'")
    refused(pd.Index([1, 2]), "shape (2,)")
    check(open_source(xr.DataArray(edges)), edges.T.tolist(), num_rows=1000)


def test_arrays_that_give_other_rows_than_they_have():
    """Masked, too few, or of one dimension."""

    class Lying(Sliced):
        def __getitem__(self, rows):
            return self.most(self.values[rows])

    edges = np.arange(20).reshape(10, 2)
    refused(Lying(edges, lambda rows: np.ma.masked_equal(rows, 7)), "row 3 (counted from 0), column 'target'", "missing (masked)")
    refused(Lying(edges, lambda rows: rows[:1]), "rows 0 to 2: they have the shape (1, 2)")
    refused(Lying(edges, lambda rows: rows[:, 0]), "they have the shape (1,)")


def test_other_sources_one_after_the_other():
    """SciPy matrices, Dask frames, and arrays that are larger on disk than what is read of them at once."""
    matrix = sp.coo_array((np.ones(3), ([0, 1, 2], [1, 2, 3])), shape=(9, 9))
    assert read(open_source(iter([matrix, matrix])))[:2] == ([0, 1, 2] * 2, [1, 2, 3] * 2)
    assert bytes_of(matrix) >= 3 * 8
    assert bytes_of(([1, 2], ["a", "b"])) >= sys.getsizeof(1) + sys.getsizeof(2) + 2 * sys.getsizeof("a")
    frame = dd.from_pandas(pd.DataFrame({"source": [1, 2], "target": [3, 4]}), npartitions=2)
    assert read(open_source(iter([frame, frame])))[:2] == ([1, 2] * 2, [3, 4] * 2)
    assert bytes_of(frame) == 0


def test_a_table_without_rows_is_as_any(tmp_path):
    """Its columns are of objects, and Arrow knows them as nulls."""
    full = pd.DataFrame({"source": [1, 2], "target": [2, 3], "s": ["a", "b"], "w": [1.0, 2.0]})
    empty = pd.DataFrame(columns=list(full))
    given = {"columns": ("source", "target", "s"), "weight": "w"}
    build_csr(full, tmp_path / "g", **given)
    for number, tables in enumerate(([full, empty], [empty, full], [empty, empty, full, empty])):
        build_csr(iter(tables), tmp_path / f"g{number}", **given)
        assert_same_store(tmp_path / "g", tmp_path / f"g{number}")
    oocgraph.append_edges(tmp_path / "g0", empty, **given)
    assert_same_store(tmp_path / "g", tmp_path / "g0")
    assert build_csr(empty, **given, dtypes={"s": "string"}).num_edges == 0
    with pytest.raises(InputError, match=r"row 0 .*column 'w': the value is missing \(null\)"):
        build_csr(full.assign(w=None).astype({"w": object}), **given)


def test_what_a_refused_build_has_read_goes_when_another_iterable_is_opened(tmp_path):
    """Without the garbage collector: the budget that is named next counts what the process holds."""
    made = []

    def frames():
        frame = pd.DataFrame({"source": np.arange(9), "target": np.arange(9)[::-1]})
        made.append(weakref.ref(frame))
        yield frame

    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            with pytest.raises(BudgetError):
                build_csr(frames(), tmp_path / "g", memory_budget="1M")
            assert sum(frame() is not None for frame in made) == 1
    finally:
        gc.enable()
