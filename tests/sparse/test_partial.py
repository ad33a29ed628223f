"""Matrices cut at any nonzero: shares alike, nothing copied, and together the matrix again."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.errors import CorruptStoreError, OocGraphError
from oocgraph.sparse.balanced import balanced_partition, cut, merge
from oocgraph.sparse.partial import PartialCOO, PartialCSC, PartialCSR
from oocgraph.sparse.stored import StoredMatrix
from oocgraph.store.graph import open_graph
from oocgraph.store.slices import StoredSlice
from tests.reference_build import reference_build
from tests.sparse.matrices import CASES, FORMATS, ForeignMatrix, in_format, of_rows
from tests.stores import random_edges, rewrite

KINDS = {"csr": PartialCSR, "csc": PartialCSC, "coo": PartialCOO}
ARRAYS = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"), "coo": ("data", "row", "col")}


def assert_same(one, other):
    """Check class, shape, arrays of the same dtypes."""
    assert type(one) is type(other)
    assert one.shape == other.shape
    for name in ARRAYS[other.format]:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype == getattr(other, name).dtype


def own_lines(matrix):
    """Line of each nonzero, by which the matrix is sorted."""
    if matrix.format == "coo":
        return matrix.row if (np.diff(matrix.row) >= 0).all() else matrix.col
    return np.repeat(np.arange(matrix.indptr.size - 1), np.diff(matrix.indptr))


def check(matrix, parts):
    """Parts are balanced, tile nonzeros and lines, have local pointers that make the right rows, and merge."""
    num_lines = matrix.shape[1] if matrix.format == "csc" or own_lines(matrix) is getattr(matrix, "col", None) else matrix.shape[0]
    lines = own_lines(matrix)
    sizes = [part.num_entries for part in parts]
    assert sum(sizes) == matrix.nnz
    begun = 0
    for part in parts:
        assert isinstance(part, KINDS[matrix.format])
        assert part.first_line + part.first_line_partial == begun
        begun = part.stop_line
        here = lines[part.start : part.stop]
        assert ((here >= part.first_line) & (here < part.stop_line)).all()
        assert part.first_line_partial == bool(part.first_line < num_lines and np.any(lines[: part.start] == part.first_line))
        if matrix.format != "coo":
            assert part.indptr.dtype == matrix.indptr.dtype
            assert part.indptr.size == part.num_lines + 1
            np.testing.assert_array_equal(np.repeat(np.arange(part.first_line, part.stop_line), np.diff(part.indptr)), here)
        for name in ("values", "indices", "rows", "columns", "pointers"):
            slice_ = getattr(part, name, None)
            assert slice_ is None or slice_.base is not None, "a part holds views"
    assert begun == num_lines
    assert_same(merge(parts), matrix)


@pytest.mark.parametrize("num_parts", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_parts_differ_by_one_nonzero_and_merge_to_the_matrix(case, form, num_parts):
    matrix = in_format(CASES[case], form)
    parts = balanced_partition(matrix, num_parts)
    sizes = [part.num_entries for part in parts]
    assert len(parts) == num_parts
    assert max(sizes) - min(sizes) <= 1
    check(matrix, parts)


@pytest.mark.parametrize("num_parts", [1, 2, 5])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_parts_of_parts_are_parts_of_the_matrix(case, form, num_parts):
    """A worker cuts what it was given again: over its threads, or into pieces."""
    matrix = in_format(CASES[case], form)
    parts = [again for part in balanced_partition(matrix, num_parts) for again in balanced_partition(part, 3)]
    check(matrix, parts)
    (part,) = balanced_partition(matrix, 1)
    assert_same(merge(cut(part, [0, part.stop // 2, part.stop])), matrix)


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=20), st.sampled_from(FORMATS), st.data())
def test_any_cuts(lengths, form, data):
    matrix = in_format(of_rows(lengths), form)
    inner = data.draw(st.lists(st.integers(0, matrix.nnz), max_size=6))
    check(matrix, cut(matrix, [0, *sorted(inner), matrix.nnz]))


def test_views_share_memory_with_the_matrix():
    """A part of a hundred million nonzeros costs as little as one of ten."""
    matrix = of_rows([3, 5, 0, 2])
    for part in balanced_partition(matrix, 3):
        assert np.shares_memory(part.indices, matrix.indices)
        assert np.shares_memory(part.values, matrix.data)
        assert np.shares_memory(part.pointers, matrix.indptr)


def test_names_of_rows_and_columns():
    matrix = CASES["one huge row"]
    rows = balanced_partition(matrix, 2)[1]
    assert (rows.start_row, rows.stop_row, rows.first_row_partial) == (2, 5, True)
    columns = balanced_partition(matrix.T, 2)[1]
    assert (columns.start_column, columns.stop_column, columns.first_column_partial) == (2, 5, True)


@pytest.mark.parametrize("form", FORMATS)
def test_transposed_parts_are_parts_of_the_transpose(form):
    matrix = in_format(CASES["huge row among others"], form)
    transposed = [part.transposed() for part in balanced_partition(matrix, 3)]
    assert {part.shape for part in transposed} == {matrix.shape[::-1]}
    again = [part.transposed() for part in transposed]
    assert_same(merge(again), matrix)


def test_long_coo_is_checked_in_blocks(monkeypatch):
    monkeypatch.setattr("oocgraph.sparse.balanced.SCAN_ENTRIES", 3)
    for num_entries in range(9):
        rows = np.arange(num_entries)
        good = sp.coo_array((np.ones(num_entries), (rows, rows[::-1])), shape=(9, 9))
        assert balanced_partition(good, 2)[0].by == "row"
        for at in range(1, num_entries):
            bad = rows.copy()
            bad[at] = 0
            bad[at - 1] = 8
            matrix = sp.coo_array((np.ones(num_entries), (bad, bad)), shape=(9, 9))
            with pytest.raises(OocGraphError, match=r"sorted neither by row nor by column.*argsort.*tocsr"):
                balanced_partition(matrix, 2)


@pytest.mark.parametrize("matrix", [sp.lil_array((3, 3)), sp.dia_array((3, 3)), np.eye(3), "g.zarr"], ids=["lil", "dia", "numpy", "text"])
def test_what_cannot_be_cut_is_refused_with_the_remedy(matrix):
    with pytest.raises(OocGraphError, match=r"only CSR, CSC and COO.*tocsr"):
        balanced_partition(matrix, 2)


@pytest.mark.parametrize("parts", [0, -1, 1.5, True, None])
def test_number_of_parts_must_be_positive(parts):
    with pytest.raises(OocGraphError, match=r"parts is .* 1 or more"):
        balanced_partition(CASES["one"], parts)


@pytest.mark.parametrize("bounds", [[0], [0, 5, 3, 36], [1, 36], [0, 35]])
def test_bounds_must_ascend_over_the_whole_matrix(bounds):
    with pytest.raises(OocGraphError, match="from 0 to 36"):
        cut(CASES["rows of one length"], bounds)


def test_parts_that_do_not_fit_together_are_not_merged():
    one, two, three = balanced_partition(CASES["rows of one length"], 3)
    for wrong in ([two, three], [one, three], [one, two, two], [one, two.transposed(), three]):
        with pytest.raises(OocGraphError, match="all parts of one matrix, in order"):
            merge(wrong)
    with pytest.raises(OocGraphError, match="no parts to merge"):
        merge([])


@pytest.mark.parametrize("form", FORMATS)
def test_arrays_of_another_library_stay_there(form):
    """As CuPy's, which refuse to become NumPy arrays: pointers are made by the library that owns them."""
    matrix = in_format(CASES["empty rows everywhere"], form)
    foreign = ForeignMatrix.of(matrix)
    parts = balanced_partition(foreign, 4)
    for part, plain in zip(parts, balanced_partition(matrix, 4), strict=True):
        assert (part.start, part.stop, part.first_line, part.stop_line, part.first_line_partial) == (
            plain.start, plain.stop, plain.first_line, plain.stop_line, plain.first_line_partial,
        )  # fmt: skip
        if matrix.format != "coo":
            np.testing.assert_array_equal(part.indptr.values, plain.indptr)
    again = merge(parts).plain()
    np.testing.assert_array_equal(again.data, matrix.data)
    for one, name in zip(again.arrays, ARRAYS[matrix.format][1:], strict=True):
        np.testing.assert_array_equal(one, getattr(matrix, name))


