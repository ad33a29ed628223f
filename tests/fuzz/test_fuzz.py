"""Six seconds of the fuzzer from a fixed seed; half an hour of it is in .ci/slow (``python -m tests.fuzz --minutes 30``)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
def test_some_seconds_of_damaged_and_made_up_stores():
    """No crash, hang, memory beyond the budget, traceback, write outside, or wrong answer where checksums are compared."""
    command = [sys.executable, "-m", "tests.fuzz", "--minutes", "0.1", "--first-seed", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert " cases: " in done.stdout
