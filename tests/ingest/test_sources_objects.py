"""Sources in memory: arrays, tables, matrices, graphs."""

import dask
import dask.array as da
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from oocgraph import build_csr, sssp
from oocgraph.errors import InputError
from oocgraph.ingest.sources import open_source
from tests.ingest.helpers import SOURCE, TARGET, check, plain, read, refused

EDGES = (SOURCE, TARGET)
NAMES = (["a", "lib ç", "", "a"], ["b", "a", "x", "b"])


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i8", "f4", "f8", object])
def test_arrays_of_numbers(kind):
    pair = np.array(SOURCE, kind), np.array(TARGET, kind)
    check(open_source(pair), EDGES, id_kind="int64", num_rows=5, num_vertices=None, directed=None, extra_vertices=None)
    check(open_source(np.array([SOURCE, TARGET], kind).T), EDGES)


def test_lists_tuples_series_and_strided_arrays():
    check(open_source((SOURCE, TARGET)), EDGES)
    check(open_source([tuple(SOURCE), pd.Series(TARGET)]), EDGES)
    both = np.array([SOURCE, TARGET]).T.copy()
    both.flags.writeable = False
    check(open_source((both[:, 0], both[:, 1])), EDGES)


@pytest.mark.parametrize("kind", ["U", object, np.dtypes.StringDType()])
def test_arrays_of_strings(kind):
    check(open_source((np.array(NAMES[0], kind), np.array(NAMES[1], kind))), NAMES, id_kind="string")
    check(open_source(NAMES), NAMES, id_kind="string")
    check(open_source(np.array(NAMES, kind).T), NAMES, id_kind="string")


def test_largest_ids():
    for kind in ("i8", "u8", object):
        check(open_source((np.array([2**63 - 1], kind), np.array([0], kind))), ([2**63 - 1], [0]))


def test_empty_arrays():
    for empty in ([], np.zeros(0, int), np.zeros(0, object)):
        check(open_source((empty, empty)), ([], []), id_kind="int64", num_rows=0)
    check(open_source(np.zeros((0, 2), int), num_vertices=3), ([], []), num_vertices=3)


def test_many_edges_are_cut_into_streams():
    ids = np.arange(100)
    assert len(open_source((ids, ids)).streams(10)) == 10
    assert len(open_source((ids, ids)).streams(1)) <= 16


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (([1, 2], [3]), ("2 sources but 1 targets",)),
        (([[1, 2]], [3]), ("shape (1, 2)", "one dimension")),
        (([1, "a"], [3, 4]), ("row 1", "'source'", "'a'")),
        ((["a", "b"], ["a", 5]), ("row 1", "'target'", "5")),
        (([1, 2], ["a", "b"]), ("int64", "string", "convert")),
        (([1, 2], [3, -1]), ("row 1", "'target'", "-1 is negative")),
        (([1, 2], [3, 1.5]), ("row 1", "1.5 is fractional")),
        (([1, 2], [float("nan"), 1]), ("row 0", "NaN")),
        (([1, 2], [3, None]), ("row 1", "missing (None)")),
        (([1, 2], [3, 2**63]), ("row 1", "overflows")),
        (([1, 2], [3, 2**64]), ("row 1", "overflows")),
        (([1, 2], [3, 2.0**60]), ("row 1", "overflows")),
        (([True, False], [True, True]), ("integers or strings", "bool")),
        (([1j, 2], [3, 4]), ("complex",)),
        (([(1, 2), (3,)], [3, 4]), ("not an array",)),
    ],
)
def test_bad_arrays(pair, words):
    refused(pair, "array", *words)


def test_names_and_numbers_of_arrays():
    refused((SOURCE, TARGET), "no column 'w'", weight_column="w")
    refused((SOURCE, TARGET), "9 is not below", "row 3", num_vertices=9)
    refused((SOURCE, TARGET), "negative", num_vertices=-1)
    refused(NAMES, "integer ids", num_vertices=9)
    refused(np.zeros((2, 5), int), "transpose")


