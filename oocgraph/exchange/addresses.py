"""Who mirrors what, as one part of a partitioned graph knows it: the lists by which messages name vertices.

In: the parts of a graph (`oocgraph.store.partitions`). Out: `Addresses` of one of them. For each pair of parts there is a list, known
to both and never sent: the vertices that p mirrors and q owns, ascending by their number in the graph. Candidates go by this list from
p to q; the new frontier goes from q to p by the part of it that has out-edges at p. CuSP calls this memoised addresses.

A part's places (see `oocgraph.kernels.traverse`) are its lists of all peers one after the other, each from a multiple of 64 on.

Hoang, Dathathri, Gill, Pingali, "CuSP", IPDPS 2019; Dathathri et al., "Gluon", PLDI 2018, section 4 (temporal invariance of
addresses). Differs from them in that nothing is sent at the set-up: the parts are files that every part can read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from oocgraph.errors import CorruptStoreError, OocGraphError
from oocgraph.store.partitions import Part
from oocgraph.types import Array

ALIGNMENT = 64
"""Places of each list begin at a multiple of this: the bits of a bitmap's word."""

MAX_LOCAL = 2**32 - 2
"""Local vertices, and places, are uint32 in messages and queues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The memoised lists of one part.

    Attributes
    ----------
    first, length : (num_parts + 1,), (num_parts,) int64
        Places of the mirrors here whose masters peer q has: ``first[q] .. first[q] + length[q] - 1``.
    place_of : (num_mirrors,) uint32
        Place of each mirror.
    slot_of : tuple of (n,) uint32
        For each peer p: the slot here of each vertex of the list that p sends candidates by.
    copy_first, copy_place : (num_slots + 1,) int64, (num_copies,) uint32
        Of each slot, the places of its mirrors that have out-edges.
    cast_first, cast_length : (num_parts + 1,), (num_parts,) int64
        Places of those, by peer.
    row_of : tuple of (n,) uint32
        For each peer q: the row here of each vertex of the list that q sends its new frontier by.
    """

    first: Array
    length: Array
    place_of: Array
    slot_of: tuple[Array, ...]
    copy_first: Array
    copy_place: Array
    cast_first: Array
    cast_length: Array
    row_of: tuple[Array, ...]

    @property
    def num_places(self) -> int:
        """Places of mirrors, with the gaps between lists."""
        return int(self.first[-1])

    @property
    def num_cast_places(self) -> int:
        """Places of copies, with the gaps between lists."""
        return int(self.cast_first[-1])

    @property
    def num_copies(self) -> int:
        """Mirrors with out-edges that other parts have of the masters here."""
        return int(self.copy_place.size)

    @property
    def num_bytes(self) -> int:
        """Bytes held."""
        values = [getattr(self, field.name) for field in fields(self)]
        return sum(one.nbytes for value in values for one in (value if isinstance(value, tuple) else (value,)))


@dataclass(frozen=True, slots=True)
class MirrorCounts:
    """Lengths of all lists of a partitioned graph.

    Attributes
    ----------
    mirrors : (num_parts, num_parts) int64
        ``[p, q]``: mirrors that p has of q's masters: candidates that p may send to q in a whole search.
    broadcasts : (num_parts, num_parts) int64
        ``[p, q]``: those of them that have out-edges: vertices that q may tell p of in a whole search.
    """

    mirrors: Array
    broadcasts: Array

    def num_copies(self, p: int) -> int:
        """Mirrors with out-edges that all others have of p's masters."""
        return int(self.broadcasts[:, p].sum())

    def address_bytes(self, part: Part) -> int:
        """Bytes of a part's `Addresses`."""
        p, num_parts = part.index, self.mirrors.shape[0]
        named = part.num_mirrors + int(self.mirrors[:, p].sum()) + self.num_copies(p) + int(self.broadcasts[p].sum())
        return int(4 * named + 8 * (part.num_masters + part.num_isolated + 1) + 8 * (4 * num_parts + 2))

    def making_bytes(self, parts: Sequence[Part], p: int) -> int:
        """Bytes that `make_addresses` takes beside what it returns: ids, owners and permutations of one part after the other."""
        mine, copies = parts[p], self.num_copies(p)
        slots = mine.num_masters + mine.num_isolated
        other = max((8 * part.num_vertices + 40 * part.num_mirrors for part in parts if part.index != p), default=0)
        return (
            8 * (mine.num_vertices + mine.num_isolated)
            + 21 * mine.num_mirrors
            + max(30 * mine.num_mirrors, other, 24 * copies + 16 * slots)
        )


def count_mirrors(parts: Sequence[Part], group: str) -> MirrorCounts:
    """Count who mirrors how many of whose masters: reads the owners and row pointers of all mirrors, 13 bytes each, part by part."""
    num_parts = len(parts)
    mirrors, broadcasts = np.zeros((2, num_parts, num_parts), np.int64)
    for p, part in enumerate(parts):
        if part.num_mirrors:
            owner = part.mirror_owner()
            mirrors[p] = np.bincount(owner, minlength=num_parts)
            broadcasts[p] = np.bincount(owner[_have_edges(part, group)], minlength=num_parts)
    return MirrorCounts(mirrors, broadcasts)


