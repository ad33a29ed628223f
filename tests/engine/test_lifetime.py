"""A runtime may be used by the process that opened it, until it is closed; after that there is one message, no wait and no harm."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback

import numpy as np
import pytest

from oocgraph import OocGraphError, Resources, bfs, build_csr, open_runtime
from oocgraph.algorithms.partitioned_bfs import open_partitioned
from tests import every_knob

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # that is what is tested


@pytest.fixture
def graph(tmp_path):
    rng = np.random.default_rng(4)
    return build_csr((rng.integers(0, 2000, 30_000), rng.integers(0, 2000, 30_000)), tmp_path / "g.zarr")


def in_a_fork(call):
    """Call in a forked process; returns its exit code: 0 when it returns, 1 when it raises, 14 when it takes longer than 20 s."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            call()
            os._exit(0)
        except BaseException:
            traceback.print_exc(file=sys.stderr)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refused_in_a_fork(runtime, graph):
    def call():
        with pytest.raises(OocGraphError, match=r"was opened by another process \(\d+\), and a fork has none of its threads; open one"):
            bfs(graph, 3, runtime=runtime)

    return call


def test_a_closed_runtime_says_so(graph):
    with open_runtime(graph, resources=Resources(device="cpu")) as runtime:
        bfs(graph, 3, runtime=runtime)
    for _ in range(2):
        with pytest.raises(OocGraphError, match=r"the runtime of .*g\.zarr is closed; open another one"):
            bfs(graph, 3, runtime=runtime)


def test_closing_again_does_not_close_what_others_have_opened(graph, tmp_path):
    """A descriptor's number goes to the next file that is opened."""
    runtime = open_runtime(graph, memory_budget="4G", resources=Resources(device="cpu"))
    runtime.close()
    with open(tmp_path / "other", "w") as file:
        runtime.close()
        file.write("whole")
    assert (tmp_path / "other").read_text() == "whole"


def test_a_closed_runtime_of_partitions_says_so(graph, tmp_path):
    every_knob.partition(graph, 2, "EEC", tmp_path / "parts")
    with open_partitioned(graph, tmp_path / "parts", Resources()) as partitioned:
        partitioned.search(np.array([0]))
    with pytest.raises(OocGraphError, match="is closed; open another one"):
        partitioned.search(np.array([0]))


def test_a_fork_is_told_that_it_has_no_threads(graph):
    """It neither waits for ever nor harms its parent; it may open a runtime of its own."""
    expected = bfs(graph, 3).level
    with open_runtime(graph, resources=Resources(device="cpu")) as runtime:
        bfs(graph, 3, runtime=runtime)
        assert in_a_fork(refused_in_a_fork(runtime, graph)) == 0
        assert in_a_fork(runtime.close) == 0
        assert in_a_fork(lambda: np.testing.assert_array_equal(bfs(graph, 3).level, expected)) == 0
        np.testing.assert_array_equal(bfs(graph, 3, runtime=runtime).level, expected)


def test_a_fork_in_the_middle_of_a_search_is_told_as_well(graph):
    """Another thread holds the lock then, which is never released in the fork."""
    inside, go_on = threading.Event(), threading.Event()

    def wait(phase, _done, _total):
        inside.set()
        assert go_on.wait(60)

    with open_runtime(graph, resources=Resources(device="cpu")) as runtime:
        searching = threading.Thread(target=lambda: bfs(graph, 3, runtime=runtime, direction="pull", progress=wait))
        searching.start()
        assert inside.wait(60)
        assert in_a_fork(refused_in_a_fork(runtime, graph)) == 0
        assert in_a_fork(runtime.close) == 0
        go_on.set()
        searching.join()


def test_closing_waits_for_a_search_in_another_thread(graph):
    """Its files stay open until it has ended."""
    inside, go_on, found = threading.Event(), threading.Event(), []

    def wait(phase, _done, _total):
        inside.set()
        assert go_on.wait(60)

    runtime = open_runtime(graph, resources=Resources(device="cpu"))
    searching = threading.Thread(target=lambda: found.append(bfs(graph, 3, runtime=runtime, direction="pull", progress=wait)))
    searching.start()
    assert inside.wait(60)
    closing = threading.Thread(target=runtime.close)
    closing.start()
    assert not found
    go_on.set()
    searching.join()
    closing.join()
    np.testing.assert_array_equal(found[0].level, bfs(graph, 3).level)
