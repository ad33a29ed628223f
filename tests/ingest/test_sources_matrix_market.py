"""Matrix Market: every kind of matrix that is a graph, and a reason for each that is not."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from oocgraph import build_csr, export_graph
from oocgraph.errors import InputError
from oocgraph.ingest.sources import open_source
from tests.ingest.helpers import check, peak_anonymous_bytes, read, refused

BANNER = "%%MatrixMarket matrix coordinate"


def write(path, text):
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["m.mtx", "m.mtx.gz", "M.MTX"])
def test_pattern(tmp_path, name):
    path = write(tmp_path / name, f"{BANNER} pattern general\n% comment\n\n  4 4 3\n1 2\n 4  1 \n\n2\t2")
    check(open_source(path), ([0, 3, 1], [1, 0, 1]), num_vertices=4, num_rows=3, directed=None, weight=None, id_kind="int64")


@pytest.mark.parametrize(("field", "dtype"), [("real", "float64"), ("double", "float64"), ("integer", "int64")])
def test_values_are_weights(tmp_path, field, dtype):
    path = write(tmp_path / "m.mtx", f"{BANNER} {field} symmetric\n3 3 2\n2 1 5\n3 3 -7\n")
    source = open_source(path)
    check(source, ([1, 2], [0, 2]), {"weight": [5, -7]}, weight="weight", columns={"weight": dtype}, directed=False)
    refused(path, "no column 'w'", "weight", weight_column="w")
    refused(path, "no column 'row'", "None for both in columns", source_column="row")


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_what_scipy_writes(tmp_path, symmetry):
    matrix = scipy.sparse.random_array((30, 30), density=0.2, random_state=np.random.default_rng(1))
    matrix = matrix + matrix.T if symmetry == "symmetric" else matrix
    scipy.io.mmwrite(tmp_path / "m.mtx", matrix, symmetry=symmetry)
    u, v, columns = read(open_source(tmp_path / "m.mtx"), 7)
    back = scipy.sparse.coo_array((columns["weight"], (u, v)), shape=(30, 30)).toarray()
    expected = matrix.toarray() if symmetry == "general" else np.tril(matrix.toarray())
    np.testing.assert_allclose(back, expected)


def test_no_entries(tmp_path):
    check(open_source(write(tmp_path / "m.mtx", f"{BANNER} pattern general\n5 5 0\n")), ([], []), num_vertices=5)
    check(open_source(write(tmp_path / "m.mtx", f"{BANNER} pattern general\n0 0 0")), ([], []), num_vertices=0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 2\n", ("line 1", "not a Matrix Market header")),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n", ("line 1", "dense")),
        (f"{BANNER} complex general\n2 2 1\n1 1 0 1\n", ("line 1", "'complex'")),
        (f"{BANNER} real skew-symmetric\n2 2 1\n2 1 1\n", ("line 1", "skew-symmetric", "general")),
        (f"{BANNER} pattern hermitian\n2 2 1\n2 1\n", ("line 1", "hermitian")),
        (f"{BANNER} pattern general\n% c\n2 3 1\n2 1\n", ("line 3", "2 x 3", "square")),
        (f"{BANNER} pattern general\n2 2\n2 1\n", ("line 2", "rows columns entries")),
        (f"{BANNER} pattern general\n", ("truncated", "sizes")),
        (f"{BANNER} pattern general\n2 2 3\n1 1\n2 2\n", ("truncated", "2 entries", "3")),
        (f"{BANNER} pattern general\n2 2 1\n1 1\n2 2\n", ("too many lines", "2 entries", "1")),
        (f"{BANNER} pattern general\n2 2 2\n1 1\n3 2\n", ("line 4", "'row'", "3 is not within 1 .. 2")),
        (f"{BANNER} pattern general\n2 2 2\n1 0\n1 2\n", ("line 3", "'column'", "0 is not within 1 .. 2")),
        (f"{BANNER} pattern general\n2 2 2\n1 2\n-1 2\n", ("line 4", "-1 is negative")),
        (f"{BANNER} pattern general\n2 2 2\n1 2\n1 x\n", ("line 4", "'x'")),
        (f"{BANNER} integer general\n2 2 2\n0x1 2 1\n1 1 1\n", ("line 3", "'row'", "'0x1' is not a number")),
        (f"{BANNER} integer general\n2 2 2\n1 2 1\n1 1 0x10\n", ("line 4", "'weight'", "'0x10' is not int64")),
        (f"{BANNER} pattern general\n2 2 2\n1 2\n1 1.5\n", ("line 4", "fractional")),
        (f"{BANNER} pattern general\n2 2 2\n1 2\n1\n", ("line 4", "1 columns but 2")),
        (f"{BANNER} real general\n2 2 2\n1 2 1\n1 1\n", ("line 4", "2 columns but 3")),
        (f"{BANNER} real general\n2 2 2\n1 2 1\n1 1 a\n", ("line 4", "'weight'", "'a'")),
        (f"{BANNER} real general\n2 2 2\n1 2 1\n1 1 nan\n", ("line 4", "'weight'", "missing")),
    ],
)
def test_refused(tmp_path, text, words):
    refused(write(tmp_path / "m.mtx", text), *words)


def test_the_number_of_vertices_cannot_be_changed(tmp_path):
    path = write(tmp_path / "m.mtx", f"{BANNER} pattern general\n5 5 0\n")
    refused(path, "declares 5", num_vertices=6)


def test_truncated_gzip(tmp_path):
    path = write(
        tmp_path / "m.mtx.gz", f"{BANNER} pattern general\n9999 9999 9000\n" + "".join(f"{i} {i * 7 % 9999 + 1}\n" for i in range(1, 9001))
    )
    path.write_bytes(path.read_bytes()[:-2000])
    refused(path, "truncated")


def test_a_long_file_is_read_in_bounded_memory(tmp_path):
    path = write(tmp_path / "m.mtx", f"{BANNER} pattern general\n99999999 99999999 2000000\n" + "12345678 87654321\n" * 2_000_000)
    grown, num_edges = peak_anonymous_bytes(path)
    assert num_edges == 2_000_000
    assert grown < 40 << 20


def test_values_are_read_as_the_floats_that_are_asked_for(tmp_path):
    """An export writes the shortest text of a float32, which is another float64."""
    weight = np.array([0.1, 1e-3, np.inf, 3.25], np.float32)
    graph = build_csr((np.arange(4), np.arange(1, 5), weight), weight="weight", directed=True)
    export_graph(graph, tmp_path / "g.mtx")
    again = build_csr(tmp_path / "g.mtx", weight="weight", dtypes={"weight": "float32"}, directed=True)
    np.testing.assert_array_equal(again.to_scipy().data, graph.to_scipy().data, strict=True)


@pytest.mark.parametrize("name", ["g.mtx", "g.csv", "g.gr"])
def test_numbers_too_large_for_float32_are_refused(tmp_path, name):
    """Arrow reads them as infinities, which may stand beside them."""
    begins = {"g.mtx": f"{BANNER} real general\n9 9 3\n", "g.csv": "source,target,weight\n", "g.gr": "p sp 9 3\n"}[name]
    sep, mark = "," if name == "g.csv" else " ", "a " if name == "g.gr" else ""
    rows = [("1", "2", "inf"), ("2", "3", "0.1"), ("3", "4", "1e300")]
    (tmp_path / name).write_text(begins + "".join(mark + sep.join(row) + "\n" for row in rows))
    options = {"weight": "weight", "directed": True}
    with pytest.raises(InputError, match=r"line \d, column 'weight': the value 1e\+300 is no float32"):
        build_csr(tmp_path / name, dtypes={"weight": "float32"}, **options)
    assert build_csr(tmp_path / name, dtypes={"weight": "float64"}, **options).to_scipy().data.tolist() == [np.inf, 0.1, 1e300]
