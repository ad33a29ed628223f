"""Every compiled kernel of a search against the plain one, on random graphs, states and cuts."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.kernels import cpu
from oocgraph.kernels.rows import ChunkFiles, Tails, file_extent, new_long_rows
from tests.kernels.cases import make_case
from tests.oracles import search as reference


@pytest.fixture
def files(tmp_path):
    opened = []

    def make(indices, chunk_pages):
        size = chunk_pages * 4096
        raw = indices.tobytes()
        for i in range(0, max(1, len(raw)), size):
            path = tmp_path / f"{len(opened)}"
            path.write_bytes(raw[i : i + size])
            opened.append(os.open(path, os.O_RDONLY))
        fds = np.array(opened[len(opened) - -(-max(1, len(raw)) // size) :], np.int32)
        extent = file_extent(len(raw), 2**63, indices.dtype.itemsize)
        return ChunkFiles(fds, chunk_pages, extent, np.empty(0, np.uint32), (4096 // indices.dtype.itemsize).bit_length() - 1)

    yield make
    for fd in opened:
        os.close(fd)


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_pull_heads(seed):
    case = make_case(seed)
    outputs = []
    for module in (reference, cpu):
        visited, undecided, marks = case.visited.copy(), case.undecided.copy(), case.marks()
        counts = module.pull_heads(
            0, visited.size, case.n, case.lookup, case.heads, case.resident, 0, case.frontier, visited, undecided, marks,
            new_long_rows(0, 1),
        )  # fmt: skip
        new = reference.vertices_of(visited & ~case.visited)
        outputs.append((counts, visited, undecided, marks[0][new], marks[1][new], marks[2][new]))
    for a, b in zip(*outputs, strict=True):
        np.testing.assert_array_equal(a, b)


@given(st.integers(0, 2**32), st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_sample_heads(seed, step):
    case = make_case(seed)
    a, b = (
        module.sample_heads(step, case.n, case.lookup, case.heads, case.resident, case.frontier, case.visited)
        for module in (reference, cpu)
    )
    assert a == b


@given(st.integers(0, 2**32), st.booleans())
@settings(deadline=None, max_examples=40)
def test_count_rows(seed, first_pages_only):
    case = make_case(seed)
    cuts = np.unique(np.random.default_rng(seed).integers(0, case.frontier.size + 1, 4))
    outs = [np.zeros((cuts.size - 1, 4), np.int64) for _ in range(2)]
    for module, out in zip((reference, cpu), outs, strict=True):
        module.count_rows(
            cuts, case.n, case.lookup, case.heads.offset.size - 1, case.resident.size, 4, case.frontier, first_pages_only, out
        )
    np.testing.assert_array_equal(*outs)


@pytest.mark.parametrize("seed", range(25))
def test_pull_tails(seed, files):
    case = make_case(seed)
    case.undecided &= undecided_by(case)
    arguments = files(case.indices, chunk_pages=1 + seed % 2)
    buffer = np.empty(4096 * (2 + seed % 7), np.uint8)
    room = int(np.random.default_rng(seed).integers(0, 300))
    entries, kept = (
        Tails(np.empty(room // 4, np.int64), np.empty((room // 4, 2), np.int64), np.empty(room, case.indices.dtype)),
        np.zeros(2, np.int64),
    )
    outputs = []
    for module in (reference, cpu):
        visited, marks = case.visited.copy(), case.marks()
        found, num_bytes, error = module.pull_tails(
            0, visited.size, case.lookup, case.heads.offset.size - 1, case.resident.size, arguments, seed % 3, buffer,
            buffer.view(case.indices.dtype), entries, kept, case.frontier, visited, case.undecided, marks, new_long_rows(0, 1),
        )  # fmt: skip
        assert error == 0
        assert (num_bytes > 0) == case.undecided.any()
        outputs.append((found, visited, *marks[:2]))
    for a, b in zip(*outputs, strict=True):
        np.testing.assert_array_equal(a, b)
    again = []
    count = min(int(kept[0]), entries[0].size)
    for module in (reference, cpu):
        state, marks = (visited.copy(), case.undecided & ~visited), case.marks()
        frontier = ~case.frontier
        decided = module.pull_kept(entries, 0, count, frontier, *state, marks)
        again.append((decided, *state, *marks[:2]))
        assert decided == count
    for a, b in zip(*again, strict=True):
        np.testing.assert_array_equal(a, b)
    for v, (begin, end) in zip(entries[0][:count].tolist(), entries[1][:count].tolist(), strict=True):
        row = reference.row_of(case.lookup, v)
        start = max(row[0] + case.heads.offset.size - 1, case.resident.size)
        np.testing.assert_array_equal(entries[2][begin:end], case.indices[start : row[1]])


def undecided_by(case):
    """Bitmap of the vertices that have a tail on disk."""
    rows = np.zeros_like(case.visited)
    for v in range(case.n):
        begin, end = reference.row_of(case.lookup, v)
        if max(begin + case.heads.offset.size - 1, case.resident.size) < end:
            reference.mark(rows, v)
    return rows


@pytest.mark.one_in(5)
@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_push_rows(seed, part, files):
    case = make_case(seed)
    arguments = files(case.indices, chunk_pages=1 + seed % 2)
    buffer = np.empty(4096 * (1 + seed % 5), np.uint8)
    rng = np.random.default_rng(seed)
    cuts = np.unique(rng.integers(0, case.indices.size + 1, 3))
    owned = rng.integers(0, 2**64, case.visited.size, np.uint64, endpoint=False) if part else None
    rank = np.cumsum([0, *np.bitwise_count(owned[:-1])], dtype=np.uint32) if part else None
    place = np.searchsorted(reference.vertices_of(owned), np.arange(case.n)) if part else np.arange(case.n)
    outputs = []
    for module in (reference, cpu):
        visited, marks, found = case.visited | ~owned if part else case.visited.copy(), case.marks(), 0
        before = visited.copy()
        for e0, e1 in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            got, _, error = module.push_rows(
                e0, e1, case.lookup, case.heads, case.resident, 0, arguments, seed % 3, buffer, buffer.view(case.indices.dtype),
                case.frontier, visited, owned, rank, marks,
            )  # fmt: skip
            assert error == 0
            found += got
        outputs.append((found, visited, marks[1]))
        new = reference.vertices_of(visited & ~before)
        for v in new.tolist():
            parent = int(marks[0][place[v]])
            begin, end = reference.row_of(case.lookup, parent)
            assert v in case.indices[begin:end]
            assert reference.is_marked(case.frontier, np.array([parent]))[0]
    for a, b in zip(*outputs, strict=True):
        np.testing.assert_array_equal(a, b)


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=30)
def test_bitmap_kernels(seed):
    case = make_case(seed)
    size = case.frontier.size
    assert cpu.count_edges(0, size, case.lookup, case.frontier) == reference.count_edges(0, size, case.lookup, case.frontier)
    lists = [np.empty(case.n, np.int64) for _ in range(2)]
    counts = [module.list_vertices(case.frontier, out) for module, out in zip((reference, cpu), lists, strict=True)]
    np.testing.assert_array_equal(lists[0][: counts[0]], lists[1][: counts[1]])
    outs = [np.empty(size, np.uint64) for _ in range(4)]
    reference.difference(0, size, case.visited, case.frontier, outs[0])
    cpu.difference(0, size, case.visited, case.frontier, outs[1])
    np.testing.assert_array_equal(outs[0], outs[1])
    for module, out in zip((reference, cpu), outs[2:], strict=True):
        module.mark_vertices(lists[0], counts[0], out)
    np.testing.assert_array_equal(outs[2], case.frontier)
    np.testing.assert_array_equal(outs[3], case.frontier)
    finished = []
    for module in (reference, cpu):
        marks = case.marks()
        marks.level8[:] = 9
        if marks.wide:
            module.widen_levels(marks.level8, marks.level32, case.n)
        module.finish_search(0, size, case.n, case.visited, 99, marks)
        finished.append((marks.parent, marks.level32 if marks.wide else marks.level8))
    for a, b in zip(*finished, strict=True):
        np.testing.assert_array_equal(a, b)
