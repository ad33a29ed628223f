"""Whole chunk files are forced to disk while the next ones are written, and a disk that fails then is not forgotten."""

from __future__ import annotations

import errno

import numpy as np
import pytest

from oocgraph import build_csr
from oocgraph.errors import OutputError
from oocgraph.store import publish, writer
from oocgraph.store.writer import ArrayWriter
from oocgraph.types import PAGE_BYTES


class Recorded:
    """Stands for `EarlySync`, and notes how long each file was when it was given."""

    def __init__(self):
        self.started = []

    def start(self, path):
        self.started.append((path.name, path.stat().st_size))


def test_each_whole_chunk_is_forced_to_disk_once(tmp_path, monkeypatch):
    """However blocks are cut; the last one, which may grow, is not."""
    monkeypatch.setattr(writer, "CHUNK_BYTES", 2 * PAGE_BYTES)
    early = Recorded()
    array = ArrayWriter(tmp_path, "values", np.uint32, "none", early=early)
    for size in (1, 1023, 1500, 5000, 0, 700, 1000):
        array.append(np.zeros(size, np.uint32))
    assert early.started == [(str(chunk), 2 * PAGE_BYTES) for chunk in range(4)]
    array.close()
    assert (tmp_path / "values" / "c" / "4").stat().st_size > 0
    assert len(early.started) == 4


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_fails_early_fails_the_build(tmp_path, monkeypatch, code):
    """The system tells of it once, and not when all is forced to disk at the end."""
    monkeypatch.setattr(writer, "CHUNK_BYTES", PAGE_BYTES)
    real, failed = publish._sync, []

    def failing(path):
        if path.parent.name == "c" and "indices" in str(path) and not failed:
            failed.append(path)
            raise OSError(code, "the disk fails", str(path))
        real(path)

    monkeypatch.setattr(publish, "_sync", failing)
    with pytest.raises(OutputError):
        build_csr((np.arange(3000), np.arange(1, 3001)), tmp_path / "g")
    assert failed
    assert list(tmp_path.iterdir()) == []
