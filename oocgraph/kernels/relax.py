"""What is done in a block of edges (`oocgraph.kernels.blocks`): values are handed on along them, or vertices peeled off.

Shortest paths and operators of a user hand values on. A value is replaced only by a better one, together with the neighbour that it came
from, whose place holds the lock meanwhile. Of neighbours that give the same value the smallest is kept, so that the result does not depend
on threads, memory or schedule; an edge that hands a value on as it is does not change who a value came from, so that vertices never name
each other in a circle.

Core numbers peel: a vertex that is removed takes an edge from each of its neighbours, and one that is left with no more than the level
is removed in turn. What is then left of its edges is its core number. Source: Kabir, Madduri, "Parallel k-core decomposition on multicore
platforms", IPDPS Workshops 2017 (PKC). Differs in: removed vertices wait in blocks of edges, not in a queue of each thread; but where all
blocks stay in memory, a thread goes on with one of them itself when it is through with a block, so that a chain does not go from block to
block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numba.core import types

from oocgraph.compiled.intrinsics import (
    AHEAD,
    atomic_add,
    atomic_and,
    atomic_min,
    atomic_or,
    compare_and_swap,
    exchange,
    load_acquire,
    opaque,
    prefetch,
    sched_yield,
    store_release,
    trailing_zeros,
    usleep,
)
from oocgraph.compiled.worklist import bucket_of, is_over, pop, push
from oocgraph.kernels.blocks import (
    LAST,
    NONE,
    NOT_MONOTONE,
    OVERFLOW,
    STOP,
    fail,
    make_level_pending,
    make_work,
    make_work_by_vertex,
)
from oocgraph.kernels.policy import compile_function, is_compile_error
from oocgraph.types import Array


class Values(NamedTuple):
    """What is computed.

    Attributes
    ----------
    value : (num_vertices,)
        Value of each vertex. Peeling: its edges to vertices that are left, signed; when it is removed, its core number.
    parent : (num_vertices,) index dtype
        Neighbour that the value came from. Peeling: how many were removed before.
    busy : of the dtype of `parent`
        What the parent of a vertex is while a thread changes its value; no number of a vertex. Not used in peeling.
    bound : (1,) of the dtype of `value`
        Values beyond it are not kept. Peeling: the level.
    targets : (num_targets,) int64
        Vertices, ascending, the largest of whose values becomes the bound; none: it stays.
    scale : float
        Buckets in a step of priority.
    left : (num_vertices // 64 + 1,) uint64
        Peeling: bits of the vertices that may be left. Else empty.
    num_removed : (1,) int64
        Peeling: how many vertices are removed. Else the row that was put on a work list last.
    """

    value: Array
    parent: Array
    busy: Any
    bound: Array
    targets: Array
    scale: float
    left: Array
    num_removed: Array


MOST_OWN = np.int64(1 << 14)
"""Edges, of a block and of vertices peeled off one after the other wherever they are in memory, before a thread takes a block again."""


@nb.njit(nogil=True, cache=True)
def _bucket(rank: Any, scale: Any) -> Any:
    """Bucket of a priority, which may be any number."""
    return np.int32(min(max(np.floor(rank * scale), -2147483648.0), 2147483646.0))


def make_run_block(relax: Any, priority: Any, *, maximise: bool, most: Any, listed: bool = False) -> Any:
    """Return what `oocgraph.kernels.blocks.make_work` takes for a block, or `make_work_by_vertex` for all.

    Parameters
    ----------
    relax
        Compiled. ``relax(value_u, weight, value_v)``: what the edge from u to v makes of the value of v; never better than that of u. None:
        vertices are peeled off.
    priority
        Compiled. ``priority(value)``: what is worked on first, the smallest, or the largest if `maximise`.
    maximise
        Whether larger values are better.
    most
        Integer values above this one do not fit; None: there is no such value.
    listed
        Whether vertices come from a work list, until that is empty; else from what is pending in a block.
    """
    peels = relax is None

    def run_block(rows: Any, held: Any, values: Any, agenda: Any, b: Any, limit: Any, w: Any, t: Any, counts: Any) -> Any:
        # no array goes to another function below: numba would count the references to it, for each edge
        offset, row_first, inside, table, num_entries, shift, second_row, second_block = rows
        pending, seen, buckets, held_group, other_group, slots, held_slots, _, _, control, controls, _, _ = agenda
        value, parent, busy, bound, wanted, scale, _, num_removed = values
        targets, weights = held
        has_weights, last_target = weights.size > 1, targets.size - 1
        num_rows, has_second = offset.size - 1, second_row < offset.size - 1
        again, word, last_word, last_bits, i, waits = NONE, np.uint64(0), np.int64(-1), np.uint64(0), np.int64(-1), 0
        v = own = r = np.int64(0)
        c, at, own_row, own_block = np.int64(b), np.int64(-1), np.int64(-1), np.int64(-1)
        num_own = np.int64(0) if peels and held_slots.size == slots.size else MOST_OWN  # no block is given back
        if not listed:
            p0 = row_first[b] + inside[b]
            p1 = min(row_first[b + 1], num_rows) + inside[b]
            if b > 0 and inside[b] > inside[b - 1]:
                p0 -= 1
            if p1 <= p0:
                return again
            i, last_word = p0 >> 6, (p1 - 1) >> 6
            last_bits = (np.uint64(1) << np.uint64(p1 & 63)) - np.uint64(1) if p1 & 63 else ~np.uint64(0)
            word = load_acquire(pending, i) & (~np.uint64(0) << np.uint64(p0 & 63)) & (last_bits if i == last_word else ~np.uint64(0))
        else:
            b = np.int64(-1)
        while True:
            if not listed:  # the next piece of the block that is pending
                while word == 0 and i < last_word:
                    i += 1
                    word = load_acquire(pending, i) & (last_bits if i == last_word else ~np.uint64(0))
                if word == 0 and own_row < 0:
                    return again
                if word == 0:
                    c, r, own_row = own_block, own_row, np.int64(-1)
                    at, bit = (r + inside[c]) >> 6, np.uint64(1) << np.uint64((r + inside[c]) & 63)
                else:
                    at, bit = i, word & (~word + np.uint64(1))
                    word ^= bit
                    r = (i << 6) + np.int64(trailing_zeros(bit)) - inside[b]
                v = r - second_row if c >= second_block else r
                if not peels:
                    bucket = _bucket(-priority(load_acquire(value, v)) if maximise else priority(load_acquire(value, v)), scale)
                    if bucket > limit:
                        again = min(again, bucket)
                        continue
                atomic_and(pending, at, ~bit)
                own = bound[0] if peels else load_acquire(value, v)
            elif b < 0:  # the next vertex of the list
                if load_acquire(control, STOP):
                    return again
                found, v = pop(w, t)
                if not found:
                    if is_over(w):
                        return again
                    waits += 1
                    if waits < 64:
                        sched_yield()
                    else:
                        usleep(np.uint32(50))
                        counts[3] += 50
                    continue
                waits, own = 0, load_acquire(value, v)
                bucket = _bucket(-priority(own) if maximise else priority(own), scale)
                if bucket < bucket_of(w, t) or (own > bound[0] and not maximise):
                    continue  # it got better, and was worked on with that; or it is of no interest any more
                b, high = np.int64(table[v >> 6]), np.int64(table[(v >> 6) + 1]) + 1
                while high - b > 1:
                    middle = (b + high) >> 1
                    if row_first[middle] <= v:
                        b = middle
                    else:
                        high = middle
                if (b << shift) + offset[v] == num_entries:
                    b = np.int64(-1)
                    continue
                r = v
            if listed:
                c, at, bit = b, (r + inside[b]) >> 6, np.uint64(1) << np.uint64((r + inside[b]) & 63)
            base = np.int64(slots[c]) << shift
            begin = np.int64(offset[r]) if r >= row_first[c] else 0
            end = np.int64(offset[r + 1]) if r + 1 < min(row_first[c + 1], num_rows) else min(num_entries - (c << shift), 1 << shift)
            num_own += 1 + end - begin
            if listed:  # the next piece of its row
                b += 1
                if not (b < inside.size and row_first[b] == r + 1 and inside[b] > inside[b - 1]):
                    b = np.int64(-1)
            for e in range(base + begin, base + end):
                prefetch(value, np.uint64(targets[min(e + AHEAD, last_target)]))
                y = np.int64(targets[e])
                old = value[y]
                if peels:
                    if old <= own:
                        continue
                    old = atomic_add(value, y, -1)
                    if old <= own:  # another thread was first
                        atomic_add(value, y, 1)
                    if old != own + 1:
                        continue
                    parent[y] = atomic_add(num_removed, 0, 1)
                    bucket = NONE
                else:
                    new = relax(own, weights[e if has_weights else 0], old)
                    if most is None:
                        new = opaque(new)  # own + w < own is no w < 0: what has overflowed is to be found
                    if not (new <= own if maximise else new >= own):
                        fail(agenda, NOT_MONOTONE, v, y)
                        return again
                    if most is not None and new > most and old > most and bound[0] > most:
                        fail(agenda, OVERFLOW, v, y)
                        return again
                    if not (new > old if maximise else new < old) and not (new == old and new != own and v < parent[y]):
                        continue
                    if new > bound[0] and not maximise:
                        continue
                    while True:
                        before = load_acquire(parent, y)
                        if before != busy and compare_and_swap(parent, y, before, busy) == before:
                            break
                        if load_acquire(control, STOP):  # it may be a process that holds the lock and is gone
                            return again
                        sched_yield()
                    old = value[y]
                    better = new > old if maximise else new < old
                    if better:
                        store_release(value, y, new)
                    nearer = better or (new == old and new != own and v < before)
                    exchange(parent, y, v if nearer else np.int64(before))  # before anybody looks whether y is pending
                    if not better:
                        continue
                    rank = priority(new)
                    bucket = _bucket(-rank if maximise else rank, scale)
                    low, high = np.int64(0), np.int64(wanted.size)
                    while low < high:  # whether it is a target
                        middle = (low + high) >> 1
                        if wanted[middle] < y:
                            low = middle + 1
                        else:
                            high = middle
                    if low < wanted.size and wanted[low] == y:
                        farthest = new
                        for j in range(wanted.size):
                            farthest = max(farthest, value[wanted[j]])
                        if farthest <= bound[0]:
                            bound[0] = farthest
                            atomic_min(controls, LAST, np.int64(_bucket(priority(farthest), scale)))
                    if listed and push(w, t, np.int64(bucket), y):
                        continue
                while True:
                    low, high = np.int64(table[y >> 6]), np.int64(table[(y >> 6) + 1]) + 1
                    while high - low > 1:  # its block: the last one whose first row is at most y
                        middle = (low + high) >> 1
                        if row_first[middle] <= y:
                            low = middle
                        else:
                            high = middle
                    goes_on = (low << shift) + offset[y] != num_entries and (row_first[low + 1] == y + 1 or offset[y + 1] != offset[y])
                    if num_own < MOST_OWN and own_row < 0 and goes_on and row_first[low + 1] > y + 1 and load_acquire(slots, low) >= 0:
                        own_row, own_block, goes_on = y, low, False  # this thread goes on there when it is through with the block
                    while goes_on:  # for each of its pieces, if it has any
                        piece = y + inside[low]
                        mark = np.uint64(1) << np.uint64(piece & 63)
                        if not load_acquire(pending, piece >> 6) & mark:
                            atomic_or(pending, piece >> 6, mark)
                        if peels:  # the more is pending in a block, the earlier is it; its group learns of every 16th
                            bucket = atomic_add(buckets, low, -1)
                            bucket = bucket - np.int32(1) if bucket & 15 == 15 else NONE
                        elif bucket < load_acquire(buckets, low):
                            atomic_min(buckets, low, bucket)
                        slot = load_acquire(slots, low)  # of another share, which alone knows whether it is held: both
                        if slot != -1 and bucket < load_acquire(held_group, low >> 6):
                            atomic_min(held_group, low >> 6, bucket)
                        if slot < 0 and bucket < load_acquire(other_group, low >> 6):
                            atomic_min(other_group, low >> 6, bucket)
                        low += 1
                        goes_on = low < inside.size and row_first[low] == y + 1 and inside[low] > inside[low - 1]
                    if not peels or not has_second or y >= second_row:
                        break
                    y += second_row  # its in-list
            counts[0] += end - begin
            if load_acquire(seen, at) & bit:
                counts[1] += end - begin
            else:
                atomic_or(seen, at, bit)

    run_block.__module__ = __name__
    return run_block


def make_to_list(priority: Any, *, maximise: bool) -> Any:
    """Return what puts on a work list what is pending in blocks, while nobody works."""

    def to_list(rows: Any, agenda: Any, values: Any, w: Any) -> None:
        offset, row_first, inside, _, _, _, _, _ = rows
        pending, buckets = agenda.pending, agenda.bucket
        values.num_removed[0] = -1  # no row has been put there yet, 0 neither
        for b in range(buckets.size):
            if buckets[b] == NONE:
                continue
            left = NONE
            goes_on = b > 0 and inside[b] > inside[b - 1]
            for r in range(row_first[b] - goes_on, min(row_first[b + 1], offset.size - 1)):
                piece = r + inside[b]
                bit = np.uint64(1) << np.uint64(piece & 63)
                if not pending[piece >> 6] & bit:
                    continue
                rank = priority(values.value[r])
                bucket = _bucket(-rank if maximise else rank, values.scale)
                if (r < row_first[b] and values.num_removed[0] == r) or push(w, 0, np.int64(bucket), r):
                    pending[piece >> 6] ^= bit
                    values.num_removed[0] = r
                else:
                    left = min(left, bucket)
            buckets[b] = left

    return to_list


@nb.njit(nogil=True, cache=True)
def next_level(rows: Any, agenda: Any, values: Any) -> Any:
    """Go on to the next level at which a vertex is left, and remove those that have no more edges; returns whether there are any."""
    value, left, level = values.value, values.left, np.int64(2**62)
    for w in range(left.size):
        word = left[w]
        while word:
            bit = word & (~word + np.uint64(1))
            word ^= bit
            own = np.int64(value[(w << 6) + np.int64(trailing_zeros(bit))])
            if own <= values.bound[0]:
                left[w] ^= bit
            else:
                level = min(level, own)
    if level == 2**62:
        return False
    values.bound[0] = level
    if rows.second_row < rows.offset.size - 1:
        make_level_pending(rows, agenda, values, level, rows.second_row, False)
    make_level_pending(rows, agenda, values, level, 0, True)
    return True


MOST_WIDE = np.int64(2**62)
"""The largest distance."""


@nb.njit(nogil=True, cache=True)
def _add(value: Any, weight: Any, old: Any) -> Any:
    return value + weight


@nb.njit(nogil=True, cache=True)
def _add_integers(value: Any, weight: Any, old: Any) -> Any:
    # a sum that overflows must not be made: the compiler takes it that none does, and a comparison afterwards for one of the weight with 0
    length, left = np.int64(weight), MOST_WIDE - np.int64(value)
    return np.int64(value) + length if length <= left else MOST_WIDE + 1


@nb.njit(nogil=True, cache=True)
def _next(value: Any, weight: Any, old: Any) -> Any:
    return value + 1


@nb.njit(nogil=True, cache=True)
def _itself(value: Any) -> Any:
    return value


class Loop(NamedTuple):
    """What threads run until no value gets better.

    Attributes
    ----------
    by_block
        What `make_work` returns: by blocks of edges, of which some are on disk.
    by_vertex
        What `make_work_by_vertex` returns: by single vertices, where all edges are in memory; None: there is none.
    """

    by_block: Any
    by_vertex: Any


def _shortest(relax: Any, most: Any, name: str) -> Loop:
    by_block, by_vertex = (make_run_block(relax, _itself, maximise=False, most=most, listed=listed) for listed in (False, True))
    return Loop(
        make_work(by_block, None, f"{name}_by_block"),
        make_work_by_vertex(by_vertex, make_to_list(_itself, maximise=False), f"{name}_by_vertex"),
    )


shortest_narrow = _shortest(_add_integers, np.int64(2**31 - 2), "shortest_narrow")
"""Shortest paths with int32 distances."""

shortest_narrow_by_block, shortest_narrow_by_vertex = shortest_narrow

shortest_wide = _shortest(_add_integers, MOST_WIDE, "shortest_wide")
"""Shortest paths with int64 distances."""

shortest_wide_by_block, shortest_wide_by_vertex = shortest_wide

shortest_float = _shortest(_add, None, "shortest_float")
"""Shortest paths with float64 distances."""

shortest_float_by_block, shortest_float_by_vertex = shortest_float

SHORTEST: dict[str, tuple[Any, Any]] = {
    "narrow": (shortest_narrow, np.int32(2**31 - 1)),
    "wide": (shortest_wide, np.int64(2**63 - 1)),
    "float": (shortest_float, np.float64(np.inf)),
}
"""Of shortest paths the loop, and the distance of vertices that are not reached, by the kind of distances."""

levels = _shortest(_next, None, "levels")
"""Levels of a breadth-first search, int32."""

levels_by_block, levels_by_vertex = levels

peel = Loop(make_work(make_run_block(None, None, maximise=False, most=None), next_level, "peel_by_block"), None)
"""Core numbers."""

peel_by_block = peel.by_block

peel_share = Loop(make_work(make_run_block(None, None, maximise=False, most=None), None, "peel_share_by_block"), None)
"""Core numbers, of one level and one share of the blocks."""

peel_share_by_block = peel_share.by_block


class CompiledOperator(NamedTuple):
    """What `compile_operator` returns.

    Attributes
    ----------
    loop : Loop
    buckets_of
        ``buckets_of(values, scale)``: the buckets of values.
    kind : numpy.dtype
        Of values: that which was asked for, or float64 where `relax` returns such.
    function, error : str or None
        The function that cannot be compiled, and what numba says of it.
    """

    loop: Any
    buckets_of: Any
    kind: Any
    function: str
    error: str | None


def compile_operator(relax: Any, priority: Any, kind: Any, weight: Any, *, maximise: bool) -> CompiledOperator:
    """Compile the functions of an operator, for values and weights of these dtypes, and make their loop, which is not compiled yet."""
    relax, priority = compile_function(relax), _itself if priority is None else compile_function(priority)
    function = "relax"
    try:
        while True:
            value = nb.from_dtype(kind)
            signature = (value, nb.from_dtype(weight), value)
            relax.compile(signature)
            returned = relax.overloads[signature].signature.return_type
            if not isinstance(returned, types.Integer | types.Boolean | types.Float):
                return CompiledOperator(None, None, kind, function, f"it returns {returned}, not a number")
            if isinstance(returned, types.Float) and kind.kind != "f":
                kind = np.dtype(np.float64)
                continue
            break
        function = "priority"
        priority.compile((value,))
        returned = priority.overloads[value,].signature.return_type
        if priority is not _itself and not isinstance(returned, types.Integer | types.Boolean):
            return CompiledOperator(None, None, kind, function, f"it returns {returned}, not an integer")
        loop = Loop(make_work(make_run_block(relax, priority, maximise=maximise, most=None), None, None), None)  # one of the two to compile
    except Exception as error:
        if not is_compile_error(error):
            raise
        return CompiledOperator(None, None, kind, function, str(error))

    def buckets_of(values: Any, scale: Any) -> Any:
        buckets = np.empty(values.size, np.int32)
        for i in range(values.size):
            rank = priority(values[i])
            buckets[i] = _bucket(-rank if maximise else rank, scale)
        return buckets

    return CompiledOperator(loop, nb.njit(nogil=True)(buckets_of), kind, "", None)
