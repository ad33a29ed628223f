"""Appending edges, and merging stores, gives the store of one build of all edges, byte for byte."""

from __future__ import annotations

import errno
import json
import re
import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from itertools import product
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import oocgraph
from oocgraph import append_edges, build_csr, merge_graphs
from oocgraph.config import setting
from oocgraph.errors import ArgumentError, BudgetError, CorruptStoreError, DuplicateEdgeError, InputError, OutputError
from oocgraph.ingest import merge_rows, merge_steps, ranks
from oocgraph.ingest.build_job import Sizes
from oocgraph.ingest.merge_ids import JoinedIds
from oocgraph.ingest.merge_rows import _Merging
from oocgraph.store.degrees import DegreeClasses
from oocgraph.store.records import Payload
from oocgraph.store.writer import ArrayWriter, PlacedWriter
from tests.ingest.helpers_build import ArraySource, assert_same_store, files_of
from tests.processes import program


@contextmanager
def knobs(values):
    """Change settings for a while."""
    with ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(setting(name, value))
        yield


def drawn(seed, num_edges, num_ids, *, skew=2.0):
    rng = np.random.default_rng(seed)
    return tuple((num_ids * rng.random(num_edges) ** skew).astype(np.int64) for _ in range(2))


def strings_of(ids):
    return pa.array([f"v{one % 7}-{one}" for one in ids.tolist()], pa.large_string())


def as_given(source, target, kind):
    if kind == "strings":
        return strings_of(source), strings_of(target)
    if kind == "sparse":
        return source * 7_919_000_003 % 2**61, target * 7_919_000_003 % 2**61
    return source + 5, target + 5


def both(one, other):
    if isinstance(one, pa.Array):
        return pa.concat_arrays([one, other])
    return np.concatenate([one, other])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("loops", [False, True], ids=["no loops", "loops"])
@pytest.mark.parametrize("kind", ["range", "sparse", "strings"])
@pytest.mark.parametrize("duplicates", ["drop", "keep"])
def test_appended_edges_make_the_store_of_one_build(tmp_path, directed, loops, kind, duplicates):
    """New vertices, old isolated ones, repeated edges and hubs are among them."""
    old, new = as_given(*drawn(1, 3000, 700), kind), as_given(*drawn(2, 400, 900), kind)
    options = {"directed": directed, "keep_self_loops": loops, "duplicates": duplicates}
    build_csr(tuple(map(both, old, new)), tmp_path / "whole", **options)
    graph = append_edges(build_csr(old, tmp_path / "grown", **options), new, keep_self_loops=loops)
    assert_same_store(tmp_path / "whole", tmp_path / "grown")
    assert graph.num_edges == oocgraph.open_graph(tmp_path / "whole").num_edges
    oocgraph.check_store(graph)


