"""Threads that begin late, as on a busy machine: `python -m pytest -p tests.jitter` shows which tests count on the order of two threads.

Each thread, and each call that an executor runs, waits up to `LATE_SECONDS` first, one in four of them. JITTER_SEED repeats a run as far as
the system lets it.
"""

from __future__ import annotations

import concurrent.futures.thread as pool
import os
import random
import sys
import threading
import time

LATE_SECONDS = 0.05

chance = random.Random(os.environ.get("JITTER_SEED"))


def late(function):
    def run(self, *args):
        if chance.random() < 0.25:
            time.sleep(chance.random() * LATE_SECONDS)
        return function(self, *args)

    return run


def pytest_configure():
    sys.setswitchinterval(1e-4)
    threading.Thread.run = late(threading.Thread.run)
    pool._WorkItem.run = late(pool._WorkItem.run)
