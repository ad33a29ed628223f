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

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import (
    atomic_add,
    atomic_min,
    atomic_or,
    compare_and_swap,
    exchange,
    load_acquire,
    sched_yield,
    store_release,
    trailing_zeros,
    usleep,
)
from oocgraph.compiled.kept import kept, named
from oocgraph.kernels.rows import read_pages
from oocgraph.types import Array

NONE = np.int32(2**31 - 1)
"""Bucket of a block in which nothing is pending."""

LOCK, READING, RUNNING, HAND, CLOCK, NUM_HELD, SWEEP, STOP, PLACE, OTHER, EVICTED, LAST, ROUND = range(0, 104, 8)
"""Where `Agenda.control` has what, each in a cache line of its own: the lock of the schedule; blocks that are being read, and worked
on; the block a sweep has come to; a clock of blocks taken; slots in use; the bucket of a sweep; why work stops; the vertex and the
neighbour that a message names; the slot that was given back last. And in those of the first share, for all: the last bucket that is of
interest; whether somebody makes the next round."""

CONTROL_WORDS = 104

FOREIGN = -2
"""Slot of a block of another share."""

HELD_FIRST = 2**31
"""Slack with which a block in memory always goes before one that has to be read, and none is read ahead."""

FEW = 8
"""Blocks are read ahead while fewer than one in so many of those in memory are urgent. With a quarter of a Kronecker graph of scale 22 in
memory this takes 0.74 of the time of reading only when none is urgent, and as many bytes; with 4 a small one takes 1.1 times the bytes."""

MOST_WAIT = 500
"""Microseconds for which a thread sleeps that finds nothing to do, at the most: there are more threads than cores."""

DONE, READ, FAILED, LOAD = range(4)
"""What work returns: all is done; a block is to be read; something is wrong (`Agenda.control` says what); all blocks are to be read."""

