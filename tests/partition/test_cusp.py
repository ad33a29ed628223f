"""Partitions are those that the policy's two functions name, whatever the graph, the lists that are read, and how the work is cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocgraph
from oocgraph.partition import blocks, cusp_spec, finish, local_ids, partitioning, stage
from oocgraph.partition.policies import POLICY_NAMES, named_policy
from oocgraph.partition.policy import Policy
from oocgraph.store import preallocated
from oocgraph.store.graph import open_graph
from tests import every_knob
from tests.partition.cusp_cases import (
    GRAPHS,
    Readers,
    assert_is_reference,
    assert_same_bytes,
    assert_sound,
    partition_with,
    plain,
)
from tests.partition.reference_cusp import PlainProp, transpose
from tests.reference_build import reference_build

PARTS = (1, 2, 3, 5, 8)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Return every graph by name."""
    folder = tmp_path_factory.mktemp("graphs")
    return {name: build(folder / name.replace(" ", "-")) for name, build in GRAPHS.items()}


def policy_for(name, store):
    return named_policy(name, vertex_order=store.attributes.vertex_order)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", POLICY_NAMES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_named_policy(graphs, tmp_path, graph, name):
    """Lists of both kinds, with and without a transpose, and numbers of partitions take turns (`test_any_graph` has them all)."""
    store = graphs[graph]
    policy = plain(policy_for(name, store))
    turn = POLICY_NAMES.index(name) + 3 * [*GRAPHS].index(graph)
    for k, read in enumerate(("out", "in") if graph in ("kronecker", "words") else ("out", "in")[turn % 2 :][:1]):
        num_partitions = min(PARTS[(turn + 3 * k) % 5], store.num_rows)
        made = every_knob.partition(store, num_partitions, policy, tmp_path / read, read=read, transpose=(turn + k) % 3 == 0, threads=2)
        assert_is_reference(made, store, policy)
        assert_sound(made, store)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", POLICY_NAMES)
@pytest.mark.parametrize("graph", ["kronecker", "words"])
def test_compiled_and_plain_write_the_same_bytes(graphs, tmp_path, graph, name):
    read = "out" if graph == "words" else "in"
    for how in (True, False):
        every_knob.partition(graphs[graph], 3, name, tmp_path / str(how), read=read, compiled=how, threads=2)
    assert_same_bytes(tmp_path / "True", tmp_path / "False")


@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), min_size=1, max_size=60),
    st.sampled_from(PARTS),
    st.sampled_from(POLICY_NAMES),
    st.tuples(*[st.booleans()] * 5),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_graph(tmp_path_factory, edges, num_partitions, name, how):
    """Self-loops, vertices without out- or in-edges, multi-edges, empty partitions."""
    directed, by_degree, keep, transpose, into = how
    folder = tmp_path_factory.mktemp("any")
    order, duplicates = ("degree" if by_degree else "original"), ("keep" if keep else "drop")
    src, dst = zip(*edges, strict=True)
    reference_build(src, dst, folder / "g", directed=directed, keep_self_loops=keep, vertex_order=order, duplicates=duplicates)
    store = open_graph(folder / "g")
    if store.num_rows < num_partitions:
        return
    policy = plain(policy_for(name, store))
    made = every_knob.partition(store, num_partitions, policy, folder / "p", read="in" if into else "out", transpose=transpose, threads=2)
    assert_is_reference(made, store, policy)
    assert_sound(made, store)


