"""Gathering the edges of a subgraph's rows on the host, for a device: from memory, from files, or from windows of other stores.

The rows are a SubCSR: row i is ``degree`` edges from edge ``start[i]`` of ``indices`` on, and ``offset`` is the exclusive prefix
sum of the degrees. All rows after one another are the offset space; a piece is a range ``e0 .. e1 - 1`` of it and may cut a row at both
ends. `out` gets the edges of the piece, at ``out[e - e0]``.

Reference: Sabet, Zhao, Gupta, "Subway", EuroSys 2020, section 3 (host threads gather the active rows' edges). Differs from the
paper in that what is gathered comes from disk, by whole pages.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import address_of, memcpy
from oocgraph.kernels.rows import find_class, read_pages


@nb.njit(nogil=True, cache=True)
def cut_rows(offset: Any, e0: Any, e1: Any, row_edges: Any, cuts: Any) -> None:
    """Cut the piece ``e0 .. e1 - 1`` into parts of about equal work, where a row costs `row_edges` more than its edges.

    Parameters
    ----------
    offset : (num_rows + 1,) int64
    cuts : (num_parts + 1, 2) int64
        Overwritten: each part's first edge (in offset space) behind the row that holds it; the last entry is the end. Part k
        is edges ``cuts[k, 1] .. cuts[k + 1, 1] - 1``, which may be none, of rows ``cuts[k, 0] .. cuts[k + 1, 0]``.
    """
    num_parts = cuts.shape[0] - 1
    first, last = find_class(offset, e0), find_class(offset, e1 - 1)
    work = e1 - e0 + (last - first) * row_edges
    for k in range(num_parts):
        wanted = k * work // num_parts
        low, high = first, last + 1  # the last row that begins before so much work is done
        while high - low > 1:
            middle = (low + high) >> 1
            if offset[middle] - e0 + (middle - first) * row_edges <= wanted:
                low = middle
            else:
                high = middle
        e = e0 + wanted - (low - first) * row_edges
        if low < last:
            e = min(e, offset[low + 1])
        cuts[k, 0] = find_class(offset, e)
        cuts[k, 1] = e
    cuts[num_parts, 0] = last
    cuts[num_parts, 1] = e1


@nb.njit(nogil=True, cache=True)
def gather_rows(
    start: Any, offset: Any, i0: Any, i1: Any, e0: Any, e1: Any, resident: Any, files: Any, gap_pages: Any, scratch: Any,
    scratch_indices: Any, out: Any,
) -> Any:  # fmt: skip
    """Copy the edges ``e0 .. e1 - 1`` of rows ``i0 .. i1 - 1``, which cover them, to `out`.

    Edges before ``resident.size`` come from `resident`, the others from files. Pages of one row, and of the next ones where those are at
    most `gap_pages` apart, are read together, as many as `scratch` holds and the chunk goes on.

    Parameters
    ----------
    start : (num_rows,) int64
    offset : (num_rows + 1,) int64
    scratch : (a multiple of 4096,) uint8
        At least a page, which starts at a page boundary where files are open for direct reads; `scratch_indices` is its
        view in index dtype.
    out : (e1 - e0,) index dtype

    Returns
    -------
    (bytes_read, error): error is 0, or what `read_pages` returned.
    """
    chunk_pages, page_shift = files.chunk_pages, files.page_shift
    num_resident, itemsize = resident.size, out.itemsize
    scratch_pages = scratch.size // 4096
    total = 0
    low, high = np.int64(-1), np.int64(-1)  # pages in scratch
    for i in range(i0, i1):
        shift = start[i] - offset[i]
        e, end = max(offset[i], e0) + shift, min(offset[i + 1], e1) + shift
        to = -shift - e0
        head_stop = min(end, num_resident)
        if e < head_stop:
            memcpy(address_of(out, e + to), address_of(resident, e), np.uint64((head_stop - e) * itemsize))
            e = head_stop
        while e < end:
            page = e >> page_shift
            if page < low or page >= high:
                limit = min(page + scratch_pages, (page // chunk_pages + 1) * chunk_pages)
                stop = min(limit, ((end - 1) >> page_shift) + 1)
                for j in range(i + 1, i1):
                    a, z = start[j], start[j] + min(offset[j + 1], e1) - offset[j]
                    if a >= z:
                        continue
                    p = a >> page_shift
                    if p < page or p - stop > gap_pages or p >= limit:
                        break
                    stop = max(stop, min(limit, ((z - 1) >> page_shift) + 1))
                got = read_pages(files, scratch, page, stop - page)
                if got < 0:
                    return total, got
                total += got
                low, high = page, stop
            stop_edge = min(end, high << page_shift)
            base = low << page_shift
            memcpy(address_of(out, e + to), address_of(scratch_indices, e - base), np.uint64((stop_edge - e) * itemsize))
            e = stop_edge
    return total, 0


@nb.njit(nogil=True, cache=True)
def copy_rows(start: Any, offset: Any, i: Any, e: Any, e0: Any, e1: Any, resident: Any, window: Any, base: Any, out: Any) -> Any:
    """Copy the edges ``e .. e1 - 1`` from row `i` on to `out`, up to the first that is in neither of two arrays.

    `resident` holds the first edges of ``indices``, `window` those from `base` on; edge e goes to ``out[e - e0]``.

    Returns
    -------
    (i, e): row and edge (in offset space) that come next; ``e == e1`` when all are copied.
    """
    num_resident, itemsize, last = resident.size, out.itemsize, base + window.size
    while e < e1:
        stop = min(offset[i + 1], e1)
        shift = start[i] - offset[i]
        head_stop = min(stop, num_resident - shift)
        if e < head_stop:
            memcpy(address_of(out, e - e0), address_of(resident, e + shift), np.uint64((head_stop - e) * itemsize))
            e = head_stop
        if e < stop:
            if e + shift < base or e + shift >= last:
                return i, e
            tail_stop = min(stop, last - shift)
            memcpy(address_of(out, e - e0), address_of(window, e + shift - base), np.uint64((tail_stop - e) * itemsize))
            e = tail_stop
        if e >= stop:
            i += 1
    return i, e
