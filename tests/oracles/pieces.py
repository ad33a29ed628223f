"""The kernels of `oocgraph.kernels.pieces` as plain Python: the oracle that they must equal, same names and signatures."""

from __future__ import annotations

import numpy as np

from oocgraph.types import Array


def cut_pieces(
    rows: Array, at: Array, indptr: Array, slot_of: Array, shift: int, held: Array, missing: Array, max_staged: int, counts: Array
) -> None:
    """See `oocgraph.kernels.pieces.cut_pieces`."""
    pieces: tuple[list[list[int]], list[list[int]]] = ([], [])
    staged = 0
    i, skip = at.tolist()
    while i < rows.size:
        u = int(rows[i])
        e, stop = int(indptr[u]) + skip, int(indptr[u + 1])
        while e < stop:
            if len(pieces[0]) == len(held) or len(pieces[1]) == len(missing) or staged >= max_staged:
                break
            block = e >> shift
            end = min(stop, (block + 1) << shift)
            where, base = (0, (int(slot_of[block]) - block) << shift) if slot_of[block] >= 0 else (1, 0)
            if where:
                end = min(end, e + max_staged - staged)
                staged += end - e
            if pieces[where] and pieces[where][-1][0] == u and pieces[where][-1][2] == e + base:
                pieces[where][-1][2] = end + base
            else:
                pieces[where].append([u, e + base, end + base])
            e = end
        if e < stop:
            skip = e - int(indptr[u])
            break
        i, skip = i + 1, 0
    at[:] = i, skip
    counts[:] = len(pieces[0]), len(pieces[1]), staged
    for out, found in zip((held, missing), pieces, strict=True):
        out[: len(found)] = np.array(found, np.int64).reshape(-1, 3)


def mark_blocks(rows: Array, indptr: Array, slot_of: Array, shift: int, wanted: Array) -> int:
    """See `oocgraph.kernels.pieces.mark_blocks`."""
    needed = [np.arange(indptr[u] >> shift, ((indptr[u + 1] - 1) >> shift) + 1) for u in rows.tolist() if indptr[u + 1] > indptr[u]]
    blocks = np.unique(np.concatenate([np.empty(0, np.int64), *needed]))
    blocks = blocks[slot_of[blocks] < 0][: wanted.size]
    wanted[: blocks.size] = blocks
    return int(blocks.size)