class TestStores:
    @pytest.fixture(params=["none", "zstd"])
    def store(self, request, tmp_path):
        reference_build(*random_edges(3), tmp_path / "g", directed=True)
        return rewrite(tmp_path / "g", tmp_path / "h", codec=request.param)

    @pytest.mark.parametrize("num_parts", [1, 3, 1000])
    def test_parts_are_ranges_of_the_files(self, store, num_parts):
        parts = balanced_partition(store, num_parts)
        assert all(isinstance(slice_, StoredSlice) for part in parts for slice_ in (part.indices, part.pointers))
        matrix = merge(parts)
        np.testing.assert_array_equal(matrix.indptr, store.read("out/indptr"))
        np.testing.assert_array_equal(matrix.indices, store.read("out/indices"))
        assert (matrix.data == 1).all()
        plain = balanced_partition(matrix, num_parts)
        for part, other in zip(parts, plain, strict=True):
            loaded = part.load()
            np.testing.assert_array_equal(loaded.indices, other.indices)
            np.testing.assert_array_equal(part.indptr, other.indptr)
            assert loaded.load() is loaded
            assert part.entry_bytes == loaded.entry_bytes

    def test_cutting_reads_no_edges(self, store, monkeypatch):
        matrix = StoredMatrix(store, "in")
        monkeypatch.setattr(StoredSlice, "read", None)
        monkeypatch.setattr(matrix.indices, "_page", None)
        parts = balanced_partition(matrix, 8)
        assert parts[-1].stop == store.attributes.num_stored_edges
        assert parts[0].values is None

    def test_parts_are_read_into_buffers(self, tmp_path):
        reference_build(*random_edges(3), tmp_path / "g")
        part = balanced_partition(open_graph(tmp_path / "g"), 2)[1]
        buffer = np.zeros(part.num_entries + 5, np.uint32)
        loaded = part.load({"indices": buffer})
        assert loaded.indices.base is buffer
        np.testing.assert_array_equal(loaded.indices, part.load().indices)