def make_addresses(parts: Sequence[Part], p: int, group: str) -> Addresses:
    """Make the lists of part p: reads ids, owners and row pointers of all parts.

    Parameters
    ----------
    parts
        All of one graph.
    group
        Group of the stores whose rows are expanded: ``out`` or ``in``.

    Raises
    ------
    OocGraphError
        A part has more local vertices than messages can name.
    CorruptStoreError
        A mirror has its master here, by its own part, but not by this one.
    """
    mine = parts[p]
    if mine.num_vertices + ALIGNMENT * len(parts) > MAX_LOCAL:
        raise OocGraphError(f"part {p} has {mine.num_vertices:,} local vertices; a traversal takes {MAX_LOCAL:,}: use more partitions")
    owner, has_edges = mine.mirror_owner(), _have_edges(mine, group)
    place_of, first, length = _places(owner, len(parts))
    order = np.argsort(owner, kind="stable")
    rows = order[has_edges[order]]
    cuts = np.searchsorted(owner[rows], np.arange(len(parts) + 1))
    row_of = tuple((rows[a:z] + mine.num_masters).astype(np.uint32) for a, z in pairwise(cuts))
    slot_of, cast_slots = [], []
    for slots, with_edges in _mirrored(parts, p, group):
        slot_of.append(slots)
        cast_slots.append(slots[with_edges])
    num_slots = mine.num_masters + mine.num_isolated
    copy_first, copy_place, cast_first = _copies(cast_slots, num_slots)
    cast_length = np.array([slots.size for slots in cast_slots], np.int64)
    return Addresses(
        first=first, length=length, place_of=place_of, slot_of=tuple(slot_of), copy_first=copy_first, copy_place=copy_place,
        cast_first=cast_first, cast_length=cast_length, row_of=row_of,
    )  # fmt: skip


def _have_edges(part: Part, group: str) -> Array:
    """Whether each mirror has edges: (num_mirrors,) bool."""
    pointers = part.store.array(f"{group}/indptr").read(part.num_masters, part.num_vertices + 1)
    return np.diff(pointers) > 0


def _aligned(length: Array) -> Array:
    """Where lists of some lengths begin, each at a multiple of `ALIGNMENT`; and the end."""
    return np.concatenate([[0], np.cumsum(-(-length // ALIGNMENT) * ALIGNMENT)]).astype(np.int64)


def _places(owner: Array, num_parts: int) -> tuple[Array, Array, Array]:
    """Return place of each mirror, where each list begins, and the lengths of the lists."""
    length = np.bincount(owner, minlength=num_parts).astype(np.int64)
    first = _aligned(length)
    order = np.argsort(owner, kind="stable")
    places = np.empty(owner.size, np.uint32)
    places[order] = np.arange(owner.size) + np.repeat(first[:-1] - (np.cumsum(length) - length), length)
    return places, first, length


def _mirrored(parts: Sequence[Part], p: int, group: str) -> Iterator[tuple[Array, Array]]:
    """Yield, of each part, the slots at p of its mirrors there, and whether each has edges there."""
    mine = parts[p]
    masters, isolated = mine.global_id()[: mine.num_masters], mine.isolated_masters()
    for q, part in enumerate(parts):
        if q == p or not part.num_mirrors:
            yield np.empty(0, np.uint32), np.empty(0, np.bool_)
            continue
        here = part.mirror_owner() == p
        wanted = part.global_id()[part.num_masters :][here]
        slots = _slots(wanted, masters, isolated)
        if (slots < 0).any():
            raise CorruptStoreError(
                f"{part.store.url}: vertices/mirror_owner says that vertex {wanted[np.argmax(slots < 0)]} (a number of the store) has its "
                f"master in part {p}, which does not have it; partition the graph again"
            )
        yield slots.astype(np.uint32), _have_edges(part, group)[here]


def _slots(wanted: Array, masters: Array, isolated: Array) -> Array:
    """Return the slot of each of some masters, by number in the graph; -1: there is none."""
    slots = _positions(wanted, masters)
    others = slots < 0
    at = _positions(wanted[others], isolated)
    slots[others] = np.where(at < 0, -1, masters.size + at)
    return slots


def _positions(wanted: Array, ids: Array) -> Array:
    """Return where each of some numbers is among ascending ones; -1: it is not."""
    at = np.searchsorted(ids, wanted)
    found = at < ids.size
    found[found] = ids[at[found]] == wanted[found]
    at[~found] = -1
    return at


def _copies(cast_slots: Sequence[Array], num_slots: int) -> tuple[Array, Array, Array]:
    """Turn the lists by which a new frontier is sent around: of each slot, its places in them."""
    cast_first = _aligned(np.array([slots.size for slots in cast_slots], np.int64))
    slots = np.concatenate([np.empty(0, np.uint32), *cast_slots])
    places = np.concatenate(
        [np.empty(0, np.int64), *[begin + np.arange(one.size) for begin, one in zip(cast_first[:-1].tolist(), cast_slots, strict=True)]]
    )
    copy_first = np.zeros(num_slots + 1, np.int64)
    np.cumsum(np.bincount(slots, minlength=num_slots), out=copy_first[1:])
    return copy_first, places[np.argsort(slots, kind="stable")].astype(np.uint32), cast_first
