"""What every test of a source does: read all of it, twice, and compare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oocgraph.errors import InputError, OocGraphError
from oocgraph.ingest.sources import open_source

SOURCE = [0, 1, 2, 5, 5]
TARGET = [1, 2, 3, 9, 0]


def plain(values):
    return values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()


def check_types(source, block):
    for ids in (block.source, block.target):
        if source.id_kind == "int64":
            assert isinstance(ids, np.ndarray)
            assert ids.dtype == np.int64
            assert ids.flags.c_contiguous
        else:
            assert str(ids.type) == "large_string"
            assert ids.offset == 0
            assert ids.null_count == 0
    assert {name: getattr(values, "dtype", "string") for name, values in block.columns.items()} == source.columns


def read(source, block_rows=2):
    """Edges and columns of all streams, as lists; every promise of the protocol is checked on the way."""
    ends, columns, next_row = ([], []), {name: [] for name in source.columns}, 0
    for stream in source.streams(block_rows):
        for block in stream():
            check_types(source, block)
            assert len(block.source) == len(block.target) <= block_rows
            assert block.first_row >= next_row
            next_row = block.first_row + len(block.source)
            ends[0].extend(plain(block.source))
            ends[1].extend(plain(block.target))
            for name, values in block.columns.items():
                columns[name].extend(plain(values))
    return *ends, columns


def check(source, edges, values=None, **facts):
    """Equality with `edges` = (sources, targets), for several block sizes and when read again."""
    for block_rows in (1, 2, 100, 2):
        got = read(source, block_rows)
        assert got[:2] == (list(edges[0]), list(edges[1]))
        assert got[2] == (values or {})
    for name, value in facts.items():
        assert getattr(source, name) == value, name


def refused(source, *words, **options):
    """Open and read: an InputError whose message holds every one of `words`."""
    with pytest.raises(InputError) as caught:
        read(open_source(source, **options))
    assert isinstance(caught.value, OocGraphError)
    message = str(caught.value)
    for word in (*words, *([str(source)] if isinstance(source, Path) else [])):
        assert str(word) in message, message
    return caught.value


def peak_anonymous_bytes(path):
    """How much a process's own memory grows while it reads a file, and the number of edges; a new one has freed nothing yet."""
    done = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()))


MEASURE = """
import os, sys
from oocgraph.ingest.sources import open_source
from tests.ingest.helpers import growth_while_read
next(open_source(sys.argv[1]).streams(1 << 10)[0]())  # code and threads, some 30 MB, are not the file's
print(*growth_while_read(open_source(sys.argv[1]), 1 << 16), flush=True)
os._exit(0)  # not by the interpreter's end, in which a thread of Arrow that lets go of a block aborts the process, once in 70
"""


def growth_while_read(source, block_rows):
    """How much this process's own memory grows while `source` is read, and the number of edges."""

    def now():
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1]) * 1024

    before, peak, num_edges = now(), 0, 0
    for stream in source.streams(block_rows):
        for block in stream():
            peak, num_edges = max(peak, now()), num_edges + len(block.source)
    return peak - before, num_edges
