"""Kernels are brought into memory once, whichever threads ask for them."""

from __future__ import annotations

import subprocess
import sys

ASKS = """
import sys, threading
import numpy as np
from oocgraph.kernels.load import load_kernel
from oocgraph.kernels.sound import read_sound
from oocgraph.kernels.crc32c import _pages, _readonly
barrier, failed = threading.Barrier(8), []

def ask(i):
    barrier.wait()
    try:
        if i % 2:
            load_kernel(read_sound, (1, 1, np.empty(0, np.uint8), np.empty(0, np.uint32), np.uint64(1), 4))
        else:
            load_kernel(_pages, (_readonly(np.empty(0, np.uint8)), 1, np.empty(0, np.uint32)))
    except BaseException as error:
        failed.append(repr(error))

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed, len(read_sound.overloads), len(_pages.overloads))
"""


def test_threads_that_ask_for_kernels_at_once_get_them():
    """The first question of a process fills numba's registries, which fails where two threads do it."""
    done = subprocess.run([sys.executable, "-c", ASKS], check=True, capture_output=True, text=True)
    assert done.stdout == "[] 1 1\n"