def small_pieces(monkeypatch, *, entries, rows=7, chunk_bytes=1 << 12, piece_words=1):
    """Make everything small that is read, worked on or written at once."""
    monkeypatch.setattr(partitioning, "BLOCK_ROWS", rows)
    for module in (blocks, cusp_spec, finish, local_ids):
        monkeypatch.setattr(module, "PIECE_ROWS", 64 * piece_words)
    monkeypatch.setattr(local_ids, "PIECE_WORDS", piece_words)
    monkeypatch.setattr(blocks.cut_blocks, "__kwdefaults__", {**blocks.cut_blocks.__kwdefaults__, "max_entries": entries})
    monkeypatch.setattr(finish, "BLOCK_ENTRIES", entries)
    ranges = finish._ranges
    monkeypatch.setattr(finish, "_ranges", lambda indptr, _: ranges(indptr, 10 * entries))
    monkeypatch.setattr(preallocated, "CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(preallocated, "SEAL_BYTES", 1 << 12)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("entries", [1, 5, 64])
@pytest.mark.parametrize("name", ["CVC", "GVC"])
def test_work_cut_at_odd_places(graphs, tmp_path, monkeypatch, entries, name):
    """Blocks of one row and of many, rows longer than a block, chunks of one page: the bytes of the arrays are the same."""
    for graph in ("kronecker", "words", "star", "compressed"):
        store = graphs[graph]
        whole = every_knob.partition(store, 3, name, tmp_path / f"{graph}-whole", compiled=False, transpose=True)
        with monkeypatch.context() as patch:
            small_pieces(patch, entries=entries)
            cut = every_knob.partition(store, 3, name, tmp_path / graph, compiled=False, transpose=True, threads=3)
            assert_is_reference(cut, store, plain(policy_for(name, store)))
            assert_sound(cut, store)
        for one, other in zip(whole, cut, strict=True):
            assert one.store.array_names() == other.store.array_names()
            for array in one.store.array_names():
                np.testing.assert_array_equal(one.store.read(array), other.store.read(array), err_msg=array)


def test_chunks_of_a_page_have_boundaries_in_every_array(tmp_path, monkeypatch):
    """Large enough that each array has several chunks of 4 KiB, and that blocks are written across their boundaries."""
    store = oocgraph.generate_kronecker(11, tmp_path / "g", edge_factor=8, seed=4)
    whole = every_knob.partition(store, 2, "CVC", tmp_path / "whole", transpose=True)
    small_pieces(monkeypatch, entries=1000, rows=300, piece_words=4)
    cut = every_knob.partition(store, 2, "CVC", tmp_path / "cut", transpose=True, threads=3)
    assert len([*(tmp_path / "cut" / "part-00000" / "out" / "indices" / "c").iterdir()]) > 5
    assert_sound(cut, store)
    for one, other in zip(whole, cut, strict=True):
        for array in one.store.array_names():
            np.testing.assert_array_equal(one.store.read(array), other.store.read(array), err_msg=array)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["EEC", "HVC", "CVC", "1D-edge", "1D-vertex"])
def test_stateless_policies_give_the_same_bytes_for_any_number_of_readers(graphs, tmp_path, name):
    for graph in ("kronecker", "original order", "words", "star"):
        for readers in (1, 2, 4):
            partition_with(Readers(readers), graphs[graph], 4, name, tmp_path / f"{graph}-{readers}", compiled=False)
        for readers in (2, 4):
            assert_same_bytes(tmp_path / f"{graph}-1", tmp_path / f"{graph}-{readers}")


COUNTS = np.dtype([("num_vertices", np.int64), ("loads", np.float64, 2)])


def least_loaded(prop, v, m_state, masters):
    """By neighbours that are known, then by what was given so far."""
    best, best_score = 0, -1e300
    for p in range(prop.num_partitions):
        score = -float(m_state["num_vertices"][p])
        for u in prop.neighbours(v):
            if masters[u] == p:
                score += 2.0
        if score > best_score:
            best, best_score = p, score
    m_state["num_vertices"][best] += 1
    m_state["loads"][best][1] += 0.5
    return best


def emptier_end(prop, src, dst, src_master, dst_master, e_state):
    """To the master, of both ends, that has fewer edges so far."""
    p = src_master if e_state[src_master] <= e_state[dst_master] else dst_master
    e_state[p] += 1
    return p


