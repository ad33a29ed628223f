"""Messages through memory that processes share: each is applied once, whatever the delays; what dies is noticed; nothing is left."""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.compiled.windows import publish_word
from oocgraph.errors import ClusterError
from oocgraph.exchange.shared_memory import MemberLostError, began_at
from oocgraph.exchange.windows import LEAST_SLOT_BYTES, Channel, Window, WindowClosedError, slot_bytes_of, stamp_of, window_bytes
from tests import forks
from tests.processes import PATIENCE_SECONDS

ENV = {**os.environ, "PYTHONPATH": str(forks.ROOT)}


@contextmanager
def members(folder, group, rounds, *options, own=()):
    """Start processes, and yield their pids; `own` are options of the last one alone."""
    folder.mkdir()
    started = []
    try:
        for number in range(group):
            arguments = [folder, number, group, rounds, *options, *(own if number == group - 1 else ())]
            one = forks.start("tests.exchange.members", [str(x) for x in arguments], folder=folder, log=folder / f"log-{number}", env=ENV)
            started.append(one.pid)
        yield started
    finally:
        for pid in started:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


def left(folder, name):
    """Wait for a file, and return what it says."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (folder / name).exists():
        assert time.monotonic() < deadline, "".join(path.read_text() for path in sorted(folder.glob("log-*")))
        time.sleep(0.01)
    return json.loads((folder / name).read_text())


def found(folder, group):
    """Wait for what all members have found."""
    return [left(folder, f"found-{number}") for number in range(group)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("group", "rounds", "largest", "delays"), [(2, 10_000, 2_000, 0), (3, 500, 20_000, 0.1), (5, 300, 2_000, 0.05), (8, 200, 300_000, 0.02)]
)
def test_every_message_is_taken_once(tmp_path, group, rounds, largest, delays):
    """2 to 8 processes, 10,000 rounds, random sizes and delays; also of messages longer than a slot."""
    options = "--largest", largest, "--delays", delays, "--seed", group
    with members(tmp_path / "group", group, rounds, *options):
        for one in found(tmp_path / "group", group):
            assert "error" not in one, one
            assert one["together"] == [True]
            assert one["messages"] == rounds * (group - 1)


def test_long_messages_go_in_pieces(tmp_path):
    """Of both sides at once, with two slots each."""
    with members(tmp_path / "group", 2, 20, "--largest", 5 * slot_bytes_of(2)):
        one, other = found(tmp_path / "group", 2)
    assert one["messages"] == other["messages"] == 20
    assert max(one["puts"], other["puts"]) > 20


@pytest.mark.parametrize("group", [3, 8])
def test_messages_that_are_got_are_taken_once(tmp_path, group):
    """Where puts are held up, members that have nothing to do take messages themselves; some are for one receiver alone."""
    options = "--largest", 300_000, "--common", 0.7, "--slow-puts", 0.1, "--seed", group
    with members(tmp_path / "group", group, 300, *options):
        all_found = found(tmp_path / "group", group)
    for one in all_found:
        assert "error" not in one, one
        assert one["messages"] == 300 * (group - 1)
    assert sum(one["gets"] for one in all_found) > 0
    assert sum(one["puts"] + one["gets"] for one in all_found) >= 300 * group * (group - 1)


def test_a_pair_of_much_more_bytes_goes_in_fine_pieces():
    """After a round in which it had: one receiver gets five times as much as the others."""
    windows = [Window.create(3) for _ in range(3)]
    channels = [Channel(k, windows, stamp_of(1, 0)) for k in range(3)]
    at_once(*(lambda one=one: one.start(10) for one in channels))
    large = np.arange(700_000, dtype=np.uint32).view(np.uint8)[:1_000_000]
    for number in range(2):
        own = [{}, {2: large}, {}]
        taken = at_once(*(lambda k=k, own=own: channels[k].exchange([np.full(200_000, k, np.uint8)], own[k]) for k in range(3)))
        np.testing.assert_array_equal(taken[2][1], np.concatenate([np.full(200_000, 1, np.uint8), large]))
        assert [one.counters.fine_pieces for one in channels] == [0, number * -(-1_200_000 // LEAST_SLOT_BYTES), 0]


def test_a_balanced_group_has_no_fine_pieces(tmp_path):
    """All messages of a round as large."""
    with members(tmp_path / "group", 4, 50, "--largest", 300_000, "--common", 1.0):
        assert [one["fine_pieces"] for one in found(tmp_path / "group", 4)] == [0] * 4


def test_many_hops(tmp_path):
    """Each begins together, and takes nothing from the one before."""
    with members(tmp_path / "group", 3, 3, "--hops", 200):
        for one in found(tmp_path / "group", 3):
            assert one["together"] == [True] * 200
            assert one["messages"] == 200 * 3 * 2


@pytest.mark.kill
def test_a_member_that_dies_within_a_put_is_found(tmp_path):
    """Its receiver sees no complete message; all others end with an error that names its process."""
    with members(tmp_path / "group", 3, 1000, own=["--die", 20]) as pids:
        left(tmp_path / "group", "hangs-2")
        time.sleep(0.3)
        assert not list((tmp_path / "group").glob("found-*"))
        os.killpg(pids[2], signal.SIGKILL)
        for one in [left(tmp_path / "group", f"found-{number}") for number in range(2)]:
            assert one["error"].startswith("MemberLostError: process ")
            assert 20 * 2 <= one["messages"] <= 20 * 2 + 1


def pair():
    """Return two channels of one process."""
    windows = [Window.create(2), Window.create(2)]
    return windows, [Channel(k, windows, stamp_of(1, 0)) for k in range(2)]


def at_once(*calls):
    """Call functions in threads of their own; returns what each returns or raises."""
    done = [None] * len(calls)

    def run(k):
        try:
            done[k] = calls[k]()
        except ClusterError as error:
            done[k] = error

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
    return done


def test_one_that_comes_late_goes_alone_and_so_do_the_others():
    """It is decided once for all."""
    _, (one, other) = pair()
    assert not one.start(0.05)
    assert not other.start(10)


@settings(max_examples=60, deadline=None)
@given(delays=st.lists(st.floats(0, 0.01), min_size=2, max_size=4), seconds=st.floats(0, 0.01), hop=st.integers(0, 1000))
def test_all_decide_alike(delays, seconds, hop):
    """Whoever comes when, and however short they wait."""
    windows = [Window.create(len(delays)) for _ in delays]

    def begin(k):
        windows[k].reset()
        time.sleep(delays[k])
        return Channel(k, windows, stamp_of(1, hop)).start(seconds)

    decided = at_once(*(lambda k=k: begin(k) for k in range(len(delays))))
    assert len(set(decided)) == 1
    for window in windows:
        window.close()


def test_an_abort_ends_waiting_within_10_ms():
    """In the worst of 20 times; also where it waits to begin."""
    late = []
    for _ in range(20):
        windows, channels = pair()
        at_once(*(lambda one=one: one.start(10) for one in channels))
        ended = []

        def wait(channel=channels[0], ended=ended):
            try:
                channel.exchange([])
            finally:
                ended.append(time.perf_counter())

        def abort(window=windows[0], ended=ended):
            time.sleep(0.05)
            ended.append(time.perf_counter())
            publish_word(window.abort, 1)

        error, _ = at_once(wait, abort)
        assert isinstance(error, WindowClosedError)
        late.append(ended[1] - ended[0])
    assert np.median(late) < 0.01
    windows, (one, _) = pair()
    error, _ = at_once(lambda: one.start(100), lambda: publish_word(windows[0].abort, 1))
    assert isinstance(error, WindowClosedError)


def test_who_waits_and_looks_for_work_sleeps_meanwhile():
    """Of its core it takes a part, and it is one wait."""
    _, channels = pair()
    at_once(*(lambda one=one: one.start(10) for one in channels))
    looks, spent = [], []

    def wait():
        began = time.thread_time()
        channels[0].exchange([], idle=lambda other: bool(looks.append(other)))
        spent.append(time.thread_time() - began)

    def come_late():
        time.sleep(0.5)
        channels[1].exchange([])

    at_once(wait, come_late)
    assert len(looks) > 5
    assert channels[0].counters.waits == 1
    assert spent[0] < 0.25


def test_what_a_hop_has_left_is_forgotten():
    """A message that nobody took does not lock its slot for the next hop."""
    windows, (one, other) = pair()
    at_once(lambda: one.start(10), lambda: other.start(10))
    publish_word(windows[0].abort, 1)
    assert isinstance(at_once(lambda: one.exchange([np.ones(9, np.uint8)]))[0], WindowClosedError)
    for window in windows:
        window.reset()
    channels = [Channel(k, windows, stamp_of(1, 1)) for k in range(2)]
    at_once(*(lambda one=one: one.start(10) for one in channels))
    got = at_once(*(lambda one=one: one.exchange([np.full(3, 5, np.uint8)]) for one in channels))
    assert [got[0][1].tolist(), got[1][0].tolist()] == [[5, 5, 5]] * 2


def test_another_file_in_the_place_of_a_window(tmp_path):
    """Of another size, or of another token: it is not used."""
    window = Window.create(2)
    with pytest.raises(ClusterError, match="has another file in the place of its memory"):
        Window.open(window.address._replace(token=window.address.token ^ 1), 2)
    with open(tmp_path / "file", "wb+") as file, pytest.raises(ClusterError, match="another file"):
        Window.open(window.address._replace(fd=file.fileno()), 2)
    address = window.address
    window.close()
    with pytest.raises(MemberLostError, match="has given its memory back"):
        Window.open(address, 2)


def test_memory_is_what_is_said():
    """Of both members of a pair, whose slots have been filled: pages of shared memory in this process."""

    def shared():
        with open("/proc/self/status") as file:
            return int(next(line for line in file if line.startswith("RssShmem")).split()[1]) * 1024

    gc.collect()  # windows of other tests go now, not meanwhile
    before = shared()
    _, (one, other) = pair()
    at_once(lambda: one.start(10), lambda: other.start(10))
    message = [np.ones(4 * slot_bytes_of(2), np.uint8)]
    at_once(lambda: one.exchange(message), lambda: other.exchange(message))
    assert 4 * slot_bytes_of(2) <= shared() - before <= 2 * window_bytes(2)


def test_when_a_process_began():
    """Of this one; of none that there is."""
    assert began_at(os.getpid()) > 0
    assert began_at(2**22 + 1) == 0
