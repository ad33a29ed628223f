"""The CUDA kernels against the plain ones, on random graphs and states: on the CPU in several orders, and on a GPU if there is one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph.engine.device_graph import aligned_offsets
from oocgraph.errors import OocGraphError
from oocgraph.kernels.gpu import (
    EVERY_EDGE,
    LAUNCH_BITS,
    PULL_BLOCK,
    TILE_WORDS,
    Counter,
    Lookup,
    cuda_source,
    kernel_names,
    marks,
)
from oocgraph.kernels.rows import no_planes
from oocgraph.store import layout
from oocgraph.subgraph.dependency import DependencySubgraph
from tests.kernels.cases import make_case
from tests.oracles import search as reference

SEEDS = st.integers(0, 2**32)
QUICK = settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


class OnDevice:
    """A case in device memory."""

    def __init__(self, gpu, case):
        self.gpu, self.case = gpu, case
        self.kernels = gpu.kernels(case.indices.dtype)
        self.kernels.reset()
        planes, offsets, lengths = case.heads
        aligned = aligned_offsets(lengths[:-1])
        padded = np.zeros(int(aligned[-1]), planes.dtype)
        for k in range(lengths.size - 1):
            padded[aligned[k] : aligned[k] + lengths[k]] = planes[offsets[k] : offsets[k] + lengths[k]]
        self.heads = tuple(map(gpu.up, (padded, aligned, lengths)))
        self.lookup = Lookup(*map(gpu.up, case.lookup))
        self.resident, self.indices = gpu.up(case.resident), gpu.up(case.indices)
        self.frontier, self.visited, self.undecided = map(gpu.up, (case.frontier, case.visited, case.undecided))
        self.found = gpu.up(np.full_like(case.visited, 2**63 + 5))  # rubbish: pulls overwrite it
        parent, _, level32, wide, level = case.marks()
        levels = gpu.up(level32.view(np.uint8))
        self.parent, self.levels = gpu.up(parent), levels
        self.marks = marks(self.parent, levels, levels.view(np.int32), wide=wide, level=level)
        self.subgraph = DependencySubgraph(gpu.device, self.kernels, case.visited.size, max(1, case.n))

    def noted(self, new):
        """Parent and level of some vertices."""
        levels = self.gpu.down(self.levels)
        return self.gpu.down(self.parent)[new], levels.view(np.int32)[new] if self.case.wide else levels[new]

    def counts(self, *slots):
        got = self.kernels.read()
        return tuple(int(got[slot]) for slot in slots)

    def list_rows(self, rows):
        """List all marked vertices."""
        self.subgraph.activate(rows)
        self.subgraph.list_rows(0)


def expected_marks(case, run):
    """Run a reference kernel on copies; returns what it returned, the vertices it found and what it noted of them."""
    visited, noted = case.visited.copy(), case.marks()
    counts = run(visited, noted)
    new = reference.vertices_of(visited & ~case.visited)
    return counts, new, (noted[0][new], noted[2 if case.wide else 1][new])


def test_constants_are_those_of_the_sources():
    source = cuda_source()
    assert f"#define MAX_PLANES {layout.MAX_PLANES} " in source
    assert f"#define PULL_BLOCK(I) (sizeof(I) == 4 ? {PULL_BLOCK[4]} : {PULL_BLOCK[8]})" in source


@given(SEEDS)
@QUICK
def test_pull_heads(gpu, seed):
    case = make_case(seed)
    undecided = case.undecided.copy()
    counts, new, noted = expected_marks(
        case,
        lambda visited, noted: reference.pull_heads(
            0, visited.size, case.n, case.lookup, case.heads, case.resident, 0, case.frontier, visited, undecided, noted
        ),
    )
    on = OnDevice(gpu, case)
    on.kernels.pull_heads(
        0, case.visited.size, case.n, on.lookup, *on.heads, on.resident, 0, on.frontier, on.visited, on.undecided, on.found, on.marks
    )
    if not case.resident.size:  # then vertices without any edge are not looked at again
        counts = counts[0], on.counts(Counter.UNDECIDED)[0]
        undecided |= gpu.down(on.undecided) & degree_zero(case)
    assert on.counts(Counter.FOUND, Counter.UNDECIDED) == counts
    np.testing.assert_array_equal(reference.vertices_of(gpu.down(on.found)), new)
    np.testing.assert_array_equal(gpu.down(on.visited), case.visited | gpu.down(on.found))
    np.testing.assert_array_equal(gpu.down(on.undecided), undecided)
    np.testing.assert_array_equal(on.noted(new), noted)


def degree_zero(case):
    """Bitmap of the vertices whose lists end with the planes."""
    ends = [reference.row_of(case.lookup, v) for v in range(case.n)]
    rows = np.zeros_like(case.visited)
    short = np.array([v for v, (begin, end) in enumerate(ends) if end - begin <= case.heads.length.size - 1], np.int64)
    reference.mark_vertices(short, short.size, rows)
    return rows


@given(SEEDS, st.integers(0, 5000), st.integers(0, 5000))
@QUICK
def test_pull_resident_takes_any_range_of_edges(gpu, seed, a, z):
    """A window of `indices`: the undecided whose lists go on outside of it stay so."""
    case = make_case(seed)
    a, z = sorted((min(a, case.indices.size), min(z, case.indices.size)))
    undecided = case.undecided.copy()
    closed = ~case.undecided
    noted = case.marks()
    planes = no_planes(case.indices.dtype, case.n)
    counts = reference.pull_heads(
        0, closed.size, case.n, case.lookup, planes, case.indices[a:z], a, case.frontier, closed, undecided, noted
    )
    new = reference.vertices_of(closed & case.undecided)
    on = OnDevice(gpu, case)
    on.kernels.fill(on.found, 0)
    on.kernels.pull_lists(on.lookup, 0, on.indices[a:z], a, on.frontier, on.visited, on.undecided, on.found, on.marks)
    assert on.counts(Counter.FOUND)[0] == counts[0]
    np.testing.assert_array_equal(reference.vertices_of(gpu.down(on.found)), new)
    np.testing.assert_array_equal(on.noted(new), (noted[0][new], noted[2 if case.wide else 1][new]))
    goes_on = [v for v in reference.vertices_of(case.undecided & ~gpu.down(on.found)).tolist() if reaches_beyond(case, v, a, z)]
    assert reference.vertices_of(gpu.down(on.undecided)).tolist() == goes_on
    assert on.counts(Counter.UNDECIDED)[0] == len(goes_on)


def reaches_beyond(case, v, a, z):
    begin, end = reference.row_of(case.lookup, v)
    return max(begin, a) < end and end > z


@given(SEEDS, st.integers(1, 3))
@QUICK
def test_sample_heads(gpu, seed, step):
    case = make_case(seed)
    wanted = reference.sample_heads(step, case.n, case.lookup, case.heads, case.resident, case.frontier, case.visited)
    on = OnDevice(gpu, case)
    on.kernels.sample_heads(step, case.n, on.lookup, *on.heads, on.resident, on.frontier, on.visited)
    assert on.counts(Counter.SAMPLED, Counter.PROBES, Counter.SAMPLE_FOUND, Counter.SAMPLE_UNDECIDED) == wanted


def test_a_sample_gives_long_lists_up(gpu):
    """A list looked at in vain counts as looked at whole; what is behind the limit is not found."""
    for seed in range(6):
        case = make_case(seed)
        on = OnDevice(gpu, case)
        on.kernels.sample_heads(1, case.n, on.lookup, *on.heads, on.resident, on.frontier, on.visited, most=1)
        sampled, probes, found, left = on.counts(Counter.SAMPLED, Counter.PROBES, Counter.SAMPLE_FOUND, Counter.SAMPLE_UNDECIDED)
        whole = reference.sample_heads(1, case.n, case.lookup, case.heads, case.resident, case.frontier, case.visited)
        assert sampled == whole[0]
        assert probes >= whole[1]
        assert found <= whole[2]
        assert left >= whole[3]


# The dependency subgraph: its three arrays, and what is counted of it.

PARTS = st.builds(
    dict, skip=st.integers(0, 6), low=st.integers(0, 3000), high=st.integers(0, 6000), page_shift=st.integers(0, 6),
    behind=st.integers(0, 3), window=st.integers(0, 2),
)  # fmt: skip


def parts_asked(case, vertices, *, skip=0, low=0, high=EVERY_EDGE, page_shift=0, behind=0, window=0):
    """Edges that are asked for of each row, and whether it asks for more behind them."""
    wanted = []
    for v in vertices.tolist():
        begin, end = reference.row_of(case.lookup, v)
        edges = np.arange(max(begin + skip, low), min(end, high))
        pages = (edges >> page_shift) - (max(begin + skip, low) >> page_shift)
        inside = (pages >= behind) & ((pages < behind + window) | (window == 0))
        wanted.append((edges[inside], bool(window and (pages >= behind + window).any())))
    return wanted


@given(SEEDS, PARTS, st.integers(0, 300), st.integers(1, 300), st.integers(0, 8))
@QUICK
def test_a_batch_of_rows_in_one_launch(gpu, seed, part, row0, capacity, count_shift):
    """The active vertices from the row0-th on, as many as fit; start, length and offset of the part of each row that is asked for."""
    case = make_case(seed)
    on = OnDevice(gpu, case)
    rows = DependencySubgraph(gpu.device, on.kernels, case.visited.size, capacity)
    rows.activate(on.visited)
    rows.ask(on.lookup, row0=row0, count_shift=count_shift, **part)
    vertices = reference.vertices_of(case.visited)[row0 : row0 + capacity]
    wanted = parts_asked(case, vertices, **part)
    sizes = np.array([edges.size for edges, _ in wanted], np.int64)
    num_rows, num_edges, num_beyond, num_pages = on.counts(Counter.NUM_ROWS, Counter.NUM_EDGES, Counter.NUM_BEYOND, Counter.NUM_PAGES)
    assert (num_rows, num_edges) == (vertices.size, sizes.sum())
    assert num_beyond == sum(goes_on for _, goes_on in wanted)
    assert num_pages == len({e >> count_shift for edges, _ in wanted for e in edges.tolist()})
    np.testing.assert_array_equal(gpu.down(rows.vertex)[:num_rows], vertices)
    np.testing.assert_array_equal(gpu.down(rows.offset)[: num_rows + 1], np.concatenate([[0], np.cumsum(sizes)]))
    starts = gpu.down(rows.start)[:num_rows].tolist()
    assert [s for s, size in zip(starts, sizes, strict=True) if size] == [int(edges[0]) for edges, _ in wanted if edges.size]


@given(SEEDS, st.integers(0, 300), st.integers(1, 300))
@QUICK
def test_vertices_of_a_batch(gpu, seed, row0, capacity):
    """Vertices alone, in the batch or in another array."""
    case = make_case(seed)
    on = OnDevice(gpu, case)
    subgraph = DependencySubgraph(gpu.device, on.kernels, case.visited.size, capacity)
    other = gpu.device.empty(capacity // 2 + 1, on.kernels.dtype)
    subgraph.activate(on.visited)
    for into, array in ((None, subgraph.vertex), (other, other)):
        subgraph.list_rows(row0, into)
        wanted = reference.vertices_of(case.visited)[row0 : row0 + array.size]
        assert on.counts(Counter.NUM_ROWS) == (wanted.size,)
        np.testing.assert_array_equal(gpu.down(array)[: wanted.size], wanted)


@given(st.integers(1, 3 * TILE_WORDS), st.floats(0, 1), SEEDS)
@QUICK
def test_tiles_one_after_the_other(gpu, num_words, share, seed):
    """Bitmaps of many tiles, some of them empty: every launch begins with what the one before has left."""
    rng = np.random.default_rng(seed)
    kernels, n = gpu.kernels(np.uint32), 64 * num_words
    flags = (rng.random(n) < share) & (rng.random(num_words) < 0.5).repeat(64)
    active = gpu.up(np.packbits(flags, bitorder="little").view(np.uint64))
    degree = rng.integers(0, 4, n)
    indptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    zero = gpu.up(np.zeros(1, np.int64))
    lookup = Lookup(gpu.up(indptr), zero, zero, zero)
    rows = DependencySubgraph(gpu.device, kernels, num_words, n)
    vertices = np.flatnonzero(flags)
    for row0 in (0, int(vertices.size // 2), int(vertices.size)):
        rows.activate(active)
        rows.ask(lookup, row0=row0)
        wanted = np.concatenate([[0], np.cumsum(degree[vertices[row0:]])])
        np.testing.assert_array_equal(gpu.down(rows.vertex)[: vertices.size - row0], vertices[row0:])
        np.testing.assert_array_equal(gpu.down(rows.offset)[: wanted.size], wanted)


def test_numbers_of_launches_are_used_again(gpu):
    """An entry of long ago is not taken for one of this launch."""
    kernels = gpu.kernels(np.uint32)
    rows = DependencySubgraph(gpu.device, kernels, 2 * TILE_WORDS, 10)
    flags = np.zeros(128 * TILE_WORDS, np.bool_)
    flags[[3, 8000, 9000, 30000]] = True
    rows.activate(gpu.up(np.packbits(flags, bitorder="little").view(np.uint64)))
    for launches in (0, (1 << LAUNCH_BITS) - 3):
        rows._launches = launches
        for _ in range(5):
            rows.list_rows(1)
            assert gpu.down(rows.vertex)[:3].tolist() == [8000, 9000, 30000]


@given(SEEDS, st.booleans(), st.integers(0, 8))
@QUICK
def test_pages_of_all_active_rows(gpu, seed, first_only, page_shift):
    case = make_case(seed)
    on = OnDevice(gpu, case)
    num_planes, num_resident = case.heads.length.size - 1, case.resident.size
    out = np.empty((1, 4), np.int64)
    cuts = np.array([0, case.visited.size])
    reference.count_rows(cuts, case.n, case.lookup, num_planes, num_resident, page_shift, case.visited, first_only, out)
    on.subgraph.count_pages(
        on.visited, on.lookup, count_shift=page_shift, first_pages_only=first_only, slot=Counter.FRONTIER_PAGES, skip=num_planes,
        low=num_resident,
    )  # fmt: skip
    assert on.counts(Counter.FRONTIER_PAGES)[0] == out[0, 2]


@pytest.mark.parametrize("most", [4, 5])
def test_pages_of_a_frontier_that_is_too_large_are_not_counted(gpu, most):
    """Decided on the device, by what it has counted of the frontier."""
    case = make_case(5)
    on = OnDevice(gpu, case)
    on.kernels.fill(on.kernels.counters.view(np.uint32)[2 * Counter.FRONTIER_VERTICES :][:1], 5)
    on.subgraph.count_pages(on.visited, on.lookup, count_shift=0, slot=Counter.FRONTIER_PAGES, most=most)
    counted = on.counts(Counter.FRONTIER_PAGES)[0]
    edges = reference.count_edges(0, case.visited.size, case.lookup, case.visited)[1]
    assert counted == (edges if most == 5 else 0)
    assert edges > 0


@given(SEEDS, st.booleans(), st.floats(0.001, 0.5))
@QUICK
def test_pages_of_rows_with_many_between_that_ask_for_nothing(gpu, seed, first_only, share):
    """The row before that shares a page may lie thousands of rows and several tiles back."""
    rng, count, kernels = np.random.default_rng(seed), 30000, gpu.kernels(np.uint32)
    degree = np.where(rng.random(count) < share / 10, rng.integers(1, 40, count), 0)
    indptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    asking = np.flatnonzero(degree)
    first, last = indptr[asking] >> 4, (indptr[asking + 1] - 1) >> 4
    wanted = {page for a, z in zip(first, first if first_only else last, strict=True) for page in range(a, z + 1)}
    flags = np.ones(-(-count // 64) * 64, np.bool_)
    flags[count:] = False
    zero = gpu.up(np.zeros(1, np.int64))
    active = gpu.up(np.packbits(flags, bitorder="little").view(np.uint64))
    rows = DependencySubgraph(gpu.device, kernels, flags.size // 64, 1)
    rows.count_pages(active, Lookup(gpu.up(indptr), zero, zero, zero), count_shift=4, first_pages_only=first_only, slot=Counter.NUM_PAGES)
    assert int(kernels.read()[Counter.NUM_PAGES]) == len(wanted)


# Tails of a batch.


@given(SEEDS, st.booleans(), st.lists(st.integers(0, 6000), max_size=3))
@QUICK
def test_pull_tails_in_pieces(gpu, seed, gathered, cuts):
    """Rows cut anywhere: found once, the first hit of the earliest piece; rows that end in the batch are decided."""
    case = make_case(seed)
    on = OnDevice(gpu, case)
    num_planes = case.heads.length.size - 1
    on.kernels.fill(on.found, 0)
    on.subgraph.activate(on.undecided)
    on.subgraph.ask(on.lookup, skip=num_planes, low=case.resident.size)
    (total,) = on.counts(Counter.NUM_EDGES)
    rows = on.subgraph
    vertices = reference.vertices_of(case.undecided)
    starts, offsets = gpu.down(rows.start)[: vertices.size], gpu.down(rows.offset)[: vertices.size + 1]
    edges = np.concatenate([case.indices[:0], *[case.indices[s : s + d] for s, d in zip(starts, np.diff(offsets), strict=True)]])
    bounds = sorted({0, total, *(cut for cut in cuts if cut < total)})
    for e0, e1 in pairwise(bounds):
        source = (rows.offset, gpu.up(edges[e0:e1]), e0) if gathered else (rows.start, on.indices, 0)
        on.kernels.pull_tails(
            rows.vertex, case.n, source[0], rows.offset, e0, e1, *source[1:], on.frontier, on.visited, on.undecided, on.found, on.marks
        )
    on.kernels.close_rows(rows.vertex, case.n, rows.start, rows.offset, on.lookup, on.undecided)
    assert not gpu.down(on.undecided).any()
    found = {}
    for v, s, d in zip(vertices.tolist(), starts, np.diff(offsets), strict=True):
        hits = np.flatnonzero(reference.is_marked(case.frontier, case.indices[s : s + d]))
        if hits.size:
            found[v] = int(case.indices[s + hits[0]])
    assert reference.vertices_of(gpu.down(on.found)).tolist() == list(found)
    assert on.counts(Counter.FOUND)[0] == len(found)
    np.testing.assert_array_equal(gpu.down(on.visited), case.visited | gpu.down(on.found))
    parent, level = on.noted(np.array(list(found), np.int64))
    assert parent.tolist() == list(found.values())
    assert set(level.tolist()) <= {3}


@given(SEEDS, st.integers(0, 3))
@QUICK
def test_rows_that_go_on_stay_undecided(gpu, seed, page_shift):
    case = make_case(seed)
    on = OnDevice(gpu, case)
    on.subgraph.activate(on.undecided)
    on.subgraph.ask(on.lookup, page_shift=page_shift, window=1)
    on.kernels.close_rows(on.subgraph.vertex, case.n, on.subgraph.start, on.subgraph.offset, on.lookup, on.undecided)
    spans = {v: reference.row_of(case.lookup, v) for v in reference.vertices_of(case.undecided).tolist()}
    goes_on = [v for v, (begin, end) in spans.items() if begin < end and (end - 1) >> page_shift != begin >> page_shift]
    assert reference.vertices_of(gpu.down(on.undecided)).tolist() == goes_on
    assert on.counts(Counter.NUM_BEYOND)[0] == len(goes_on)


@given(SEEDS, st.integers(0, 5000))
@QUICK
def test_pull_mapped(gpu, seed, base):
    """As over resident edges, and each line of a list is counted up to the one with its first hit, and those under way with it."""
    case = make_case(seed)
    base, itemsize = min(base, case.indices.size), case.indices.dtype.itemsize
    pinned = gpu.pin(case.indices)
    first, second = OnDevice(gpu, case), OnDevice(gpu, case)
    for on, edges in ((first, first.indices), (second, gpu.device.mapped(pinned))):
        on.kernels.reset()
        on.kernels.fill(on.found, 0)
        where = on.frontier, on.visited, on.undecided, on.found, on.marks
        on.kernels.pull_lists(on.lookup, 0, edges[base:], base, *where, is_mapped=on is second)
    found, lines = second.counts(Counter.FOUND, Counter.NUM_LINES)
    for array in ("visited", "undecided", "found"):
        np.testing.assert_array_equal(gpu.down(getattr(second, array)), gpu.down(getattr(first, array)))
    new = reference.vertices_of(gpu.down(second.found))
    assert new.size == found
    np.testing.assert_array_equal(second.noted(new), first.noted(new))
    per_line, lead, most, least = 128 // itemsize, pinned.ctypes.data // itemsize % 32, 0, 0
    for v in reference.vertices_of(case.undecided).tolist():
        begin, end = reference.row_of(case.lookup, v)
        begin = max(begin, base)
        hits = np.flatnonzero(reference.is_marked(case.frontier, case.indices[begin:end])) if begin < end else []
        if begin < end:
            last = (begin + int(hits[0]) if len(hits) else end - 1) + lead
            begin += lead
            least += last // per_line - begin // per_line + 1
            most += min((end - 1 + lead) // per_line, (last + 128 + 31) // per_line) - begin // per_line + 1
    assert least <= lines <= most


@given(SEEDS, st.integers(1, 3))
@QUICK
def test_measure_frontier(gpu, seed, step):
    """What counting and sampling find, in one launch; by one lookup or by two."""
    case = make_case(seed)
    on = OnDevice(gpu, case)
    size = case.visited.size
    vertices, edges = reference.count_edges(0, size, case.lookup, case.frontier)
    sample = reference.sample_heads(step, case.n, case.lookup, case.heads, case.resident, case.frontier, case.visited)
    for push, pull_edges in ((on.lookup, 0), (Lookup(*map(gpu.up, case.lookup)), edges)):
        on.kernels.reset()
        on.kernels.measure_frontier(push, on.lookup, step, case.n, *on.heads, on.resident, on.frontier, on.visited)
        counted = on.counts(Counter.FRONTIER_VERTICES, Counter.FRONTIER_EDGES, Counter.FRONTIER_PULL_EDGES)
        assert counted == (vertices, edges, pull_edges)
        assert on.counts(Counter.SAMPLED, Counter.PROBES, Counter.SAMPLE_FOUND, Counter.SAMPLE_UNDECIDED) == sample


@pytest.mark.parametrize("sizes", [(1,), (3, 700), (0, 5, 64), (2000, 1, 1, 9)])
def test_several_arrays_are_cleared_at_once(gpu, sizes):
    arrays = [gpu.up(np.full(size, 7, np.uint64)) for size in sizes]
    gpu.kernels(np.uint32).clear_all(*arrays)
    assert not any(gpu.down(array).any() for array in arrays)


# Push of what the planes hold, and the forms of frontiers and results.


@given(SEEDS, st.integers(0, 3000))
@QUICK
def test_push_heads(gpu, seed, low):
    """Each neighbour that a plane holds from edge `low` on, of each row of the frontier."""
    case = make_case(seed)
    on = OnDevice(gpu, case)
    on.kernels.fill(on.found, 0)
    on.list_rows(on.frontier)
    on.kernels.push_heads(on.subgraph.vertex, case.n, on.lookup, low, *on.heads, on.visited, on.found, (None, None), on.marks)
    num_planes = case.heads.length.size - 1
    pushed = {}
    for v in reference.vertices_of(case.frontier).tolist():
        begin, end = reference.row_of(case.lookup, v)
        for e in range(max(begin, low), min(end, begin + num_planes)):
            pushed.setdefault(int(case.indices[e]), set()).add(v)
    new = [y for y in sorted(pushed) if not reference.is_marked(case.visited, np.array([y]))[0]]
    assert reference.vertices_of(gpu.down(on.found)).tolist() == new
    np.testing.assert_array_equal(gpu.down(on.visited), case.visited | gpu.down(on.found))
    parent, level = on.noted(np.array(new, np.int64))
    assert all(p in pushed[y] for y, p in zip(new, parent.tolist(), strict=True))
    assert set(level.tolist()) <= {3}
    assert on.counts(Counter.FOUND)[0] == len(new)


@given(SEEDS)
@QUICK
def test_count_edges(gpu, seed):
    case = make_case(seed)
    on = OnDevice(gpu, case)
    on.kernels.count_edges(on.lookup, on.visited, Counter.FRONTIER_VERTICES, Counter.FRONTIER_EDGES)
    wanted = reference.count_edges(0, case.visited.size, case.lookup, case.visited)
    assert on.counts(Counter.FRONTIER_VERTICES, Counter.FRONTIER_EDGES) == wanted


@given(SEEDS)
@QUICK
def test_lists_to_bitmaps_and_results(gpu, seed):
    """Marking, beginning and finishing a search, copies."""
    case = make_case(seed)
    on = OnDevice(gpu, case)
    vertices = reference.vertices_of(case.frontier)
    listed = gpu.up(vertices.astype(case.indices.dtype))
    on.kernels.fill(on.found, 0)
    on.kernels.add_vertices(listed, vertices.size, on.found)
    np.testing.assert_array_equal(gpu.down(on.found), case.frontier)
    on.kernels.copy(on.visited, on.undecided)
    np.testing.assert_array_equal(gpu.down(on.undecided), case.visited)
    for words in (on.frontier, on.visited):
        on.kernels.fill(words, 0)
    parent, level8, level32, wide, _ = on.marks
    on.kernels.begin_search(listed, on.frontier, on.visited, parent, level8, level32, wide=bool(wide))
    none = int(np.iinfo(case.indices.dtype).max)
    on.kernels.finish_search(case.n, on.visited, parent, none, level8, level32, wide=bool(wide))
    np.testing.assert_array_equal(gpu.down(on.visited), case.frontier)
    got_parent, got_level = on.noted(np.arange(case.n))
    reached = reference.is_marked(case.frontier, np.arange(case.n))
    np.testing.assert_array_equal(got_parent, np.where(reached, np.arange(case.n), none))
    np.testing.assert_array_equal(got_level, np.where(reached, 0, -1 if wide else 255))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 64, 1000, 4097])
def test_levels_are_widened_in_place(gpu, n):
    levels = np.zeros(4 * n, np.uint8)
    levels[:n] = np.random.default_rng(n).integers(0, 256, n)
    on_device = gpu.up(levels)
    gpu.kernels(np.uint32).widen_levels(on_device, on_device.view(np.int32), n)
    np.testing.assert_array_equal(gpu.down(on_device).view(np.int32), levels[:n])


def test_ids_of_another_width_are_refused():
    with pytest.raises(OocGraphError, match="int32"):
        kernel_names(np.dtype(np.int32))


def test_a_bound_that_is_no_edge_can_be_added_to():
    assert EVERY_EDGE + 2**60 < 2**63
