"""Many tiny levels in one launch, against one level after the other in plain Python."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.kernels.cpu import STATUS_DONE, STATUS_GROWN, STATUS_LOG_FULL, STATUS_MISSES
from tests.kernels.on_device import C_NAME, DEVICES, Bench, bitmap, marked, open_device, source

DTYPES = {"uint32": np.dtype(np.uint32), "int64": np.dtype(np.int64)}
BLOCK = 512
ALL = 1 << 40
UNSET = 99
SIZE, EDGES, LEVEL, BYTES, LOG_ROWS, MISSING, WHICH, STATUS = range(8)


@dataclasses.dataclass
class Graph:
    """Rows, their lookup, and their first neighbours as planes."""

    indptr: np.ndarray
    indices: np.ndarray
    lookup: tuple[np.ndarray, ...]
    planes: tuple[np.ndarray, ...]

    @property
    def num_vertices(self) -> int:
        return self.indptr.size - 1

    @property
    def num_planes(self) -> int:
        return self.planes[2].size - 1

    def row(self, v: int) -> np.ndarray:
        return self.indices[self.indptr[v] : self.indptr[v + 1]]


def make_graph(rows: list[Any], *, dtype: np.dtype[Any], num_planes: int = 0, explicit: bool = False) -> Graph:
    """Make a graph of these lists of neighbours; without explicit row starts their lengths descend."""
    degree = np.array([len(row) for row in rows], np.int64)
    indptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    indices = np.concatenate([np.empty(0, np.int64), *[np.asarray(row, np.int64) for row in rows]]).astype(dtype)
    if explicit:
        zero = np.zeros(1, np.int64)
        return Graph(indptr, indices, (indptr, zero, zero, zero), (np.empty(0, dtype), np.zeros(1, np.int64), np.full(1, len(rows))))
    value, first = np.unique(-degree, return_index=True)
    lengths = np.array([np.count_nonzero(degree > k) for k in range(num_planes + 1)], np.int64)
    planes = np.concatenate([np.empty(0, dtype), *[indices[indptr[: lengths[k]] + k] for k in range(num_planes)]])
    offsets = np.concatenate([[0], np.cumsum(lengths[:num_planes])]).astype(np.int64)
    lookup = (np.empty(0, np.int64), first.astype(np.int64), indptr[first], -value.astype(np.int64))
    return Graph(indptr, indices, lookup, (planes, offsets, lengths))


def make_path(num_vertices: int, *, dtype: np.dtype[Any]) -> Graph:
    """Make a path, in degree order: its ends are the last two vertices."""
    place = np.array([num_vertices - 2, *range(num_vertices - 2), num_vertices - 1])
    rows: list[Any] = [[]] * num_vertices
    for i in range(num_vertices):
        rows[place[i]] = sorted(place[k] for k in (i - 1, i + 1) if 0 <= k < num_vertices)
    return make_graph(rows, dtype=dtype)


def make_random_graph(seed: int, *, dtype: np.dtype[Any], num_planes: int = 0, explicit: bool = False) -> Graph:
    """Make lists of a few neighbours, most of them near, so that a search takes many levels."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 600))
    degree = -np.sort(-rng.integers(0, rng.integers(2, 12), n))
    degree[0] += rng.integers(1, 80)
    order = rng.permutation(n)  # neighbours are near in this order, not in that of the degrees
    place = np.argsort(order)
    near = [order[(place[v] + rng.integers(-4, 5, d)) % n] for v, d in enumerate(degree)]
    return make_graph([np.sort(row) for row in near], dtype=dtype, num_planes=num_planes, explicit=explicit)