STATEFUL = {
    "both states": Policy(
        "both", least_loaded, emptier_end, master_state=lambda prop: np.zeros(prop.num_partitions, COUNTS),
        edge_state=lambda prop: np.zeros(prop.num_partitions, np.int64),
    ),
    "edge state": Policy(
        "edges", lambda prop, v: v % prop.num_partitions, emptier_end, edge_state=lambda prop: np.full(prop.num_partitions, 3, np.int32)
    ),
    "masters only": Policy(
        "masters", lambda prop, v, m_state, masters: (masters[0] + 1 + v) % prop.num_partitions, lambda prop, s, d, a, b: a
    ),
    "FEC": "FEC", "SVC": "SVC",
}  # fmt: skip


def stateful(name, store):
    return policy_for(name, store) if isinstance(STATEFUL[name], str) else STATEFUL[name]


def in_rounds(store, policy, num_partitions, num_readers, round_vertices):
    """Masters as several readers assign them, in plain Python: each round all begin with what was known after the one before."""
    out = store.read("out/indptr"), store.read("out/indices")
    prop, n = PlainProp(out, transpose(*out), num_partitions, "out"), store.num_rows
    bounds = [0, *(int(np.searchsorted(out[0], out[0][-1] * r / num_readers)) for r in range(1, num_readers)), n]
    masters, state = np.full(n, -1, np.int64), policy.initial_master_state(prop)
    for first in range(0, n, round_vertices):
        known, states, told = masters.copy(), [], {}
        for low, high in pairwise(bounds):
            here, mine = known.copy(), state.copy()
            for v in range(low + first, min(high, low + first + round_vertices)):
                told[v] = here[v] = policy.get_master(*(prop, v, mine, here)[: policy.num_master_arguments])
            states.append(mine)
        masters[list(told)] = list(told.values())
        state = policy.merge_states(state, states)
    return masters


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", STATEFUL)
def test_policy_with_a_state_by_one_reader(graphs, tmp_path, name):
    """Small rounds change nothing for one reader, and compiled and plain agree."""
    for graph in ("kronecker", "directed", "multi-edges"):
        policy = stateful(name, graphs[graph])
        made = every_knob.partition(graphs[graph], 3, policy, tmp_path / f"{graph}-plain", round_vertices=16, compiled=False)
        assert_is_reference(made, graphs[graph], policy)
        assert_sound(made, graphs[graph])
        every_knob.partition(graphs[graph], 3, policy, tmp_path / f"{graph}-compiled", round_vertices=5)
        assert_same_bytes(tmp_path / f"{graph}-plain", tmp_path / f"{graph}-compiled")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("readers", [2, 4])
@pytest.mark.parametrize("name", STATEFUL)
def test_policy_with_a_state_by_several_readers(graphs, tmp_path, name, readers):
    """Equal numbers agree whichever worker does which call, again and again; masters are those of rounds in plain Python."""
    store = graphs["kronecker"]
    policy = plain(stateful(name, store))
    rng = np.random.default_rng(readers)
    chosen = {"each its own": lambda i, _: i, "the first": lambda *_: 0, "any": lambda *_: int(rng.integers(readers))}
    for how, choose in chosen.items():
        made = partition_with(Readers(readers, choose), store, 3, policy, tmp_path / how, round_vertices=4)
        assert_sound(made, store)
        assert_same_bytes(tmp_path / "each its own", tmp_path / how)
    expected = in_rounds(store, policy, 3, readers, 4)
    np.testing.assert_array_equal(made.masters.read(0, store.num_rows), expected)


def test_states_of_readers_are_merged_after_each_round(graphs, tmp_path):
    """What a reader sees at the beginning of a round is the sum of what all have counted before."""
    seen = []

    def count(prop, v, m_state):
        if v in firsts:
            seen.append((v, int(m_state[0])))
        m_state[0] += 1
        return 0

    store = graphs["path"]
    firsts = {0, 4, 15, 16, 19, 20}
    policy = Policy("count", count, lambda prop, s, d, a, b: a, master_state=np.zeros(1, np.int64), compiled=False)
    made = partition_with(Readers(2), store, 1, policy, tmp_path / "p", round_vertices=4)
    bound = int(np.searchsorted(store.read("out/indptr"), store.attributes.num_stored_edges / 2))
    assert (0, 0) in seen
    assert (4, 8) in seen
    assert (bound, 0) in seen
    assert (bound + 4, 8) in seen
    assert made.num_partitions == 1


