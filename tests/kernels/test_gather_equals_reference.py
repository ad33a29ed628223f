"""The compiled kernels that gather rows for a device against the plain ones, on random rows, pieces and files."""

from __future__ import annotations

import contextlib
import os
import tempfile

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oocgraph.compiled.crc32c import page_checksums
from oocgraph.kernels import gather
from oocgraph.kernels.rows import CHECKSUM_FAILED, RANGE_FAILED, READ_FAILED, ChunkFiles, file_extent
from tests.oracles import gather as reference_gather

SEEDS = st.integers(0, 2**32)


class Rows:
    """Random rows of a random array of edges, and a piece that cuts them anywhere."""

    def __init__(self, seed, *, ascending=True):
        self.rng = rng = np.random.default_rng(seed)
        dtype = rng.choice([np.uint32, np.int64])
        self.indices = rng.integers(0, 2**31, int(rng.integers(1, 9_000))).astype(dtype)
        longest = int(rng.choice([1, 5, 300, 6_000]))
        degree = rng.integers(0, longest + 1, int(rng.integers(1, 30)))
        if ascending:  # distinct rows of one graph, in order
            begins = np.concatenate([[0], np.cumsum(degree + rng.integers(0, int(rng.choice([1, 50, 3000])), degree.size))])
            keep = begins[1:] <= self.indices.size
            start, degree = begins[:-1][keep], degree[keep]
        else:
            degree = np.minimum(degree, self.indices.size)
            start = rng.integers(0, self.indices.size - degree + 1)
        if degree.sum() == 0:
            start, degree = np.zeros(1, np.int64), np.ones(1, np.int64)
        self.start = start.astype(np.int64)
        self.offset = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
        self.e0, self.e1 = np.sort(rng.choice(self.offset[-1] + 1, 2, replace=False)).tolist()
        self.i0, self.i1 = (int(np.searchsorted(self.offset, e, side="right")) for e in (self.e0, self.e1 - 1))
        self.i0 -= 1
        self.resident = self.indices[: rng.integers(0, self.indices.size + 1) * rng.integers(0, 2)].copy()
        self.page_shift = (4096 // self.indices.itemsize).bit_length() - 1
        self.wanted = self.indices[reference_gather.edge_numbers(self.start, self.offset, self.e0, self.e1)]

    @property
    def arguments(self):
        return self.start, self.offset, self.i0, self.i1, self.e0, self.e1, self.resident

    @contextlib.contextmanager
    def files(self, *, checked, bad_page=None, cut_bytes=0, stop=2**63):
        """Open what kernels take of files: of a random chunk size, with a byte of one page changed or the last bytes missing."""
        chunk_pages = int(self.rng.integers(1, 4))
        raw = np.frombuffer(self.indices.tobytes(), np.uint8).copy()
        checksums = page_checksums(raw, 4096) if checked else np.empty(0, np.uint32)
        if bad_page is not None:
            raw[bad_page * 4096] ^= 1
        fds = []
        try:
            for at in range(0, raw.size, chunk_pages * 4096):
                with tempfile.TemporaryFile() as file:
                    file.write(raw[at : min(at + chunk_pages * 4096, raw.size - cut_bytes)].tobytes())
                    file.flush()
                    fds.append(os.dup(file.fileno()))
            extent = file_extent(raw.size, stop, self.indices.itemsize)
            yield ChunkFiles(np.array(fds, np.int32), chunk_pages, extent, checksums, self.page_shift)
        finally:
            for fd in fds:
                os.close(fd)

    def gather(self, module, files, gap_pages, scratch_pages):
        scratch = np.empty(scratch_pages * 4096, np.uint8)
        out = np.full(self.e1 - self.e0, 7, self.indices.dtype)
        return *module.gather_rows(*self.arguments, files, gap_pages, scratch, scratch.view(out.dtype), out), out


@given(SEEDS, st.booleans(), st.integers(0, 3), st.integers(1, 6), st.booleans())
@settings(deadline=None, max_examples=150)
def test_gather_rows(seed, ascending, gap_pages, scratch_pages, checked):
    rows = Rows(seed, ascending=ascending)
    with rows.files(checked=checked) as files:
        num_bytes, error, out = rows.gather(gather, files, gap_pages, scratch_pages)
        least_bytes, _, plain = rows.gather(reference_gather, files, gap_pages, scratch_pages)
    assert error == 0
    np.testing.assert_array_equal(plain, rows.wanted)
    np.testing.assert_array_equal(out, plain)
    assert num_bytes >= least_bytes
    assert (num_bytes > 0) == (least_bytes > 0)
    if ascending and gap_pages == 0:
        assert num_bytes == least_bytes, "a page was read twice"


@given(SEEDS, st.integers(0, 2), st.integers(1, 6))
@settings(deadline=None, max_examples=80)
def test_corrupt_page_is_named(seed, gap_pages, scratch_pages):
    """A page that only fills a gap between two reads may be noticed too."""
    rows = Rows(seed)
    bad_page = int(rows.rng.integers(-(-rows.indices.nbytes // 4096)))
    with rows.files(checked=True, bad_page=bad_page) as files:
        errors = [rows.gather(module, files, gap_pages, scratch_pages)[1] for module in (reference_gather, gather)]
    assert set(errors) <= {0, CHECKSUM_FAILED - bad_page}
    if errors[0] or gap_pages == 0:
        assert errors[0] == errors[1]


def test_truncated_file_is_an_error():
    for seed in range(20):
        rows = Rows(seed)
        rows.start[:], rows.offset = rows.indices.size - 1, np.arange(rows.start.size + 1)  # every row is the last edge
        rows.e0, rows.e1, rows.i0, rows.i1 = 0, 1, 0, 1
        rows.resident = rows.resident[:0]
        with rows.files(checked=False, cut_bytes=1) as files:
            assert [rows.gather(module, files, 0, 2)[1] for module in (reference_gather, gather)] == [READ_FAILED] * 2


@given(SEEDS, st.integers(0, 2), st.integers(1, 6))
@settings(deadline=None, max_examples=80)
def test_number_above_the_bound_is_an_error(seed, gap_pages, scratch_pages):
    """Wherever it is in the pages that are read; one number less, and all are allowed."""
    rows = Rows(seed)
    highest = int(rows.indices.max())
    for stop in (highest + 1, highest):
        with rows.files(checked=False, stop=stop) as files:
            errors = [rows.gather(module, files, gap_pages, scratch_pages)[1] for module in (reference_gather, gather)]
        at = np.flatnonzero(rows.indices >= stop) * rows.indices.itemsize // 4096
        assert {error for error in errors if error} <= {RANGE_FAILED - page for last in at.tolist() for page in range(last + 1)}
        if errors[0]:
            assert errors[1]  # a page that only fills a gap between two reads may be noticed too


@given(SEEDS, st.booleans(), st.integers(1, 5000))
@settings(deadline=None, max_examples=100)
def test_copy_rows(seed, ascending, window_edges):
    """Window after window, as a caller asks for them; each call goes as far as the plain kernel's.

    Windows of a few edges are for rows of a few: a thousand calls of the plain kernel would say no more than fifty.
    """
    rows = Rows(seed, ascending=ascending)
    window_edges = max(window_edges, (rows.e1 - rows.e0) // 50)
    outs = [np.full(rows.e1 - rows.e0, 7, rows.indices.dtype) for _ in range(2)]
    i, e, base, window = rows.i0, rows.e0, 0, rows.indices[:0]
    while e < rows.e1:
        arguments = (rows.start, rows.offset, i, e, rows.e0, rows.e1, rows.resident, window, base)
        after = [module.copy_rows(*arguments, out) for module, out in zip((reference_gather, gather), outs, strict=True)]
        assert after[0][1] == after[1][1]
        i, e = after[1]
        if e < rows.e1:
            edge = rows.start[i] + e - rows.offset[i]
            base = int(edge // window_edges * window_edges)
            window = rows.indices[base : base + window_edges]
            assert rows.offset[i] <= e < rows.offset[i + 1]
    for out in outs:
        np.testing.assert_array_equal(out, rows.wanted)


@given(SEEDS, st.integers(1, 40), st.sampled_from([0, 1, 16, 1024]))
@example(0, 1, 0)
@settings(deadline=None, max_examples=100)
def test_cut_rows(seed, num_parts, row_edges):
    """Parts lie side by side, the rows named cover them, and none has much more than its share of the work."""
    rows = Rows(seed)
    cuts = [np.empty((num_parts + 1, 2), np.int64) for _ in range(2)]
    for module, out in zip((reference_gather, gather), cuts, strict=True):
        module.cut_rows(rows.offset, rows.e0, rows.e1, row_edges, out)
    np.testing.assert_array_equal(*cuts)
    row, e = cuts[1].T
    assert (e[0], e[-1]) == (rows.e0, rows.e1)
    assert (np.diff(e) >= 0).all()
    assert (rows.offset[row] <= e).all()
    assert (e <= rows.offset[row + 1]).all()
    cost = np.diff(e) + np.diff(row) * row_edges
    assert cost.max() <= (rows.e1 - rows.e0 + (row[-1] - row[0]) * row_edges) / num_parts + row_edges * longest_gap(rows.offset) + 1


def longest_gap(offset):
    """Longest run of empty rows, and the row behind it: what a cut cannot divide."""
    empty = np.diff(offset) == 0
    run = longest = 0
    for is_empty in empty.tolist():
        run = run + 1 if is_empty else 0
        longest = max(longest, run)
    return longest + 1
