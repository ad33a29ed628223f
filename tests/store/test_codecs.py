"""Compressed arrays are those that Zarr itself would write, byte for byte."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import zarr

from oocgraph.store.writer import ArrayWriter
from tests import every_knob


@pytest.mark.parametrize("codec", ["zstd", "blosc"])
@pytest.mark.parametrize("dtype", ["uint8", "bool", "uint32", "int64", "float32", "float64"])
def test_chunks_are_those_of_zarr(tmp_path, codec, dtype):
    """Of what compresses well and badly; the last chunk is filled up, and one of zeros is not left out."""
    rng, length = np.random.default_rng(1), (1 << 20) // np.dtype(dtype).itemsize
    noise = rng.integers(0, 256, 1 << 20, np.uint8)
    parts = [np.zeros(length, dtype), np.sort(rng.integers(0, 100, length)).astype(dtype)]
    parts.append((noise & 1).view(bool) if dtype == "bool" else noise.view(dtype))
    values = np.concatenate([*parts, parts[1][:1000]])
    writer = ArrayWriter(tmp_path, "ours", dtype, codec)
    for start in range(0, values.size, 100_000):
        writer.append(values[start : start + 100_000])
    writer.close()
    (tmp_path / "zarr").mkdir()
    (tmp_path / "zarr" / "zarr.json").write_bytes((tmp_path / "ours" / "zarr.json").read_bytes())
    with zarr.config.set({"array.write_empty_chunks": True}):
        array = zarr.open_array(str(tmp_path / "zarr"), mode="r+")
        array[:] = values
    assert json.loads((tmp_path / "ours" / "zarr.json").read_text())["shape"] == [values.size]
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "ours"), mode="r")[:], values)
    chunks = sorted((tmp_path / "ours" / "c").iterdir())
    assert [chunk.name for chunk in chunks] == ["0", "1", "2", "3"]
    for chunk in chunks:
        assert chunk.read_bytes() == (tmp_path / "zarr" / "c" / chunk.name).read_bytes()


DECODES = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import oocgraph
from oocgraph.memory import PeakSampler, host_bytes
from oocgraph.store.arrays import decoded_bytes
array = oocgraph.open_graph(sys.argv[1]).array("out/indices")
array.read(0, array.length)
before = host_bytes()
with PeakSampler() as sampler, ThreadPoolExecutor(6) as pool:
    for _ in pool.map(lambda i: int(array.read(0, array.length).max()), range(200)):
        pass
print(sampler.peak_bytes - before, 6 * (decoded_bytes(array) + array.length * array.dtype.itemsize))
"""


@pytest.mark.parametrize("codec", ["zstd", "blosc"])
def test_decoding_holds_what_is_charged(tmp_path, codec):
    """In each of several threads, with the results."""
    ends = np.random.default_rng(1).integers(0, 1 << 15, (2, 250_000))
    every_knob.build((ends[0], ends[1]), tmp_path / "g", directed=True, codec=codec)
    done = subprocess.run([sys.executable, "-c", DECODES, tmp_path / "g"], check=True, capture_output=True, text=True)
    held, charged = map(int, done.stdout.split())
    assert held <= charged
