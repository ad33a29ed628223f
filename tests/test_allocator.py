"""Memory of arrays that are used a few times only."""

import gc
import mmap
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from oocgraph.allocator import ARROW_BYTES, CODEC_MMAP_BYTES, ONCE_BYTES, arrow_bytes, passing_array
from oocgraph.machine import TRIM_BYTES


@pytest.mark.parametrize("num_bytes", [0, 8, ONCE_BYTES - 8, ONCE_BYTES, 3 * ONCE_BYTES + 8])
def test_a_passing_array_is_an_array_like_any_other(num_bytes):
    """It has its length and dtype, and may be written; a large one is a mapping of its own."""
    array = passing_array(num_bytes // 8, np.int64)
    assert (array.size, array.dtype, array.flags.writeable, array.flags.c_contiguous) == (num_bytes // 8, np.int64, True, True)
    array[:] = np.arange(array.size)
    assert int(array.sum()) == array.size * (array.size - 1) // 2
    assert isinstance(getattr(array.base, "obj", array.base), mmap.mmap) == (num_bytes >= ONCE_BYTES)


def test_memory_of_a_passing_array_goes_back_at_once():
    """Nothing is mapped any more when the array is gone."""

    def mapped_bytes() -> int:
        with open("/proc/self/status") as file:
            return int(next(line for line in file if line.startswith("VmSize")).split()[1]) << 10

    gc.collect()
    for _ in range(3):  # threads of tests before may give memory back meanwhile
        before, size = mapped_bytes(), 64 * ONCE_BYTES
        array = passing_array(size, np.uint8)
        array[:] = 1
        with_array = mapped_bytes()
        del array
        without = mapped_bytes()
        if with_array >= before + size > without + size // 2:
            break
    else:
        pytest.fail(f"{before:,} bytes are mapped before, {with_array:,} with an array of {size:,}, {without:,} when it is gone")


KEPT_BY = """
from types import SimpleNamespace
from oocgraph import allocator
from oocgraph.store.codecs import load_codecs

asked = []

class Library:
    def mallopt(self, name, value):
        asked.append((name, value))

allocator.ctypes = SimpleNamespace(CDLL=lambda name: Library())
with allocator.returned_memory(1 << 20):
    load_codecs.__wrapped__()
    print(dict(asked)[allocator.MMAP_THRESHOLD], dict(asked)[allocator.TRIM_THRESHOLD])
    with allocator.returned_memory(1 << 22):
        print(dict(asked)[allocator.TRIM_THRESHOLD])
    print(dict(asked)[allocator.TRIM_THRESHOLD])
print(dict(asked)[allocator.MMAP_THRESHOLD], dict(asked)[allocator.TRIM_THRESHOLD])
"""


def test_codecs_and_inner_contexts_leave_what_threads_may_keep():
    """A build that loads codecs on its way keeps what it may keep, until its end."""
    said = subprocess.run([sys.executable, "-c", KEPT_BY], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert said == [str(CODEC_MMAP_BYTES), str(1 << 20), str(1 << 22), str(1 << 20), str(CODEC_MMAP_BYTES), str(TRIM_BYTES)]


LEFT_BY = """
import time
import numpy as np
from oocgraph.allocator import returned_memory
from oocgraph.external_sort.workers import Workers
from oocgraph.memory import host_bytes

def work(_):
    time.sleep(0.02)  # the others work, too
    blocks = [np.ones(8_000) for _ in range(200)]
    del blocks

before = host_bytes()
with returned_memory(64 << 20):
    with Workers(4) as workers:
        workers.each(work, range(16))
        during = host_bytes() - before
print(during >> 20, host_bytes() - before >> 20)
"""


def test_threads_of_a_build_leave_nothing_that_they_kept():
    """They keep megabytes of what they have freed until then."""
    during, after = map(int, subprocess.run([sys.executable, "-c", LEFT_BY], stdout=subprocess.PIPE, check=True).stdout.split())
    assert during >= 40
    assert after <= 10  # 37 without; how much the system's threads leave as they end is not always the same


def test_what_arrow_keeps_is_known_by_its_allocator(monkeypatch):
    """A command has Arrow begin with the system's allocator, which keeps nothing."""
    assert pa.supported_memory_backends()[0] != "system"
    for asked, found in (("system", 0), ("mimalloc", ARROW_BYTES), ("none such", ARROW_BYTES)):
        monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", asked)
        assert arrow_bytes() == found, asked
    monkeypatch.delitem(sys.modules, "pyarrow")
    assert arrow_bytes() == 0
