"""Python under the address sanitizer: kernels that touch what is not theirs are found, if only by one entry.

Modules are built with ``-fsanitize=address`` in a process that has its library preloaded. Shared memory is then static, with room
around each array, and every allocation of a `CpuDevice` is one of the sanitizer's own. The first bad access ends the process with a report.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import oocgraph
from tests.cuda_on_cpu.module import SANITIZE_VARIABLE

TIMEOUT_SECONDS = 500

OPTIONS = "detect_leaks=0:detect_stack_use_after_return=0"
"""The interpreter leaks on purpose; fibers have one stack each."""


@cache
def sanitizer_library() -> str:
    """Find what a process has to preload."""
    return subprocess.run(["g++", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True).stdout.strip()


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the interpreter, such as with ``-c CODE`` or ``-m pytest FILE``; `returncode` and `stderr` tell what was found."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, str(Path(oocgraph.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    inherited = {name: value for name, value in os.environ.items() if name != "OOCGRAPH_REQUIRE"}  # tests of faults are skipped
    environment = inherited | {"LD_PRELOAD": sanitizer_library(), "ASAN_OPTIONS": OPTIONS, SANITIZE_VARIABLE: "1", "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=root, check=False, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )


def run_pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run test files, or what else pytest takes, without output capture, so that a report is seen."""
    return run_python("-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:faulthandler", *arguments)