@pytest.mark.parametrize("kind", ["int32", "uint64", "Int64", "float64", "category", object])
def test_pandas_numbers(kind):
    frame = pd.DataFrame({"src": pd.Series(SOURCE).astype(kind), "dst": pd.Series(TARGET).astype(kind)}).set_index(pd.Index(range(7, 12)))
    check(open_source(frame), EDGES, id_kind="int64", num_rows=5)


@pytest.mark.parametrize("kind", [object, "str", "category", "string[pyarrow]", "string[python]"])
def test_pandas_strings(kind):
    frame = pd.DataFrame({"n": [1, 2, 3, 4], "u": pd.Series(NAMES[0]).astype(kind), "v": pd.Series(NAMES[1]).astype(kind)})
    source = open_source(frame, source_column="u", target_column="v", edge_columns=["n"])
    check(source, NAMES, {"n": [1, 2, 3, 4]}, id_kind="string", columns={"n": "int64"})


def test_pandas_refused():
    frame = pd.DataFrame({"source": [1.0, 2, None], "target": [1, 2, 3], "w": [1, "a", None]})
    refused(frame, "pandas DataFrame, row 2", "'source'", "missing")
    refused(frame.assign(source=[1, "a", 2]), "'source'", "neither all numbers nor all strings")
    refused(frame.assign(source=[1, 2, 2**70]), "'source'", "convert it")
    refused(frame.assign(source=np.array([1, 2, 3], ">i8")), "'source'", "order of other processors (>i8)", ".astype('int64')")
    refused(frame.assign(source=1), "'w'", "convert it", weight_column="w")
    refused(frame.assign(source=["a", None, "c"], target="x"), "row 1", "missing")
    refused(frame.assign(source=1), "no column 'x'", "'source', 'target', 'w'", weight_column="x")
    refused(pd.DataFrame({"a": [1], "b": [2], "c": [3]}), "in columns", "'a', 'b', 'c'")
    refused(pd.DataFrame([[1, 2, 3, 4]], columns=["source", "target", "w", "w"]), "more than one column 'w'", weight_column="w")


def test_pandas_without_names():
    check(open_source(pd.DataFrame([[1, 2], [3, 4]])), ([1, 3], [2, 4]))
    check(open_source(pd.DataFrame([[1, 2, 0.5]]), source_column="0", target_column="1", weight_column="2"), ([1], [2]), {"2": [0.5]})


def test_arrow_table_of_several_chunks():
    chunks = [[0, 1], [], [2, 5, 5]]
    table = pa.table({"source": pa.chunked_array(chunks), "target": TARGET, "kind": pa.chunked_array([["a"], ["b", "c", "a", "b"]])})
    check(open_source(table), EDGES)
    check(open_source(table, edge_columns=["kind"]), EDGES, {"kind": ["a", "b", "c", "a", "b"]}, columns={"kind": "string"})
    words = pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()])
    check(open_source(pa.table({"source": words, "target": words})), (["a", "b", "c", "a"], ["a", "b", "c", "a"]))


def test_empty_table():
    check(open_source(pa.table({"source": [], "target": []})), ([], []), id_kind="int64", num_rows=0)
    check(open_source(pd.DataFrame({"source": [], "target": []})), ([], []))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_scipy_matrix(layout, make):
    matrix = make(scipy.sparse.random_array((20, 20), density=0.1, random_state=np.random.default_rng(1))).asformat(layout)
    source = open_source(matrix)
    for block_rows in (1, 3, 1000):
        u, v, columns = read(source, block_rows)
        assert (scipy.sparse.csr_array((columns["weight"], (u, v)), shape=(20, 20)) != scipy.sparse.csr_array(matrix)).nnz == 0
    assert (source.num_vertices, source.directed, source.weight) == (20, None, "weight")


def test_scipy_matrix_of_truth_values_has_no_weight():
    check(open_source(scipy.sparse.eye_array(3, dtype=bool).tocsr()), ([0, 1, 2], [0, 1, 2]), weight=None, num_vertices=3)
    check(open_source(scipy.sparse.csr_array((4, 4), dtype=bool)), ([], []), num_vertices=4)
    check(open_source(scipy.sparse.csr_array((0, 0), dtype=bool)), ([], []), num_vertices=0)