@pytest.mark.parametrize("kind", ["sparse", "strings"])
def test_ids_of_two_stores_are_read_from_front_to_back(tmp_path, monkeypatch, kind):
    """However many threads work on blocks of vertices: their ids are a stream, which a block that is behind would find further on."""
    old, new = as_given(*drawn(1, 3000, 700), kind), as_given(*drawn(2, 400, 900), kind)
    build_csr(tuple(map(both, old, new)), tmp_path / "whole")
    graph, read, reads, threads = build_csr(old, tmp_path / "grown"), JoinedIds.read, [], set()

    def recorded(ids, start, stop):
        reads.append((start, stop))
        threads.add(threading.get_ident())
        return read(ids, start, stop)

    monkeypatch.setattr(ranks, "BLOCK", 64)
    monkeypatch.setattr(JoinedIds, "read", recorded)
    append_edges(graph, new, resources=oocgraph.Resources(threads=4))
    assert len(reads) > 8
    assert reads == sorted(reads)
    assert len(threads) == 1
    assert_same_store(tmp_path / "whole", tmp_path / "grown")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("duplicates", ["min", "max", "sum", "first", "keep"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_weights_and_columns_of_repeated_edges(tmp_path, duplicates, directed, dtype):
    """Edges repeat within each list and across both; only one list has some of the strings. Weights are whole, so that sums are exact."""
    rng = np.random.default_rng(5)
    parts = []
    for seed, count, low in ((1, 2500, 0), (2, 600, 2)):
        source, target = drawn(seed, count, 60)
        days, words = rng.integers(0, 3, count).astype(np.int16), pa.array([f"w{one}" for one in rng.integers(low, low + 4, count)])
        parts.append((source, target, days, words.cast(pa.large_string()), rng.integers(-40, 40, count).astype(dtype)))
    whole = [pa.concat_arrays([a, b]) if isinstance(a, pa.Array) else np.concatenate([a, b]) for a, b in zip(*parts, strict=True)]
    tables = [pa.table(dict(zip(("source", "target", "day", "word", "cost"), one, strict=True))) for one in (*parts, whole)]
    options = {"columns": ("source", "target", "day", "word"), "weight": "cost", "duplicates": duplicates, "directed": directed}
    build_csr(tables[2], tmp_path / "whole", **options)
    graph = append_edges(build_csr(tables[0], tmp_path / "grown", **options), tables[1], weight="cost")  # the columns are the graph's
    assert_same_store(tmp_path / "whole", tmp_path / "grown")
    oocgraph.check_store(graph)
    second = build_csr(tables[1], tmp_path / "second", **options)
    merge_graphs(build_csr(tables[0], **options), second, tmp_path / "merged")  # the first is in memory
    assert_same_store(tmp_path / "whole", tmp_path / "merged")


@pytest.mark.parametrize("setting", [{"vertex-order": "original"}, {"codec": "zstd"}, {"codec": "blosc", "vertex-order": "original"}])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_order_and_compression_stay_as_they_are(tmp_path, setting, directed):
    """The settings of the moment do not matter."""
    old, new = drawn(3, 4000, 500), drawn(4, 500, 700)
    with knobs(setting):
        build_csr(tuple(map(both, old, new)), tmp_path / "whole", directed=directed)
        graph = build_csr(old, tmp_path / "grown", directed=directed)
    append_edges(graph, new)
    assert_same_store(tmp_path / "whole", tmp_path / "grown")


@pytest.mark.parametrize("kind", ["range", "strings"])
def test_any_memory_and_threads_give_the_same_bytes(tmp_path, monkeypatch, kind):
    """Blocks of a few entries, bins of a few records, rows longer than a block."""
    old, new = as_given(*drawn(6, 900, 120), kind), as_given(*drawn(7, 200, 150), kind)
    build_csr(tuple(map(both, old, new)), tmp_path / "whole", directed=True)
    build_csr(old, tmp_path / "base", directed=True)
    for place in ("build", "merge_job"):
        monkeypatch.setattr(
            f"oocgraph.ingest.{place}.plan_sizes",
            lambda budget, threads, payload_bytes, **_: Sizes(threads, 5, 7, 1 << 20, 40, 1 << 40),
        )
    for threads in (1, 3):
        shutil.copytree(tmp_path / "base", tmp_path / f"grown{threads}")
        append_edges(tmp_path / f"grown{threads}", new, resources=oocgraph.Resources(threads=threads))
        assert_same_store(tmp_path / "whole", tmp_path / f"grown{threads}")


@pytest.mark.parametrize("declared", [None, 50, 80])
def test_declared_vertices(tmp_path, declared):
    """Isolated vertices of a declared range are not stored; a larger range may be declared with the new edges."""
    old, new = (np.array([0, 1, 7]), np.array([1, 2, 3])), (np.array([0, 49]), np.array([3, 7]))
    build_csr(tuple(map(both, old, new)), tmp_path / "whole", num_vertices=declared or 50)
    append_edges(build_csr(old, tmp_path / "grown", num_vertices=50), new, num_vertices=declared)
    assert_same_store(tmp_path / "whole", tmp_path / "grown")


def test_vertices_without_edges_and_lists_without_edges(tmp_path):
    """A dropped self-loop leaves a vertex, old or new, which a later edge may touch; an empty list changes nothing."""
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64))
    build_csr(([1, 2, 9, 9, 1], [1, 3, 9, 3, 8]), tmp_path / "whole")
    graph = build_csr(nothing, tmp_path / "grown")
    for edges in (([1, 2], [1, 3]), nothing, ([9], [9]), ([9], [3]), ([1], [8]), nothing):
        graph = append_edges(graph, edges)
    assert_same_store(tmp_path / "whole", tmp_path / "grown")
    words = build_csr((["a", "b"], ["b", "b"]), tmp_path / "words")
    append_edges(build_csr(nothing, tmp_path / "from nothing"), (["a", "b"], ["b", "b"]))
    assert_same_store(words.url, tmp_path / "from nothing")


