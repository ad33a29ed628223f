"""Libraries are built once, whoever asks for them at the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cuda_on_cpu import build as build_module
from tests.cuda_on_cpu.build import BuildError, build, needs_shim

pytestmark = needs_shim

SOURCE = 'extern "C" __attribute__((visibility("default"))) int answer() { return 42; }'

SCRIPT = f"""
import ctypes, sys
from pathlib import Path
from tests.cuda_on_cpu import build
build.cache_folder = lambda: Path(sys.argv[1])
print(ctypes.CDLL(str(build.build({SOURCE!r}, "answer", sanitize=False))).answer())
"""


def test_processes_that_build_the_same_at_the_same_time(tmp_path):
    """One builds, the others wait and load what it made."""
    root = Path(__file__).parents[2]
    processes = [subprocess.Popen([sys.executable, "-c", SCRIPT, tmp_path], cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0] for process in processes] == ["42\n"] * 3
    assert len(list(tmp_path.glob("*.so"))) == 1
    assert not list(tmp_path.glob("*.unfinished"))


def test_a_library_is_built_again_when_anything_changes(tmp_path, monkeypatch):
    """Source and flags are in its name; the same again is not built."""
    monkeypatch.setattr(build_module, "cache_folder", lambda: tmp_path)
    first = build(SOURCE, "answer", sanitize=False)
    modified = first.stat().st_mtime_ns
    assert build(SOURCE, "answer", sanitize=False) == first
    assert first.stat().st_mtime_ns == modified
    assert len({first, build(SOURCE + " ", "answer", sanitize=False), build(SOURCE, "answer", sanitize=True)}) == 3


def test_a_build_that_fails_leaves_no_library(tmp_path, monkeypatch):
    """And tells what the compiler said."""
    monkeypatch.setattr(build_module, "cache_folder", lambda: tmp_path)
    for _ in range(2):
        with pytest.raises(BuildError, match="nonsense"):
            build("nonsense;", "answer", sanitize=False)
    assert not list(tmp_path.glob("*.so"))