INTERRUPTED, NOT_MONOTONE, OVERFLOW, UNREADABLE, PAUSED = 1, 2, 3, 4, 5
"""Why work stops; after a pause it may go on."""


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
    second_row, second_block : int
        First row and block of the in-lists, where those follow the out-lists; else the number of all. Between both there is a row that
        stands for what the last block of the out-lists has not.
    """

    offset: Array
    first: Array
    inside: Array
    table: Array
    num_entries: int
    shift: int
    second_row: int
    second_block: int


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
    control : (CONTROL_WORDS,) int64
        See `LOCK`.
    controls : (n * CONTROL_WORDS,) int64
        Of all shares that work on this agenda; `slot`, `block_in`, `stamp` and `busy` are of this one alone.
    share, num_shares : int
        It has every n-th group of 64 blocks, of n shares, from this one on. Blocks of others are busy, and their slot is `FOREIGN`.
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
    control: Array
    controls: Array
    share: int
    num_shares: int


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
    targets, weights, second : ChunkFiles
        Of the lists, their weights, and the in-lists that follow them.
    """

    targets: Any
    weights: Any
    second: Any


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
    loads_all : bool
        All blocks are read at once when an eighth of them has been: there is room for them.
    """

    slack: int
    most_running: int
    most_reading: int
    in_sweeps: bool
    every_bucket: bool
    loads_all: bool


def empty_rows(shift: int = 0) -> BlockRows:
    """Return where no rows are: for the types."""
    return BlockRows(np.empty(0, np.uint16), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint32), 0, shift, 0, 0)


@nb.njit(nogil=True, cache=True)
def place_rows(indptr: Any, first_row: Any, rows: Any, at: Any) -> Any:
    """Enter the rows that begin at `indptr`; returns whether each begins where the one in front of it does or later, and not behind all.

    Rows come in order, at last the end of all. `at`, (2,) int64, holds the next block to enter and where the last row begins.
    """
    offset, first, inside, table, num_entries, shift = rows.offset, rows.first, rows.inside, rows.table, rows.num_entries, rows.shift
    b, last = at
    for i in range(indptr.size):
        begin, v = indptr[i], first_row + i
        if begin < last or begin > num_entries:
            return False
        last = begin
        offset[v] = begin & ((1 << shift) - 1)
        while b < first.size and (b << shift) <= begin:
            first[b] = v
            if 0 < b < inside.size:
                inside[b] = (b << shift) != begin
            b += 1
        if v & 63 == 0:
            table[v >> 6] = begin >> shift
    at[0], at[1] = b, last
    return True


@nb.njit(nogil=True, cache=True)
def finish_rows(rows: Any, at: Any) -> None:
    """Close what `place_rows` has entered."""
    num_rows, first, inside, table = rows.offset.size - 1, rows.first, rows.inside, rows.table
    for b in range(at[0], first.size):
        first[b] = num_rows
    for b in range(1, inside.size):
        inside[b] += inside[b - 1]
    table[(num_rows + 63) >> 6] = first.size - 1


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
def count_reached(rows: Any, value: Any, unreached: Any) -> Any:
    """Count the vertices that have a value, and their entries, and find the largest; the others get -1."""
    num_reached, num_entries, largest, b = 0, 0, 0, 0
    offset, first, shift = rows.offset, rows.first, rows.shift
    for v in range(value.size):
        while b + 1 < first.size and first[b + 1] <= v:  # the block that the row begins in
            b += 1
        if value[v] == unreached:
            value[v] = -1
            continue
        last = b
        while last + 1 < first.size and first[last + 1] <= v + 1:
            last += 1
        end = rows.num_entries if v + 2 == offset.size else (last << shift) + offset[v + 1]
        num_reached += 1
        num_entries += end - ((b << shift) + offset[v])
        largest = max(largest, np.int64(value[v]))
    return num_reached, num_entries, largest


@nb.njit(nogil=True, cache=True)
def make_pending(rows: Any, agenda: Any, v: Any, bucket: Any) -> None:
    """Make all pieces of a row pending, while nobody works on a block; a bucket of `NONE`: one earlier than each block has been."""
    begin, end = row_range(rows, v)
    for b in range(begin >> rows.shift, -(-end >> rows.shift) if end > begin else 0):
        piece = v + rows.inside[b]
        atomic_or(agenda.pending, piece >> 6, np.uint64(1) << np.uint64(piece & 63))
        if bucket == NONE:
            _note_pieces(agenda, b, 1)
        else:
            atomic_min(agenda.bucket, b, np.int32(bucket))
            _note_bucket(agenda, b, np.int32(bucket))


@nb.njit(nogil=True, cache=True)
def _note_bucket(agenda: Any, b: Any, low: Any) -> None:
    """Have the groups of a block learn of its bucket."""
    if agenda.slot[b] != -1:
        atomic_min(agenda.held_group, b >> 6, low)
    if agenda.slot[b] < 0:
        atomic_min(agenda.other_group, b >> 6, low)


@nb.njit(nogil=True, cache=True)
def _note_pieces(agenda: Any, b: Any, num_pieces: Any) -> None:
    """Make the bucket of a block earlier, the more pieces are pending there."""
    if num_pieces:
        _note_bucket(agenda, b, atomic_add(agenda.bucket, b, np.int32(-num_pieces)) - np.int32(num_pieces))


@nb.njit(nogil=True, cache=True)
def make_level_pending(rows: Any, agenda: Any, values: Any, level: Any, behind: Any, removes: Any) -> None:
    """Make all pieces of the rows of a level pending, while nobody works on a block: the more of a block, the earlier is its bucket.

    Parameters
    ----------
    values : oocgraph.kernels.relax.Values
        Of vertices, as in peeling: those of the level are left, and have its value.
    behind
        What is added to the number of a vertex for that of its row.
    removes
        Whether they are removed, too.
    """
    value, left, num_removed, rank = values.value, values.left, values.num_removed, values.parent
    offset, first, inside, pending = rows.offset, rows.first, rows.inside, agenda.pending
    num_entries, shift = rows.num_entries, rows.shift
    begins, block, num_pieces, at, bits = 0, 0, 0, 0, np.uint64(0)  # where the last row begins; what is not entered yet
    for w in range(left.size):
        word = left[w]
        while word:
            bit = word & (~word + np.uint64(1))
            word ^= bit
            v = (w << 6) + np.int64(trailing_zeros(bit))
            if value[v] != level:
                continue
            if removes:
                left[w] ^= bit
                rank[v] = num_removed[0]
                num_removed[0] += 1
            v += behind
            while first[begins + 1] <= v:
                begins += 1
            b = begins
            while b + 1 < first.size and first[b + 1] <= v + 1:
                b += 1
            end = num_entries if v + 2 == offset.size else (b << shift) + np.int64(offset[v + 1])
            if end == (begins << shift) + np.int64(offset[v]):
                continue
            for b in range(begins, -(-end >> shift)):
                piece = v + inside[b]
                if b != block or piece >> 6 != at:
                    atomic_or(pending, at, bits)
                    at, bits = piece >> 6, np.uint64(0)
                if b != block:
                    _note_pieces(agenda, block, num_pieces)
                    block, num_pieces = b, 0
                bits |= np.uint64(1) << np.uint64(piece & 63)
                num_pieces += 1
    atomic_or(pending, at, bits)
    _note_pieces(agenda, block, num_pieces)


@nb.njit(nogil=True, cache=True)
def make_all_pending(rows: Any, agenda: Any, which: Any, buckets: Any) -> None:
    """Make all pieces of some rows pending, before work begins."""
    for i in range(which.size):
        make_pending(rows, agenda, which[i], buckets[i])


@nb.njit(nogil=True, cache=True)
def pending_rows(rows: Any, agenda: Any, found: Any) -> Any:
    """Count the rows of which something is pending in the share, while nobody works; `found`, (n,) int64, gets the first n of them."""
    count, last = 0, -1
    for b in range(agenda.bucket.size):
        if agenda.bucket[b] == NONE or agenda.slot[b] == FOREIGN:
            continue
        goes_on = b > 0 and rows.inside[b] > rows.inside[b - 1]
        for r in range(rows.first[b] - goes_on, min(rows.first[b + 1], rows.offset.size - 1)):
            piece = r + rows.inside[b]
            if agenda.pending[piece >> 6] >> np.uint64(piece & 63) & np.uint64(1) and r != last:
                last = r
                if count < found.size:
                    found[count] = r
                count += 1
    return count


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
        for g in range(agenda.share, groups.size, agenda.num_shares):
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
def _is_short(agenda: Any, rules: Any, limit: Any) -> Any:
    """Whether all threads that compute have a block, and few others in memory are urgent: then those on disk are read ahead."""
    missing = agenda.block_in.size // FEW - agenda.control[READING]
    if agenda.control[RUNNING] < rules.most_running or rules.slack >= HELD_FIRST:
        return False
    for s in range(agenda.control[NUM_HELD]):
        b = agenda.block_in[s]
        if b >= 0 and not agenda.busy[b] and load_acquire(agenda.bucket, b) <= limit:
            missing -= 1
            if missing <= 0:
                return False
    return missing > 0


@nb.njit(nogil=True, cache=True)
def _take_earliest(agenda: Any, rules: Any) -> Any:
    """Choose a block by priority: its number (-1: none now), and whether it has to be read."""
    control = agenda.control
    held_bucket, held = _earliest(agenda, agenda.held_group, True)
    other_bucket, other = _earliest(agenda, agenda.other_group, False)
    if held_bucket > agenda.controls[LAST]:
        held_bucket, held = NONE, -1
    if other_bucket > agenda.controls[LAST]:
        other_bucket, other = NONE, -1
    limit = min(np.int64(other_bucket) + rules.slack, np.int64(NONE) - 1)
    if held >= 0 and control[RUNNING] < rules.most_running and held_bucket <= limit:
        return held, False
    if other >= 0 and control[READING] < rules.most_reading and (held_bucket > limit or _is_short(agenda, rules, limit)):
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
        if low == NONE or low > agenda.controls[LAST]:
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
def _begins_running(agenda: Any) -> Any:
    """Note that a block is worked on, unless the next round is being made: who makes it sees that nobody works, or is seen."""
    atomic_add(agenda.control, RUNNING, 1)
    if load_acquire(agenda.controls, ROUND) == 0:
        return True
    atomic_add(agenda.control, RUNNING, -1)
    return False


@nb.njit(nogil=True, cache=True)
def take(agenda: Any, rules: Any) -> Any:
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
        if reads:
            control[READING] += 1
            bucket = load_acquire(agenda.bucket, b)
            agenda.block_in[slot] = b
        elif not _begins_running(agenda):
            agenda.busy[b] = 0
            b = -1
        else:
            control[CLOCK] += 1  # before others may see that nothing is pending there: `is_quiet`
            agenda.stamp[agenda.slot[b]] = control[CLOCK]
            bucket = exchange(agenda.bucket, b, NONE)
    else:
        over = control[READING] + control[RUNNING] == 0
    _release(agenda)
    return b, bucket, slot, over


@nb.njit(nogil=True, cache=True)
def publish(agenda: Any, rules: Any, b: Any, slot: Any) -> Any:
    """Note that a block was read, and have its reader work on it, if that may be; returns whether, and its bucket."""
    control = agenda.control
    _acquire(agenda)
    exchange(agenda.slot, b, np.int32(slot))
    control[CLOCK] += 1
    agenda.stamp[slot] = control[CLOCK]
    bucket = load_acquire(agenda.bucket, b)
    goes_on = (rules.in_sweeps or control[RUNNING] < rules.most_running) and _begins_running(agenda)
    control[READING] -= 1
    if goes_on:
        bucket = exchange(agenda.bucket, b, NONE)
    else:
        agenda.busy[b] = 0
        atomic_min(agenda.held_group, b >> 6, bucket)
    _release(agenda)
    return goes_on, bucket


@nb.njit(nogil=True, cache=True)
def put_back(agenda: Any, b: Any, again: Any) -> None:
    """Note that a block was worked on, and the earliest bucket that was left in it."""
    _acquire(agenda)
    agenda.busy[b] = 0
    if again < NONE:
        atomic_min(agenda.bucket, b, again)
    atomic_add(agenda.control, RUNNING, -1)
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
def read_block(rows: Any, files: Any, held: Any, b: Any, slot: Any) -> Any:
    """Read a block to a slot; returns bytes read, or an error of `read_pages`, and which of the files that is of."""
    part = slice(slot << rows.shift, (slot + 1) << rows.shift)
    if b >= rows.second_block:
        return _read_part(files.second, held.targets[part], (b - rows.second_block) << rows.shift), 2
    first = b << rows.shift
    num_bytes = _read_part(files.targets, held.targets[part], first)
    if num_bytes < 0 or held.weights.size == 1:
        return num_bytes, 0
    more = _read_part(files.weights, held.weights[part], first)
    return (more if more < 0 else num_bytes + more), 1


@nb.njit(nogil=True, cache=True)
def read_blocks(rows: Any, files: Any, held: Any, agenda: Any, blocks: Any, first_slot: Any, counts: Any) -> None:
    """Read blocks to slots that follow one another, while nobody works."""
    for i in range(blocks.size):
        num_bytes, which = read_block(rows, files, held, blocks[i], first_slot + i)
        if num_bytes < 0:
            fail(agenda, UNREADABLE, num_bytes, which)
            return
        counts[4] += 1
        counts[5] += num_bytes


@nb.njit(nogil=True, cache=True)
def enter_blocks(agenda: Any, blocks: Any, first_slot: Any) -> None:
    """Note that blocks were read to slots that follow one another, while none works in this share."""
    for i in range(blocks.size):
        b = blocks[i]
        agenda.block_in[first_slot + i] = b
        exchange(agenda.slot, b, np.int32(first_slot + i))
        atomic_min(agenda.held_group, b >> 6, load_acquire(agenda.bucket, b))
    agenda.control[NUM_HELD] += blocks.size


@nb.njit(nogil=True, cache=True)
def _clock(agenda: Any) -> Any:
    """Blocks that all shares have taken; -1: one works."""
    clock = 0
    for c in range(0, agenda.controls.size, CONTROL_WORDS):
        clock += load_acquire(agenda.controls, c + CLOCK)
    for c in range(0, agenda.controls.size, CONTROL_WORDS):
        if load_acquire(agenda.controls, c + RUNNING) + load_acquire(agenda.controls, c + READING):
            return -1
    return clock


@nb.njit(nogil=True, cache=True)
def is_quiet(agenda: Any) -> Any:
    """Whether nobody works, of all shares, and nothing is pending: none has taken a block while that is looked at."""
    clock = _clock(agenda)
    if clock < 0:
        return False
    for b in range(agenda.bucket.size):
        if load_acquire(agenda.bucket, b) <= min(np.int64(NONE) - 1, agenda.controls[LAST]):
            return False
    return _clock(agenda) == clock


def make_work(run_block: Any, next_round: Any, name: str | None) -> Any:
    """Return what a thread runs until all is done, compiled.

    Parameters
    ----------
    run_block
        Not yet compiled. ``run_block(rows, held, values, agenda, b, limit, w, t, counts) -> again``: work on the pieces of block b that
        are pending, up to the bucket `limit`; returns the earliest bucket that is left in it. `counts` gets the edges followed, and those
        of pieces that were followed before. w and t are 0.
    next_round
        Compiled. ``next_round(rows, agenda, values) -> bool``: what is pending when nothing is any more, and whether that is anything;
        None: all is done then.
    name
        Name of the result in the module of `run_block`, if it is kept in the cache on disk.

    Returns
    -------
    dispatcher
        ``work(rows, held, files, values, agenda, rules, block, slot, counts) -> (code, block, slot)``. `block` has been read to
        `slot`, or is -1. `counts`, (6,) int64, gets what `run_block` counts, blocks worked on, microseconds slept, blocks
        read, and their bytes.
    """
    run = nb.njit(nogil=True)(named(run_block, run_block.__module__, name and f"{name}_block"))

    def work(
        rows: Any, held: Any, files: Any, values: Any, agenda: Any, rules: Any, block: Any, slot: Any, counts: Any,
    ) -> Any:  # fmt: skip
        b, bucket, waits = np.int64(-1), NONE, 0
        if block >= 0:
            goes_on, bucket = publish(agenda, rules, block, slot)
            if goes_on:
                b = np.int64(block)
        while True:
            if b < 0:
                if load_acquire(agenda.control, STOP):
                    return FAILED, np.int64(-1), np.int64(-1)
                if rules.loads_all and agenda.control[NUM_HELD] * 8 > agenda.block_in.size:
                    return LOAD, np.int64(-1), np.int64(-1)
                b, bucket, reads_to, over = take(agenda, rules)
                is_alone = agenda.controls.size == CONTROL_WORDS
                if over and (is_alone or is_quiet(agenda)):
                    if next_round is not None and compare_and_swap(agenda.controls, ROUND, 0, 1) == 0:
                        goes_on = not is_quiet(agenda) or next_round(rows, agenda, values)
                        store_release(agenda.controls, ROUND, 0)
                        over = not goes_on
                    elif next_round is not None:
                        over = False  # another makes it
                    if over:
                        return DONE, np.int64(-1), np.int64(-1)
                    sched_yield()
                    continue
                if b < 0:
                    waits += 1
                    if waits < 4:
                        sched_yield()
                    else:
                        pause = min(MOST_WAIT, 50 * waits)
                        usleep(np.uint32(pause))
                        counts[3] += pause
                    continue
                if reads_to >= 0 and not files.targets.fds.size:
                    return READ, np.int64(b), np.int64(reads_to)
                if reads_to >= 0:
                    num_bytes, which = read_block(rows, files, held, b, reads_to)
                    if num_bytes < 0:
                        fail(agenda, UNREADABLE, num_bytes, which)
                        b = np.int64(-1)  # it is not held: nobody may follow its edges
                        continue
                    counts[4] += 1
                    counts[5] += num_bytes
                    goes_on, bucket = publish(agenda, rules, b, reads_to)
                    if not goes_on:
                        b = np.int64(-1)
                        continue
            waits = 0
            limit = np.int64(bucket) + rules.slack
            if rules.in_sweeps:
                limit = np.int64(NONE) if rules.every_bucket else agenda.control[SWEEP]
            again = run(rows, held, values, agenda, b, limit, np.int64(0), np.int64(0), counts)
            counts[2] += 1
            put_back(agenda, b, again)
            b = np.int64(-1)

    return kept(work, run_block.__module__, name)


def make_work_by_vertex(run_all: Any, to_list: Any, name: str | None) -> Any:
    """Return what a thread runs until a work list is empty, where all blocks are held, compiled.

    Parameters
    ----------
    run_all
        As `run_block` of `make_work`, for all that is on the work list at the address w (`oocgraph.compiled.worklist`), with its thread t.
        What it finds no room for there is pending in blocks afterwards.
    to_list
        Not yet compiled. ``to_list(rows, agenda, values, w)``: put on the list what is pending in blocks.
    name
        As of `make_work`.

    Returns
    -------
    dispatcher
        ``work(rows, held, values, agenda, w, t, counts)``. With t of -1 it does what `to_list` does.
    """
    run = nb.njit(nogil=True)(named(run_all, run_all.__module__, name and f"{name}_all"))
    fill = nb.njit(nogil=True)(named(to_list, run_all.__module__, name and f"{name}_list"))

    def work(rows: Any, held: Any, values: Any, agenda: Any, w: Any, t: Any, counts: Any) -> None:
        if t < 0:
            fill(rows, agenda, values, w)
        else:
            run(rows, held, values, agenda, np.int64(0), np.int64(0), w, t, counts)

    return kept(work, run_all.__module__, name)