def test_scipy_matrix_refused():
    refused(scipy.sparse.csr_array((3, 4)), "3x4", "square")
    refused(scipy.sparse.csr_array([[1j]]), "complex")
    refused(scipy.sparse.csr_array([[0, 1.0], [np.nan, 0]]), "row 1", "'weight'", "NaN")
    refused(scipy.sparse.csr_array((3, 3)), "declares 3", num_vertices=4)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_networkx(kind):
    graph = kind(list(zip(*EDGES, strict=True)))
    graph.add_node(77)
    graph.add_edge(4, 4)
    source = open_source(graph)
    u, v, _ = read(source)
    assert sorted(map(sorted, zip(u, v, strict=True))) == sorted(map(sorted, [*zip(*EDGES, strict=True), (4, 4)]))
    assert (source.directed, source.num_rows, source.num_vertices) == (graph.is_directed(), 6, None)
    assert plain(source.extra_vertices) == [77]
    assert source.extra_vertices.dtype == np.int64


def spare_matrix(kind):
    """Make a matrix of three entries with room behind them, which SciPy takes as it is."""
    matrix = kind(np.array([[0, 1, 0], [0, 0, 2], [3, 0, 0.0]]))
    matrix.data = np.append(matrix.data, np.full(100, 9.0))
    matrix.indices = np.append(matrix.indices, np.zeros(100, matrix.indices.dtype))
    return matrix


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_scipy_matrix_with_room_behind_its_entries(kind, tmp_path):
    """Of the object and of its file."""
    matrix = spare_matrix(kind)
    scipy.sparse.save_npz(tmp_path / "m.npz", matrix)
    for source in (open_source(matrix), open_source(tmp_path / "m.npz")):
        assert sorted(zip(*read(source)[:2], strict=True)) == [(0, 1), (1, 2), (2, 0)]
        assert source.num_rows == 3


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"indptr": [0, 2, 1, 3]}, ("'indptr'", "ascend")),
        ({"indptr": [1, 1, 2, 3]}, ("'indptr'", "ascend from 0")),
        ({"indptr": [0, 1, 2, 4]}, ("'indptr'", "at most 3")),
        ({"indptr": [0, 1, 2, -3]}, ("'indptr'", "ascend")),
        ({"indptr": [0, 1, 3]}, ("'indptr'", "(4,)")),
        ({"indptr": [0.0, 1, 2, 3]}, ("'indptr'", "integers")),
        ({"indices": [0, 1, 3]}, ("row 2", "3 is not below")),
        ({"indices": [0, -1, 2]}, ("row 1", "-1 is negative")),
        ({"indices": [0, 1]}, ("'indices'", "(2,)")),
        ({"data": [1.0, 2.0]}, ("'data'", "(2,)")),
    ],
)
def test_scipy_matrix_whose_arrays_do_not_fit_is_refused(arrays, words, tmp_path):
    """Of the object and of its file; before an element is looked up that is not there."""
    matrix = scipy.sparse.csr_array(np.array([[0, 1, 0], [0, 0, 2], [3, 0, 0.0]]))
    for name, values in arrays.items():
        setattr(matrix, name, np.array(values))
    refused(matrix, "csr 3x3", *words)
    parts = {name: getattr(matrix, name) for name in ("indptr", "indices", "data")}
    np.savez(tmp_path / "m.npz", format=b"csr", shape=np.array([3, 3]), **parts)
    refused(tmp_path / "m.npz")


def test_coordinates_that_do_not_fit_are_refused():
    matrix = scipy.sparse.coo_array(np.eye(3))
    matrix.data = np.ones(2)
    refused(matrix, "coo 3x3", "'data' (2,)", "make the matrix again")


