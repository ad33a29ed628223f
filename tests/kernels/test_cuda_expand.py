"""Push: the four ways to gather against the plain one, on every length of row, and cut anywhere."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.on_device import C_NAME, COUNTERS, DEVICES, Bench, bitmap, counters, marked, open_device, source

METHODS = {"serial": 0, "warp": 1, "scan": 2, "hybrid": 3}
DTYPES = {"uint32": np.dtype(np.uint32), "int64": np.dtype(np.int64)}
LENGTHS = (0, 1, 31, 32, 33, 255, 256, 257)
BLOCK = 256
LEVEL = 7
UNSET = 99


def name_of(dtype: np.dtype[Any], method: str) -> str:
    return f"expand<{C_NAME[dtype]}, {METHODS[method]}>"


@dataclasses.dataclass
class Rows:
    """A batch of rows of a graph, and which vertices are closed. `owned` is None or what the partition owns."""

    vertex: np.ndarray
    start: np.ndarray
    offset: np.ndarray
    edges: np.ndarray
    closed: np.ndarray
    num_vertices: int
    owned: np.ndarray | None = None

    @property
    def num_edges(self) -> int:
        return int(self.offset[-1])

    def pairs(self, e0: int, e1: int) -> tuple[np.ndarray, np.ndarray]:
        """Row number and neighbour of each edge of a piece."""
        row = np.repeat(np.arange(self.vertex.size), np.diff(self.offset))[e0:e1]
        return row, self.edges[self.start[row] + np.arange(e0, e1) - self.offset[row]].astype(np.int64)


def make_rows(lengths: Any, *, dtype: np.dtype[Any], num_vertices: int, seed: int = 0, closed_share: float = 0.3, hub: int = 0) -> Rows:
    """Make rows of these lengths with gaps between them. With `hub`, neighbours are taken from the first `hub` vertices only."""
    rng = np.random.default_rng(seed)
    degree = np.asarray(lengths, np.int64)
    gaps = rng.integers(0, 5, degree.size)
    start = np.cumsum(gaps) + np.concatenate([[0], np.cumsum(degree)[:-1]]) if degree.size else np.empty(0, np.int64)
    edges = rng.integers(0, hub or num_vertices, int(degree.sum() + gaps.sum()) + 1).astype(dtype)
    closed = np.flatnonzero(rng.random(num_vertices) < closed_share)
    return Rows(
        rng.choice(max(num_vertices, degree.size), degree.size, replace=False).astype(dtype),
        start.astype(np.int64),
        np.concatenate([[0], np.cumsum(degree)]).astype(np.int64),
        edges,
        bitmap(closed, num_vertices),
        num_vertices,
    )


def expand(
    bench: Bench, rows: Rows, method: str = "hybrid", *, pieces: Any = None, grid: int = 2, gathered: bool = False, wide: bool = False,
    capacity: int | None = None, queued: int = 0, base: int = 0,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Run the kernel over some pieces, in their order, or over all edges; bring back what it wrote. `base`: the first edge's number."""
    dtype, n = rows.edges.dtype, rows.num_vertices
    capacity = n if capacity is None else capacity
    owned, rank, size = None, None, n
    if rows.owned is not None:
        words = bitmap(rows.owned, n)
        ones = np.bitwise_count(words.view(np.uint64)).astype(np.int64)
        owned, rank, size = bench.put(words), bench.put((np.cumsum(ones) - ones).astype(dtype)), rows.owned.size
    levels = bench.put(np.full(4 * max(1, size), UNSET, np.uint8))
    arrays = {
        "closed": bench.put(rows.closed),
        "next": bench.put(np.zeros_like(rows.closed)),
        "parent": bench.put(np.full(max(1, size), UNSET, dtype)),
        "queue": bench.put(np.full(n + 1, UNSET, dtype)),
        "counters": bench.put(counters(NUM_ROWS=rows.vertex.size, QUEUE_SIZE=queued)),
    }
    vertex, offset = bench.put(rows.vertex), bench.put(rows.offset)
    begin, edges = (offset, None) if gathered else (bench.put(rows.start), bench.put(rows.edges))
    for e0, e1 in [(0, rows.num_edges)] if pieces is None else pieces:
        piece = bench.put(rows.pairs(e0, e1)[1].astype(dtype)) if gathered else edges
        bench.launch(
            name_of(dtype, method), grid, BLOCK, vertex, begin, offset, arrays["counters"], np.int64(e0), np.int64(e1),
            piece, np.int64(e0 if gathered else base), arrays["closed"], arrays["next"], owned, rank, arrays["parent"],
            levels, levels, np.int32(wide), np.int32(LEVEL), arrays["queue"], np.int64(capacity), arrays["counters"],
        )  # fmt: skip
    result = {name: bench.get(array) for name, array in arrays.items()}
    level = bench.get(levels)
    return {**result, "level": level.view(np.int32)[:size] if wide else level[:size]}


