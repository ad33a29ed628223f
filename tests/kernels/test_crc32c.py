"""CRC-32C by the instruction and by tables, against published values and against google-crc32c."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import google_crc32c
import numba as nb
import numpy as np
import pytest

from oocgraph.compiled.crc32c import crc32c, crc32c_by_instruction, crc32c_by_tables, has_instruction, page_checksums

METHODS = [pytest.param(method, id=method.__name__) for method in dict.fromkeys([crc32c, crc32c_by_tables])]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_published_values(method, data, checksum):
    assert method(np.frombuffer(data, np.uint8), 0, len(data)) == checksum


@pytest.mark.parametrize("method", METHODS)
def test_every_length_from_any_address(method):
    data = np.random.default_rng(5).integers(0, 256, 9_100).astype(np.uint8)
    starts = np.random.default_rng(6).integers(0, 100, 9_001)

    @nb.njit
    def checksums(data, starts):
        return [method(data, starts[length], starts[length] + length) for length in range(starts.size)]

    wanted = [google_crc32c.value(data[start : start + length]) for length, start in enumerate(starts)]
    np.testing.assert_array_equal(checksums(data, starts), wanted)


def test_bytes_with_gaps_are_refused():
    """A stride that the instruction would pass over in silence is an error when compiled."""
    with pytest.raises(nb.TypingError, match="contiguous array of uint8"):
        crc32c_by_instruction(np.zeros(20, np.uint8)[::2], 0, 10)


@pytest.mark.parametrize("page_bytes", [1, 7, 4096, 5000, 100_000])
@pytest.mark.parametrize("num_bytes", [0, 1, 4095, 4096, 4097, 40_961])
def test_one_checksum_per_page(num_bytes, page_bytes):
    data = np.random.default_rng(7).integers(0, 256, num_bytes).astype(np.uint8)
    wanted = [google_crc32c.value(data[start : start + page_bytes]) for start in range(0, num_bytes, page_bytes)]
    np.testing.assert_array_equal(page_checksums(data, page_bytes), wanted)


@pytest.mark.parametrize(
    ("triple", "features", "present"),
    [
        ("x86_64-unknown-linux-gnu", "+cx8,+crc32,+sse4.2", True),
        ("x86_64-unknown-linux-gnu", "+cx8,-crc32", False),
        ("x86_64-unknown-linux-gnu", "", False),
        ("i686-unknown-linux-gnu", "+crc32,+sse4.2", False),  # words of 8 bytes need the longer registers
        ("aarch64-unknown-linux-gnu", "+crc,+neon", False),
    ],
)
def test_instruction_is_chosen_by_the_target(triple, features, present):
    assert has_instruction(triple, features) == present


ASK = """
import numpy as np
from oocgraph.compiled import crc32c, load
load.USUAL = ()
checksums = crc32c.page_checksums(np.arange(10_000).astype(np.uint8), 4096)
print(crc32c.crc32c.__name__, *checksums)
"""


def test_processors_that_share_a_cache_do_not_share_code(tmp_path):
    """A cache on a shared disk: code with the instruction never reaches a processor that lacks it."""
    data = np.arange(10_000).astype(np.uint8)
    wanted = [str(google_crc32c.value(data[start : start + 4096])) for start in range(0, data.size, 4096)]
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    files = list[set[Path]]()
    for _ in range(2):
        for method, processor in ((crc32c.__name__, {}), ("crc32c_by_tables", plain)):
            environment = os.environ | processor | {"NUMBA_CACHE_DIR": str(tmp_path)}
            answer = subprocess.run([sys.executable, "-c", ASK], env=environment, check=True, capture_output=True, text=True).stdout
            assert answer.split() == [method, *wanted]
        files.append(set(tmp_path.rglob("*.nbc")))
    assert files[0]
    assert files[0] == files[1], "the second of each kind has compiled again"
