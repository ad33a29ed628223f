"""Edge columns are what is asked for, or what the store's are; a number that a dtype does not hold is refused with its place."""

from __future__ import annotations

import dask.dataframe as dd
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import oocgraph
from oocgraph.errors import ArgumentError, InputError
from oocgraph.ingest.sources import open_source
from oocgraph.ingest.sources.ids import as_dtype, row_place


def written(path, weights, name="w"):
    """Write edges of a path with weights as text; return the file."""
    rows = "".join(f"{i},{i + 1},{weight}\n" for i, weight in enumerate(weights))
    path.write_text(f"source,target,{name}\n{rows}")
    return path


def weights_of(graph, name="w"):
    """Return the values of a column, in the order of the edges."""
    return pa.table(graph.edges())[name].to_pylist()


def test_a_text_file_that_begins_with_whole_numbers(tmp_path):
    file = written(tmp_path / "e.csv", [3] * 12_000 + [0.5])
    with pytest.raises(InputError, match=r"line 12002, column 'w': '0.5' is not int64.*say what it is to be.*\(dtypes\)"):
        oocgraph.build_csr(file, weight="w")
    graph = oocgraph.build_csr(file, weight="w", dtypes={"w": "float64"})
    assert weights_of(graph)[-1] == 0.5
    assert graph.attributes.columns == {"weight": "float64"}
    assert oocgraph.build_csr(file, columns=("source", "target", "w"), dtypes={"w": str}).attributes.columns == {"w": "string"}


@pytest.mark.parametrize("first", [["1.5"], ["2"], ["ab"]])
def test_what_is_added_is_read_as_the_store_is(tmp_path, first):
    kept = {"weight": "w"} if first != ["ab"] else {"columns": ("source", "target", "w")}
    graph = oocgraph.build_csr(written(tmp_path / "one.csv", first), tmp_path / "g", **kept)
    more = oocgraph.append_edges(graph, written(tmp_path / "two.csv", ["7", "8"]), **kept)
    text = first == ["ab"]
    weights = np.array([first[0], "7", "8"], object if text else float)
    table = pd.DataFrame({"source": [0, 0, 1], "target": [1, 1, 2], "w": weights})
    dtypes = {"w": "string" if text else graph.attributes.columns["weight"]}
    whole = oocgraph.build_csr(table, tmp_path / "whole", dtypes=dtypes, **kept)
    assert more.attributes.columns == whole.attributes.columns == graph.attributes.columns
    assert pa.table(more.edges()).equals(pa.table(whole.edges()))


def test_numbers_of_tables_are_added_where_the_store_holds_them(tmp_path):
    graph = oocgraph.build_csr(pd.DataFrame({"source": [0], "target": [1], "w": [1]}), tmp_path / "g", weight="w")
    graph = oocgraph.append_edges(graph, pd.DataFrame({"source": [1], "target": [2], "w": [2.0]}), weight="w")
    assert sorted(weights_of(graph)) == [1, 2]
    with pytest.raises(InputError, match=r"row 1 .*column 'w': the value 2.5 is no int64"):
        oocgraph.append_edges(graph, pd.DataFrame({"source": [1, 5], "target": [2, 6], "w": [2.0, 2.5]}), weight="w")
    with pytest.raises(InputError, match="column 'w': a weight must be a number"):
        oocgraph.append_edges(graph, pd.DataFrame({"source": [1], "target": [2], "w": ["a"]}), weight="w")
    assert sorted(weights_of(oocgraph.open_graph(tmp_path / "g"))) == [1, 2]


def test_files_of_a_folder_agree_by_it(tmp_path):
    for name, weight in (("a", 1), ("b", 1.5)):
        pq.write_table(pa.table({"source": [1], "target": [2 + (name == "b")], "w": [weight]}), tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match=r"differ in dtypes.*say what columns are to be \(dtypes\)"):
        oocgraph.build_csr(tmp_path, weight="w")
    assert sorted(weights_of(oocgraph.build_csr(tmp_path, weight="w", dtypes={"w": np.float64}))) == [1.0, 1.5]


@pytest.mark.parametrize("source", ["networkx", "scipy", "arrays", "npz", "mtx"])
def test_every_kind_of_source(tmp_path, source):
    kept = {"weight": "weight"}
    matrix = sp.coo_array((np.array([3, 4]), ([0, 1], [1, 2])), shape=(3, 3))
    if source == "networkx":
        edges = nx.Graph()
        edges.add_weighted_edges_from([(0, 1, 3), (1, 2, 4)])
    elif source == "npz":
        edges = tmp_path / "m.npz"
        sp.save_npz(edges, matrix)
    elif source == "mtx":
        edges = tmp_path / "m.mtx"
        edges.write_text("%%MatrixMarket matrix coordinate integer general\n3 3 2\n1 2 3\n2 3 4\n")
    else:
        edges = matrix if source == "scipy" else pa.table({"source": [0, 1], "target": [1, 2], "weight": [3, 4]})
        kept = {} if source == "scipy" else kept
    graph = oocgraph.build_csr(edges, dtypes={"weight": "float32"}, **kept)
    assert graph.attributes.columns == {"weight": "float32"}
    assert sorted(weights_of(graph, "weight")) == [3.0, 4.0]
    with pytest.raises(InputError, match=r"it is (int64|uint64|int32), and string is asked for"):
        oocgraph.build_csr(edges, dtypes={"weight": "string"}, **kept)


