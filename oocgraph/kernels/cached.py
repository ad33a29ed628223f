"""What numba's disk cache holds of this package: where it is, how large, and whether everything has been compiled into it."""

from __future__ import annotations

from pathlib import Path

import numba
from llvmlite import binding

from oocgraph.compiled.kept import stamps
from oocgraph.compiled.sound import read_sound
from oocgraph.kernels.rows import find_class

MARK = "oocgraph-is-warm"
"""File in the cache that says of which version all has been compiled, for which processor."""


def kernel_folder() -> Path:
    """Return the folder with the compiled kernels of this package."""
    return Path(find_class.stats.cache_path)


def folders() -> list[Path]:
    """Return the folders with all that is compiled: numba has one for each folder of sources."""
    return [kernel_folder(), Path(read_sound.stats.cache_path)]


def cached_bytes() -> int:
    """Bytes of the compiled kernels."""
    return sum(file.stat().st_size for folder in folders() for file in folder.glob("*.nb[ci]"))


def is_warm() -> bool:
    """Whether everything has been compiled, of this version, by this numba and for this processor."""
    try:
        return (kernel_folder() / MARK).read_text() == _version()
    except OSError:
        return False


def mark_as_warm() -> None:
    """Say that everything has been compiled."""
    (kernel_folder() / MARK).write_text(_version())


def _version() -> str:
    sources = sorted(str(path) for path in Path(__file__).parents[1].rglob("*.py"))
    return f"{numba.__version__} {binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()} {stamps(sources)}"
