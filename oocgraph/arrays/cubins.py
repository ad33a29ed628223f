"""Compiled CUDA kernels on disk: each is compiled once for all processes of a user, workers included.

In: a `Source`, a target, a compiler. Out: `Compiled`. An entry is a file named by what it was compiled from (`compiler.key_of`): a mark,
the SHA-256 of all behind it, the names of the kernels as JSON, the machine code. It is written under another name and renamed, so that a
reader finds all of it or nothing; one that is damaged is compiled again and replaced. Of several processes that lack the same entry one
compiles and the others wait for it.

Entries are executed by a GPU, so they are kept in a folder that this user alone can use, in the one of `oocgraph.cache_folder`; where that
cannot be had, each process compiles for itself, which is logged.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import struct
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from oocgraph.arrays.compiler import Compiled, Source, Target, compile_source, key_of
from oocgraph.cache_folder import VARIABLE, cache_folder, ensure_cache_folder, why_unsafe
from oocgraph.locks import locked

logger = logging.getLogger(__name__)

MARK = b"oocgraph cubin 1\n"
"""First bytes of an entry."""

SUFFIX = ".cubin"

MOST_ENTRIES = 200
"""Entries that are kept, those used last: about 100 KiB each, and a version of oocgraph has six for a kind of GPU."""

_warned: set[str] = set()
"""What has been said in this process of folders that cannot be used."""


def compiled_for(nvrtc: Any, source: Source, target: Target) -> Compiled:
    """Return a source compiled for a target: from the cache, or compiled now and kept.

    Raises
    ------
    CompileError
        The compiler refuses the source.
    """
    key, folder = key_of(source, target, nvrtc.getVersion()), cubin_folder()
    if folder is None:
        return compile_source(nvrtc, source, target)
    if (found := _read(folder, key)) is not None:
        return found
    with locked("compiling-cuda"):
        if (found := _read(folder, key)) is not None:  # another process has compiled it meanwhile
            return found
        logger.info("compiling %d CUDA kernels with %s, once for this kind of GPU", len(source.names), target.option)
        began = time.perf_counter()
        compiled = compile_source(nvrtc, source, target)
        logger.info("compiled in %.1f s", time.perf_counter() - began)
        _write(folder, key, compiled)
    return compiled


def is_kept(nvrtc: Any, source: Source, target: Target) -> bool:
    """Whether there is an entry, which may be damaged."""
    folder = cubin_folder()
    return folder is not None and (folder / (key_of(source, target, nvrtc.getVersion()) + SUFFIX)).exists()


def forget(nvrtc: Any, source: Source, target: Target) -> None:
    """Remove an entry that a device does not take."""
    folder = cubin_folder()
    if folder is not None:
        (folder / (key_of(source, target, nvrtc.getVersion()) + SUFFIX)).unlink(missing_ok=True)


def cubin_folder() -> Path | None:
    """Return the folder of this user's entries; None, and a warning, where none can be made or others could write to it."""
    ensure_cache_folder()
    parent = cache_folder()
    folder = parent / f"cubins-{os.getuid()}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        reason = why_unsafe(folder.lstat(), parent.stat(), trust_group=True)
    except OSError as error:
        reason = str(error)
    if not reason:
        return folder
    _warn_once(
        f"compiled CUDA kernels cannot be kept in {folder} ({reason}), so that each process compiles its own; set {VARIABLE} to a folder "
        "that only you can write to"
    )
    return None


def _read(folder: Path, key: str) -> Compiled | None:
    """Return an entry; None, and a warning where there is one, if it cannot be used."""
    path = folder / (key + SUFFIX)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        logger.warning("%s cannot be read (%s): the CUDA kernels are compiled again", path, error)
        return None
    found = _parsed(content, key)
    if found is None:
        logger.warning("%s is damaged: the CUDA kernels are compiled again", path)
        return None
    with suppress(OSError):
        os.utime(path)  # what was used last is kept longest
    return found


def _parsed(content: bytes, key: str) -> Compiled | None:
    """Return what the bytes of an entry say; None if they are not those that were written for this key."""
    start = len(MARK) + hashlib.sha256().digest_size
    body = content[start:]
    if content[: len(MARK)] != MARK or content[len(MARK) : start] != hashlib.sha256(body).digest():
        return None
    (length,) = struct.unpack_from("<I", body)
    said = json.loads(body[4 : 4 + length])
    return Compiled(body[4 + length :], said["lowered"]) if said["key"] == key else None


def _write(folder: Path, key: str, compiled: Compiled) -> None:
    """Keep an entry; where that fails the next process compiles again, which is logged."""
    said = json.dumps({"key": key, "lowered": compiled.lowered}).encode()
    body = struct.pack("<I", len(said)) + said + compiled.image
    unfinished = None
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix="unfinished-", delete=False) as file:
            unfinished = Path(file.name)
            file.write(MARK + hashlib.sha256(body).digest() + body)
        unfinished.replace(folder / (key + SUFFIX))
    except OSError as error:
        _warn_once(f"compiled CUDA kernels cannot be kept in {folder} ({error}): the next process compiles them again")
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
    _remove_old(folder)


def _remove_old(folder: Path) -> None:
    """Remove the entries used longest ago, and what processes that were killed have left."""
    with suppress(OSError):  # another process may remove the same
        used = {path: path.stat().st_mtime for path in folder.iterdir()}
        entries = sorted((path for path in used if path.suffix == SUFFIX), key=lambda path: -used[path])
        old = [path for path in used if path.suffix != SUFFIX and used[path] < time.time() - 3600]
        for path in [*entries[MOST_ENTRIES:], *old]:
            path.unlink(missing_ok=True)


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        logger.warning("%s", message)
