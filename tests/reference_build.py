"""The build as one page of NumPy, all in memory: the oracle that the external build must equal byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from oocgraph.store import layout
from oocgraph.store.layout import GraphAttributes
from oocgraph.store.writer import StoreWriter
from oocgraph.types import index_dtype


def distinct(values):
    """Return the distinct values, ascending: NumPy's own `unique` hashes integers and takes 5 s for 2.4 M."""
    ascending = np.sort(values)
    return ascending[np.append(np.full(min(1, ascending.size), True), ascending[1:] != ascending[:-1])]


def csr(rows, cols, n):
    """Return indptr and the order that sorts edges by (row, col)."""
    order = np.argsort(rows.astype(np.uint64) << np.uint64(32) | cols.astype(np.uint64), kind="stable")
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=n), out=indptr[1:])
    return indptr, order


def reference_build(
    src, dst, path, *, directed=False, keep_self_loops=False, vertex_order="degree", implied=None, duplicates="drop", source="arrays"
):
    """Unweighted build of integer edges. `implied`: (first, stop) when all ids of that range are vertices."""
    src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
    ids = distinct(np.concatenate([src, dst])) if implied is None else np.arange(*implied)
    u, v = np.searchsorted(ids, src), np.searchsorted(ids, dst)
    if not keep_self_loops:
        u, v = u[u != v], v[u != v]
    if not directed:
        loop = u == v
        u, v = np.concatenate([u, v[~loop]]), np.concatenate([v, u[~loop]])
    if duplicates == "drop":
        key = distinct(u.astype(np.uint64) << np.uint64(32) | v.astype(np.uint64))
        u, v = (key >> np.uint64(32)).astype(np.int64), (key & np.uint64(0xFFFFFFFF)).astype(np.int64)
    out_degree, in_degree = np.bincount(u, minlength=ids.size), np.bincount(v, minlength=ids.size)
    used = (out_degree + in_degree) > 0
    degree = in_degree  # of the lists a pull walks; equal to out_degree when undirected
    order = np.argsort(-degree, kind="stable") if vertex_order == "degree" else np.arange(ids.size)
    order = order[used[order]]  # new vertex -> position in ids
    rank = np.full(ids.size, -1, np.int64)
    rank[order] = np.arange(order.size)
    n, m = order.size, u.size
    dtype = index_dtype(n)
    u, v = rank[u], rank[v]
    loops = np.sort(u[u == v])  # one entry per stored self-loop
    num_loops = int((u == v).sum())
    num_planes = 0
    with StoreWriter(Path(path), codec="none", overwrite=True) as writer:
        groups = [("out", u, v)] + ([("in", v, u)] if directed else [])
        for group, rows, cols in groups:
            indptr, by_row = csr(rows, cols, n)
            indices = cols[by_row].astype(dtype)
            writer.write(f"{group}/indptr", indptr)
            writer.write(f"{group}/indices", indices)
            if vertex_order == "degree" and group == layout.plane_group(directed):
                d = np.diff(indptr)
                value, first = np.unique(-d, return_index=True)
                writer.write(f"{group}/degrees/value", -value)
                writer.write(f"{group}/degrees/first_vertex", first.astype(np.int64))
                lengths = np.array([np.count_nonzero(d > k) for k in range(min(layout.MAX_PLANES, int(d.max(initial=0))))], np.int64)
                num_planes = layout.num_planes_for(lengths, m)
                offsets = np.zeros(num_planes + 1, np.int64)
                offsets[1:] = np.cumsum(lengths[:num_planes])
                planes = [indices[indptr[: lengths[k]] + k] for k in range(num_planes)]
                writer.write(f"{group}/planes/offsets", offsets)
                writer.write(f"{group}/planes/indices", np.concatenate([np.empty(0, dtype), *planes]))
        writer.write(layout.VERTEX_ID, ids[order])
        writer.write(layout.SORTED_ID, ids[used])
        writer.write(layout.ORDER, rank[used].astype(dtype))
        if implied is None:
            writer.write(layout.ISOLATED_ID, ids[~used])
        if num_loops:
            writer.write(layout.SELF_LOOPS, loops.astype(dtype))
        writer.publish(
            GraphAttributes(
                num_vertices=n,
                num_edges=m if directed else (m + num_loops) // 2,
                num_stored_edges=m,
                num_input_vertices=int(ids.size),
                num_isolated=int(ids.size - n),
                num_self_loops=num_loops,
                directed=directed,
                duplicates=duplicates,
                parallel_edges=distinct(u << 32 | v).size < m,
                vertex_order=vertex_order,
                index_dtype=dtype.name,
                implied_ids=implied,
                num_planes=num_planes,
                source=source,
            )
        )
