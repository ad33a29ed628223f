"""Topological generations are NetworkX's, and of a graph with cycles one is named."""

from __future__ import annotations

import itertools
import re

import networkx as nx
import numpy as np
import pytest

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms import topological
from oocgraph.config import setting
from oocgraph.engine import sweeps
from oocgraph.errors import ArgumentError, BudgetError, CorruptStoreError
from oocgraph.sparse import edge_stream
from tests.algorithms.test_strong_components import SHAPES, acyclic, built, no_rest, sparse
from tests.stores import string_store


def early_rest(monkeypatch):
    """Have what is left after the first sweep ended in memory."""
    monkeypatch.setattr(topological, "FEW", 0)


def by_rows(monkeypatch, *, has_room=lambda *_: False):
    """Have what is left after the first sweep followed by rows that are read by themselves."""
    monkeypatch.setattr(topological, "FEW", 0)
    monkeypatch.setattr(topological, "LEAST_SWEEPS", 1)
    monkeypatch.setattr(topological, "has_room", has_room)
    monkeypatch.setattr(sweeps.Sweeps, "most_rows", lambda *_: 1 << 30)


def by_rows_then_rest(monkeypatch):
    """Have what is left after some rows ended in memory."""
    room = itertools.cycle([False, False, True])
    by_rows(monkeypatch, has_room=lambda *_: next(room))


def by_few_rows(monkeypatch):
    """Have rows read one by one."""
    by_rows(monkeypatch)
    monkeypatch.setattr(topological, "READ_ROWS", 1)


WAYS = [no_rest, early_rest, by_rows, by_rows_then_rest, by_few_rows]


def generations(peer):
    """Return NetworkX's, by ascending vertex."""
    found = {v: i for i, group in enumerate(nx.topological_generations(peer)) for v in group}
    return [found[v] for v in sorted(found)]


