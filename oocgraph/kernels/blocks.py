"""Edges in blocks on disk, worked on in the order of priorities: which block is next, and what is done in it.

In: the rows of a graph cut into blocks of as many entries each (`BlockRows`), what is pending in each (`Agenda`), the blocks that are held
in memory (`Held`). Out: values of all vertices. A block is the unit of reading and of scheduling. A vertex whose row lies in several blocks
has a *piece* in each; pieces are numbered in the order of the entries, and a piece is pending once the value of its vertex got better.

`make_work` makes what a thread runs until all is done: take the block with the earliest pending bucket, follow the edges of its pending
pieces, and note which pieces that makes pending. A block in memory goes before one that has to be read, unless it is more than `slack`
buckets later. Whoever has to read a block returns to its caller, who knows how, and calls again.

The earliest bucket is found by a tournament of two levels: of the blocks of a group, and of all groups, each a lower bound that whoever
takes a block puts right. Held blocks and the others have groups of their own.

Sources: Galois' soft priorities (Nguyen, Lenharth, Pingali, "A Lightweight Infrastructure for Graph Analytics", SOSP 2013); block-centric
asynchronous work lists out of core, ACGraph. Differs in: a block is relaxed as a whole at its bucket and `slack` more, so that a list of
single vertices is not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from oocgraph.kernels.intrinsics import (
    AHEAD,
    atomic_and,
    atomic_min,
    atomic_or,
    compare_and_swap,
    exchange,
    load_acquire,
    prefetch,
    sched_yield,
    store_release,
    trailing_zeros,
    usleep,
)
from oocgraph.kernels.rows import read_pages
from oocgraph.types import Array

NONE = np.int32(2**31 - 1)
"""Bucket of a block in which nothing is pending."""

LOCK, READING, RUNNING, HAND, CLOCK, NUM_HELD, SWEEP, STOP, PLACE, OTHER, EVICTED, LAST = range(0, 96, 8)
"""Where `Agenda.control` has what, each in a cache line of its own: the lock of the schedule; blocks that are being read, and worked
on; the block a sweep has come to; a clock of blocks taken; slots in use; the bucket of a sweep; why work stops; the vertex and the
neighbour that a message names; the slot that was given back last; the last bucket that is of interest."""

CONTROL_WORDS = 96

DONE, READ, FAILED = 0, 1, 2
"""What work returns: all is done; a block is to be read; something is wrong (`Agenda.control` says what)."""

INTERRUPTED, NOT_MONOTONE, OVERFLOW, UNREADABLE = 1, 2, 3, 4
"""Why work stops."""

LOCKS = 1 << 16
"""Locks of vertices: the lower bits of a vertex choose its own."""

FREE, TAKEN = np.uint8(0), np.uint8(1)


class BlockRows(NamedTuple):
    """Where rows are in blocks of ``1 << shift`` entries.

    Attributes
    ----------
    offset : (num_vertices + 1,) uint16
        Position of the beginning of each row in its block; at last that of the end of all.
    first : (num_blocks + 1,) int64
        First row that begins in each block, or behind it; at last the first that begins behind all.
    inside : (num_blocks,) int64
        How many of the blocks up to this one begin inside of a row.
    table : (num_vertices // 64 + 2,) uint32
        Block in which each 64th row begins.
    num_entries, shift : int
    """

    offset: Array
    first: Array
    inside: Array
    table: Array
    num_entries: int
    shift: int


class Agenda(NamedTuple):
    """What is pending, and what is held.

    Attributes
    ----------
    pending, seen : (num_pieces // 64 + 1,) uint64
        Bits of the pieces: pending, and worked on at least once.
    bucket : (num_blocks,) int32
        Earliest bucket that is pending in a block, or `NONE`.
    held_group, other_group : (num_blocks // 64 + 1,) int32
        At most the earliest bucket of 64 blocks, of those that are held and of the others.
    slot : (num_blocks,) int32
        Where a block is held; -1: nowhere.
    block_in : (num_slots,) int32
        Block that is held in a slot; -1: none.
    stamp : (num_slots,) int64
        When the block of a slot was taken last.
    busy : (num_blocks,) uint8
        Whether somebody reads a block or works on it.
    at : (num_workers,) int32
        Bucket at which each worker is, or `NONE`.
    control : (CONTROL_WORDS,) int64
        See `LOCK`.
    """

    pending: Array
    seen: Array
    bucket: Array
    held_group: Array
    other_group: Array
    slot: Array
    block_in: Array
    stamp: Array
    busy: Array
    at: Array
    control: Array


class Held(NamedTuple):
    """Blocks in memory.

    Attributes
    ----------
    targets : (num_slots << shift,) index dtype
        One slot after the other; the last one may be shorter where all blocks are held.
    weights : as many, or (1,) where all weights are one
    """

    targets: Array
    weights: Array


class BlockFiles(NamedTuple):
    """Chunk files of what is held: see `oocgraph.kernels.rows.ChunkFiles`. Without files whoever calls `work` reads.

    Attributes
    ----------
    targets, weights : ChunkFiles
    """

    targets: Any
    weights: Any


class Values(NamedTuple):
    """What is computed.

    Attributes
    ----------
    value : (num_vertices,)
    parent : (num_vertices,) index dtype
        Neighbour that the value came from.
    locks : (LOCKS,) uint8
    bound : (1,) of the dtype of `value`
        Values beyond it are not kept.
    target : int
        Vertex whose value becomes the bound; -1: none.
    scale : float
        Buckets in a step of priority.
    """

    value: Array
    parent: Array
    locks: Array
    bound: Array
    target: int
    scale: float


class Rules(NamedTuple):
    """How blocks are taken.

    Attributes
    ----------
    slack : int
        Buckets by which a block in memory may be later than one that has to be read.
    most_running, most_reading : int
        Blocks that are worked on, and read, at a time.
    in_sweeps : bool
        Synchronously: blocks in order, of the earliest bucket or of all, again and again.
    every_bucket : bool
        In sweeps of all that is pending, not of the earliest bucket.
    """

    slack: int
    most_running: int
    most_reading: int
    in_sweeps: bool
    every_bucket: bool


@nb.njit(nogil=True, cache=True)
def place_rows(indptr: Any, first_row: Any, offset: Any, first: Any, inside: Any, table: Any, shift: Any) -> Any:
    """Enter the rows that begin at ``indptr[:-1]`` (and the end of all, if these are the last ones); returns the next block to enter.

    Rows come in order; ``first[0]`` is -1 before the first call, and ``inside[0]`` holds the next block to enter between calls (it is 0 in
    the end, for no row is cut at the beginning).
    """
    b = inside[0]
    for i in range(indptr.size):
        begin, v = indptr[i], first_row + i
        offset[v] = begin & ((1 << shift) - 1)
        while b < first.size and (b << shift) <= begin:
            first[b] = v
            if 0 < b < inside.size:
                inside[b] = (b << shift) != begin
            b += 1
        if v & 63 == 0:
            table[v >> 6] = begin >> shift
    inside[0] = b
    return b


@nb.njit(nogil=True, cache=True)
def finish_rows(num_vertices: Any, first: Any, inside: Any, table: Any) -> None:
    """Close what `place_rows` has entered."""
    for b in range(inside[0], first.size):
        first[b] = num_vertices
    inside[0] = 0
    for b in range(1, inside.size):
        inside[b] += inside[b - 1]
    table[(num_vertices + 63) >> 6] = first.size - 1


@nb.njit(nogil=True, cache=True, inline="always")
def _block_of(v: Any, first: Any, table: Any) -> Any:
    low, high = np.int64(table[v >> 6]), np.int64(table[(v >> 6) + 1]) + 1
    while high - low > 1:  # the last block whose first row is at most v
        middle = (low + high) >> 1
        if first[middle] <= v:
            low = middle
        else:
            high = middle
    return low


@nb.njit(nogil=True, cache=True)
def row_range(rows: Any, v: Any) -> Any:
    """First entry of a row, and the one behind its last."""
    begin = (_block_of(v, rows.first, rows.table) << rows.shift) + rows.offset[v]
    if v + 1 == rows.offset.size - 1:
        return begin, rows.num_entries
    return begin, (_block_of(v + 1, rows.first, rows.table) << rows.shift) + rows.offset[v + 1]


@nb.njit(nogil=True, cache=True)
def make_pending(rows: Any, agenda: Any, v: Any, bucket: Any) -> None:
    """Make all pieces of a vertex pending, before work begins."""
    begin, end = row_range(rows, v)
    for b in range(begin >> rows.shift, -(-end >> rows.shift) if end > begin else 0):
        piece = v + rows.inside[b]
        agenda.pending[piece >> 6] |= np.uint64(1) << np.uint64(piece & 63)
        agenda.bucket[b] = min(agenda.bucket[b], bucket)
        group = agenda.held_group if agenda.slot[b] >= 0 else agenda.other_group
        group[b >> 6] = min(group[b >> 6], bucket)


@nb.njit(nogil=True, cache=True)
def _group_min(agenda: Any, group: Any, held: Any) -> Any:
    """Earliest bucket of the blocks of a group that nobody is busy with, and its block."""
    low, pick = NONE, -1
    for b in range(group << 6, min(agenda.bucket.size, (group + 1) << 6)):
        if not agenda.busy[b] and (agenda.slot[b] >= 0) == held:
            bucket = load_acquire(agenda.bucket, b)
            if bucket < low:
                low, pick = bucket, b
    return low, pick


@nb.njit(nogil=True, cache=True)
def _earliest(agenda: Any, groups: Any, held: Any) -> Any:
    """Earliest bucket of all blocks that are held, or of all others, and its block (-1: none)."""
    while True:
        best, low = -1, NONE
        for g in range(groups.size):
            bound = load_acquire(groups, g)
            if bound < low:
                low, best = bound, g
        if best < 0:
            return NONE, -1
        found, pick = _group_min(agenda, best, held)
        if pick >= 0 and found <= low:
            return found, pick
        exchange(groups, best, NONE)  # it was a lower bound: put it right, and look again
        found, pick = _group_min(agenda, best, held)
        if pick >= 0:
            atomic_min(groups, best, found)


@nb.njit(nogil=True, cache=True)
def _evict(agenda: Any, bucket: Any, oldest: Any) -> Any:
    """Give back a slot for a block of this bucket: of an idle block, else of a later one; `oldest`: of that taken longest ago. -1: none."""
    control, num_slots, pick = agenda.control, agenda.block_in.size, -1
    if control[NUM_HELD] < num_slots:
        control[NUM_HELD] += 1
        return control[NUM_HELD] - 1
    latest = np.int64(bucket)
    for i in range(num_slots):
        s = (control[EVICTED] + 1 + i) % num_slots
        b = agenda.block_in[s]
        if agenda.busy[b]:
            continue
        pending = np.int64(load_acquire(agenda.bucket, b))
        if oldest:
            if pick < 0 or agenda.stamp[s] < agenda.stamp[pick]:
                pick = s
        elif pending == NONE:
            pick = s
            break
        elif pending > latest:
            latest, pick = pending, s
    if pick < 0:
        return -1
    control[EVICTED] = pick
    b = agenda.block_in[pick]
    agenda.block_in[pick] = -1
    exchange(agenda.slot, b, np.int32(-1))
    pending = load_acquire(agenda.bucket, b)
    if pending < NONE:
        atomic_min(agenda.other_group, b >> 6, pending)
    return pick


@nb.njit(nogil=True, cache=True)
def _is_near(agenda: Any, bucket: Any) -> Any:
    """Whether somebody works at this bucket or earlier: what comes of that may be in memory."""
    return agenda.at.min() <= bucket


@nb.njit(nogil=True, cache=True)
def _take_earliest(agenda: Any, rules: Any) -> Any:
    """Choose a block by priority: its number (-1: none now), and whether it has to be read."""
    control = agenda.control
    held_bucket, held = _earliest(agenda, agenda.held_group, True)
    other_bucket, other = _earliest(agenda, agenda.other_group, False)
    if held_bucket > control[LAST]:
        held_bucket, held = NONE, -1
    if other_bucket > control[LAST]:
        other_bucket, other = NONE, -1
    limit = np.int64(other_bucket) + rules.slack
    if held >= 0 and control[RUNNING] < rules.most_running and held_bucket <= limit:
        return held, False
    if other >= 0 and control[READING] < rules.most_reading and held_bucket > limit and not _is_near(agenda, limit):
        return other, True
    if held >= 0 and control[RUNNING] < rules.most_running:
        return held, False
    return -1, False


@nb.njit(nogil=True, cache=True)
def _take_next(agenda: Any, rules: Any) -> Any:
    """Choose a block in the order of a sweep: its number (-1: none now), and whether it has to be read."""
    control = agenda.control
    while True:
        limit = NONE - 1 if rules.every_bucket else control[SWEEP]
        b = control[HAND]
        while b < agenda.bucket.size:
            if not agenda.busy[b] and load_acquire(agenda.bucket, b) <= limit:
                control[HAND] = b
                if agenda.slot[b] < 0:
                    return (b, True) if control[READING] < rules.most_reading else (-1, False)
                return (b, False) if control[RUNNING] < rules.most_running else (-1, False)
            b += 1
        control[HAND] = b
        if control[RUNNING] + control[READING]:  # a sweep ends when all of it is done
            return -1, False
        low = NONE
        for c in range(agenda.bucket.size):
            low = min(low, load_acquire(agenda.bucket, c))
        if low == NONE or low > control[LAST]:
            return -1, False
        control[HAND], control[SWEEP] = 0, low


@nb.njit(nogil=True, cache=True)
def _acquire(agenda: Any) -> None:
    while compare_and_swap(agenda.control, LOCK, 0, 1) != 0:
        sched_yield()


@nb.njit(nogil=True, cache=True)
def _release(agenda: Any) -> None:
    store_release(agenda.control, LOCK, 0)


@nb.njit(nogil=True, cache=True)
def take(agenda: Any, rules: Any, worker: Any) -> Any:
    """Choose what a worker does next: a block and its bucket, the slot to read it to (-1: it is held), and whether all is done."""
    control = agenda.control
    _acquire(agenda)
    b, reads = _take_next(agenda, rules) if rules.in_sweeps else _take_earliest(agenda, rules)
    slot = -1
    if b >= 0 and reads:
        slot = _evict(agenda, load_acquire(agenda.bucket, b), rules.in_sweeps)
        if slot < 0:  # all that is held is busy, or as early: that is worked on first
            b = -1
            if not rules.in_sweeps and control[RUNNING] < rules.most_running:
                b = _earliest(agenda, agenda.held_group, True)[1]
            reads = False
    bucket, over = NONE, False
    if b >= 0:
        agenda.busy[b] = 1
        control[READING if reads else RUNNING] += 1
        if reads:
            bucket = load_acquire(agenda.bucket, b)
            agenda.block_in[slot] = b
        else:
            bucket = exchange(agenda.bucket, b, NONE)
            control[CLOCK] += 1
            agenda.stamp[agenda.slot[b]] = control[CLOCK]
            agenda.at[worker] = bucket
    else:
        over = control[READING] + control[RUNNING] == 0
    _release(agenda)
    return b, bucket, slot, over


@nb.njit(nogil=True, cache=True)
def publish(agenda: Any, rules: Any, b: Any, slot: Any, worker: Any) -> Any:
    """Note that a block was read, and have its reader work on it, if that may be; returns whether, and its bucket."""
    control = agenda.control
    _acquire(agenda)
    exchange(agenda.slot, b, np.int32(slot))
    control[READING] -= 1
    control[CLOCK] += 1
    agenda.stamp[slot] = control[CLOCK]
    bucket, goes_on = load_acquire(agenda.bucket, b), rules.in_sweeps or control[RUNNING] < rules.most_running
    if goes_on:
        bucket = exchange(agenda.bucket, b, NONE)
        control[RUNNING] += 1
        agenda.at[worker] = bucket
    else:
        agenda.busy[b] = 0
        atomic_min(agenda.held_group, b >> 6, bucket)
    _release(agenda)
    return goes_on, bucket


@nb.njit(nogil=True, cache=True)
def put_back(agenda: Any, b: Any, again: Any, worker: Any) -> None:
    """Note that a block was worked on, and the earliest bucket that was left in it."""
    _acquire(agenda)
    agenda.busy[b] = 0
    agenda.at[worker] = NONE
    agenda.control[RUNNING] -= 1
    if again < NONE:
        atomic_min(agenda.bucket, b, again)
    bucket = load_acquire(agenda.bucket, b)
    if bucket < NONE:
        atomic_min(agenda.held_group, b >> 6, bucket)
    _release(agenda)


@nb.njit(nogil=True, cache=True)
def fail(agenda: Any, why: Any, v: Any, y: Any) -> None:
    """Have all workers stop; the first to say why is heard."""
    if compare_and_swap(agenda.control, STOP, 0, why) == 0:
        agenda.control[PLACE], agenda.control[OTHER] = v, y


@nb.njit(nogil=True, cache=True)
def _read_part(files: Any, part: Any, first: Any) -> Any:
    """Fill elements of an array, whole pages in one chunk of its files; what `read_pages` returns."""
    itemsize = part.itemsize
    page = first * itemsize // 4096
    count = min(-(-part.size * itemsize // 4096), -(-files.extent[0] // 4096) - page)
    return read_pages(files, part.view(np.uint8), page, count)


@nb.njit(nogil=True, cache=True)
def read_block(files: Any, held: Any, b: Any, slot: Any, shift: Any) -> Any:
    """Read a block to a slot; returns bytes read, or an error of `read_pages`, and whether that is of the weights."""
    part = slice(slot << shift, (slot + 1) << shift)
    num_bytes = _read_part(files.targets, held.targets[part], b << shift)
    if num_bytes < 0 or held.weights.size == 1:
        return num_bytes, False
    more = _read_part(files.weights, held.weights[part], b << shift)
    return (more if more < 0 else num_bytes + more), True


@nb.njit(nogil=True, cache=True)
def _bucket(rank: Any, scale: Any) -> Any:
    """Bucket of a priority, which may be any number."""
    return np.int32(min(max(np.floor(rank * scale), -2147483648.0), 2147483646.0))


def make_work(relax: Any, priority: Any, *, maximise: bool, most: Any) -> Callable[..., Any]:
    """Return what a thread runs until no value gets better, not yet compiled.

    A value is replaced only by a better one, under a lock of its vertex, together with the neighbour that it came from. Of neighbours
    that give the same value the smallest is kept, so that the result does not depend on threads, memory or schedule; an edge that hands a
    value on as it is does not change who a value came from, so that vertices never name each other in a circle.

    Parameters
    ----------
    relax
        Compiled. ``relax(value_u, weight, value_v)``: what the edge from u to v makes of the value of v; never better than that of u.
    priority
        Compiled. ``priority(value)``: what is worked on first, the smallest, or the largest if `maximise`.
    maximise
        Whether larger values are better.
    most
        Integer values above this one do not fit; None: there is no such value.

    Returns
    -------
    function
        ``work(rows, held, files, values, agenda, rules, worker, block, slot, counts) -> (code, block, slot)``. `block` has been read to
        `slot`, or is -1. `counts`, (6,) int64, gets the edges followed, those of pieces that were followed before, blocks taken, waits,
        blocks read, and their bytes.
    """

    def run_block(rows: Any, held: Any, values: Any, agenda: Any, b: Any, limit: Any, counts: Any) -> Any:
        # no array goes to another function below: numba would count the references to it, for each edge
        offset, row_first, inside, table, num_entries, shift = rows
        pending, seen, buckets, held_group, other_group, slots, _, _, _, _, control = agenda
        value, parent, locks, bound, target, scale = values
        targets, weights = held
        base, cut_before = np.int64(slots[b]) << shift, inside[b]
        has_weights, last_target = weights.size > 1, targets.size - 1
        size = min(num_entries - (b << shift), 1 << shift)
        first, stop = row_first[b], min(row_first[b + 1], offset.size - 1)
        p0, p1, again = first + cut_before, stop + cut_before, NONE
        if b > 0 and cut_before > inside[b - 1]:
            p0 -= 1
        if p1 <= p0:
            return again
        for w in range(p0 >> 6, ((p1 - 1) >> 6) + 1):
            word = load_acquire(pending, w)
            if w == p0 >> 6:
                word &= ~np.uint64(0) << np.uint64(p0 & 63)
            if w == (p1 - 1) >> 6 and p1 & 63:
                word &= (np.uint64(1) << np.uint64(p1 & 63)) - np.uint64(1)
            while word:
                bit = word & (~word + np.uint64(1))
                word ^= bit
                v = (w << 6) + np.int64(trailing_zeros(bit)) - cut_before
                own = priority(load_acquire(value, v))
                bucket = _bucket(-own if maximise else own, scale)
                if bucket > limit:
                    again = min(again, bucket)
                    continue
                atomic_and(pending, w, ~bit)
                own = load_acquire(value, v)
                begin = np.int64(offset[v]) if v >= first else 0
                end = np.int64(offset[v + 1]) if v + 1 < stop else size
                for e in range(base + begin, base + end):
                    prefetch(value, np.uint64(targets[min(e + AHEAD, last_target)]))
                    y = np.int64(targets[e])
                    old = value[y]
                    new = relax(own, weights[e if has_weights else 0], old)
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
                    lock = y & (LOCKS - 1)
                    while compare_and_swap(locks, lock, FREE, TAKEN) != FREE:
                        sched_yield()
                    old = value[y]
                    better = new > old if maximise else new < old
                    if better:
                        store_release(value, y, new)
                        parent[y] = v
                    elif new == old and v < parent[y]:
                        parent[y] = v
                    exchange(locks, lock, FREE)  # before anybody looks whether y is pending
                    if not better:
                        continue
                    rank = priority(new)
                    bucket = _bucket(-rank if maximise else rank, scale)
                    if y == target:
                        bound[0] = min(bound[0], new)
                        control[LAST] = min(control[LAST], bucket)
                    low, high = np.int64(table[y >> 6]), np.int64(table[(y >> 6) + 1]) + 1
                    while high - low > 1:  # its block: the last one whose first row is at most y
                        middle = (low + high) >> 1
                        if row_first[middle] <= y:
                            low = middle
                        else:
                            high = middle
                    goes_on = (low << shift) + offset[y] != num_entries and (row_first[low + 1] == y + 1 or offset[y + 1] != offset[y])
                    while goes_on:  # for each of its pieces, if it has any
                        piece = y + inside[low]
                        mark = np.uint64(1) << np.uint64(piece & 63)
                        if not load_acquire(pending, piece >> 6) & mark:
                            atomic_or(pending, piece >> 6, mark)
                        if bucket < load_acquire(buckets, low):
                            atomic_min(buckets, low, bucket)
                        if load_acquire(slots, low) >= 0:
                            if bucket < load_acquire(held_group, low >> 6):
                                atomic_min(held_group, low >> 6, bucket)
                        elif bucket < load_acquire(other_group, low >> 6):
                            atomic_min(other_group, low >> 6, bucket)
                        low += 1
                        goes_on = low < inside.size and row_first[low] == y + 1 and inside[low] > inside[low - 1]
                counts[0] += end - begin
                if load_acquire(seen, w) & bit:
                    counts[1] += end - begin
                else:
                    atomic_or(seen, w, bit)
        return again

    run = nb.njit(nogil=True)(run_block)

    def work(
        rows: Any, held: Any, files: Any, values: Any, agenda: Any, rules: Any, worker: Any, block: Any, slot: Any, counts: Any,
    ) -> Any:  # fmt: skip
        b, bucket, waits = np.int64(-1), NONE, 0
        if block >= 0:
            goes_on, bucket = publish(agenda, rules, block, slot, worker)
            if goes_on:
                b = np.int64(block)
        while True:
            if load_acquire(agenda.control, STOP):
                return FAILED, np.int64(-1), np.int64(-1)
            if b < 0:
                b, bucket, reads_to, over = take(agenda, rules, worker)
                if over:
                    return DONE, np.int64(-1), np.int64(-1)
                if b < 0:
                    counts[3] += 1
                    waits += 1
                    if waits < 16:
                        sched_yield()
                    else:
                        usleep(np.uint32(50))
                    continue
                if reads_to >= 0 and not files.targets.fds.size:
                    return READ, np.int64(b), np.int64(reads_to)
                if reads_to >= 0:
                    num_bytes, of_weights = read_block(files, held, b, reads_to, rows.shift)
                    if num_bytes < 0:
                        fail(agenda, UNREADABLE, num_bytes, of_weights)
                        continue
                    counts[4] += 1
                    counts[5] += num_bytes
                    goes_on, bucket = publish(agenda, rules, b, reads_to, worker)
                    if not goes_on:
                        b = np.int64(-1)
                        continue
            waits = 0
            limit = np.int64(bucket) + rules.slack
            if rules.in_sweeps:
                limit = np.int64(NONE) if rules.every_bucket else agenda.control[SWEEP]
            again = run(rows, held, values, agenda, b, limit, counts)
            counts[2] += 1
            put_back(agenda, b, again, worker)
            b = np.int64(-1)

    return work