class Search:
    """A search on a device and the same in Python, which `run` compares after each launch."""

    def __init__(self, bench: Bench, graph: Graph, *, source: int = 0, wide: bool = False, capacity: int = 4096, level: int = 0) -> None:
        n, dtype = graph.num_vertices, graph.indices.dtype
        self.bench, self.graph, self.wide, self.capacity = bench, graph, wide, capacity
        self.frontier, self.level = [source], level
        self.level_of = {source: level}
        self.queues = [bench.put(np.full(capacity, source, dtype)) for _ in range(2)]
        self.state = bench.put(np.array([1, len(graph.row(source)), level, 0, 0, 0, 1, -1], np.int64))
        self.visited = bench.put(bitmap([source], n))
        self.parent = bench.put(np.full(n, UNSET, dtype))
        self.levels = bench.put(np.full(4 * n, UNSET, np.uint8))
        self.fixed = [bench.put(array) for array in (*graph.lookup, *graph.planes)]
        self.indices = bench.put(np.append(graph.indices, 0).astype(dtype))

    def edges(self) -> int:
        return sum(len(self.graph.row(v)) for v in self.frontier)

    def misses(self, readable: int) -> bool:
        """Whether the frontier has an edge that is neither readable nor in the planes."""
        begin, end = self.graph.indptr[self.frontier], self.graph.indptr[np.array(self.frontier) + 1]
        return bool((np.maximum(begin + self.graph.num_planes, readable) < end).any())

    def expected(self, limits: list[int], log_capacity: int, readable: int) -> tuple[int, list[tuple[int, int]]]:
        """Go on in Python as far as the kernel should: status and log."""
        log: list[tuple[int, int]] = []
        while True:
            if not self.frontier or self.level >= limits[0]:
                return STATUS_DONE, log
            count, edges = len(self.frontier), self.edges()
            if edges > limits[1] or count > limits[5] or max(edges, count) > self.capacity or self.level >= limits[3]:
                return STATUS_GROWN, log
            if len(log) == log_capacity:
                return STATUS_LOG_FULL, log
            if self.misses(readable):
                return STATUS_MISSES, log
            log.append((count, edges))
            self.level += 1
            found = {int(x) for v in self.frontier for x in self.graph.row(v)} - set(self.level_of)
            self.level_of.update(dict.fromkeys(found, self.level))
            self.frontier = sorted(found)

    def launch(self, limits: list[int], log_capacity: int, readable: int) -> tuple[np.ndarray, np.ndarray]:
        """Launch once: state and log."""
        bench, graph = self.bench, self.graph
        log = bench.put(np.full(2 * log_capacity + 2, -1, np.int64))
        lookup = (self.fixed[0], np.int64(graph.lookup[0].size), *self.fixed[1:4], np.int64(graph.lookup[1].size))
        bench.launch(
            f"push_levels<{C_NAME[graph.indices.dtype]}>", 1, BLOCK, *self.queues, np.int64(self.capacity), self.state,
            bench.put(np.array(limits, np.int64)), log, np.int64(log_capacity), *lookup, *self.fixed[4:], np.int32(graph.num_planes),
            self.indices, np.int64(readable), self.visited, self.parent, self.levels, self.levels, np.int32(self.wide),
        )  # fmt: skip
        return bench.get(self.state), bench.get(log)

    def run(
        self, *, last: int = ALL, most_edges: int = ALL, most_vertices: int = ALL, largest: int = 254, log_capacity: int = 500,
        readable: int | None = None,
    ) -> int:  # fmt: skip
        """Launch once, judge all that it wrote, and return the status."""
        readable = self.graph.indices.size if readable is None else readable
        limits = [last, most_edges, 0, largest, 0, most_vertices]
        state = self.bench.get(self.state)
        state[LOG_ROWS] = 0
        self.state = self.bench.put(state)
        state, log = self.launch(limits, log_capacity, readable)
        status, rows = self.expected(limits, log_capacity, readable)
        assert state[STATUS] == status
        assert state[[SIZE, EDGES, LEVEL, LOG_ROWS]].tolist() == [len(self.frontier), self.edges(), self.level, len(rows)]
        assert [tuple(row) for row in log.reshape(-1, 2)[: len(rows)].tolist()] == rows
        assert (log[2 * len(rows) :] == -1).all()
        queue = self.bench.get(self.queues[state[WHICH]])[: state[SIZE]]
        assert sorted(queue.tolist()) == self.frontier
        self.judge()
        return status

    def judge(self) -> None:
        """Visited bits, levels and parents are those of the levels so far."""
        reached = sorted(self.level_of)
        assert marked(self.bench.get(self.visited)).tolist() == reached
        levels, parent = self.bench.get(self.levels), self.bench.get(self.parent).astype(np.int64)
        levels = levels.view(np.int32) if self.wide else levels
        first = min(self.level_of.values())
        for v in range(self.graph.num_vertices):
            if self.level_of.get(v, first) == first:
                assert parent[v] == UNSET
            else:
                assert levels[v] == self.level_of[v]
                assert self.level_of[int(parent[v])] == self.level_of[v] - 1
                assert v in self.graph.row(int(parent[v]))


NAMES = [f"push_levels<{C_NAME[dtype]}>" for dtype in DTYPES.values()]


@pytest.fixture(scope="module", params=DEVICES)
def bench(request):
    """Each device in turn, with the kernels compiled."""
    return Bench(open_device(request.param), source("common", "levels"), NAMES)


