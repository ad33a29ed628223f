"""Compressed arrays are those that Zarr itself would write, byte for byte."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import zarr

from oocgraph import CorruptStoreError, open_graph
from oocgraph.store.fetched import ZarrArray
from oocgraph.store.metadata import ArrayShape
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
print(sampler.peak_bytes - before, 6 * (decoded_bytes(array) + array.length * array.dtype.itemsize), host_bytes() - before)
"""


TWICE = """
import sys
import numpy as np
from oocgraph.store.codecs import encode
values = np.sort(np.random.default_rng(1).integers(0, 1 << 22, 1 << 21, np.uint32))
print(len({encode(sys.argv[1], values) for _ in range(50)}), "zarr" in sys.modules)
"""


@pytest.mark.parametrize("codec", ["blosc", "zstd"])
def test_a_chunk_is_compressed_to_the_same_bytes_each_time(codec):
    """Where Zarr is not imported, threads of Blosc stored the blocks of a chunk in any order."""
    done = subprocess.run([sys.executable, "-c", TWICE, codec], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["1", "False"]


@pytest.mark.parametrize("codec", ["zstd", "blosc"])
def test_decoding_holds_what_is_charged(tmp_path, codec):
    """In each of several threads, with the results; and it is given back."""
    ends = np.random.default_rng(1).integers(0, 1 << 15, (2, 250_000))
    every_knob.build((ends[0], ends[1]), tmp_path / "g", directed=True, codec=codec)
    done = subprocess.run([sys.executable, "-c", DECODES, tmp_path / "g"], check=True, capture_output=True, text=True)
    held, charged, kept = map(int, done.stdout.split())
    assert held <= charged
    assert kept < 6 << 20  # of 6 threads; where the C library keeps their buffers, 40 MiB


def test_a_blosc_chunk_that_ends_too_soon_is_refused(tmp_path):
    """Its decoder reads as far as the chunk's own header says, past the end of what there is."""
    every_knob.build(([0, 1, 2], [1, 2, 3]), tmp_path / "g", directed=True, codec="blosc")
    chunk = tmp_path / "g" / "out" / "indices" / "c" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-5])
    array = open_graph(tmp_path / "g").array("out/indices")
    with pytest.raises(CorruptStoreError, match=r"out/indices/c/0: .*it has \d+ bytes instead of \d+"):
        array.read(0, array.length)


@pytest.mark.parametrize("codec", ["zstd", "blosc"])
def test_elements_are_read_into_what_is_given(tmp_path, codec):
    """Over the ends of chunks, from and to anywhere, also to arrays of another dtype."""
    values = np.random.default_rng(2).integers(0, 1 << 20, 700_000).astype(np.uint32)
    writer = ArrayWriter(tmp_path, "numbers", "uint32", codec)
    writer.append(values)
    writer.close()
    shape = ArrayShape(np.dtype("<u4"), values.size, (1 << 20) // 4)
    array = ZarrArray(lambda key, start, stop: (tmp_path / key).read_bytes()[start:stop], "numbers", shape, codec=codec)
    for start, stop in ((0, values.size), (0, 1 << 18), (1 << 18, 1 << 19), (5, 6), (5, 5), ((1 << 18) - 1, (1 << 18) + 1), (77, 699_999)):
        for dtype in (np.uint32, np.int64):
            out = np.full(stop - start, -1).astype(dtype)
            array.read_into(start, out)
            np.testing.assert_array_equal(out, values[start:stop])
        np.testing.assert_array_equal(array.read(start, stop), values[start:stop])