def test_a_hub_arises_from_a_vertex_without_edges(tmp_path):
    """A new row may be longer than any, and a vertex come from the end of the order to its beginning."""
    old = (np.append(5000, np.arange(0, 3000)), np.append(5000, np.arange(1, 3001)))
    new = (np.full(4000, 5000), np.arange(4000))
    build_csr(tuple(map(both, old, new)), tmp_path / "whole")
    append_edges(build_csr(old, tmp_path / "grown"), new)
    assert_same_store(tmp_path / "whole", tmp_path / "grown")


def test_an_edge_that_is_there_already_is_named(tmp_path):
    """The graph is as it was."""
    graph = build_csr((["ann", "bob"], ["bob", "cid"]), tmp_path / "g", duplicates="error")
    before = {name: path.read_bytes() for name, path in files_of(tmp_path / "g").items()}
    with pytest.raises(DuplicateEdgeError, match=r"the edge '(ann|bob)' - '(ann|bob)' is in .* already"):
        append_edges(graph, (["dan", "bob"], ["ann", "ann"]))
    with pytest.raises(DuplicateEdgeError, match="occurs in row 1 and again in row 2"):
        append_edges(graph, (["dan", "ann"], ["ann", "dan"]))
    assert {name: path.read_bytes() for name, path in files_of(tmp_path / "g").items()} == before
    assert append_edges(graph, (["dan"], ["ann"])).num_edges == 3
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


@pytest.mark.parametrize(
    ("options", "edges", "given", "words"),
    [
        ({}, (["a"], ["b"]), {}, "its ids are string, those of .* int64"),
        ({"num_vertices": 5}, ([0], [9]), {}, "the vertex 9 is outside the ids 0 to 4 .* num_vertices=10"),
        ({"num_vertices": 5}, ([0], [1]), {"num_vertices": 3}, "the vertex 4 is outside the ids 0 to 2"),
        ({}, pa.table({"source": [0], "target": [1], "cost": [1.0]}), {"weight": "cost"}, "it has the weight, and .* has none"),
    ],
)
def test_edges_of_another_kind_are_refused(tmp_path, options, edges, given, words):
    """Before the store is touched, with the remedy."""
    graph = build_csr(([0, 1], [1, 2]), tmp_path / "g", **options)
    with pytest.raises(InputError, match=words):
        append_edges(graph, edges, **given)
    assert [path.name for path in tmp_path.iterdir()] == ["g"]
    assert oocgraph.open_graph(tmp_path / "g").num_edges == 2


def test_columns_must_be_those_of_the_graph(tmp_path):
    """Names and dtypes."""
    table = pa.table({"source": [0], "target": [1], "day": pa.array([3], pa.int16()), "cost": [1.5]})
    graph = build_csr(table, tmp_path / "g", columns=("source", "target", "day"), weight="cost")
    with pytest.raises(InputError, match=r"it has no weight, and .* has one; name the column"):
        append_edges(graph, table)
    with pytest.raises(InputError, match=r"column 'day': the value 70000 is no int16"):
        append_edges(graph, table.set_column(2, "day", pa.array([70_000])), weight="cost")
    with pytest.raises(InputError, match=r"column 'day': it is string, and int16 is asked for; convert it"):
        append_edges(graph, table.set_column(2, "day", pa.array(["3"])), weight="cost")
    with pytest.raises(InputError, match="it has no edge column 'day'"):
        merge_graphs(graph, build_csr(table, tmp_path / "h", weight="cost"), tmp_path / "m")