def named_cycle(error):
    """Return the vertices that a message names, in order."""
    return [int(one) for one in re.search(r"comes first: (.*);", str(error))[1].split(" -> ")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("piece", [None, 16])
def test_generations_are_networkxs(tmp_path, monkeypatch, way, piece):
    """Of rows that are longer than a piece, too."""
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    way(monkeypatch)
    for seed in range(4):
        graph, peer = built(tmp_path / f"{seed}.zarr", acyclic(seed))
        found = oocgraph.topological_generations(graph, resources=Resources(threads=1 + seed % 3))
        assert found.generation.tolist() == generations(peer)
        assert found.num_generations == max(generations(peer)) + 1
        assert oocgraph.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", sorted(set(SHAPES) - {"acyclic"}))
@pytest.mark.parametrize("piece", [None, 16])
def test_a_cycle_is_named(tmp_path, monkeypatch, way, shape, piece):
    """It is one of the graph, along its edges, and the same for any number of threads."""
    if piece:
        monkeypatch.setattr(edge_stream, "PIECE_BYTES", piece)
    monkeypatch.setattr(topological, "NAMED_VERTICES", 100)
    way(monkeypatch)
    for seed in range(2):
        graph, peer = built(tmp_path / f"{seed}.zarr", SHAPES[shape](seed))
        said = set()
        for threads in (1, 3):
            with pytest.raises(ArgumentError, match=r"has cycles.* take its condensation") as found:
                oocgraph.topological_generations(graph, resources=Resources(threads=threads))
            said.add(str(found.value))
        assert len(said) == 1
        cycle = named_cycle(found.value)
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        assert nx.is_path(peer, cycle)
        assert not oocgraph.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize("way", WAYS)
def test_a_self_loop_is_a_cycle(tmp_path, monkeypatch, way):
    way(monkeypatch)
    graph = oocgraph.build_csr(([1, 2, 2], [2, 2, 3]), tmp_path / "g.zarr", directed=True, keep_self_loops=True)
    with pytest.raises(ArgumentError, match="comes first: 2 -> 2;"):
        oocgraph.topological_generations(graph)


def test_of_a_long_cycle_some_vertices_are_named(tmp_path):
    graph = oocgraph.build_csr((np.arange(30), (np.arange(30) + 1) % 30), tmp_path / "g.zarr", directed=True)
    with pytest.raises(ArgumentError, match=r"comes first: \d+ -> (\d+ -> ){7}\.\.\. \(30 vertices\) -> \d+;"):
        oocgraph.topological_generations(graph)


@pytest.mark.parametrize("order", ["original", "locality"])
def test_the_order_of_vertices_does_not_matter(tmp_path, order):
    """Duplicates that are kept do not either."""
    with setting("vertex-order", order):
        graph, peer = built(tmp_path / "g.zarr", acyclic(11), duplicates="keep")
    assert oocgraph.topological_generations(graph).generation.tolist() == generations(peer)


def test_edges_of_one_direction_that_are_others_in_the_other_are_refused(tmp_path, monkeypatch):
    by_rows(monkeypatch)
    oocgraph.build_csr((np.arange(50), np.arange(50) + 1), tmp_path / "g.zarr", directed=True)
    chunk = tmp_path / "g.zarr/out/indices/c/0"
    indices = np.frombuffer(chunk.read_bytes(), np.uint32)
    chunk.write_bytes(np.full_like(indices, indices[0]).tobytes())
    with pytest.raises(CorruptStoreError, match="in-lists are others than those in its out-lists"):
        oocgraph.topological_generations(oocgraph.open_graph(tmp_path / "g.zarr"))


@pytest.mark.parametrize("kind", ["layers", "path"])
def test_narrow_generations_that_do_not_fit_are_followed_by_rows(tmp_path, monkeypatch, kind):
    """Each row is read once: a page, and one that says where it is."""
    rng, n = np.random.default_rng(4), 10_000
    order = rng.permutation(n)
    source, layer = (np.arange(n - 1), 1) if kind == "path" else (np.repeat(np.arange(n - 50), 4), 50)
    target = source // layer * layer + layer + rng.integers(0, layer, source.size)
    graph = oocgraph.build_csr((order[source], order[target]), tmp_path / "g.zarr", directed=True)
    expected = oocgraph.topological_generations(graph).generation
    monkeypatch.setattr(topological, "has_room", lambda *_: False)
    found = oocgraph.topological_generations(graph)
    np.testing.assert_array_equal(found.generation, expected)
    assert found.bytes_requested < 20 * graph.edge_bytes + 2 * 4096 * n
    if kind == "path":
        np.testing.assert_array_equal(found.generation[order], np.arange(n))


def test_long_paths_are_followed_in_memory(tmp_path):
    order = np.random.default_rng(1).permutation(30_000)
    graph = oocgraph.build_csr((order[:-1], order[1:]), tmp_path / "g.zarr", directed=True)
    result = oocgraph.topological_generations(graph)
    np.testing.assert_array_equal(result.generation[order], np.arange(30_000))
    assert result.bytes_requested < 8 * graph.edge_bytes


def test_no_generation_depends_on_threads_budget_or_runtime(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_stream, "PIECE_BYTES", 1 << 10)
    source, target = np.sort(np.random.default_rng(2).integers(0, 4000, (20_000, 2)), axis=1).T
    graph = oocgraph.build_csr((source, target), tmp_path / "g.zarr", directed=True)
    first = oocgraph.topological_generations(graph, resources=Resources(threads=1))
    with pytest.raises(BudgetError, match=r"generations and blockers .* set memory_budget to at least") as refused:
        oocgraph.topological_generations(graph, memory_budget="20M")
    least = int(str(refused.value).rpartition("at least ")[2].rstrip("M")) + 32  # this process may have grown by the next call
    with oocgraph.open_runtime(graph) as runtime:
        others = [
            oocgraph.topological_generations(graph, resources=Resources(threads=3)),
            oocgraph.topological_generations(graph, memory_budget=f"{least}M"),
            oocgraph.topological_generations(graph, runtime=runtime), oocgraph.topological_generations(graph, runtime=runtime),
        ]  # fmt: skip
        assert oocgraph.is_directed_acyclic_graph(graph, runtime=runtime)
    for other in others:
        np.testing.assert_array_equal(other.generation, first.generation)
        assert other.details == first.details


def test_a_result_is_read_under_the_users_ids(tmp_path):
    graph = string_store(tmp_path / "s.zarr", ["b", "b", "c"], ["a", "c", "a"], others=["alone"], directed=True)
    result = oocgraph.topological_generations(graph)
    assert dict(zip(result.vertices, result.generation.tolist(), strict=True)) == {"a": 2, "alone": 0, "b": 0, "c": 1}
    assert result.top(1) == [("a", 2)]
    cyclic = string_store(tmp_path / "c.zarr", ["b", "c"], ["c", "b"], directed=True)
    with pytest.raises(ArgumentError, match=r"'[bc]' -> '[bc]' -> '[bc]'"):
        oocgraph.topological_generations(cyclic)


def test_a_graph_without_edges(tmp_path):
    graph = oocgraph.build_csr(([], []), tmp_path / "g.zarr", num_vertices=3, directed=True)
    result = oocgraph.topological_generations(graph)
    assert (result.generation.tolist(), result.num_generations) == ([0, 0, 0], 1)
    assert oocgraph.is_directed_acyclic_graph(graph)
    none = oocgraph.build_csr(([], []), tmp_path / "n.zarr", directed=True)
    assert oocgraph.topological_generations(none).num_generations == 0


def test_an_undirected_graph_is_refused(tmp_path):
    graph = oocgraph.build_csr(sparse(1), tmp_path / "u.zarr")
    with pytest.raises(ArgumentError, match="is undirected, and its edges have no order; take a graph that was built with directed=True"):
        oocgraph.topological_generations(graph)
    assert not oocgraph.is_directed_acyclic_graph(graph)
