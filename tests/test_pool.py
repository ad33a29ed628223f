"""A pool makes calls in order, in so many threads, and ends whenever a signal comes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import pytest

from oocgraph.pool import Pool
from oocgraph.store.rows import map_ahead


def test_results_and_errors_come_to_who_asks():
    with Pool(3, "some") as pool:
        calls = [pool.submit(divmod, i, 3) for i in range(100)]
        assert [call.result() for call in calls] == [divmod(i, 3) for i in range(100)]
        with pytest.raises(ZeroDivisionError):
            pool.submit(divmod, 1, 0).result()
        assert pool.submit(threading.current_thread).result().name in {f"some_{i}" for i in range(3)}


def test_it_has_as_many_threads_as_it_may():
    """Whichever threads submit."""
    together, calls = threading.Barrier(4), []
    with Pool(4, "some") as pool:
        threads = [threading.Thread(target=lambda: calls.append(pool.submit(together.wait, 60))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(call.result() for call in calls) == [0, 0, 1, 1, 2, 2, 3, 3]
        assert len(pool._threads) == 4
    assert not any(thread.is_alive() for thread in pool._threads)


def test_what_has_not_begun_is_left_out():
    """On cancelling, and at the end."""
    made, may_go_on = [], threading.Event()
    with Pool(1, "some") as pool:
        pool.submit(may_go_on.wait, 10)
        pool.submit(made.append, 1).cancel()
        last = pool.submit(made.append, 2)
        may_go_on.set()
        last.result()
        pool.submit(time.sleep, 0.2)
        left = [pool.submit(made.append, 3) for _ in range(5)]
    assert made == [2]
    for call in left:
        with pytest.raises(CancelledError):
            call.result()


def test_items_are_taken_as_they_are_needed():
    taken = []
    with Pool(2, "some") as pool:
        results = map_ahead(pool, lambda i: -i, (taken.append(i) or i for i in range(1000)), 3)
        assert [next(results) for _ in range(5)] == [0, -1, -2, -3, -4]
        assert len(taken) == 8
        results.close()


INTERRUPTED = """
import faulthandler, random, signal
from oocgraph.external_sort.workers import Workers
from oocgraph.team import team_of

faulthandler.dump_traceback_later(60, exit=True)
number = 0

class Stop(Exception):
    pass

def stop(*_):
    raise Stop

def calls():
    with Workers(2) as workers:
        workers.each(abs, range(10**9))

def teams():
    with team_of(3) as team:
        while True:
            assert team.run(abs, range(-6, 0)) == [6, 5, 4, 3, 2, 1]

with team_of(3) as team:
    team.run(abs, range(6))
signal.signal(signal.SIGALRM, stop)
for _ in range(200):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002 + random.random() / 200)
        WORK()
    except Stop:
        number += 1
print(number)
"""


@pytest.mark.parametrize("work", ["calls", "teams"])
def test_a_signal_may_come_at_any_moment(work):
    """What its handler raises is raised, and the threads end: with futures, teams wait for ever, and builds every other time."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED.replace("WORK", work)], check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("200\n", "")


def test_threads_end_with_a_pool_that_is_not_closed():
    pool = Pool(2, "some")
    threads = [pool.submit(threading.current_thread).result() for _ in range(2)]
    del pool
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


AT_THE_END = """
import time
from oocgraph.pool import Pool

pool = Pool(1, "some")
pool.submit(lambda: (time.sleep(0.5), print("ended")))
for _ in range(100):
    pool.submit(time.sleep, 10)
time.sleep(0.1)
"""


def test_what_runs_ends_before_the_interpreter_does():
    """What has not begun is left out."""
    done = subprocess.run([sys.executable, "-c", AT_THE_END], check=False, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_a_result_may_be_waited_for_again():
    with Pool(1, "some") as pool:
        call = pool.submit(divmod, 7, 3)
        call.wait()
        call.wait()
        assert (call.result(), call.result()) == ((2, 1), (2, 1))
