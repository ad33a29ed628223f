"""Gathering rows as plain NumPy: the oracle that `oocgraph.kernels.gather` must equal, with the same names and signatures.

Edge numbers are listed one by one, and every page that holds one of them is read once, by itself.
"""

from __future__ import annotations

import os

import numpy as np

from oocgraph.compiled.crc32c import page_checksums
from oocgraph.kernels.rows import CHECKSUM_FAILED, RANGE_FAILED, READ_FAILED, ChunkFiles
from oocgraph.types import Array


def edge_numbers(start: Array, offset: Array, e0: int, e1: int) -> Array:
    """Which edges of ``indices`` the edges ``e0 .. e1 - 1`` of the rows are: int64."""
    e = np.arange(e0, e1)
    row = np.searchsorted(offset, e, side="right") - 1
    return np.asarray(start[row] + e - offset[row])


def cut_rows(offset: Array, e0: int, e1: int, row_edges: int, cuts: Array) -> None:
    """See `oocgraph.kernels.gather.cut_rows`; lists what each edge costs."""
    num_parts = cuts.shape[0] - 1
    e = np.arange(e0, e1)
    row = np.searchsorted(offset, e, side="right") - 1
    done = e - e0 + (row - row[0]) * row_edges  # work before an edge
    for k in range(num_parts):
        wanted = k * int(done[-1] + 1) // num_parts
        at = int(np.searchsorted(done, wanted))
        cuts[k] = row[at], e[at]
    cuts[num_parts] = row[-1], e1


def gather_rows(
    start: Array, offset: Array, i0: int, i1: int, e0: int, e1: int, resident: Array, files: ChunkFiles, gap_pages: int, scratch: Array,
    scratch_indices: Array, out: Array,
) -> tuple[int, int]:  # fmt: skip
    """See `oocgraph.kernels.gather.gather_rows`; reads no page that no row wants, in the order in which rows want them."""
    fds, chunk_pages, extent, checksums, page_shift, _ = files
    edges = edge_numbers(start, offset, e0, e1)
    at_home = edges < resident.size
    out[at_home] = resident[edges[at_home]]
    pages = edges[~at_home] >> page_shift
    total = 0
    for page in dict.fromkeys(pages.tolist()):
        chunk, place = divmod(page, chunk_pages)
        raw = np.frombuffer(os.pread(int(fds[chunk]), 4096, place * 4096), np.uint8)
        if raw.size < min(4096, int(extent[0]) - page * 4096):
            return total, READ_FAILED
        if checksums.size and page_checksums(raw, 4096)[0] != checksums[page]:
            return total, CHECKSUM_FAILED - page
        values = raw[: min(4096, int(extent[0]) - page * 4096)].view(f"u{extent[2]}")
        if values.size and int(values.max()) >= extent[1]:
            return total, RANGE_FAILED - page
        total += raw.size
        values, here = raw.view(out.dtype), np.flatnonzero(~at_home & (edges >> page_shift == page))
        out[here] = values[edges[here] - (page << page_shift)]
    return total, 0


def copy_rows(
    start: Array, offset: Array, i: int, e: int, e0: int, e1: int, resident: Array, window: Array, base: int, out: Array
) -> tuple[int, int]:
    """See `oocgraph.kernels.gather.copy_rows`."""
    edges = edge_numbers(start, offset, e, e1)
    inside = (edges >= base) & (edges < base + window.size)
    known = (edges < resident.size) | inside
    count = int(np.argmin(known)) if not known.all() else known.size
    for position, edge in enumerate(edges[:count].tolist()):
        out[e - e0 + position] = resident[edge] if edge < resident.size else window[edge - base]
    stop = e + count
    return (i if stop == e else int(np.searchsorted(offset, stop, side="right")) - 1), stop
