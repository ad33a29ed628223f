"""A pool makes calls in order, in so many threads, and ends whenever a signal comes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

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
    together = threading.Barrier(4)
    with Pool(4, "some") as pool:
        threads = [threading.Thread(target=pool.submit, args=(together.wait, 10)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
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
        for _ in range(5):
            pool.submit(made.append, 3)
    assert made == [2]


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

faulthandler.dump_traceback_later(60, exit=True)
number = 0

class Stop(Exception):
    pass

def stop(*_):
    raise Stop

signal.signal(signal.SIGALRM, stop)
for _ in range(250):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002 + random.random() / 200)
        with Workers(2) as workers:
            workers.each(abs, range(10**9))
    except Stop:
        number += 1
print(number)
"""


def test_a_signal_may_come_at_any_moment():
    """What its handler raises is raised, and the threads end: with futures, one run in two fails or waits for ever."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("250\n", "")
