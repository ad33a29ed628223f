"""Joins a result with ids block by block, on all cores, while the caller works on the block before.

In: a result, and what is made of a block in the thread that joins it. Out: that, in the order of the ids. One thread reads ids in order,
others join. What is held grows with the budget, and what comes out does not depend on it: blocks in flight first, one for each thread,
then ids of vertices that others are named after (`oocgraph.store.vertices.VertexIds.holding`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from oocgraph.allocator import map_buffers_of_codecs
from oocgraph.config import settings
from oocgraph.external_sort.workers import Workers
from oocgraph.store.columns import Ids, LongStringsError, id_bytes
from oocgraph.store.layout import SORTED_ID
from oocgraph.types import Array

if TYPE_CHECKING:
    from oocgraph.results.base import VertexResult

_T = TypeVar("_T")
_Block = tuple[int, Ids, Array]  # where it begins, ids and store numbers

ROW_BYTES, ID_COPIES = 64, 8
"""What a row takes: numbers, positions and encoded pages; and how often each of its ids is held, as read, joined, taken and encoded."""

BLOCK_BYTES, LEAST_BYTES = 64 << 20, 4 << 20
"""What a block holds at the most, if more than a row fits, and what any may hold."""

NAMED_SHARE = 4
"""One in so many of the bytes of a block are ids that its vertices are named after: of a hub's long id many copies."""


@dataclass(frozen=True, slots=True)
class Room:
    """How much is held while a result is streamed.

    Attributes
    ----------
    num_threads
        Threads that join, beside the one that asks; 0: that one does.
    held_bytes
        Bytes of ids that are held.
    reads_ahead
        Whether one more thread reads ids; else the one that asks does.
    """

    num_threads: int
    held_bytes: int
    reads_ahead: bool = False


FRUGAL = Room(0, 1 << 20)
"""Room of streams that hold next to nothing: a MiB of ids, which saves most of the searching where vertices are in order of degree."""

Make = Callable[[int, Ids, Mapping[str, Ids]], _T]
"""What is made of a block: takes the position of its first id, its ids, and its values by column."""


def room_within(free_bytes: int, block_bytes: int, *, most_threads: int) -> Room:
    """Choose what is held within `free_bytes`.

    Each thread has a block, one more waits for the caller, which has another, and the next one is being read.

    Examples
    --------
    >>> [(room.num_threads, room.held_bytes) for room in (room_within(size, 10, most_threads=2) for size in (100, 45, 9))]
    [(2, 50), (1, 5), (0, 0)]
    """
    num_threads = max(0, min(most_threads, free_bytes // block_bytes - 3))
    blocks = num_threads + 3 if num_threads else 1
    return Room(num_threads, max(0, free_bytes - blocks * block_bytes))


def row_bytes(num_id_bytes: int) -> int:
    """Return what a row of a result takes on its way, whose ids take so many bytes each."""
    return ROW_BYTES + ID_COPIES * num_id_bytes


def most_rows(num_id_bytes: int) -> int:
    """Return the rows of a block at the most, a power of two, by the bytes of an id: fewer where ids are long.

    Examples
    --------
    >>> most_rows(8), most_rows(100), most_rows(100_000)
    (524288, 65536, 64)
    """
    return 1 << max(1, BLOCK_BYTES // row_bytes(num_id_bytes)).bit_length() - 1


def room_of(result: VertexResult, size: int, *, spent_bytes: int, is_busy: bool) -> Room:
    """Choose what is held while blocks of a size are streamed, by what the memory budget of a result leaves now.

    Parameters
    ----------
    spent_bytes
        What the caller will hold beside the blocks, and does not hold yet.
    is_busy
        Whether the caller keeps a core busy with what it gets: one thread fewer joins then. (One more, and on two cores Parquet takes
        1.05 s for 0.9.)
    """
    block_bytes = size * row_bytes(id_bytes(result.ids.store, SORTED_ID))
    room = room_within(result.free_bytes() - spent_bytes, block_bytes, most_threads=settings().threads - is_busy)
    return replace(room, reads_ahead=is_busy)


def stream_result(result: VertexResult, columns: Sequence[str], size: int, make: Make[_T], *, room: Room) -> Iterator[_T]:
    """Iterate over what `make` makes of the blocks of a result, of `size` ids each, ascending; of fewer where others have long names.

    Parameters
    ----------
    columns
        Those that are needed, none of them ``vertices``.
    make
        Called in several threads at once.
    room
        What may be held beside the block that is asked for; of a result of one block no other is.
    """
    if result.ids.num_ids <= size:
        room = Room(0, room.held_bytes)
    reader = _with_ids(result, columns, size, room.held_bytes)

    def made(block: _Block) -> _T:
        start, vertices, numbers = block
        return make(start, vertices, reader.values_of(columns, vertices, numbers, start) if columns else {})

    join = partial(_made_of, made)
    blocks = _numbered(result.ids.stored_blocks(size))
    if not room.num_threads:
        yield from _each(map(join, blocks))
        return
    with Workers(room.num_threads) as workers, Workers(1) as reading:
        yield from _each(workers.ordered(join, reading.ahead(blocks) if room.reads_ahead else blocks))


def _with_ids(result: VertexResult, columns: Sequence[str], size: int, num_bytes: int) -> VertexResult:
    """Return a copy of a result that holds ids, if it has columns of ids, of so many bytes; and whose blocks have few bytes of them."""
    if not any(result.has_ids(name) for name in columns):
        return result
    block_bytes = max(LEAST_BYTES, size * row_bytes(id_bytes(result.ids.store, SORTED_ID)))
    return replace(result, ids=result.ids.holding(num_bytes, most_bytes=block_bytes // NAMED_SHARE))


def _numbered(blocks: Iterator[tuple[Ids, Array]]) -> Iterator[_Block]:
    start = 0
    for vertices, numbers in blocks:
        yield start, vertices, numbers
        start += numbers.size


def _made_of(made: Callable[[_Block], _T], block: _Block) -> Iterable[_T]:
    """Return what is made of a block, or, one at a time as they are asked for, of parts of it with few bytes."""
    try:
        return [made(block)]
    except LongStringsError:
        map_buffers_of_codecs()  # those of many small blocks would leave holes
        return _each(_made_of(made, half) for half in _halves(block))


def _each(parts: Iterable[Iterable[_T]]) -> Iterator[_T]:
    """Iterate over the items of all parts; a list does not hold the one that the caller has."""
    for part in parts:
        if isinstance(part, list):
            yield part.pop()
        else:
            yield from part


def _halves(block: _Block) -> list[_Block]:
    start, vertices, numbers = block
    middle = numbers.size // 2
    return [(start, vertices[:middle], numbers[:middle]), (start + middle, vertices[middle:], numbers[middle:])]