def test_slices_of_stored_arrays(tmp_path):
    """They index and slice as arrays do, and refuse what they cannot."""
    reference_build(*random_edges(5), tmp_path / "g")
    store = open_graph(tmp_path / "g")
    array = store.read("out/indices")
    whole = StoredSlice(store.array("out/indices"))
    assert (len(whole), whole.dtype, whole.nbytes) == (array.size, array.dtype, array.nbytes)
    np.testing.assert_array_equal(whole[3:40][5:9].read(), array[8:12])
    assert whole[3:40][5] == array[8]
    assert whole[7:3].size == 0
    assert "out/indices[3:40]" in repr(whole[3:40])
    for wrong in (slice(None, None, 2), array.size, -1):
        with pytest.raises(IndexError):
            whole[wrong]


@pytest.mark.parametrize("lookups", [True, False])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_values_are_found_among_ascending_elements(tmp_path, monkeypatch, codec, lookups):
    """One by one, or in a stream of blocks; of a range of the array too."""
    reference_build(*random_edges(3), tmp_path / "g", directed=True)
    indptr = StoredSlice(rewrite(tmp_path / "g", tmp_path / "h", codec=codec).array("out/indptr"))
    monkeypatch.setattr("oocgraph.store.slices.STREAMED_PAGES", 0 if lookups else 1 << 30)
    monkeypatch.setattr("oocgraph.store.slices.STREAMED_ELEMENTS", 3)
    monkeypatch.setattr(indptr, "_page_length", 2)
    for first, stop in ((0, len(indptr)), (5, len(indptr)), (5, 11), (4, 5)):
        elements = indptr[first:stop].read()
        values = list(range(int(elements[0]), int(elements[-1]) + 3))
        positions, below = indptr[first:stop].last_at_most(values)
        expected = np.searchsorted(elements, values, side="right") - 1
        assert positions == expected.tolist()
        assert below == (elements[expected] < values).tolist()
    assert indptr.last_at_most([]) == ([], [])


@pytest.mark.parametrize("lookups", [True, False])
def test_pointers_that_no_cut_can_be_found_among_are_refused(tmp_path, monkeypatch, lookups):
    """The first row would begin behind the nonzero that is looked for: the search must not go on before the array."""
    reference_build(*random_edges(3), tmp_path / "g", directed=True)
    path = tmp_path / "g" / "out" / "indptr" / "c" / "0"
    pointers = np.fromfile(path, np.int64)
    pointers[0] = pointers[-1]
    pointers.tofile(path)
    monkeypatch.setattr("oocgraph.store.slices.STREAMED_PAGES", 0 if lookups else 1 << 30)
    with pytest.raises(CorruptStoreError, match=r"out/indptr/c/0: element 0 of out/indptr is \d+, but must be"):
        balanced_partition(open_graph(tmp_path / "g", check_pages=False), 5)
