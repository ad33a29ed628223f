"""The vertices of a partition: who has a proxy there, under which local id, and the files that say so.

In: bitmaps of the proxies that edges need, a file for each reader, and all masters. Out: for each partition the arrays of its vertices, and
a file of ranks: a local id is a rank in two bitmaps, masters first, then mirrors, so that looking one up takes a word and a count of bits.
The files of the partition's edges get their size here too: from now on every edge has its place.

Hoang et al., "CuSP", IPDPS 2019, section 4.2 (graph allocation).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.kernels import cusp as kernels
from oocgraph.partition.blocks import PIECE_ROWS
from oocgraph.partition.cusp_spec import CuspSpec
from oocgraph.partition.stage import Stage
from oocgraph.store.layout import ISOLATED_ID, MIRROR_OWNER, ORDER, SORTED_ID, VERTEX_ID
from oocgraph.store.partitions import part_name
from oocgraph.store.preallocated import PreallocatedArray
from oocgraph.types import Array, index_dtype

PIECE_WORDS = PIECE_ROWS // 64
"""Words of a bitmap worked on at once."""


@dataclass(frozen=True, slots=True, eq=False)
class PartSizes:
    """Vertices of a partition.

    Attributes
    ----------
    num_masters, num_mirrors, num_isolated : int
        Masters and mirrors with an edge, masters without.
    first_local : (num_blocks + 1, 2) int64
        Local ids of the first master, the first mirror, of each block's rows and later.
    """

    num_masters: int
    num_mirrors: int
    num_isolated: int
    first_local: Array

    @property
    def num_local(self) -> int:
        """Vertices with a local id."""
        return self.num_masters + self.num_mirrors


def allocate(stage: Stage, p: int, readers: Iterable[int], num_edges: int) -> PartSizes:
    """Give the vertices of a partition their local ids, write what is known of them, and make the files of its edges."""
    spec = stage.spec
    stage.learn_masters(np.arange(len(spec.blocks)))
    words, ranked = np.zeros((2, stage.num_words), np.uint64), np.empty((2, stage.num_words, 2), np.uint64)
    files = [path for path in (_proxies_path(spec, reader) for reader in readers) if path.exists()]
    for low in range(0, stage.num_words, PIECE_WORDS):
        high = min(stage.num_words, low + PIECE_WORDS)
        proxies = np.zeros(high - low, np.uint64)
        for path in files:
            proxies |= np.fromfile(path, np.uint64, high - low, offset=8 * (p * stage.num_words + low))
        kernels.split_proxies(p, stage.masters[64 * low : 64 * high], proxies, words[0, low:high], words[1, low:high])
    num_masters = int(kernels.rank_words(words[0], 0, ranked[0]))
    num_local = int(kernels.rank_words(words[1], num_masters, ranked[1]))
    _local_path(spec, p).write_bytes(ranked.data)
    first_local = _at_blocks(stage, ranked, (num_masters, num_local))
    sizes = PartSizes(num_masters, num_local - num_masters, _num_mastered(stage, p) - num_masters, first_local)
    _write_vertices(stage, p, words, sizes)
    for name, dtype, length in edge_arrays(stage, sizes.num_local, num_edges):
        array_of(spec, p, name, dtype, length).create()
    return sizes


def array_of(spec: CuspSpec, p: int, name: str, dtype: Any, length: int) -> PreallocatedArray:
    """Return an array of a partition's store."""
    return PreallocatedArray(spec.root / part_name(p), name, dtype, length)


def edge_arrays(stage: Stage, num_local: int, num_edges: int) -> Iterator[tuple[str, Any, int]]:
    """Iterate over name, dtype and length of the arrays of a local CSR."""
    spec = stage.spec
    yield f"{spec.read}/indptr", np.dtype(np.int64), num_local + 1
    yield f"{spec.read}/indices", index_dtype(num_local), num_edges
    for name in spec.columns:
        yield f"{spec.read}/{name}", stage.store.array(f"{spec.group}/{name}").dtype, num_edges


def vertex_arrays(sizes: PartSizes) -> Iterator[tuple[str, Any, int]]:
    """Iterate over name, dtype and length of the arrays of a partition's vertices."""
    for name in (VERTEX_ID, SORTED_ID, ORDER):
        yield name, index_dtype(sizes.num_local) if name == ORDER else np.dtype(np.int64), sizes.num_local
    yield ISOLATED_ID, np.dtype(np.int64), sizes.num_isolated
    yield MIRROR_OWNER, np.dtype(np.int32), sizes.num_mirrors