@pytest.mark.parametrize(("kind", "word"), [(np.longdouble, "astype('float64')"), (complex, "convert it")])
def test_weights_of_more_than_64_bits_are_refused(kind, word, tmp_path):
    matrix = scipy.sparse.csr_array(np.eye(2, dtype=kind))
    scipy.sparse.save_npz(tmp_path / "m.npz", matrix)
    np.savez(tmp_path / "e.npz", source=np.arange(2), target=np.arange(2), w=np.ones(2, kind))
    for source, name in ((matrix, None), (tmp_path / "m.npz", None), (tmp_path / "e.npz", "w")):
        with pytest.raises(InputError, match="numbers of up to 64 bits") as caught:
            open_source(source, weight_column=name)
        assert word in str(caught.value)


@pytest.mark.parametrize("ids", [[1, 2, 3], [0.5, 2, 3], ["a", "b", "c"], np.array([1, 2, 3], object)])
def test_masked_values_are_missing(ids):
    """Whatever stands behind the mask; an array that masks nothing is like another."""
    masked = np.ma.masked_array(ids, mask=[0, 1, 0])
    refused((masked, np.array(ids)), "row 1", "'source'", "missing (masked)")
    refused([np.array(ids), masked], "row 1", "'target'", "missing (masked)")
    refused(np.ma.stack([np.ma.masked_array(ids), masked], axis=1), "row 1", "'target'", "missing (masked)")
    check(open_source((np.ma.masked_array([1, 2]), [2, 3])), ([1, 2], [2, 3]))
    check(open_source(np.ma.masked_array([[1, 2], [2, 3]])), ([1, 2], [2, 3]))


def test_masked_weights_are_missing():
    matrix = scipy.sparse.csr_array(np.array([[0, 1], [2, 0]]))
    matrix.data = np.ma.masked_array([1, 2], mask=[0, 1])
    refused(matrix, "row 1", "'weight'", "missing (masked)")


def test_graphs_and_tasks_are_no_edges(tmp_path):
    """What the message says to give instead is read."""
    graph, delayed = build_csr(([1, 2], [2, 3])), dask.delayed(int)()
    for source in (graph, graph.save(tmp_path / "g.zarr")):
        refused(source, str(source.url), "graph.edges()", "merge_graphs")
        assert build_csr(source.edges()).num_edges == 2
    refused(delayed, "Dask Delayed", "from_delayed", "compute()")
    refused((delayed, [1]), "the source is a Delayed")


def test_networkx_names_and_attributes():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", w=1, kind="x")
    graph.add_edge("b", "c", w=2.5, kind="y")
    graph.add_nodes_from(["lonely", "alone"])
    source = open_source(graph, weight_column="w", edge_columns=["kind"])
    check(source, (["a", "b"], ["b", "c"]), {"w": [1, 2.5], "kind": ["x", "y"]}, weight="w", columns={"w": "float64", "kind": "string"})
    assert plain(source.extra_vertices) == ["lonely", "alone"]


def test_networkx_without_edges():
    check(open_source(nx.Graph()), ([], []), extra_vertices=None)
    assert plain(open_source(nx.empty_graph(3)).extra_vertices) == [0, 1, 2]


def test_networkx_refused():
    refused(nx.grid_2d_graph(2, 2), "(0, 0)", "convert_node_labels_to_integers")
    refused(nx.Graph([(1, "a")]), "1 labels are integers and 1 are strings")
    refused(nx.Graph([(1, -2)]), "row 0", "-2 is negative")
    refused(nx.Graph([(1, 2**64)]), "overflows")
    refused(nx.Graph([(1, 2, {"v": 1})]), "edge (1, 2)", "no attribute 'w'", "'v'", weight_column="w")
    refused(nx.Graph([(1, 2, {"w": "a"})]), "edge (1, 2)", "'a', not a number", weight_column="w")
    refused(nx.Graph([(1, 2, {"w": float("nan")})]), "NaN", weight_column="w")
    refused(nx.Graph([(1, 2, {"w": "a"}), (2, 3, {"w": 1})]), "text on some edges", edge_columns=["w"])
    refused(nx.Graph([(1, 2)]), "no column 'u'", "None for both in columns", source_column="u")


