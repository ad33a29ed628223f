"""How similar pairs of vertices are, by the neighbours that they have in common.

In: user ids of sources and targets. Out: a score for each pair. Pairs are taken in the order of their first vertex, as many together as
their rows fit; of these each row is read once.

Liben-Nowell and Kleinberg, "The Link Prediction Problem for Social Networks", CIKM 2003; Zhou, Lü and Zhang, "Predicting missing links via
local information", 2009 (resource allocation).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from oocgraph.compiled.load import load_kernels
from oocgraph.errors import ArgumentError
from oocgraph.kernels.intersect import common_entries, intersect_calls
from oocgraph.memory import Budget
from oocgraph.store.answering import FEW_BYTES, budget_of
from oocgraph.store.columns import distinct
from oocgraph.store.given import as_pairs, is_single
from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.neighbours import VERTEX_BYTES
from oocgraph.store.paged_ids import PagedIds
from oocgraph.store.row_places import group_of, row_ends
from oocgraph.store.scattered import RangeReader, reading_bytes
from oocgraph.store.vertex_degrees import degrees_of
from oocgraph.types import Array

KINDS = ("jaccard", "common", "adamic-adar", "resource-allocation")

PAIR_BYTES = 2 * VERTEX_BYTES + 120
"""What a pair takes: both vertices, where their rows are, its place among others, what was counted, its score."""

BATCH_BYTES = 64 << 20
"""Bytes of rows that are read together, where there is room."""

COMMON_BYTES = 64
"""What a common neighbour takes: its number, found again among others, its degree, its pair."""


class _Pairs(NamedTuple):
    """Pairs with edges, by the smaller number and then the larger, and the entries of their rows; each (2, num_pairs) int64."""

    numbers: Array
    lengths: Array


def similarity(store: GraphArrays, source: Any, target: Any, *, kind: str, memory_budget: str | int | None) -> Any:
    """Return scores of pairs; see `oocgraph.store.access.GraphAccess.similarity`."""
    if kind not in KINDS:
        raise ArgumentError(f"kind is {kind!r}; it must be {', '.join(map(repr, KINDS[:-1]))} or {KINDS[-1]!r}")
    if store.attributes.directed:
        raise ArgumentError(f"{store.url} is directed, and common neighbours are those of undirected graphs; build it with directed=False")
    given, group = as_pairs(source, target), group_of(store, "out")
    load_kernels(intersect_calls(np.dtype(store.attributes.index_dtype).name))
    budget = budget_of(store, memory_budget, following_bytes=PAIR_BYTES * len(given[0]))
    pair_bytes = PAIR_BYTES * len(given[0])
    # few pairs are refused together with their rows, so that one message names all that is needed
    (budget.hold if pair_bytes <= FEW_BYTES else budget.reserve)("pairs", pair_bytes)
    with RangeReader(store, budget) as reader:
        known = PagedIds(reader)
        numbers = np.sort(np.stack([known.vertices_of(one) for one in given]), axis=0)
        linked = np.flatnonzero(numbers[0] >= 0)
        linked = linked[np.lexsort((numbers[1, linked], numbers[0, linked]))]
        scores, numbers = np.zeros(numbers.shape[1], np.int64 if kind == "common" else np.float64), numbers.take(linked, axis=1)
        vertices = distinct(numbers.ravel())
        begin, end = row_ends(store, group, vertices, reader)
        pairs = _Pairs(numbers, (end - begin)[np.searchsorted(vertices, numbers)])
        for some in _batches(store, pairs, kind, budget):
            scores[linked[some]] = _scores(reader, group, np.ascontiguousarray(numbers[:, some]), kind)
    return scores[0].item() if is_single(source) else scores


def _batches(store: GraphArrays, pairs: _Pairs, kind: str, budget: Budget) -> Iterator[slice]:
    """Cut pairs, which come by their first vertex, where their rows and common neighbours take as much as there is room for."""
    entry_bytes = (4 if store.attributes.may_be_parallel else 2) * np.dtype(store.attributes.index_dtype).itemsize
    first, second = pairs.lengths * entry_bytes
    if kind in ("adamic-adar", "resource-allocation"):
        second += COMMON_BYTES * pairs.lengths.min(axis=0)
    is_new = np.append(True, pairs.numbers[0, 1:] != pairs.numbers[0, :-1])[: first.size]
    total = np.append(0, np.cumsum(second + np.where(is_new, first, 0)))
    room = budget.available_bytes - reading_bytes(store)
    most = min(int(total[-1]), max(int((first + second).max(initial=0)), min(BATCH_BYTES, room)))
    budget.reserve("rows of the pairs", most)
    start = 0
    while start < first.size:
        room = total[start] + most - (0 if is_new[start] else first[start])
        stop = max(start + 1, int(np.searchsorted(total, room, side="right")) - 1)
        yield slice(start, stop)
        start = stop


def _scores(reader: RangeReader, group: str, pairs: Array, kind: str) -> Array:
    vertices = distinct(pairs.ravel())
    begin, end = row_ends(reader.store, group, vertices, reader)
    entries, lengths = reader.read(f"{group}/indices", begin, end), end - begin
    if reader.store.attributes.may_be_parallel:
        entries, lengths = _without_repetitions(entries, lengths)
    last = np.cumsum(lengths)
    at = np.searchsorted(vertices, pairs)
    places, counts = (last - lengths)[at], np.empty_like(pairs)
    num_common = common_entries(entries, places, last[at], pairs, counts, np.empty(0, np.int64))
    scores: Array = counts[1]
    if kind == "common":
        return scores
    if kind == "jaccard":
        scores = scores / np.maximum(lengths[at].sum(axis=0) - counts[0], 1)
        return scores
    common = np.empty(num_common, np.int64)
    common_entries(entries, places, last[at], pairs, counts, common)
    del entries
    unique = distinct(common)
    degree = degrees_of(reader.store, [group], unique, reader)
    with np.errstate(divide="ignore"):  # of a vertex and itself, whose neighbours may have no other
        weight = 1 / (np.log(degree) if kind == "adamic-adar" else degree)
    owner = np.repeat(np.arange(pairs.shape[1]), counts[1])
    scores = np.bincount(owner, weight[np.searchsorted(unique, common)], pairs.shape[1])
    return scores


def _without_repetitions(entries: Array, lengths: Array) -> tuple[Array, Array]:
    """Return the rows with each entry once, and how long they are then."""
    is_new = np.ones(entries.size, np.bool_)
    np.not_equal(entries[1:], entries[:-1], out=is_new[1:])
    has_entries = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[has_entries]
    is_new[starts] = True
    kept = np.zeros_like(lengths)
    kept[has_entries] = np.add.reduceat(is_new, starts, dtype=np.int64)
    return entries[is_new], kept