def check(rows: Rows, result: dict[str, np.ndarray], *, e0: int = 0, e1: int | None = None, wide: bool = False, queued: int = 0) -> None:
    """Judge a result: found vertices, their parents and levels, both bitmaps, the queue and the counters."""
    row, neighbour = rows.pairs(e0, rows.num_edges if e1 is None else e1)
    before = marked(rows.closed)
    found = np.setdiff1d(neighbour, before)
    np.testing.assert_array_equal(marked(result["next"]), found)
    np.testing.assert_array_equal(marked(result["closed"]), np.union1d(before, found))
    at = found if rows.owned is None else np.searchsorted(rows.owned, found)
    size = rows.num_vertices if rows.owned is None else rows.owned.size
    unset_level = np.full(4, UNSET, np.uint8).view(np.int32)[0] if wide else UNSET
    is_set = np.zeros(size, bool)
    is_set[at] = True
    assert (result["level"][is_set] == LEVEL).all()
    assert (result["level"][~is_set] == unset_level).all()
    assert (result["parent"][:size][~is_set] == UNSET).all()
    pairs = neighbour * 2**32 + rows.vertex[row].astype(np.int64)
    assert np.isin(found * 2**32 + result["parent"][at].astype(np.int64), pairs).all()
    counts = dict(zip(COUNTERS, result["counters"].tolist(), strict=False))
    assert counts["FOUND"] == found.size
    assert counts["QUEUE_SIZE"] == queued + found.size
    in_queue = result["queue"][queued : queued + found.size]
    np.testing.assert_array_equal(np.sort(in_queue), found)
    assert (result["queue"][queued + found.size :] == UNSET).all()
    assert (result["queue"][:queued] == UNSET).all()


NAMES = [name_of(dtype, method) for dtype in DTYPES.values() for method in METHODS]


@pytest.fixture(scope="module", params=DEVICES)
def bench(request):
    """Each device in turn, with the kernels compiled."""
    return Bench(open_device(request.param), source("common", "expand"), NAMES)


