"""Traversals over parts in this process against SciPy and Graph500's rules: any vertex cut, any residency; and what they count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph.errors import BudgetError, CorruptStoreError, OocGraphError
from oocgraph.memory import Budget
from oocgraph.partition.message_size import ALL_TO_ALL, BROADCAST, GATHER
from oocgraph.parts import local_edges, local_parts, partitioned
from oocgraph.parts.local_edges import LocalEdges
from oocgraph.parts.partitioned import PartitionedRuntime
from oocgraph.store.gather import Gatherer
from oocgraph.store.graph import open_graph
from oocgraph.types import PAGE_BYTES
from oocgraph.verify import verify_search
from tests import every_knob
from tests.algorithms.test_bfs import graphs, scipy_levels
from tests.oracles.messages import message_bytes
from tests.parts_in_memory import cut_1d, cut_2d, cut_in_memory, edges_of
from tests.reference_build import reference_build

PLENTY = 1 << 40

GRIDS = [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (4, 2), (3, 3), (4, 4)]
"""Rows and columns for P = 1, 2, 3, 4, 6, 8, 9, 16."""


def opened(store, parts, *, budget=PLENTY, threads=2):
    """Return a runtime of parts."""
    return PartitionedRuntime(
        parts, num_vertices=store.num_rows, dtype=store.index_dtype, directed=store.attributes.directed,
        budget=Budget(budget, baseline_bytes=0), threads=threads, io_threads=2,
    )  # fmt: skip


def expected_levels(store, sources, depth_limit=None):
    """Levels by SciPy, -1 where unreached."""
    far = 1 << 30
    level = np.full(store.num_rows, far)
    for source in sources:
        one = scipy_levels(store, source)
        level = np.minimum(level, np.where(one < 0, far, one))
    level[level > (far - 1 if depth_limit is None else depth_limit)] = -1
    return level


def check(store, runtime, sources, depth_limit=None):
    """Search, and judge the result."""
    found = runtime.search(np.array(sources, np.int64), depth_limit=depth_limit)
    expected = expected_levels(store, sources, depth_limit)
    np.testing.assert_array_equal(found.level, expected)
    verify_search(store, np.array(sources), found.parent, found.level, depth_limit=depth_limit)
    assert found.depth == expected.max()
    assert found.num_reached == (expected >= 0).sum()
    if depth_limit is None:
        assert found.num_reached_edges == np.diff(store.read("out/indptr"))[expected >= 0].sum()
    return found


def random_cut(rng, store, num_parts, group="out"):
    """Cut a graph anyhow: masters and owners of edges are random, some parts perhaps empty, some masters without edges."""
    rows, columns = edges_of(store)
    used = rng.choice(num_parts, int(rng.integers(1, num_parts + 1)), replace=False)
    masters, owners = rng.choice(used, store.num_rows), rng.choice(rng.choice(num_parts, num_parts), rows.size)
    return cut_in_memory(num_parts, rows, columns, masters, owners, group)


@pytest.fixture
def cramped(monkeypatch):
    """Hold a random share of the edges, and stage few edges and rows at once."""

    def use(seed):
        rng = np.random.default_rng(seed)
        monkeypatch.setattr(partitioned, "PIECE_VERTICES", int(rng.choice([1, 7, 1 << 16])))
        monkeypatch.setattr(local_edges, "BATCH_ROWS", int(rng.choice([3, 100])))
        monkeypatch.setattr(local_parts, "STAGED_EDGES", int(rng.choice([2, 5000])))
        monkeypatch.setattr(local_parts, "_shares", lambda arrays, _: [int(rng.integers(0, max(1, array.length))) for array in arrays])
        monkeypatch.setattr(local_parts, "SMALL_EDGES", 10)  # threads, for all the graphs are tiny

    yield use
    monkeypatch.undo()


@given(graphs(), st.integers(0, 2**32), st.sampled_from(["1d", "2d", "any"]), st.integers(1, 9), st.booleans())
@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cut_gives_the_levels(tmp_path_factory, cramped, case, seed, kind, num_parts, held):
    """Directed or not, from several sources, with a depth limit or without, edges held or read; twice on one runtime."""
    n, src, dst, options, _ = case
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("g") / "graph.zarr"
    reference_build(src, dst, path, implied=(0, n), **options)
    store = open_graph(path)
    if not store.num_rows:
        return
    if not held:
        cramped(seed)
    edges = (store.num_rows, *edges_of(store))
    if kind == "1d":
        parts = cut_1d(num_parts, *edges)
    elif kind == "2d":
        parts = cut_2d(*GRIDS[num_parts % len(GRIDS)], *edges)
    else:
        parts = random_cut(rng, store, num_parts, "in" if not store.attributes.directed and rng.integers(2) else "out")
    with opened(store, parts) as runtime:
        for _ in range(2):
            sources = rng.choice(store.num_rows, int(rng.integers(1, 4)))
            check(store, runtime, np.unique(sources), None if rng.integers(2) else int(rng.integers(0, 4)))


@pytest.mark.parametrize("grid", GRIDS)
def test_one_dimension_is_all_to_all_and_two_are_rows_and_columns(tmp_path, grid):
    """1D has no broadcast; in 2D candidates stay in a column and the frontier in a row, and every byte is as the formulas say."""
    rng = np.random.default_rng(5)
    reference_build(rng.integers(0, 500, 4000), rng.integers(0, 500, 4000), tmp_path / "g")
    store = open_graph(tmp_path / "g")
    edges = (store.num_rows, *edges_of(store))
    num_parts = grid[0] * grid[1]
    with opened(store, cut_1d(num_parts, *edges)) as runtime:
        found = check(store, runtime, [7])
        assert not runtime.has_broadcast
        assert {one.kind for iteration in found.iterations for one in iteration.exchanged} == {ALL_TO_ALL}
        assert all(one.num_messages <= num_parts * (num_parts - 1) for iteration in found.iterations for one in iteration.exchanged)
    with opened(store, cut_2d(*grid, *edges)) as runtime:
        found = check(store, runtime, [7])
        for loaded in runtime.loaded:
            i, j = divmod(loaded.index, grid[1])
            owners = {divmod(q, grid[1]) for q in np.flatnonzero(loaded.addresses.length)}
            assert all((column == j and row % grid[1] == j) or (row == i and column == i % grid[1]) for row, column in owners)
        most = {GATHER: (grid[0] - 1) * grid[0], ALL_TO_ALL: (grid[0] - 1) * grid[0], BROADCAST: grid[0] * (grid[1] - 1)}
        for iteration in found.iterations:
            for one in iteration.exchanged:
                assert one.num_messages <= most[one.kind]
                assert (one.num_bytes > 0) == (one.num_messages > 0)


def test_bytes_are_as_documented(tmp_path):
    """A star cut in two: the hub's part sends each leaf of the other part once, as a bitmap and parents, and nothing else is said."""
    reference_build(np.zeros(1000, int), np.arange(1, 1001), tmp_path / "g")
    store = open_graph(tmp_path / "g")
    with opened(store, cut_1d(2, store.num_rows, *edges_of(store))) as runtime:
        found = check(store, runtime, [0])
        theirs = int(runtime.loaded[0].addresses.length[1])
        first = found.iterations[0].exchanged[0]
        assert (first.num_messages, first.num_bytes) == (1, message_bytes(theirs, theirs, parent_bytes=4))
        assert [one.num_messages for one in found.iterations[1].exchanged] == [1]  # the leaves there tell of the hub, once