def test_graphs_that_cannot_grow_are_refused(tmp_path):
    """In locality order, in memory, a view, of another kind."""
    with knobs({"vertex-order": "locality"}):
        near = build_csr(drawn(1, 200, 100), tmp_path / "near")
    with pytest.raises(ArgumentError, match="locality order, which depends on all of its edges; build it again"):
        append_edges(near, ([0], [1]))
    small = build_csr(([0], [1]))
    with pytest.raises(OutputError, match="merge_graphs"):
        append_edges(small, ([0], [1]))
    directed = build_csr(([0, 1], [1, 2]), tmp_path / "d", directed=True)
    with pytest.raises(InputError, match=r"directed=False, .* directed=True"):
        merge_graphs(small, directed, tmp_path / "m")
    assert merge_graphs(small, near, tmp_path / "m").num_edges >= near.num_edges  # of the second only its edges matter
    with pytest.raises(OutputError, match="exists already"):
        merge_graphs(small, near, tmp_path / "m")


def test_two_stores_become_one(tmp_path):
    """Either may be replaced by the result."""
    one, other = drawn(8, 3000, 400), drawn(9, 3000, 600)
    build_csr(tuple(map(both, one, other)), tmp_path / "whole")
    first, second = build_csr(one, tmp_path / "a"), build_csr(other, tmp_path / "b")
    merge_graphs(first, second, tmp_path / "b", overwrite=True)
    assert_same_store(tmp_path / "whole", tmp_path / "b")
    merge_graphs(first, first, tmp_path / "a", overwrite=True)
    build_csr(one, tmp_path / "again")
    assert_same_store(tmp_path / "again", tmp_path / "a")


def test_partitions_and_results_of_the_graph_before_are_refused(tmp_path):
    """Their fingerprint is another's."""
    graph = build_csr(drawn(1, 300, 100), tmp_path / "g")
    parts = oocgraph.partition_graph(graph, 2, policy="EEC", path=tmp_path / "parts")
    graph = append_edges(graph, ([0, 1], [200, 300]))
    with pytest.raises(oocgraph.OocGraphError, match=r"fingerprint|another graph|changed|other"):
        oocgraph.bfs(graph, 0, partition=parts)


def test_a_store_that_was_replaced_meanwhile_is_left_alone(tmp_path):
    """Edges of another program's append are not lost."""
    graph, source = build_csr(([0, 1], [1, 2]), tmp_path / "g"), ArraySource(np.array([0]), np.array([3]))
    inner = source.streams

    def streams(block_rows):
        build_csr(([5, 6], [6, 7]), tmp_path / "g", overwrite=True)
        return inner(block_rows)

    source.streams = streams
    with pytest.raises(OutputError, match="replaced by another program"):
        append_edges(graph, source)
    assert oocgraph.open_graph(tmp_path / "g").has_edge(5, 6)


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    """In each array that is written: the message, no remains, the graph as it was."""
    build_csr(drawn(1, 2000, 300), tmp_path / "g")
    before = {name: path.read_bytes() for name, path in files_of(tmp_path / "g").items()}

    def full(array, real):
        def write(self, *block):
            if self.name == array and "added" not in str(self._folder):
                raise OSError(errno.ENOSPC, "No space left on device")
            real(self, *block)

        return write

    for array in ("vertices/sorted_id", "vertices/id", "out/indices", "out/planes/indices", "checksums/out/indices"):
        with monkeypatch.context() as patched:
            patched.setattr(ArrayWriter, "append", full(array, ArrayWriter.append))
            patched.setattr(PlacedWriter, "write", full(array, PlacedWriter.write))
            with pytest.raises(OutputError, match="the disk is full"):
                append_edges(tmp_path / "g", drawn(2, 100, 400))
        assert [path.name for path in tmp_path.iterdir()] == ["g"]
        assert {name: path.read_bytes() for name, path in files_of(tmp_path / "g").items()} == before