@pytest.mark.parametrize("merge", ["min", "max"])
def test_other_merges(graphs, tmp_path, merge):
    def look(prop, v, m_state):
        m_state[0] = min(m_state[0], v) if merge == "min" else max(m_state[0], v + 40)
        return int(m_state[0]) % prop.num_partitions

    state = np.full(1, 50, np.int64)
    policy = Policy("range", look, lambda prop, s, d, a, b: a, master_state=state, merge=merge, compiled=False)
    made = partition_with(Readers(2), graphs["path"], 5, policy, tmp_path / "p", round_vertices=4)
    assert made.masters.read(0, graphs["path"].num_rows).tolist() == in_rounds(graphs["path"], policy, 5, 2, 4).tolist()


def test_columns_may_be_left_out(graphs, tmp_path):
    store = graphs["words"]
    made = every_knob.partition(store, 2, "EEC", tmp_path / "none", columns=(), compiled=False)
    assert made[0].store.attributes.columns == {}
    assert not made[0].store.attributes.weighted
    made = every_knob.partition(store, 2, "EEC", tmp_path / "some", columns=["kind"], compiled=False)
    assert made[1].store.attributes.columns == {"kind": "string"}
    assert_sound(made, store)
    assert made[0].store.attributes.duplicates == "keep", "edges that a column told apart are the same now"
    made = every_knob.partition(store, 2, "EEC", tmp_path / "all", read="in", compiled=False)
    assert made[0].store.attributes.columns == store.attributes.columns


def test_weights_and_texts_are_those_of_their_edges(graphs, tmp_path):
    """By original ids: every edge of every part, with all it carries, is an edge of the graph."""
    store = graphs["words"]

    def edges(one, number):
        rows = np.repeat(np.arange(one.num_rows), np.diff(one.read("out/indptr")))
        data, offsets = (one.read(f"columns/kind/{name}") for name in ("bytes", "offsets"))
        texts = [bytes(data[a:b]).decode() for a, b in pairwise(offsets)]
        ends = number[rows], number[one.read("out/indices")]
        kinds = [texts[k] for k in one.read("out/kind")]
        return sorted(zip(*(a.tolist() for a in ends), one.read("out/weight").tolist(), kinds, strict=True))

    made = every_knob.partition(store, 3, "CVC", tmp_path / "p", compiled=False)
    found = sorted(edge for part in made for edge in edges(part.store, part.global_id()))
    assert found == edges(store, np.arange(store.num_rows))


def test_as_many_partitions_as_vertices_and_empty_ones(graphs, tmp_path):
    """A partition may have nothing at all, or masters but no edges."""
    store = graphs["path"]
    n = store.num_rows
    made = every_knob.partition(store, n, "1D-vertex", tmp_path / "all", compiled=False, transpose=True)
    assert_sound(made, store)
    last = Policy("last", lambda prop, v: prop.num_partitions - 1, lambda prop, s, d, a, b: 1, compiled=False)
    for read in ("out", "in"):
        made = every_knob.partition(store, 4, last, tmp_path / read, read=read, transpose=True)
        assert_is_reference(made, store, last)
        assert_sound(made, store)
        assert [(part.num_edges, part.num_masters, part.num_mirrors, part.num_isolated) for part in made] == [
            (0, 0, 0, 0), (store.attributes.num_stored_edges, 0, n, 0), (0, 0, 0, 0), (0, 0, 0, n),
        ]  # fmt: skip


def test_more_partitions_than_int16_holds(tmp_path):
    """Masters are int32 then; most partitions are empty."""
    store = every_knob.build((np.arange(40_000), np.arange(1, 40_001)), tmp_path / "g", vertex_order="original")
    spec_dtypes = {stage.master_dtype(p).name for p in (32_767, 32_768)}
    assert spec_dtypes == {"int16", "int32"}
    with pytest.raises(oocgraph.BudgetError, match="memory_budget"):
        every_knob.partition(store, 40_001, "1D-vertex", tmp_path / "p", compiled=False, memory_budget="400M")