@pytest.mark.parametrize("num_edges", [1, 2, 3])
def test_a_list_of_tuples_is_a_list_of_edges(num_edges):
    """Of two, too, which two columns in a tuple, or in lists, are not."""
    edges = [("a", "b"), ("c", "d"), ("d", "a")][:num_edges]
    source, target, _ = read(open_source(edges))
    assert list(zip(source, target, strict=True)) == edges
    assert read(open_source([["a", "b"], ["c", "d"]]))[0] == ["a", "b"]


@pytest.mark.parametrize(("weights", "dtype"), [([3, 4, 5], "int64"), ([0.5, 2, 1.5], "float64"), (np.arange(3, dtype="f4"), "float32")])
def test_tuples_of_three_have_a_weight(weights, dtype):
    """As NetworkX takes weighted edges; a matrix and a file of three columns have it by themselves, too."""
    source, target = ["a", "c", "d"], ["b", "d", "a"]
    edges = list(zip(source, target, weights, strict=True))
    check(open_source(edges), (source, target), {"weight": list(weights)}, weight="weight", columns={"weight": dtype})
    assert build_csr(edges).attributes.weighted
    check(open_source(edges, source_column="source", target_column="target"), (source, target), {"weight": list(weights)})
    refused(edges, "no column 'cost'", "weight", weight_column="cost")


@pytest.mark.parametrize(
    ("weights", "dtype"),
    [([2**63 + 1, 1], "uint64"), ([-(2**63), 2**63 - 1], "int64"), ([2**53, 0.5], "float64"), ([np.uint64(2**63), np.int8(1)], "uint64")],
)
def test_large_weights_of_tuples_are_exact(weights, dtype):
    """NumPy makes floats of some of them."""
    source = open_source([(1, 2, weights[0]), (2, 3, weights[1])])
    assert source.columns == {"weight": dtype}
    assert read(source)[2] == {"weight": [int(weights[0]), weights[1]]}


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array])
def test_three_columns_have_a_weight(make):
    """As a pair of columns beside a third one."""
    columns = (make(NAMES[0]), make(NAMES[1]), make([0.5, 2.0, 1.5, 3.0]))
    check(open_source(columns), NAMES, {"weight": [0.5, 2.0, 1.5, 3.0]}, id_kind="string", weight="weight")
    graph = build_csr((make([1, 2, 3]), make([2, 3, 1]), make([2**53 + 1, 1, 7])))
    assert graph.attributes.weighted
    assert sssp(graph, 1)[2] == 8


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (([1], [2], [3, 4]), ("tuple of arrays", "{'source': 1, 'target': 1, 'weight': 2}", "one of each")),
        (([1], [2], ["3"]), ("row 0", "the weight '3' is not a number")),
        (([1, 2], [2, 3], np.array(["3", "4"])), ("the weights are <U1, not numbers",)),
        (([1, 2], [2, 3], np.array([3, None])), ("row 1", "the weight None is not a number")),
        (([1, 2], [2, 3], np.ma.array([3, 4], mask=[0, 1])), ("row 1", "missing")),
        (([1, 2], [2, 3], np.eye(2)), ("the weights have shape (2, 2)",)),
        (([1, 2], [2, 3], [1, np.nan]), ("row 1", "NaN")),
        (([1, 2], [2, "a"], [1, 2]), ("not a number",)),
        (([1, 2], [2, 3], da.ones(2)), ("Dask DataFrame",)),
        (((1, 2), (2, 3), (3, 4)), ("(sources, targets, weights)", "list of tuples")),  # three edges, perhaps
        ([[1, 2], [2, 3], [3, 4]], ("(sources, targets, weights)", "list of tuples")),
    ],
)
def test_three_columns_are_refused(columns, words):
    """What is missing, no number, or may as well be edges."""
    refused(columns, *words)


