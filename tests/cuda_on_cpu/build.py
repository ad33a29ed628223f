"""Shared libraries made by g++, kept in a folder of the temporary directory under a hash of all that goes into them.

Several processes may ask for the same library at the same time: one builds it, the others wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent

FLAGS = [
    *("-std=c++17", "-O2", "-g1", "-fPIC", "-shared", "-march=x86-64-v2", "-fno-strict-aliasing", "-fmax-errors=4"),
    "-fstack-clash-protection",  # a large frame must not jump over the page that guards a stack
    *("-fvisibility=hidden", "-fno-gnu-unique"),  # else shared memory of kernel templates would be that of another module
]
SANITIZER_FLAGS = ["-fsanitize=address", "-fno-omit-frame-pointer"]

needs_shim = [
    pytest.mark.shim,
    pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="fibers are written for Linux on x86-64"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
]
"""Marks of a test module that executes CUDA sources on the CPU."""


class BuildError(Exception):
    """g++ refused a source."""


@cache
def cache_folder() -> Path:
    """Return a folder that this user alone can write."""
    folder = Path(tempfile.gettempdir()) / f"oocgraph-cuda-on-cpu-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid == os.getuid() and not status.st_mode & 0o077 and not folder.is_symlink():
        return folder
    return Path(tempfile.mkdtemp(prefix="oocgraph-cuda-on-cpu-"))


@cache
def _compiler() -> str:
    return subprocess.run(["g++", "--version"], check=True, capture_output=True, text=True).stdout


def build(source: str, name: str, *, sanitize: bool, libraries: tuple[Path, ...] = ()) -> Path:
    """Compile C++ `source`, which may include this folder's headers; return the library."""
    flags = [*FLAGS, *(SANITIZER_FLAGS if sanitize else [])]
    headers = [path.read_bytes() for path in sorted(HERE.glob("*.h"))]
    key = hashlib.sha256(b"\0".join([source.encode(), repr((_compiler(), flags, libraries)).encode(), *headers])).hexdigest()[:20]
    library = cache_folder() / f"{name}-{key}.so"
    if library.exists():
        return library
    with open(library.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            _compile(source, library, [*flags, f"-I{HERE}"], libraries)
    return library


def _compile(source: str, library: Path, flags: list[str], libraries: tuple[Path, ...]) -> None:
    code, unfinished = library.with_suffix(".cpp"), library.with_suffix(".unfinished")
    code.write_text(source)
    done = subprocess.run(["g++", *flags, "-o", unfinished, code, *libraries], check=False, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(done.stderr)
    unfinished.rename(library)


def runtime_library(*, sanitize: bool) -> Path:
    """Fibers and their order: one library for all modules of a process."""
    return build((HERE / "runtime.cpp").read_text(), "runtime", sanitize=sanitize)
