"""Caches of compiled kernels that lack a few: what a process does with a cold cache, at the price of compiling those."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from oocgraph.kernels import cached

FOLDERS = "from oocgraph.kernels import cached; print(*cached.folders(), sep='\\n')"


def cache_without(folder: Path, modules: Iterable[str], commands: Iterable[Sequence[str]], environment: Mapping[str, str]) -> Path:
    """Copy the cache of the tests, but not kernels of these modules, to a folder that ``NUMBA_CACHE_DIR`` may name; `commands` fill it."""
    for command in commands:
        subprocess.run(command, check=True, capture_output=True, env=environment)
    asked = {**environment, "NUMBA_CACHE_DIR": str(folder)}
    found = subprocess.run([sys.executable, "-c", FOLDERS], check=True, capture_output=True, text=True, env=asked).stdout
    prefixes = tuple(f"{module}." for module in modules)
    for source, target in zip(cached.folders(), map(Path, found.splitlines()), strict=True):
        target.mkdir(parents=True, exist_ok=True)
        for file in source.glob("*.nb[ci]"):
            if not file.name.startswith(prefixes):
                shutil.copyfile(file, target / file.name)
    return folder