@pytest.mark.parametrize("make", [list, tuple, np.array, pd.Series, pa.array])
def test_a_dict_holds_columns_by_name(make):
    """As a table of them does."""
    columns = {"src": make(NAMES[0]), "dst": make(NAMES[1]), "cost": make([1, 2, 3, 4])}
    check(open_source(columns), NAMES, id_kind="string")
    check(open_source(columns, weight_column="cost"), NAMES, {"cost": [1, 2, 3, 4]}, weight="cost")
    check(open_source({"src": range(5), "dst": make(TARGET)}), (range(5), TARGET), id_kind="int64")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, ("a dict is read as columns by name", "source and target")),
        ({0: [1, 2], 1: [2]}, ("none of 0, 1 are source and target", "networkx.Graph")),
        ({"a": ["b"], "b": ["c"]}, ("none of 'a', 'b' are source and target", "networkx.Graph")),  # neighbours of each vertex
        ({"src": [1], "dst": [2, 3]}, ("'src' has 1, 'dst' has 2",)),
        ({"src": "ab", "dst": "cd"}, ("'src'", "'ab' is no array or list")),
        ({"src": {1, 2}, "dst": [2, 3]}, ("'src'", "is no array or list")),  # in no order
        ({"src": 1, "dst": 2}, ("'src'", "1 is no array or list")),
        ({"src": np.eye(2), "dst": [1, 2]}, ("'src'", "ndarray of shape (2, 2) is no array or list")),
        ({"src": [1, "a"], "dst": [1, 2]}, ("'src'", "neither all numbers nor all strings")),
        ({"src": [1, None], "dst": [1, 2]}, ("row 1", "missing")),
        ({"src": np.ma.array([1, 2], mask=[0, 1]), "dst": [1, 2]}, ("row 1", "missing")),
        ({"src": np.array([1, 2], ">i4"), "dst": [1, 2]}, ("other processors", ".astype('int32')")),
    ],
)
def test_dicts_that_are_no_columns_are_refused(columns, words):
    refused(columns, *words)


def test_a_structured_array_has_a_field_for_each_column():
    """As the same array in a .npy file."""
    kind = [("a", "i4"), ("b", "i4"), ("cost", "f8")]
    edges = np.array(list(zip(SOURCE, TARGET, [0.5] * 5, strict=True)), kind)
    check(open_source(edges[["a", "b"]]), EDGES)
    check(open_source(edges, weight_column="cost"), EDGES, {"cost": [0.5] * 5}, weight="cost")
    check(open_source(edges.astype([(name, f">{size}") for name, size in kind]), edge_columns=["cost"]), EDGES, {"cost": [0.5] * 5})
    refused(edges, "structured array", "which columns are the edges?")


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([(1, 2), (2, 3), (2, 3, 4)], ("element 2 is (2, 3, 4)", "as a table")),
        ([(1, 2), (2, 3), 3], ("element 2 is 3",)),
        ([(1, 2, 3, 4)], ("element 0 is (1, 2, 3, 4)", "as a table", "(sources, targets)")),
        ([(1, 2, 3), (2, 3)], ("element 1 is (2, 3)", "(source, target, weight) as the first one is", "as a table")),
        ([(1, 2, 3), (2, 3, "x")], ("row 1", "the weight 'x' is not a number")),
        ([(1, 2, True)], ("row 0", "the weight True is not a number")),
        ([(1, 2, None)], ("row 0", "the weight None is not a number")),
        ([(1, 2, 1.5), (2, 3, float("nan"))], ("row 1", "NaN")),
        ([(1, 2, {"weight": 3})], ("row 0", "is not a number", "the NetworkX graph itself")),
        ([(1, 2, 2**64)], ("row 0", "cannot be held: weights are integers or floats of 64 bits")),
        ([(1, 2, -1), (1, 2, 2**63)], ("row 0", "cannot be held")),
        ([(1, 2, 2**53 + 1), (1, 2, 0.5)], ("row 0", "the weight 9007199254740993 cannot be held: others have fractions")),
        ([(1, 2, 10**400), (1, 2, 0.5)], ("row 0", "cannot be held")),
        ([], ("neither paths nor edges", "([], [])")),
        ([(1, 2), [2, 3]], ("element 1 is [2, 3]",)),
        ([[1, 2], (2, 3)], ("element 0 is [1, 2]",)),
        ([(1, "a")], ("the sources are int64 and the targets string",)),
        ([(1, 2), ("a", 3)], ("row 1", "'a' is not a number")),
    ],
)
def test_lists_that_are_no_edges_are_refused(edges, words):
    refused(edges, *words)
