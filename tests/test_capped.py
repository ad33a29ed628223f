"""The memory cap that other tests rely on really caps."""

from __future__ import annotations

import sys

import pytest

from tests.capped import run_capped


@pytest.mark.capped
def test_cap_kills_what_exceeds_it():
    """A process that takes 100 MB runs under 200 MB and is killed under 50 MB."""
    command = [sys.executable, "-c", "print(len(bytearray(100_000_000)))"]
    assert run_capped(200 << 20, command).stdout.strip() == "100000000"
    killed = run_capped(50 << 20, command)
    assert killed.returncode != 0
    assert not killed.stdout
