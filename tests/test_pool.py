"""A pool makes calls in order, in so many threads, and ends whenever a signal comes."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import CancelledError

import pytest

from oocgraph.pool import Call, Pool, start, wait_for


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


def test_a_call_is_made_or_cancelled_and_never_both():
    """Its thread may take it while another cancels it: who waits for it afterwards must not find it running."""
    for _ in range(2000):
        began, ended = [], []
        call = Call(lambda began=began, ended=ended: (began.append(1), time.sleep(0), ended.append(1)), ())
        thread = threading.Thread(target=call.make)
        thread.start()
        call.cancel()
        wait_for([call])
        assert began == ended
        thread.join()
        assert began == ended
        if not began:
            with pytest.raises(CancelledError):
                call.result()


def test_who_waits_may_look_around_meanwhile():
    may_go_on = threading.Event()
    with Pool(1, "some") as pool:
        call = pool.submit(may_go_on.wait, 60)
        assert not call.wait(0.01)
        assert not call.wait(0)
        may_go_on.set()
        assert call.wait(60)
        assert call.result()


def test_mapping_gives_results_in_order_until_one_raises():
    made = []

    def one(i):
        made.append(i)
        return 10 // (3 - i)

    with Pool(1, "some") as pool:
        assert list(pool.map(abs, [3, -2, -1])) == [3, 2, 1]
        results = pool.map(one, [0, 1, 2, 3, 2, 1, 0])
        assert [next(results) for _ in range(3)] == [3, 5, 10]
        with pytest.raises(ZeroDivisionError):
            next(results)


def test_threads_begin_with_a_call():
    own = threading.local()
    with Pool(3, "some", lambda: setattr(own, "began", True)) as pool:
        assert all(pool.map(lambda _: own.began, range(20)))


def test_what_a_failed_call_held_is_let_go():
    """At once, not when garbage is collected: it may be memory of a device."""

    class Held:
        pass

    def fail(held):
        raise ValueError(str(held))

    def ask(pool):
        held = Held()
        gone = weakref.ref(held)
        with pytest.raises(ValueError, match="Held"):
            pool.submit(fail, held).result()
        return gone

    with Pool(1, "some") as pool:
        gc.disable()
        try:
            gone = ask(pool)
            pool.submit(abs, 1).result()
            assert gone() is None
        finally:
            gc.enable()


def test_what_has_ended_takes_no_calls():
    pool = Pool(1, "some")
    pool.close()
    with pytest.raises(RuntimeError, match="the threads some have ended"):
        pool.submit(abs, 1)


def test_items_are_taken_as_they_are_needed():
    taken = []
    with Pool(2, "some") as pool:
        results = pool.map(lambda i: -i, (taken.append(i) or i for i in range(1000)), 3)
        assert [next(results) for _ in range(5)] == [0, -1, -2, -3, -4]
        assert len(taken) == 8
        results.close()


INTERRUPTED = """
import faulthandler, random, signal
from oocgraph.external_sort.workers import Workers
from oocgraph.team import team_of

faulthandler.dump_traceback_later(60, exit=True)
number = 0

class Stop(BaseException):
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


def test_a_signal_is_no_error_of_a_lock_while_a_thread_begins():
    """`threading` makes it one where it comes before the lock of a condition is had again; other errors are as they were."""

    class Interrupted(threading.Thread):
        def start(self):
            try:
                raise KeyboardInterrupt
            finally:
                raise RuntimeError("release unlocked lock")

    class Refused(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    with pytest.raises(KeyboardInterrupt):
        start(Interrupted())
    with pytest.raises(RuntimeError, match="new thread"):
        start(Refused())


def test_a_thread_is_waited_for_that_has_not_said_that_it_has_started():
    """A signal may come in `start`; the thread has a number before it sets the event that `join` asks for."""
    pool = Pool(1, "some")
    pool.submit(int).result()
    (thread,) = pool._threads
    thread._started.clear()
    timer = threading.Timer(0.1, thread._started.set)
    timer.start()
    pool.close()
    assert timer.finished.is_set()
    assert not thread.is_alive()


def test_threads_end_with_a_pool_that_is_not_closed():
    pool = Pool(2, "some")
    threads = [pool.submit(threading.current_thread).result() for _ in range(2)]
    del pool
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


AT_THE_END = """
import time
from oocgraph.pool import Call, Pool, wait_for

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