@pytest.mark.parametrize("duplicates", ["min", "max", "sum", "first", "keep"])
def test_repeated_edges_are_treated_a_few_at_a_time(tmp_path, monkeypatch, duplicates):
    """Whole groups of them, which of an edge that is kept often are longer."""
    monkeypatch.setattr(merge_rows, "TIED_ENTRIES", 3)
    rng = np.random.default_rng(7)
    tables = [pa.table({"source": rng.integers(0, 5, n), "target": rng.integers(0, 9, n), "w": rng.integers(0, 50, n)}) for n in (40, 60)]
    options = {"weight": "w", "directed": True, "duplicates": duplicates}
    parts = [build_csr(table, tmp_path / name, **options) for table, name in zip(tables, "ab", strict=True)]
    build_csr(pa.concat_tables(tables), tmp_path / "whole", **options)
    merge_graphs(*parts, tmp_path / "merged")
    assert_same_store(tmp_path / "whole", tmp_path / "merged")


def merged_within_least(folder, *options):
    """Merge two stores within the budget that a refusal names, and return the report."""
    command = [sys.executable, "-m", "oocgraph", "merge", *(folder / name for name in ("a", "b", "merged")), *options, "--json"]
    refused = subprocess.run([*command, "--memory", "1M"], capture_output=True, text=True, check=False).stderr
    named = refused.rpartition("at least ")[2].strip()
    report = json.loads(subprocess.run([*command, "--memory", named], capture_output=True, text=True, check=True).stdout)
    print(f"peak {report['peak_host_bytes'] >> 20} of {report['memory_budget'] >> 20} MiB")
    return report


def test_an_edge_that_two_stores_have_often_holds_what_was_promised(tmp_path):
    """Entries of one edge are treated at once, which takes twice as much as was in the budget."""
    ones = np.ones(1_000_000, np.int64)
    for name in "ab":
        table = pa.table({"source": 0 * ones, "target": ones, "w": np.arange(ones.size) % 9})
        build_csr(table, tmp_path / name, weight="w", duplicates="keep")
    report = merged_within_least(tmp_path)
    assert report["peak_host_bytes"] <= report["memory_budget"]
    assert report["num_edges"] == 2_000_000


def test_short_strings_of_two_stores_hold_what_was_promised(tmp_path):
    """Blocks of them were cut by their characters, of which each takes many times as much."""
    letters = [chr(code) for code in range(33, 123)]
    names = pa.array(["".join(three) for three in product(letters, repeat=3)])
    rng = np.random.default_rng(3)
    for name in "ab":
        table = pa.table({end: names.take(pa.array(rng.integers(0, len(names), 800_000))) for end in ("source", "target")})
        build_csr(table, tmp_path / name, directed=True)
    report = merged_within_least(tmp_path)
    assert report["peak_host_bytes"] <= report["memory_budget"]


def test_hubs_of_two_stores_hold_what_was_promised(tmp_path):
    """All edges at one vertex, in both: what was held of them while equal ones were looked for was not in the budget."""
    leaves = np.arange(1, 1_000_001)
    for name in "ab":
        build_csr(pa.table({"source": 0 * leaves, "target": leaves, "w": leaves % 9}), tmp_path / name, weight="w")
    report = merged_within_least(tmp_path, "--threads", "1")
    assert 120 << 20 < report["peak_host_bytes"] <= report["memory_budget"]
    assert report["num_edges"] == 1_000_000


def test_a_budget_that_is_named_works(tmp_path):
    """And one below it is refused before anything is read."""
    build_csr(drawn(1, 60_000, 200_000, skew=1.2), tmp_path / "g")
    new = drawn(2, 2000, 200_000, skew=1.2)
    append_edges(tmp_path / "g", drawn(3, 10, 100))  # what is loaded at first is not measured
    with pytest.raises(BudgetError) as caught:
        append_edges(tmp_path / "g", new, memory_budget="1M")
    least = int(str(caught.value).rpartition("at least ")[2].partition("M")[0])
    append_edges(tmp_path / "g", new, memory_budget=f"{least}M")
    with pytest.raises(BudgetError):
        append_edges(tmp_path / "g", new, memory_budget=f"{least - 40}M")


