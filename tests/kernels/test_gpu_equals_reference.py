"""The CUDA kernels against the plain ones, on random graphs and states: on the CPU in several orders, and on a GPU if there is one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph.engine.device_graph import aligned_offsets
from oocgraph.errors import OocGraphError
from oocgraph.kernels.gpu import EVERY_EDGE, SCAN_TILE, Counter, Lookup, kernel_names, marks
from oocgraph.kernels.rows import no_planes
from oocgraph.subgraph.dependency import DependencySubgraph, num_tiles
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
    on.kernels.pull_resident(on.lookup, 0, on.indices[a:z], a, on.frontier, on.visited, on.undecided, on.found, on.marks)
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


# The dependency subgraph: its five arrays, each step for itself.


@given(st.integers(0, 3 * SCAN_TILE // 2), st.floats(0, 1), SEEDS)
@QUICK
def test_positions_are_the_exclusive_sum_of_active_flags(gpu, num_words, share, seed):
    rng = np.random.default_rng(seed)
    rows = np.packbits(rng.random(64 * num_words) < share, bitorder="little").view(np.uint64)
    kernels = gpu.kernels(np.uint32)
    positions = gpu.up(np.full(2 * num_words + 1, -1, np.int64))
    kernels.exclusive_sum_marked(gpu.up(rows), gpu.up(np.full(num_tiles(num_words, 1), -1, np.int64)), positions)
    counts = np.bitwise_count(rows.view(np.uint32)).astype(np.int64)
    np.testing.assert_array_equal(gpu.down(positions), np.concatenate([[0], np.cumsum(counts)]))


@given(SEEDS, st.integers(0, 300), st.integers(1, 300))
@QUICK
def test_vertices_of_a_batch(gpu, seed, row0, capacity):
    """The active vertices from the row0-th on, as many as fit."""
    case = make_case(seed)
    on = OnDevice(gpu, case)
    subgraph = DependencySubgraph(gpu.device, on.kernels, case.visited.size, capacity)
    subgraph.activate(on.visited)
    subgraph.list_rows(row0)
    wanted = reference.vertices_of(case.visited)[row0 : row0 + capacity]
    assert on.counts(Counter.NUM_ROWS) == (wanted.size,)
    np.testing.assert_array_equal(gpu.down(subgraph.vertex)[: wanted.size], wanted)


@given(SEEDS, st.integers(0, 6), st.integers(0, 3000), st.integers(0, 6000), st.integers(0, 6), st.integers(0, 3), st.integers(0, 2))
@QUICK
def test_masked_degrees(gpu, seed, skip, low, high, page_shift, behind, window):
    """Start and length of the part of each row that is asked for."""
    case = make_case(seed)
    on = OnDevice(gpu, case)
    on.list_rows(on.visited)
    part = {"skip": skip, "low": low, "high": high, "page_shift": page_shift, "behind": behind, "window": window}
    on.kernels.mask_degrees(on.subgraph.vertex, case.n, on.lookup, on.subgraph.start, on.subgraph.degree, **part)
    vertices = reference.vertices_of(case.visited)
    wanted = []
    for v in vertices.tolist():
        begin, end = reference.row_of(case.lookup, v)
        edges = np.arange(max(begin + skip, low), min(end, high))
        first = max(begin + skip, low) >> page_shift
        pages = (edges >> page_shift) - first
        wanted.append(edges[(pages >= behind) & ((pages < behind + window) | (window == 0))])
    degree = gpu.down(on.subgraph.degree)[: vertices.size]
    np.testing.assert_array_equal(degree, [edges.size for edges in wanted])
    starts = gpu.down(on.subgraph.start)[: vertices.size]
    assert [(s, d) for s, d in zip(starts, degree, strict=True) if d] == [(edges[0], edges.size) for edges in wanted if edges.size]


@pytest.mark.parametrize("count", [0, 1, 255, 2048, 2049, 5000])
def test_offsets_are_the_exclusive_sum_of_masked_degrees(gpu, count):
    degree = np.random.default_rng(count).integers(0, 2**40, 5000)
    kernels = gpu.kernels(np.uint32)
    kernels.reset()
    counters = gpu.down(kernels.counters)
    counters[Counter.NUM_ROWS] = count
    gpu.device.copy(gpu.pin(counters), kernels.counters, kernels.stream)
    offset = gpu.up(np.full(5001, -1, np.int64))
    kernels.exclusive_sum(gpu.up(degree), 5000, gpu.up(np.full(num_tiles(1, 5000), -1, np.int64)), offset)
    wanted = np.concatenate([[0], np.cumsum(degree[:count])])
    np.testing.assert_array_equal(gpu.down(offset)[: count + 1], wanted)
    assert int(kernels.read()[Counter.NUM_EDGES]) == wanted[-1]


@given(SEEDS, st.booleans(), st.integers(0, 8))
@QUICK
def test_pages_of_a_batch(gpu, seed, first_only, page_shift):
    case = make_case(seed)
    on = OnDevice(gpu, case)
    num_planes, num_resident = case.heads.length.size - 1, case.resident.size
    out = np.empty((1, 4), np.int64)
    cuts = np.array([0, case.visited.size])
    reference.count_rows(cuts, case.n, case.lookup, num_planes, num_resident, page_shift, case.visited, first_only, out)
    on.list_rows(on.visited)
    on.subgraph.ask(case.n, on.lookup, skip=num_planes, low=num_resident)
    on.kernels.count_pages(case.n, on.subgraph.start, on.subgraph.degree, page_shift, first_pages_only=first_only)
    assert on.counts(Counter.NUM_PAGES)[0] == out[0, 2]


@given(SEEDS, st.booleans(), st.floats(0.001, 0.5))
@QUICK
def test_pages_of_rows_with_many_between_that_ask_for_nothing(gpu, seed, first_only, share):
    """The row before that shares a page may lie thousands of rows back."""
    rng, count, kernels = np.random.default_rng(seed), 3000, gpu.kernels(np.uint32)
    degree = np.where(rng.random(count) < share, rng.integers(1, 40, count), 0)
    start = np.cumsum(degree + rng.integers(0, 3, count)) - degree
    asking = np.flatnonzero(degree)
    first, last = start[asking] >> 4, (start[asking] + degree[asking] - 1) >> 4
    wanted = {page for a, z in zip(first, first if first_only else last, strict=True) for page in range(a, z + 1)}
    kernels.reset()
    kernels.fill(kernels.counters.view(np.uint32)[2 * Counter.NUM_ROWS : 2 * Counter.NUM_ROWS + 1], count)
    kernels.count_pages(count, gpu.up(start), gpu.up(degree), 4, first_pages_only=first_only)
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
    on.list_rows(on.undecided)
    on.subgraph.ask(case.n, on.lookup, skip=num_planes, low=case.resident.size)
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
    on.kernels.clear(Counter.UNDECIDED)
    on.kernels.close_rows(rows.vertex, case.n, rows.start, rows.degree, on.lookup, on.undecided)
    assert on.counts(Counter.UNDECIDED)[0] == 0
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
    on.list_rows(on.undecided)
    on.subgraph.ask(case.n, on.lookup, page_shift=page_shift, window=1)
    on.kernels.clear(Counter.UNDECIDED)
    on.kernels.close_rows(on.subgraph.vertex, case.n, on.subgraph.start, on.subgraph.degree, on.lookup, on.undecided)
    spans = {v: reference.row_of(case.lookup, v) for v in reference.vertices_of(case.undecided).tolist()}
    goes_on = [v for v, (begin, end) in spans.items() if begin < end and (end - 1) >> page_shift != begin >> page_shift]
    assert reference.vertices_of(gpu.down(on.undecided)).tolist() == goes_on
    assert on.counts(Counter.UNDECIDED)[0] == len(goes_on)


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
    on.kernels.mark_vertices(listed, vertices.size, on.found)
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