class TestExpand:
    @pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("length", LENGTHS)
    def test_rows_of_one_length(self, bench, method, length, dtype):
        rows = make_rows([length] * (3 if length > 32 else 70), dtype=dtype, num_vertices=3000, seed=length)
        check(rows, expand(bench, rows, method))

    @pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
    @pytest.mark.parametrize("method", METHODS)
    def test_hub_and_many_short_rows(self, bench, method, dtype):
        lengths = [5000, 700, 300, 260, 40, 35] + [3, 1, 0, 2] * 80
        rows = make_rows(lengths, dtype=dtype, num_vertices=20000, seed=1)
        check(rows, expand(bench, rows, method, grid=3))

    @pytest.mark.parametrize("method", METHODS)
    def test_short_rows_that_fill_the_gather_vector_more_than_once(self, bench, method):
        rows = make_rows([31] * 1100, dtype=DTYPES["uint32"], num_vertices=50000, seed=2)
        check(rows, expand(bench, rows, method, grid=1))

    @pytest.mark.parametrize("method", METHODS)
    def test_many_rows_that_point_at_the_same_vertices(self, bench, method):
        rows = make_rows([9] * 200 + [300, 64], dtype=DTYPES["uint32"], num_vertices=500, seed=3, closed_share=0.0, hub=7)
        check(rows, expand(bench, rows, method))

    @pytest.mark.parametrize("method", METHODS)
    def test_the_end_may_be_unknown(self, bench, method):
        rows = make_rows([300, 40, 5, 5], dtype=DTYPES["uint32"], num_vertices=1000, seed=12)
        check(rows, expand(bench, rows, method, pieces=[(0, np.iinfo(np.int64).max // 4)]))

    @pytest.mark.parametrize("method", METHODS)
    def test_nothing_to_do(self, bench, method):
        for lengths in ([], [0, 0, 0]):
            rows = make_rows(lengths, dtype=DTYPES["uint32"], num_vertices=64)
            check(rows, expand(bench, rows, method))
        rows = make_rows([40, 3], dtype=DTYPES["uint32"], num_vertices=100, closed_share=1.1)
        check(rows, expand(bench, rows, method))
        check(rows, expand(bench, rows, method, pieces=[(20, 20)]), e0=20, e1=20)

    @pytest.mark.parametrize("method", METHODS)
    def test_a_piece_begins_and_ends_in_the_middle_of_rows(self, bench, method):
        rows = make_rows([600, 0, 50, 3, 0, 0, 3, 400], dtype=DTYPES["uint32"], num_vertices=5000, seed=4)
        for e0, e1 in [(0, 1), (300, 301), (599, 601), (655, 657), (100, 900), (650, rows.num_edges)]:
            check(rows, expand(bench, rows, method, pieces=[(e0, e1)]), e0=e0, e1=e1)

    @pytest.mark.parametrize("gathered", [False, True], ids=["direct", "gathered"])
    @pytest.mark.parametrize("method", METHODS)
    def test_random_pieces_find_what_one_does(self, bench, method, gathered):
        rng = np.random.default_rng(5)
        lengths = rng.permutation([2000, 256, 255, 300, 33, *rng.integers(0, 40, 60)])
        rows = make_rows(lengths, dtype=DTYPES["uint32"], num_vertices=4000, seed=6)
        cuts = np.concatenate([[0], np.sort(rng.integers(0, rows.num_edges, 6)), [rows.num_edges]]).tolist()
        pieces = list(pairwise(cuts))
        check(rows, expand(bench, rows, method, pieces=[pieces[i] for i in rng.permutation(len(pieces))], gathered=gathered))

    @pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
    @pytest.mark.parametrize("method", METHODS)
    def test_a_partition_notes_at_local_positions(self, bench, method, dtype):
        rows = make_rows([500, 300, 40, *[7] * 50], dtype=dtype, num_vertices=3000, seed=7)
        owned = np.flatnonzero(np.random.default_rng(8).random(3000) < 0.4)
        others = np.setdiff1d(np.arange(3000), owned)
        rows.closed |= bitmap(others, 3000)
        rows.owned = owned
        check(rows, expand(bench, rows, method))

    @pytest.mark.parametrize("method", METHODS)
    def test_wide_levels(self, bench, method):
        rows = make_rows([300, 40, 5, 5], dtype=DTYPES["uint32"], num_vertices=1000, seed=9)
        check(rows, expand(bench, rows, method, wide=True), wide=True)

    @pytest.mark.parametrize("method", METHODS)
    def test_the_queue_goes_on_behind_what_it_holds(self, bench, method):
        rows = make_rows([300, 40, 5, 5], dtype=DTYPES["uint32"], num_vertices=1000, seed=10)
        check(rows, expand(bench, rows, method, queued=11), queued=11)

    @pytest.mark.parametrize("method", METHODS)
    def test_what_a_full_queue_does_not_hold_is_counted(self, bench, method):
        rows = make_rows([300, 40, 5, 5], dtype=DTYPES["uint32"], num_vertices=1000, seed=11)
        whole, short = expand(bench, rows, method), expand(bench, rows, method, capacity=50)
        for name in ("closed", "next", "counters", "level"):
            np.testing.assert_array_equal(whole[name], short[name])
        assert np.isin(short["queue"][:50], marked(whole["next"])).all()
        assert np.unique(short["queue"][:50]).size == 50
        assert (short["queue"][50:] == UNSET).all()

    def test_random_batches(self, bench):
        @given(
            st.lists(st.one_of(st.integers(0, 40), st.sampled_from([*LENGTHS, 600])), max_size=40),
            st.sampled_from(list(METHODS)),
            st.sampled_from(list(DTYPES.values())),
            st.integers(1, 3),
            st.integers(0, 2**31),
            st.booleans(),
            st.data(),
        )
        @settings(deadline=None, max_examples=40)
        def run(lengths, method, dtype, grid, seed, gathered, data):
            rows = make_rows(lengths, dtype=dtype, num_vertices=data.draw(st.sampled_from([1, 60, 2000])), seed=seed)
            e0 = data.draw(st.integers(0, rows.num_edges))
            e1 = data.draw(st.integers(e0, rows.num_edges))
            check(rows, expand(bench, rows, method, pieces=[(e0, e1)], grid=grid, gathered=gathered), e0=e0, e1=e1)

        run()
