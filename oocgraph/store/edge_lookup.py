"""Whether pairs of vertices are edges: binary search in the shorter row, a page at a time.

In: user ids of sources and targets. Out: a truth for each pair. Rows ascend by store number, so one page of a row tells in which
half of its pages a neighbour must be; of a row of a million neighbours ten pages are read, and of other rows one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.store.answering import budget_of
from oocgraph.store.columns import distinct, lower_bounds
from oocgraph.store.given import as_pairs, is_single
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.neighbours import VERTEX_BYTES
from oocgraph.store.paged_ids import PagedIds
from oocgraph.store.row_places import group_of, row_ends
from oocgraph.store.scattered import RangeReader
from oocgraph.types import PAGE_BYTES, Array

PAIRS = 1 << 12
"""Pairs that are looked up together: their last pages are 16 MiB at the most."""


def has_edge(store: GraphArrays, source: Any, target: Any, *, memory_budget: str | int | None) -> Any:
    """Return whether pairs are edges; see `oocgraph.store.access.GraphAccess.has_edge`."""
    pairs, group = as_pairs(source, target), group_of(store, "out")
    charges = {"pairs": 2 * VERTEX_BYTES * len(pairs[0]), "pages": 3 * PAGE_BYTES * min(PAIRS, len(pairs[0]))}
    budget = budget_of(store, memory_budget, following_bytes=sum(charges.values()))
    budget.reserve_all(charges)
    with RangeReader(store, budget) as reader:
        known = PagedIds(reader)
        u, v = (known.vertices_of(one) for one in pairs)
        found = np.zeros(u.size, np.bool_)
        linked = np.flatnonzero((u >= 0) & (v >= 0))
        for start in range(0, linked.size, PAIRS):
            here = linked[start : start + PAIRS]
            found[here] = _are_edges(reader, group, u[here], v[here])
    return bool(found[0]) if is_single(source) else found


def _are_edges(reader: RangeReader, group: str, u: Array, v: Array) -> Array:
    store, name = reader.store, f"{group}/indices"
    low, high = row_ends(store, group, u)
    if not store.attributes.directed:  # the edge is in both rows
        other_low, other_high = row_ends(store, group, v)
        shorter = other_high - other_low < high - low
        low, high, v = np.where(shorter, other_low, low), np.where(shorter, other_high, high), np.where(shorter, u, v)
    found = _narrow(reader, name, low, high, v)
    return found | _in_pages(reader, name, low, high, v)


def _narrow(reader: RangeReader, name: str, low: Array, high: Array, wanted: Array) -> Array:
    """Narrow ranges ``low .. high - 1``, in place, until each is on one page; return where the value was met on the way."""
    per_page = PAGE_BYTES // reader.store.array(name).dtype.itemsize
    found = np.zeros(low.size, np.bool_)
    while True:
        wide = np.flatnonzero((high > low) & (low // per_page != (high - 1) // per_page) & ~found)
        if not wide.size:
            return found
        a, z = low[wide], high[wide]
        middle = np.maximum((a + z) // 2 // per_page, a // per_page + 1) * per_page  # where a page begins, in the range
        places = distinct(middle)
        values = reader.read(name, places, places + 1).astype(np.int64)[np.searchsorted(places, middle)]
        found[wide] = values == wanted[wide]
        low[wide] = np.where(values < wanted[wide], middle, a)
        high[wide] = np.where(values < wanted[wide], z, middle)


def _in_pages(reader: RangeReader, name: str, low: Array, high: Array, wanted: Array) -> Array:
    """Return whether each value is in its range, which is on one page; ranges may overlap."""
    order = np.argsort(low, kind="stable")
    ends = np.maximum.accumulate(high[order])
    is_first = np.concatenate([[True], low[order][1:] > ends[:-1]]) if low.size else np.empty(0, np.bool_)
    first = np.flatnonzero(is_first)
    begin, end = low[order][first], ends[np.append(first[1:], low.size) - 1] if low.size else low
    values = reader.read(name, begin, end).astype(np.int64)
    shift = np.empty(low.size, np.int64)
    shift[order] = (np.cumsum(end - begin) - (end - begin) - begin)[np.cumsum(is_first) - 1]
    at = lower_bounds(values, low + shift, high + shift, wanted)
    inside: Array = at < high + shift
    inside &= np.append(values, -1)[np.where(inside, at, -1)] == wanted
    return inside
