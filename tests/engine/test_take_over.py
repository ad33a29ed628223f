"""Pieces that another partition of this process takes over, through windows: what it refuses, and what is left of a step that failed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from oocgraph.config import settings
from oocgraph.engine import part as parts
from oocgraph.engine.levels import search
from oocgraph.engine.local import LocalRuntime
from oocgraph.engine.part import PartRuntime, SearchOptions
from oocgraph.engine.shard_plan import Loading, ShardPlan
from oocgraph.engine.take_over import PULL_HEADS, Facts, Mapped
from oocgraph.errors import ClusterError
from oocgraph.exchange.windows import Channel, Window, stamp_of
from oocgraph.partition.vertex_partition import partition_vertices
from tests.engine.parts import GENEROUS
from tests.engine.test_part import make_store

OPTIONS = SearchOptions("pull", 2**31 - 2, parts.TinyLimits(0, 0))


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """Return a store and two partitions of it with their plans and channels; all of their steps are offered."""
    monkeypatch.setattr(parts, "LEAST_SECONDS", 0.0)
    store = make_store(tmp_path / "g.zarr", 5, num_ids=3000, num_edges=40000)
    vertex_partition = partition_vertices(store, 2)
    loading = Loading(threads=1, io_threads=1, buffer_bytes=1 << 16, max_planes=None, shares_planes=True)
    windows = [Window.create(2) for _ in range(2)]
    made = []
    for p in range(2):
        plan = ShardPlan(store, vertex_partition, p, loading)
        graph = plan.load(plan.residency(available_bytes=GENEROUS, limit_bytes=GENEROUS), GENEROUS)
        part = PartRuntime(store, vertex_partition, p, graph, threads=1, io_threads=1, knobs=settings())
        part.take_over_share = 1.0
        made.append((plan, part, Channel(p, windows, stamp_of(1, 0))))
    yield store, made
    for _, part, _ in made:
        part.close()
    for window in windows:
        window.close()


def step(part, state, found, channel=None):
    """Take a step of a partition that offers its work at a channel."""
    part.channel = channel
    try:
        return part.step(state, OPTIONS, found)
    finally:
        part.channel = None


def help_at_first_piece(pair, take):
    """Have the helper call `take` with the facts of the owner's job, and the job, while the owner has its first piece."""
    _, ((plan, owner, channel), (_, helper, other)) = pair
    states = [part.start(np.array([1])) for part in (owner, helper)]
    mine = step(helper, states[1], None)
    other._round = 1
    original, board, taken = owner.spread, channel.windows[0].board, []

    def spread(state, job, call, pieces):
        def first(piece, buffer):
            if (found := board.job_of(other.round)) is not None and not taken:
                facts = Facts.of(found[1])
                taken.append(take(helper, states[1], facts, plan, board, found[0], Mapped().of(0, channel.windows[0].address, facts)))
            return call(piece, buffer)

        return original(state, job, first, pieces)

    owner.spread = spread
    theirs = step(owner, states[0], None, channel)
    assert len(taken) == 1
    return states, [theirs, mine], channel, taken[0]