class Slow(np.ndarray):
    """Neighbours in whose comparison another thread finishes its block."""

    def __eq__(self, other):
        if self.meanwhile is not None:
            self.meanwhile()
        return np.asarray(self) == np.asarray(other)

    __hash__ = None
    meanwhile = None


def test_parallel_edges_that_another_thread_has_found_are_not_forgotten(monkeypatch):
    job = SimpleNamespace(payload=Payload({"kind": np.dtype(np.int8)}, None, "drop"))
    merging = _Merging("out", [], DegreeClasses.of(np.array([1]), np.array([10])), job, 0, 1)
    with_parallel = merging, 0, np.array([3, 3], np.uint32), (), np.array([2])
    monkeypatch.setattr(Slow, "meanwhile", staticmethod(lambda: _Merging._block(*with_parallel)))
    merging._block(0, np.array([1, 2, 3], np.uint32).view(Slow), (), np.array([3]))
    assert merging.has_parallel


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("what", ["vertices", "rows"])
def test_vertices_and_rows_are_written_at_the_same_time(tmp_path, monkeypatch, threads, what):
    """Whichever fails ends both, with what it met with, and nothing is left."""
    graph = build_csr(drawn(1, 3000, 700), tmp_path / "graph")
    before = graph.read("out/indices").tolist()

    def failing(*_, **named):
        raise OutputError("the disk is full")

    monkeypatch.setattr(merge_steps, {"vertices": "write_vertices", "rows": "write_merged"}[what], failing)
    with pytest.raises(OutputError, match="the disk is full"):
        append_edges(tmp_path / "graph", drawn(2, 30, 700), resources=oocgraph.Resources(threads=threads))
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]
    assert oocgraph.open_graph(tmp_path / "graph").read("out/indices").tolist() == before


def test_an_order_that_names_a_vertex_twice_is_refused(tmp_path):
    graph = build_csr(drawn(1, 3000, 700), tmp_path / "graph")
    [chunk] = (one for one in (tmp_path / "graph/vertices/order/c").rglob("*") if one.is_file())
    order = np.fromfile(chunk, graph.index_dtype)
    lost = int(order[5])
    order[5] = order[6]
    order.tofile(chunk)
    with pytest.raises(CorruptStoreError, match=f"vertices/order names some vertices twice, and not vertex {lost}; restore"):
        append_edges(tmp_path / "graph", drawn(2, 30, 700))
    assert np.fromfile(chunk, graph.index_dtype).tolist() == order.tolist()


APPEND = """
import sys
import oocgraph

path, number = sys.argv[1], int(sys.argv[2])
oocgraph.open_graph(path)
print("ready", flush=True)
sys.stdin.readline()
try:
    oocgraph.append_edges(path, ([10**6 + number], [2 * 10**6 + number]))
except oocgraph.OocGraphError as error:
    print(type(error).__name__, error)
"""


def test_of_edges_that_are_appended_at_once_none_are_lost_without_a_word(tmp_path):
    """Each of three processes adds an edge, or says that another has replaced the store."""
    build_csr(drawn(3, 20_000, 5000), tmp_path / "g")
    for number in range(0, 9, 3):
        with ExitStack() as stack:
            commands = [[sys.executable, "-c", APPEND, tmp_path / "g", one] for one in range(number, number + 3)]
            running = [stack.enter_context(program(command, text=True, stdin=-1, stdout=-1, stderr=-1)) for command in commands]
            for one in running:
                assert one.stdout.readline() == "ready\n"
            for one in running:
                one.stdin.write("\n")
                one.stdin.flush()
            told = [one.communicate(timeout=300) for one in running]
        graph = oocgraph.open_graph(tmp_path / "g")
        there = [10**6 + one in graph and graph.has_edge(10**6 + one, 2 * 10**6 + one) for one in range(number, number + 3)]
        assert any(there), told
        for is_there, (said, errors) in zip(there, told, strict=True):
            assert "Traceback" not in errors
            assert bool(said) != is_there
            assert is_there or re.match("(OutputError|StoreError) .*was replaced", said), said