def _write_vertices(stage: Stage, p: int, words: Array, sizes: PartSizes) -> None:
    """Write ids, their order, isolated masters and the owners of mirrors, piece by piece."""
    arrays = {name: array_of(stage.spec, p, name, dtype, length) for name, dtype, length in vertex_arrays(sizes)}
    for array in arrays.values():
        array.create()
    at, listed = [0, sizes.num_masters], np.empty(64 * min(PIECE_WORDS, stage.num_words), np.int64)
    num_isolated = 0
    for low in range(0, stage.num_words, PIECE_WORDS):
        piece = words[:, low : low + PIECE_WORDS]
        masters = stage.masters[64 * low : 64 * (low + PIECE_WORDS)]
        vertices = [listed[: kernels.list_bits(part, 64 * low, listed)].copy() for part in piece]
        both = np.concatenate(vertices)
        order = np.argsort(both, kind="stable")
        local = np.concatenate([np.arange(first, first + part.size) for first, part in zip(at, vertices, strict=True)])
        arrays[SORTED_ID].write(sum(at) - sizes.num_masters, both[order])
        arrays[ORDER].write(sum(at) - sizes.num_masters, local[order])
        arrays[VERTEX_ID].write(at[0], vertices[0])
        arrays[VERTEX_ID].write(at[1], vertices[1])
        arrays[MIRROR_OWNER].write(at[1] - sizes.num_masters, masters[vertices[1] - 64 * low])
        alone = masters == p
        alone[vertices[0] - 64 * low] = False
        isolated = 64 * low + np.flatnonzero(alone)
        arrays[ISOLATED_ID].write(num_isolated, isolated)
        num_isolated += isolated.size
        at = [first + part.size for first, part in zip(at, vertices, strict=True)]


def _proxies_path(spec: CuspSpec, reader: int) -> Path:
    return spec.scratch / f"proxies-{reader:05d}"


def _local_path(spec: CuspSpec, p: int) -> Path:
    return spec.scratch / f"local-{p:05d}"


def add_proxies(spec: CuspSpec, reader: int, proxies: Array, *, keep: bool) -> None:
    """Write the bitmaps of a reader: (num_partitions, num_words) uint64; if asked with what it found in the rounds before."""
    path = _proxies_path(spec, reader)
    if keep:
        proxies |= np.fromfile(path, np.uint64).reshape(proxies.shape)
    unfinished = path.with_suffix(f".{uuid.uuid4().hex}")  # of its own: another worker may be running the same task
    unfinished.write_bytes(proxies.data)  # unlike `tofile`, it tells when the disk is full
    os.replace(unfinished, path)


def read_ranked(stage: Stage) -> Array:
    """Return bitmaps with ranks of all partitions: (2 * num_partitions, num_words, 2) uint64."""
    ranked = np.empty((stage.spec.num_partitions, 2, stage.num_words, 2), np.uint64)
    for p in range(stage.spec.num_partitions):
        with open(_local_path(stage.spec, p), "rb", buffering=0) as file:
            file.readinto(ranked[p].view(np.uint8).data)
    return ranked.reshape(-1, stage.num_words, 2)


def _num_mastered(stage: Stage, p: int) -> int:
    """Vertices whose master is in a partition, counted by pieces."""
    n = stage.store.num_rows
    return sum(int(np.count_nonzero(stage.masters[low : low + PIECE_ROWS] == p)) for low in range(0, n, PIECE_ROWS))


def _at_blocks(stage: Stage, ranked: Array, ends: tuple[int, int]) -> Array:
    """Return the local ids of the first master and mirror from each block's first row on: (num_blocks + 1, 2) int64."""
    rows = stage.spec.blocks.first_row
    inside = rows[:-1] >> 6
    below = (np.uint64(1) << (rows[:-1] & 63).astype(np.uint64)) - np.uint64(1)
    found = np.empty((rows.size, 2), np.int64)
    for kind, end in enumerate(ends):
        found[:-1, kind] = ranked[kind, inside, 1] + np.bitwise_count(ranked[kind, inside, 0] & below)
        found[-1, kind] = end
    return found