def test_a_piece_is_taken_over(pair):
    """All that others may have, by hand; the levels are those of one process."""

    def take(helper, state, facts, plan, board, job, owner):
        assert helper.can_take_over(state, facts, plan)
        pieces = 0
        while (piece := board.take(job)) is not None:
            board.report(*helper.take_over(state, facts, piece, owner, plan))
            pieces += 1
        return pieces

    store, made = pair
    states, found, channel, pieces = help_at_first_piece(pair, take)
    assert channel.counters.taken_pieces == pieces > 0
    while not all(state.ended for state in states):
        found = [step(part, state, found) for (_, part, _), state in zip(made, states, strict=True)]
    with LocalRuntime.open(store) as runtime:
        level = search(runtime, np.array([1])).level
    owner, local = made[0][0].vertex_partition.locate(np.arange(store.num_rows))
    for p, state in enumerate(states):
        made[p][1].finish(state)
        np.testing.assert_array_equal(state.levels[local[owner == p]], level[owner == p])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", 7), ("level", 9), ("num_planes", -1), ("num_planes", 1 << 40), ("num_pulled", -1), ("num_pulled", 1 << 40),
        ("state_bytes", 4096), ("planes_bytes", 64),
    ],
)  # fmt: skip
def test_facts_that_do_not_fit_are_refused(pair, field, value):
    """Nothing is indexed with what another process has written wrongly."""

    def take(helper, state, facts, plan, board, job, owner):
        assert facts.kind == PULL_HEADS
        assert helper.can_take_over(state, facts, plan)
        return helper.can_take_over(state, facts._replace(**{field: value}), plan)

    assert not help_at_first_piece(pair, take)[-1]


@pytest.mark.parametrize("piece", [(-1, 1), (0, 1 << 40), (2, 1), (5, 5)])
def test_pieces_that_lie_elsewhere_are_refused(pair, piece):
    """A piece is an error: its owner waits for it."""

    def take(helper, state, facts, plan, board, job, owner):
        with pytest.raises(ClusterError, match="offers a piece"):
            helper.take_over(state, facts, piece, owner, plan)

    help_at_first_piece(pair, take)


def test_memory_that_was_given_back_is_not_mapped(pair):
    """Who takes over work goes on without it."""

    def take(helper, state, facts, plan, board, job, owner):
        address = pair[1][0][2].windows[0].address
        return [Mapped().of(0, address, facts._replace(**wrong)) for wrong in ({"state_fd": 1 << 20}, {"state_token": 1}, {"planes_fd": 0})]

    assert help_at_first_piece(pair, take)[-1] == [None, None, None]


def test_an_interrupted_job_offers_nothing(pair):
    """Its pieces cannot be claimed, and its state's memory is not used again."""
    _, ((_, owner, channel), _) = pair
    state = owner.start(np.array([1]))
    before, board = state.common.state, channel.windows[0].board

    def fail(*_):
        raise RuntimeError("interrupted")

    owner.spread, original = lambda state, job, call, pieces: original(state, job, fail, pieces), owner.spread
    with pytest.raises(RuntimeError, match="interrupted"):
        step(owner, state, None, channel)
    assert board.job_of(channel.round + 1) is None
    assert state.common.state is None
    del state
    assert owner.start(np.array([1])).common.state not in (None, before)


def test_a_state_of_a_partition_that_was_loaded_again_is_not_offered(pair):
    """Its memory is that of the partition before."""
    _, ((plan, owner, channel), _) = pair
    state = owner.start(np.array([1]))
    graph = plan.load(plan.residency(available_bytes=GENEROUS, limit_bytes=GENEROUS), GENEROUS)
    again = PartRuntime(owner.store, plan.vertex_partition, 0, graph, threads=1, io_threads=1, knobs=owner.knobs)
    again.take_over_share = 1.0
    owner.common.close()
    again.adopt(state)
    step(again, state, None, channel)
    assert channel.windows[0].board.job_of(channel.round + 1) is None
    assert state.level == 1
    again.close()


def test_planes_that_cannot_be_read_leave_no_memory(pair, monkeypatch):
    """Of a load that fails nothing is left open."""
    _, ((plan, _, _), _) = pair

    def shared_files():
        return sum("memfd:oocgraph" in os.readlink(path) for path in Path("/proc/self/fd").iterdir() if os.path.lexists(path))

    def fail(*_):
        raise OSError("cannot be read")

    before = shared_files()
    monkeypatch.setattr(ShardPlan, "_take_planes", fail)
    with pytest.raises(OSError, match="cannot be read"):
        plan.load(plan.residency(available_bytes=GENEROUS, limit_bytes=GENEROUS), GENEROUS)
    assert shared_files() == before