@pytest.mark.usefixtures("steady_memory")
def test_a_budget_that_is_too_small_is_refused_and_the_one_named_works(tmp_path):
    """What is reserved is known before the run; with the budget named edges are read, but those that are held."""
    rng = np.random.default_rng(1)
    reference_build(rng.integers(0, 30000, 400000), rng.integers(0, 30000, 400000), tmp_path / "g")
    store = open_graph(tmp_path / "g")
    parts = cut_2d(2, 2, store.num_rows, *edges_of(store))
    with pytest.raises(BudgetError, match=r"a search over 4 parts .* needs .* set memory_budget") as refused:
        opened(store, parts, budget=1 << 20)
    needed = int(str(refused.value).rpartition("at least ")[2].removesuffix("M")) << 20
    with opened(store, parts, budget=needed) as runtime:
        found = check(store, runtime, [3])
        assert found.bytes_requested >= 4 * store.attributes.num_stored_edges - runtime.budget.reservations["resident edges"]


@pytest.mark.parametrize("share", [0, 0.5, 0.999, 1])
def test_edges_that_are_held_are_not_read(tmp_path, share):
    """Rows of the first edges are expanded from memory; of a row across the boundary, and of the others, only what is needed is read."""
    rng = np.random.default_rng(1)
    reference_build(rng.integers(0, 3000, 40000), rng.integers(0, 3000, 40000), tmp_path / "g")
    part = every_knob.partition(open_graph(tmp_path / "g"), 1, "1D-vertex", tmp_path / "p", compiled=False)[0]
    indptr = part.store.array("out/indptr").read(0, part.num_vertices + 1).astype(np.int64)
    indices, num_held = part.store.array("out/indices").read(0, int(indptr[-1])), int(share * indptr[-1])
    gatherer = Gatherer(2, 1 << 16)
    edges = LocalEdges(part.store, "out/indices", indptr, num_held=num_held, gatherer=gatherer)
    found = {}

    def expand(rows, begin, end, by_row, values):
        for i, row in enumerate(rows.tolist()):
            at = row if by_row else i
            found.setdefault(row, []).extend(values[begin[at] : end[at]].tolist())

    boundary = int(np.searchsorted(indptr, num_held, "right"))
    for rows in (np.arange(max(0, boundary - 1)), np.arange(part.num_vertices)):
        found.clear()
        edges.pieces(rows.astype(np.uint32), expand, np.empty(1000, edges.dtype))
        assert found == {row: indices[indptr[row] : indptr[row + 1]].tolist() for row in rows.tolist()}
        missing = 4 * max(0, int(indptr[rows.size]) - num_held)
        assert missing <= edges.num_bytes_read <= 3 * missing + 2 * PAGE_BYTES * (missing > 0)
        edges.num_bytes_read = 0
    edges.close()
    gatherer.close()


def test_parts_that_lie_are_refused(tmp_path):
    """In-lists of a directed graph; a neighbour that is no local vertex."""
    reference_build(np.arange(99), np.arange(1, 100), tmp_path / "g", directed=True)
    store = open_graph(tmp_path / "g")
    parts = cut_in_memory(2, *edges_of(store), np.zeros(100, int), np.zeros(99, int), "in")
    with pytest.raises(OocGraphError, match="follows the out-edges"):
        opened(store, parts)
    stored = every_knob.partition(store, 2, "1D-vertex", tmp_path / "p", compiled=False)
    file = stored[1].store.array("out/indices").chunk_path(0)
    indices = np.fromfile(file, np.uint32)
    indices[3] = 77
    indices.tofile(file)
    with pytest.raises(CorruptStoreError, match="page at byte 0 of out/indices differs from its checksum"):
        opened(store, list(stored))