class TestLevels:
    @pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
    @pytest.mark.parametrize("wide", [False, True], ids=["bytes", "wide"])
    def test_a_path_to_its_end(self, bench, dtype, wide):
        search = Search(bench, make_path(40, dtype=dtype), source=38, wide=wide)
        assert search.run() == STATUS_DONE
        assert search.level == 40

    @pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
    def test_frontiers_wider_than_a_block(self, bench, dtype):
        """A star whose leaves have leaves: 1, 1,500, then 3,000 vertices, with rows of none, one and three edges among them."""
        hub = list(range(1, 1501))
        leaves = [[0, 1500 + 2 * v - 1, 1500 + 2 * v] if v <= 1000 else [0] if v <= 1300 else [] for v in hub]
        leaves[499:502] = [[0, 3600 + k, 3700] for k in range(3)]
        graph = make_graph([hub, *leaves, *[[]] * 3000], dtype=dtype)
        search = Search(bench, graph, capacity=5000)
        assert search.run() == STATUS_DONE

    def test_each_level_in_a_launch_of_its_own(self, bench):
        search = Search(bench, make_random_graph(1, dtype=DTYPES["uint32"]))
        statuses = [search.run(log_capacity=1) for _ in range(4)]
        assert statuses[0] == STATUS_LOG_FULL
        assert search.run() == STATUS_DONE

    def test_a_frontier_with_too_much_is_left_and_taken_up_again(self, bench):
        for limit in ({"most_edges": 12}, {"most_vertices": 3}):
            search = Search(bench, make_random_graph(2, dtype=DTYPES["uint32"]))
            while search.run(**limit) == STATUS_GROWN:
                search.run(log_capacity=1)
            assert not search.frontier

    def test_a_queue_that_could_be_too_short_is_not_begun(self, bench):
        graph = make_graph([[1, 2, 3, 4, 5], *[[0]] * 5], dtype=DTYPES["uint32"])
        assert Search(bench, graph, capacity=4).run() == STATUS_GROWN
        assert Search(bench, graph, capacity=5).run() == STATUS_DONE

    def test_a_frontier_larger_than_the_queue_is_left_as_it_came(self, bench):
        graph = make_graph([[1, 2, 3], *[[0]] * 3], dtype=DTYPES["uint32"])
        search = Search(bench, graph, capacity=4)
        state = [7, 123, 0, 0, 0, 0, 1, -1]
        search.state = bench.put(np.array(state, np.int64))
        after, log = search.launch([ALL, ALL, 0, 254, 0, ALL], 5, graph.indices.size)
        assert after.tolist() == [*state[:STATUS], STATUS_GROWN]
        assert (log == -1).all()

    def test_the_one_byte_form_ends(self, bench):
        search = Search(bench, make_path(9, dtype=DTYPES["uint32"]), source=7, level=252)
        assert search.run() == STATUS_GROWN
        assert search.level == 254

    def test_the_last_level_is_found_and_no_more(self, bench):
        search = Search(bench, make_path(9, dtype=DTYPES["uint32"]), source=7)
        assert search.run(last=2) == STATUS_DONE
        assert search.run(last=2) == STATUS_DONE
        assert search.level == 2
        assert search.run() == STATUS_DONE

    @pytest.mark.parametrize("num_planes", [0, 1, 3])
    def test_a_level_with_an_edge_out_of_reach_is_not_begun(self, bench, num_planes):
        graph = make_random_graph(4, dtype=DTYPES["uint32"], num_planes=num_planes)
        search = Search(bench, graph)
        readable, stops = 0, 0
        while search.run(readable=readable) == STATUS_MISSES:
            readable, stops = readable + 1 + graph.indices.size // 5, stops + 1
        assert stops
        assert not search.frontier

    def test_planes_alone_are_enough(self, bench):
        graph = make_random_graph(5, dtype=DTYPES["int64"], num_planes=80)
        assert Search(bench, graph).run(readable=0) == STATUS_DONE

    def test_random_searches(self, bench):
        @given(st.integers(0, 2**32), st.sampled_from(list(DTYPES.values())), st.integers(0, 6), st.booleans(), st.booleans(), st.data())
        @settings(deadline=None, max_examples=25)
        def run(seed, dtype, num_planes, explicit, wide, data):
            graph = make_random_graph(seed, dtype=dtype, num_planes=num_planes, explicit=explicit)
            search = Search(bench, graph, source=data.draw(st.integers(0, graph.num_vertices - 1)), wide=wide)
            for _ in range(data.draw(st.integers(0, 3))):
                search.run(
                    last=data.draw(st.integers(0, 9)),
                    most_edges=data.draw(st.integers(0, 100)),
                    most_vertices=data.draw(st.integers(0, 50)),
                    log_capacity=data.draw(st.integers(0, 4)),
                    readable=data.draw(st.integers(0, graph.indices.size)),
                )
            assert search.run(largest=ALL if wide else 254) == STATUS_DONE or search.level == 254

        run()