def test_partitions_of_a_dask_collection():
    frame = pd.DataFrame({"source": [0, 1, 2, 3], "target": [1, 2, 3, 4], "w": [1, 2, 3, 4]})
    graph = oocgraph.build_csr(dd.from_pandas(frame, npartitions=2), weight="w", dtypes={"w": "float64"})
    assert graph.attributes.columns == {"weight": "float64"}
    assert sorted(weights_of(graph)) == [1.0, 2.0, 3.0, 4.0]


def test_a_source_that_was_opened_before_has_its_own():
    source = open_source(pd.DataFrame({"source": [0], "target": [1], "w": [1]}), weight_column="w")
    with pytest.raises(ArgumentError, match="dtypes has float64 for 'w', but its source was opened with int64"):
        oocgraph.build_csr(source, weight="w", dtypes={"w": "float64"})
    assert oocgraph.build_csr(source, weight="w", dtypes={"w": "int64"}).num_edges == 1


@pytest.mark.parametrize(
    ("dtypes", "words"),
    [
        ("float64", "dtypes is 'float64'; give a dict"),
        ({"w": "datetime64[s]"}, "dtypes has 'datetime64.s.' for 'w'"),
        ({"w": "nonsense"}, "dtypes has 'nonsense' for 'w'"),
        ({"w": "complex128"}, "dtypes has 'complex128' for 'w'"),
        ({"x": "int64"}, "dtypes names 'x', which is not kept"),
    ],
)
def test_what_cannot_be_meant(dtypes, words):
    with pytest.raises(ArgumentError, match=words):
        oocgraph.build_csr(pd.DataFrame({"source": [0], "target": [1], "w": [1]}), weight="w", dtypes=dtypes)


EXACT = [
    ([0, 255], "int64", "uint8"),
    ([0, 2**53], "int64", "float64"),
    ([-(2**53), 5], "int64", "float64"),
    ([2.0, -0.0], "float64", "int8"),
    ([0.5, np.nan, -np.inf], "float64", "float32"),
    ([2**63], "uint64", "uint64"),
    ([1, 2], "uint8", "int64"),
    ([2.0**62], "float64", "int64"),
]
INEXACT = [
    ([0, 256], "int64", "uint8"),
    ([0, -1], "int64", "uint64"),
    ([0, 2**63], "uint64", "int64"),
    ([1, 2**53 + 1], "int64", "float64"),
    ([1, 2**24 + 1], "int32", "float32"),
    ([0, 2**64 - 1], "uint64", "float64"),
    ([2.0, 2.5], "float64", "int64"),
    ([1.0, np.nan], "float64", "int64"),
    ([0.0, 2.0**63], "float64", "int64"),
    ([0.0, 2.0**64], "float64", "uint64"),
    ([0.0, np.inf], "float64", "uint64"),
    ([0.0, -1.0], "float64", "uint8"),
    ([0.5, 0.1], "float64", "float32"),
    ([0.5, 1e300], "float64", "float32"),
]


@pytest.mark.parametrize(("values", "given", "asked"), EXACT)
def test_numbers_that_a_dtype_holds(values, given, asked):
    found = as_dtype(np.array(values, given), asked, row_place("it", "w", 0))
    assert found.dtype == asked
    np.testing.assert_array_equal(found, np.array(values, given))


@pytest.mark.parametrize(("values", "given", "asked"), INEXACT)
def test_numbers_that_a_dtype_does_not_hold(values, given, asked):
    with pytest.raises(InputError, match=f"row {9 + len(values) - 1} .*column 'w': the value .* is no {asked}"):
        as_dtype(np.array(values, given), asked, row_place("it", "w", 9))


@pytest.mark.parametrize(
    ("values", "words"), [(pa.array([1], pa.timestamp("us")), "to text, such as 2024"), (pa.array([1], pa.decimal128(9, 2)), "float64")]
)
def test_times_and_decimals_are_refused_with_a_remedy(values, words):
    table = pa.table({"source": [1], "target": [2], "t": values})
    with pytest.raises(InputError, match=words):
        oocgraph.build_csr(table, columns=("source", "target", "t"))
