"""Trees that threads join at once: the components that SciPy finds, each named after its smallest vertex, for indices of both widths."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

from oocgraph.kernels import components as kernels
from oocgraph.kernels.live import NO_ROWS
from oocgraph.kernels.rows import RowLookup

ALL, NONE = np.empty(0, np.uint64), np.empty(0, np.int64)
"""Where all entries count; where there are no explicit rows."""

NUM_VERTICES, PIECE = 50_000, 500


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
@pytest.mark.parametrize("seed", range(4))
def test_threads_that_link_at_once(dtype, seed):
    """Each vertex with one random neighbour, which makes a few large components whose roots are hooked again and again."""
    neighbours = np.random.default_rng(seed).integers(0, NUM_VERTICES, NUM_VERTICES).astype(dtype)
    parent = np.arange(NUM_VERTICES, dtype=dtype)
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda v: kernels.link_plane(parent, v, neighbours[v : v + PIECE]), range(0, NUM_VERTICES, PIECE)):
            continue
    kernels.compress(parent, -1, 0, NUM_VERTICES)
    edges = sparse.coo_matrix((np.ones(NUM_VERTICES), (np.arange(NUM_VERTICES), neighbours)), shape=(NUM_VERTICES,) * 2)
    count, label = csgraph.connected_components(edges, directed=False)
    smallest = np.full(count, NUM_VERTICES)
    np.minimum.at(smallest, label, np.arange(NUM_VERTICES))
    np.testing.assert_array_equal(parent, smallest[label])


def test_trees_are_compressed_while_others_link():
    """A path whose edges are linked from the last on, so that the roots which are compressed are those that are being hooked."""
    for _ in range(20):
        parent = np.arange(NUM_VERTICES, dtype=np.uint32)
        with ThreadPoolExecutor(3) as pool:
            linked = [
                pool.submit(kernels.link_plane, parent, v, np.maximum(np.arange(v, v + PIECE) - 1, 0).astype(np.uint32))
                for v in range(NUM_VERTICES - PIECE, -1, -PIECE)
            ]
            while not all(one.done() for one in linked):
                kernels.compress(parent, -1, 0, NUM_VERTICES)
        assert kernels.compress(parent, -1, 0, NUM_VERTICES) == 1


def test_ranges_are_cut_where_there_is_no_more_room():
    """Rows of 3, 0, 5 and 2 entries, the second and the last of the largest component; ranges of at most 4 entries."""
    parent, offsets = np.array([0, 9, 2, 9], np.uint32), np.array([0, 3, 3, 8, 10])
    room = np.empty((8, 2), np.int64)
    assert kernels.cut_rows(parent, 9, 0, offsets, 0, 0, 4, room) == (4, 3)
    assert room[:3].tolist() == [[0, 3], [3, 7], [7, 8]]
    assert kernels.cut_rows(parent, 9, 0, offsets, 1, 0, 4, room) == (4, 2)
    assert room[:2].tolist() == [[1, 3], [4, 8]]
    assert kernels.cut_rows(parent, 9, 0, offsets, 0, 0, 4, np.empty((2, 2), np.int64)) == (2, 1)
    few = np.empty((2, 2), np.int64)
    assert kernels.cut_rows(parent[2:], 9, 0, offsets[2:], 0, 0, 1, few) == (2, 2)
    assert few.tolist() == [[3, 4], [4, 8]]
    assert kernels.cut_rows(parent, 9, 0, offsets, 0, 100, 100, room) == (4, 1)
    assert room[0].tolist() == [0, 8]


COUNTS = [66, 80, 250, *range(273, 278)]
"""Of rows of 70, 3, 200 and 5 entries: of the first counts one, of the second none, of the third two far apart, of the last all."""


def bits(entries, size):
    """Return the words whose bits of some entries are set."""
    counts = np.zeros(size, bool)
    counts[entries] = True
    return np.packbits(counts, bitorder="little").view(np.uint64)


def test_ranges_begin_and_end_with_entries_that_count():
    """Only of vertices outside of the largest component; long ones in parts; as many as there is room for."""
    parent, offsets, live = np.arange(4, dtype=np.uint32), np.array([0, 70, 73, 273, 278]), bits(COUNTS, 320)
    room = np.empty((3, 8), np.int64)
    assert kernels.list_outside(parent, 9, 0, offsets, live, 500, room) == (4, 3)
    assert room[:, :3].T.tolist() == [[0, 66, 67], [2, 80, 251], [3, 273, 278]]
    assert kernels.list_outside(parent, 3, 0, offsets, live, 100, room) == (4, 3)
    assert room[:, :3].T.tolist() == [[0, 66, 67], [2, 80, 180], [2, 180, 251]]
    assert kernels.list_outside(parent, 3, 0, offsets, ALL, 500, room) == (4, 3)
    assert room[:, :3].T.tolist() == [[0, 0, 70], [1, 70, 73], [2, 73, 273]]
    few = np.empty((3, 2), np.int64)
    assert kernels.list_outside(parent, 9, 0, offsets, live, 100, few) == (2, 1)
    assert kernels.list_outside(parent[2:], 9, 2, offsets[2:], live, 1, few) == (1, 2)
    assert few.T.tolist() == [[2, 80, 81], [2, 81, 251]]


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_ranges_are_linked_along_the_entries_that_count(dtype):
    """Of two of three ranges, the last of which alone has none."""
    parent, live = np.arange(400, dtype=dtype), bits(COUNTS, 320)
    ranges, offset = np.array([[9, 0, 2, 1], [0, 66, 80, 70], [1, 67, 251, 73]]), np.array([0, 1, 172])
    entries = np.concatenate([[300], np.arange(80, 251), [1, 2, 3]]).astype(dtype)
    kernels.link_ranges(parent, ranges, 1, offset, live, entries, (1, 3))
    assert np.flatnonzero(parent != np.arange(400)).tolist() == [80, 250]
    kernels.link_ranges(parent, ranges, 1, offset, live, entries, (0, 1))
    assert np.flatnonzero(parent != np.arange(400)).tolist() == [80, 250, 300]


def test_entries_that_count_are_looked_at_row_by_row():
    """Two vertices of 200 entries and two of 39."""
    rows = RowLookup(NONE, np.array([0, 2]), np.array([0, 400]), np.array([200, 39]))
    found, live = np.empty((3, 4), np.int64), bits([5, 70, 199, 438, 439, 477], 512)
    kernels.count_live(rows, live, 0, np.arange(4), found)
    assert found.T.tolist() == [[200, 3, 5], [200, 0, 200], [39, 1, 38], [39, 2, 0]]
    kernels.count_live(rows, live, 6, np.arange(4), found)
    assert found.T.tolist() == [[200, 2, 70], [200, 0, 200], [39, 1, 38], [39, 1, 38]]
    again = np.empty((3, 7), np.int64)
    kernels.count_live(rows, live, 6, np.repeat(np.arange(4), [3, 1, 2, 1]), again)
    np.testing.assert_array_equal(again, np.repeat(found, [3, 1, 2, 1], axis=1))
    starts = np.empty(4, np.int64)
    kernels.row_starts(rows, 1, starts)
    assert starts.tolist() == [200, 400, 439, 478]


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_what_is_left_outside_of_the_largest_component(dtype):
    """Rows of 5, 5, 2, 1 and 1 entries, of which the first and the fourth are not in it."""
    parent, rows = np.array([0, 9, 9, 3, 9], dtype), RowLookup(NONE, np.array([0, 2, 3]), np.array([0, 10, 12]), np.array([5, 2, 1]))
    assert [kernels.count_entries(parent, 9, rows, skip, 0) for skip in (0, 1, 4, 5)] == [6, 4, 1, 0]
    assert [kernels.count_entries(parent, 9, rows, skip, 7) for skip in (0, 1)] == [13, 4]  # 7 entries join the two rows
    assert kernels.count_entries(parent[:0], 9, NO_ROWS, 0, 0) == 0
    assert [kernels.are_all_in(parent, 9, *rows) for rows in ((1, 3), (0, 2), (2, 4), (4, 4))] == [True, False, False, True]


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_components_are_named_after_the_first_vertex_by_id(dtype):
    """Two trees; the vertices in the order of their ids; a tree of which no vertex comes has no name."""
    parent, none = np.array([0, 0, 2, 2, 0], dtype), np.iinfo(dtype).max
    named = np.full(5, none, dtype)
    assert kernels.name_components(parent, np.array([4, 3, 0], dtype), named, int(none), 2) == 2
    assert kernels.rename(parent, named, int(none), 0, 5)
    assert parent.tolist() == [4, 4, 3, 3, 4]
    parent, named = np.array([0, 1], dtype), np.array([0, none], dtype)
    assert not kernels.rename(parent, named, int(none), 0, 2)
