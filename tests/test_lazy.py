"""Values that are computed when they are first asked for."""

from __future__ import annotations

import os
import signal
from threading import Event, Thread

from oocgraph.lazy import cached_property


class Slow:
    begun, may_end = Event(), Event()

    def __init__(self, waits):
        self.waits, self.computed = waits, 0

    @cached_property
    def value(self):
        """Seven."""
        self.computed += 1
        if self.waits:
            self.begun.set()
            assert self.may_end.wait(60)
        return 7


def test_a_value_is_computed_once():
    one = Slow(waits=False)
    assert (one.value, one.value, one.computed) == (7, 7, 1)
    assert Slow.value.__doc__ == "Seven."


def test_a_process_that_is_forked_while_a_thread_computes_one_does_not_wait():
    """That thread is not in it, and would never release a lock."""
    thread = Thread(target=lambda: Slow(waits=True).value)
    thread.start()
    assert Slow.begun.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(Slow(waits=False).value)
    Slow.may_end.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
