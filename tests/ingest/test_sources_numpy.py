"""NumPy .npy and .npz, SciPy .npz."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from oocgraph.ingest.sources import open_source
from tests.ingest.helpers import SOURCE, TARGET, check, read, refused

EDGES = (SOURCE, TARGET)
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i4", ">u8"]


def save(path, array):
    np.save(path, array)
    return path


@pytest.mark.parametrize("kind", [*INTEGERS, "float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_every_type_and_order(tmp_path, kind, order):
    path = save(tmp_path / "e.npy", np.array([SOURCE, TARGET], kind).T.copy(order))
    check(open_source(path), EDGES, num_rows=5, id_kind="int64", num_vertices=None, directed=None, extra_vertices=None)


def test_npy_is_cut_into_streams(tmp_path):
    path = save(tmp_path / "e.npy", np.arange(200).reshape(100, 2))
    source = open_source(path)
    assert len(source.streams(10)) == 10
    assert len(source.streams(1)) <= 16
    check(source, (range(0, 200, 2), range(1, 200, 2)))


def test_structured_npy(tmp_path):
    rows = np.zeros(5, [("w", "f4"), ("src", ">i8"), ("dst", "u2"), ("flag", "?")])
    rows["src"], rows["dst"], rows["w"], rows["flag"] = SOURCE, TARGET, 0.5, True
    path = save(tmp_path / "e.npy", rows)
    source = open_source(path, weight_column="w", edge_columns=["flag"])
    check(source, EDGES, {"w": [0.5] * 5, "flag": [1] * 5}, columns={"w": "float32", "flag": "uint8"}, weight="w")
    refused(path, "no column 'x'", "'w', 'src', 'dst', 'flag'", weight_column="x")
    rows["w"][3] = np.nan
    refused(save(path, rows), "row 3", "'w'", "NaN", weight_column="w")
    refused(save(path, rows.reshape(5, 1)), "one dimension")


@pytest.mark.parametrize("shape", [(0, 2)])
def test_npy_without_edges(tmp_path, shape):
    check(open_source(save(tmp_path / "e.npy", np.zeros(shape, np.int32))), ([], []), num_rows=0)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((2, 5), int), ("(2, 5)", "transpose")),
        (np.zeros(5, int), ("(5,)", "(num_edges, 2)")),
        (np.zeros((5, 2, 1), int), ("(5, 2, 1)",)),
        (np.zeros((5, 2), complex), ("complex", "integers")),
        (np.zeros((5, 2), "U3"), ("<U3", "numpy.load", "Parquet")),
        (np.array([[1, 2], [2**24, 3]], "f4"), ("row 1", "'0'", "overflows", "2**24")),
        (np.array([[1, 2], [3, 2**11]], "f2"), ("row 1", "'1'", "overflows", "2**11")),
        (np.array([[1, 2], [3, -4]]), ("row 1", "'1'", "-4 is negative")),
        (np.array([[1, 2], [2**63, 4]], np.uint64), ("row 1", "'0'", "overflows")),
        (np.array([[1, 2], [3, 2.5]]), ("row 1", "fractional")),
        (np.array([[1, np.nan], [3, 2]]), ("row 0", "'1'", "NaN")),
    ],
)
def test_npy_refused(tmp_path, array, words):
    refused(save(tmp_path / "e.npy", array), *words)


def test_npy_of_objects_is_not_unpickled(tmp_path):
    np.save(tmp_path / "e.npy", np.array([["a", "b"]], object), allow_pickle=True)
    refused(tmp_path / "e.npy", "pickled", "Parquet")


def test_npy_damaged(tmp_path):
    path = save(tmp_path / "e.npy", np.arange(200).reshape(100, 2))
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    refused(path, "truncated", "write it again")
    path.write_bytes(data[:50])
    refused(path, "truncated")
    path.write_bytes(b"hello, world, this is not an array")
    assert refused(path, "not a NumPy array").__cause__ is not None


def test_npy_that_shrinks_while_it_is_read(tmp_path):
    path = save(tmp_path / "e.npy", np.arange(200).reshape(100, 2))
    source = open_source(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(Exception, match="was changed while it was read"):
        read(source, 10)


def test_names_of_columns_where_there_are_none(tmp_path):
    path = save(tmp_path / "e.npy", np.zeros((5, 2), int))
    refused(path, "no column 'a'", "None for both in columns", source_column="a")
    refused(path, "no column 'w'", "none", weight_column="w")


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_npz_of_columns(tmp_path, write):
    path = tmp_path / "e.npz"
    write(path, src=np.array(SOURCE, "u4"), dst=np.array(TARGET), w=np.array([0.5, 1, 2, 3, 4], "f4"), other=np.zeros(3))
    check(open_source(path), EDGES, num_rows=5)
    check(open_source(path, weight_column="w"), EDGES, {"w": [0.5, 1, 2, 3, 4]}, weight="w", columns={"w": "float32"})
    refused(path, "no column 'x'", "'src', 'dst', 'w', 'other'", edge_columns=["x"])
    refused(path, "'other' has shape (3,)", edge_columns=["other"])
    write(path, src=np.array(SOURCE), dst=np.array(TARGET), kind=np.array(["a"] * 5))
    refused(path, "'kind'", "<U1", "Parquet or CSV", edge_columns=["kind"])
    write(path, src=np.array(["a"]), dst=np.array(["b"]))
    refused(path, "'src'", "<U1", "numpy.load")
    write(path, src=np.array(SOURCE), dst=np.array([1, 2, 3, 4, -5]))
    refused(path, "row 4", "'dst'", "negative")


def test_npz_of_one_edge_array(tmp_path):
    path = tmp_path / "e.npz"
    np.savez_compressed(path, np.array([SOURCE, TARGET]).T.copy())
    check(open_source(path), EDGES)
    np.savez(path, edges=np.array([SOURCE, TARGET]).T)
    refused(path, "'edges'", "Fortran order")
    np.savez(path, edges=np.array([SOURCE, TARGET]))
    refused(path, "'edges'", "transpose")
    np.savez(path)
    refused(path, "no arrays")


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("compressed", [True, False])
def test_npz_of_scipy(tmp_path, layout, compressed):
    matrix = scipy.sparse.random_array((20, 20), density=0.1, random_state=np.random.default_rng(1)).asformat(layout)
    path = tmp_path / "m.npz"
    scipy.sparse.save_npz(path, matrix, compressed=compressed)
    source = open_source(path)
    for block_rows in (1, 3, 1000):
        u, v, columns = read(source, block_rows)
        back = scipy.sparse.coo_array((columns["weight"], (u, v)), shape=(20, 20))
        assert (back != matrix).nnz == 0
    assert (source.num_vertices, source.num_rows, source.directed, source.weight) == (20, matrix.nnz, None, "weight")


def test_npz_of_scipy_truth_values(tmp_path):
    scipy.sparse.save_npz(tmp_path / "m.npz", scipy.sparse.csr_array(np.eye(3, dtype=bool)))
    check(open_source(tmp_path / "m.npz"), ([0, 1, 2], [0, 1, 2]), num_vertices=3, weight=None)
    scipy.sparse.save_npz(tmp_path / "m.npz", scipy.sparse.csr_array((4, 4), dtype=bool))
    check(open_source(tmp_path / "m.npz"), ([], []), num_vertices=4)


def test_npz_of_scipy_refused(tmp_path):
    path = tmp_path / "m.npz"
    scipy.sparse.save_npz(path, scipy.sparse.csr_array((3, 4)))
    refused(path, "(3, 4)", "square")
    scipy.sparse.save_npz(path, scipy.sparse.dia_array(np.eye(3)))
    refused(path, "'dia'", "tocsr")
    parts = {"format": b"csr", "shape": np.array([2, 2]), "data": np.ones(2), "indices": np.array([0, 5]), "indptr": np.array([0, 1, 2])}
    np.savez(path, **parts)
    refused(path, "row 1", "'indices'", "5 is not below")
    np.savez(path, **parts | {"indptr": np.array([0, 2, 1])})
    refused(path, "'indptr'", "ascend")
    np.savez(path, **{name: array for name, array in parts.items() if name != "indptr"})
    refused(path, "without the array 'indptr'")


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_npz_damaged(tmp_path, write):
    path = tmp_path / "e.npz"
    numbers = np.random.default_rng(1).integers(0, 99, 10_000)
    write(path, src=numbers, dst=numbers)
    data = path.read_bytes()
    path.write_bytes(data[:-500])
    assert refused(path, "truncated").__cause__ is not None
    middle = len(data) // 4
    path.write_bytes(data[:middle] + bytes(100) + data[middle + 100 :])
    refused(path, "'src'", "damaged")


@pytest.mark.parametrize("name", ["e.npy", "e.npz", "m.npz"])
def test_memory_is_bounded(tmp_path, name):
    path, ids = tmp_path / name, np.arange(1_000_000) % 1000
    if name == "e.npy":
        np.save(path, np.stack([ids, ids], axis=1))
    elif name == "e.npz":
        np.savez_compressed(path, src=ids, dst=ids)
    else:
        scipy.sparse.save_npz(path, scipy.sparse.csr_array((ids, (np.arange(1_000_000), ids)), shape=(1_000_000, 1_000_000)))
    source = open_source(path)
    tracemalloc.start()
    num_edges = sum(block.source.size for stream in source.streams(10_000) for block in stream())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert num_edges == 1_000_000
    assert peak < 2 << 20
