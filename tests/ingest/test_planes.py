"""Planes grow block by block, and are written some of their blocks at a time."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from oocgraph.ingest import planes as module
from oocgraph.ingest.planes import Planes
from oocgraph.store.writer import PlacedWriter
from oocgraph.types import PAGE_BYTES


def _cut(rng, length, most):
    """Cut a length into parts, some of them empty."""
    cuts = np.sort(rng.integers(0, length + 1, most))
    return np.diff(cuts, prepend=0, append=length)


def _job(writer):
    """Return the job of a store that is not compressed."""
    return SimpleNamespace(options=SimpleNamespace(codec="none"), writer=SimpleNamespace(place=lambda *_: writer))


@pytest.mark.parametrize("write_bytes", [PAGE_BYTES, 3 * PAGE_BYTES, module.WRITE_BYTES])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_blocks_of_any_size_come_one_after_the_other(tmp_path, monkeypatch, write_bytes, dtype):
    monkeypatch.setattr(module, "WRITE_BYTES", write_bytes)
    rng = np.random.default_rng(write_bytes)
    lengths, num_blocks = [30_000, 29_999, 5000, 17, 1], 40
    offsets = np.append(0, np.cumsum(lengths))
    values = rng.integers(0, 1 << 32, offsets[-1]).astype(dtype)
    writer = PlacedWriter(tmp_path, "planes", dtype, values.size)
    planes = Planes("planes", dtype, offsets, _job(writer))
    parts, done = [_cut(rng, length, num_blocks - 1) for length in lengths], offsets[:-1].copy()
    for block in range(num_blocks):
        sizes = [of[block] for of in parts]
        here = np.concatenate([values[start : start + size] for start, size in zip(done, sizes, strict=True)])
        planes.append(here, np.append(0, np.cumsum(sizes)))
        here[:] = 0  # the memory is used again
        done += sizes
    planes.finish()
    writer.close()
    np.testing.assert_array_equal(np.fromfile(tmp_path / "planes" / "c" / "0", dtype), values)


def test_few_bytes_wait_for_more(tmp_path, monkeypatch):
    """Of blocks of 40 bytes a plane, 1000 are written in a few steps, from pages of memory to pages of the file."""
    monkeypatch.setattr(module, "WRITE_BYTES", 2 * PAGE_BYTES)
    steps = []
    array = SimpleNamespace(write=lambda start, part: steps.append((start, part.ctypes.data, part.tobytes())))
    planes = Planes("planes", np.uint32, np.array([0, 10_000, 20_000]), _job(array))
    values = np.arange(20_000, dtype=np.uint32).reshape(2, 1000, 10)
    for block in range(1000):
        planes.append(values[:, block].ravel(), np.array([0, 10, 20]))
    planes.finish()
    assert len(steps) == 5 + 6
    assert all((address - 4 * start) % PAGE_BYTES == 0 for start, address, _ in steps)
    assert b"".join(part for *_, part in sorted(steps)) == values.tobytes()
