"""An input that another program writes to while it is read is refused: the edges would be of neither version."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oocgraph
from oocgraph.errors import InputError
from oocgraph.ingest.sources import open_source

NUM_EDGES = 5000


def edges(seed):
    return np.random.default_rng(seed).integers(0, 1000, (NUM_EDGES, 2))


def write(path, pairs):
    """Write an edge list in the format that the name says."""
    if path.suffix == ".npy":
        np.save(path, pairs)
    elif path.suffix == ".npz":
        np.savez(path, source=pairs[:, 0], target=pairs[:, 1])
    elif path.suffix == ".parquet":
        pq.write_table(pa.table({"source": pairs[:, 0], "target": pairs[:, 1]}), path, row_group_size=500)
    elif path.suffix == ".mtx":
        lines = "\n".join(f"{u + 1} {v + 1}" for u, v in pairs.tolist())
        path.write_text(f"%%MatrixMarket matrix coordinate pattern general\n1000 1000 {NUM_EDGES}\n{lines}\n")
    else:
        path.write_text("".join(f"{u},{v}\n" for u, v in pairs.tolist()))


def read(streams):
    """Read streams to their end; return how many edges they have."""
    return sum(block.source.size for stream in streams for block in stream())


def rewritten(path):
    """Write other edges of the same size."""
    write(path, edges(2))


def replaced(path):
    """Put another file in its place."""
    other = path.with_name(f"other{path.suffix}")
    write(other, edges(2))
    os.replace(other, path)


def truncated(path):
    os.truncate(path, path.stat().st_size // 2)


def removed(path):
    path.unlink()


CHANGES = [rewritten, replaced, truncated, removed]


@pytest.fixture(params=[".npy", ".npz", ".parquet", ".mtx", ".csv"])
def path(request, tmp_path):
    path = tmp_path / f"edges{request.param}"
    write(path, edges(1))
    os.utime(path, (1, 1))  # long ago: a change within one tick of the kernel's clock shows too
    return path


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("after", [0, 1], ids=["before the first block", "after it"])
def test_a_file_that_changes_while_it_is_read_is_refused(path, change, after):
    """The message names the file, whatever the reader itself would say of what it found."""
    streams = open_source(path).streams(64)
    blocks = streams[0]()
    for _ in range(after):
        next(blocks)
    change(path)
    with pytest.raises(InputError, match=rf"{path.name} was changed while it was read"):
        read([lambda: blocks, *streams[1:]])


@pytest.mark.parametrize("change", CHANGES)
def test_a_build_from_a_file_that_changes_leaves_nothing(path, change, tmp_path):
    source, changes = open_source(path), [change]
    make_streams = source.make_streams

    def changed_first(block_rows):
        streams = make_streams(block_rows)
        if changes:
            changes.pop()(path)
        return streams

    source.make_streams = changed_first
    with pytest.raises(InputError, match="was changed while it was read"):
        oocgraph.build_csr(source, tmp_path / "graph.zarr")
    assert not changes
    assert not [left for left in tmp_path.iterdir() if left != path]


def test_one_of_many_files_that_changes_is_named(tmp_path):
    for k in range(3):
        write(tmp_path / f"{k}.parquet", edges(k))
        os.utime(tmp_path / f"{k}.parquet", (1, 1))
    streams = open_source(tmp_path).streams(64)
    rewritten(tmp_path / "1.parquet")
    with pytest.raises(InputError, match=r"1\.parquet was changed while it was read"):
        read(streams)


def test_a_file_that_stays_as_it_is_is_read_twice(path):
    source = open_source(path)
    for _ in range(2):
        assert read(source.streams(64)) == NUM_EDGES
