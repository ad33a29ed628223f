"""Random edges from their position: counter-based kernels for the Kronecker and the uniform generator.

In: a range of edge positions and a key. Out: the labels of their endpoints, int64. An edge depends on the seed and
its own position, on nothing drawn before, so that any block is reproducible alone whatever the block size and thread.

Randomness is a 32-bit mixer keyed twice for each (seed, stage, upper half of the position); over the lower
half it is a bijection, so each stage draws every 32-bit value once in 2**32 edges. Edges are handled in tiles that
stay in the first-level cache, one stage at a time, which the compiler turns into SIMD: 9 ns an edge at
scale 24 on one thread (24 stages, two permuted labels).

References
----------
Graph500 specification, section "Graph generation" (initiator probabilities, edge factor, permuted labels).
Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3" (counters instead of states).
Wellons 2018, "Prospecting for hash functions" (the mixer's constants). Steele et al. 2014 (splitmix64).
Differs from the specification in: labels are permuted by a bijection computed on the fly, not by a
stored permutation, and the edge list is not shuffled (a build sorts it anyway).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.load import load_kernel
from oocgraph.kernels.check import splitmix64
from oocgraph.types import Array

KRONECKER_A, KRONECKER_B, KRONECKER_C = 0.57, 0.19, 0.19
"""Graph500's initiator; D is what remains, 0.05."""

_TILE = 1024  # edges; two tiles of uint64 labels are 16 KiB, half of a first-level cache
_ROUNDS = 3  # multiply-and-shift rounds of the label permutation
_PERMUTATION_STAGE = 255  # stages 0 .. 63 are levels
_KEEPING_STAGE = 254


@nb.njit(inline="always")
def _stage_key(seed: Any, position: int, stage: int) -> Any:
    """64 random bits for (seed, upper half of the position, stage): the two keys of `_mix32`."""
    return splitmix64(np.uint64(seed) ^ splitmix64(np.uint64(((position >> 32) << 8) | stage)))


@nb.njit(inline="always")
def _mix32(counter: Any, key: Any) -> Any:
    x = np.uint32(counter + np.uint32(key))
    x = np.uint32((x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D))
    x = np.uint32(x + np.uint32(key >> np.uint64(32)))
    x = np.uint32((x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B))
    return np.uint32(x ^ (x >> np.uint32(16)))


@nb.njit(nogil=True, cache=True)
def _draw_level(rows: Any, cols: Any, num_edges: int, counter: Any, key: Any, thresholds: Any) -> None:
    """Append one bit to each row and column label: the quadrant of this level."""
    a, ab, abc = thresholds[0], thresholds[1], thresholds[2]
    for j in range(num_edges):
        draw = _mix32(counter + np.uint32(j), key)
        lower = draw >= ab
        right = (draw >= a) ^ lower ^ (draw >= abc)
        rows[j] = (rows[j] << np.uint64(1)) | np.uint64(lower)
        cols[j] = (cols[j] << np.uint64(1)) | np.uint64(right)


@nb.njit(nogil=True, cache=True)
def _permute(labels: Any, num_labels: int, scale: int, keys: Any) -> None:
    """Apply a bijection of 0 .. 2**scale - 1 to each label: rounds of an odd multiplication and a right shift."""
    mask = np.uint64((1 << scale) - 1)
    shift = np.uint64(max(1, scale // 2))
    for j in range(num_labels):
        x = labels[j]
        for k in range(_ROUNDS):
            x = (x * keys[2 * k] + keys[2 * k + 1]) & mask
            x ^= x >> shift
        labels[j] = x


@nb.njit(nogil=True, cache=True)
def _permutation_keys(seed: Any) -> Any:
    keys = np.empty(2 * _ROUNDS, np.uint64)
    for k in range(keys.size):
        keys[k] = _stage_key(seed, np.int64(k) << 32, _PERMUTATION_STAGE) | np.uint64(1)
    return keys


@nb.njit(nogil=True, cache=True)
def _kronecker(scale: int, seed: Any, first: int, thresholds: Any, source: Any, target: Any) -> None:
    keys = _permutation_keys(seed)
    rows, cols = np.empty(_TILE, np.uint64), np.empty(_TILE, np.uint64)
    stop = first + source.size
    for tile in range(first // _TILE, -(-stop // _TILE)):
        low, high = max(first, tile * _TILE), min(stop, (tile + 1) * _TILE)
        rows[:] = np.uint64(0)
        cols[:] = np.uint64(0)
        for level in range(scale):
            _draw_level(rows, cols, high - low, np.uint32(low & 0xFFFFFFFF), _stage_key(seed, low, level), thresholds)
        _permute(rows, high - low, scale, keys)
        _permute(cols, high - low, scale, keys)
        for j in range(high - low):
            source[low - first + j] = np.int64(rows[j])
            target[low - first + j] = np.int64(cols[j])


@nb.njit(nogil=True, cache=True)
def _draw_labels(scale: int, seed: Any, low: int, stage: int, out: Any) -> None:
    """Uniform labels from the upper `scale` bits of two mixed words; the range must not cross a multiple of 2**32."""
    counter = np.uint32(low & 0xFFFFFFFF)
    upper_key, lower_key = _stage_key(seed, low, stage), _stage_key(seed, low, stage + 1)
    shift = np.uint64(64 - scale)
    for j in range(out.size):
        upper = np.uint64(_mix32(counter + np.uint32(j), upper_key))
        lower = np.uint64(_mix32(counter + np.uint32(j), lower_key))
        out[j] = np.int64(((upper << np.uint64(32)) | lower) >> shift)


@nb.njit(nogil=True, cache=True)
def _uniform(scale: int, seed: Any, first: int, source: Any, target: Any) -> None:
    stop = first + source.size
    for tile in range(first // _TILE, -(-stop // _TILE)):
        low, high = max(first, tile * _TILE), min(stop, (tile + 1) * _TILE)
        _draw_labels(scale, seed, low, 0, source[low - first : high - first])
        _draw_labels(scale, seed, low, 2, target[low - first : high - first])


def kronecker_edges(scale: int, seed: int, first: int, num_edges: int) -> tuple[Array, Array]:
    """Edges ``first .. first + num_edges - 1`` of the Kronecker graph of `scale` and `seed`.

    Parameters
    ----------
    scale
        Labels are 0 .. 2**scale - 1; at most 62.
    seed
        Any 64-bit integer.
    first, num_edges
        Range of edge positions.

    Returns
    -------
    source, target : (num_edges,) int64

    Notes
    -----
    Host memory: the result, 16 bytes an edge. Releases the interpreter lock.

    Examples
    --------
    >>> source, target = kronecker_edges(10, 1, 0, 100)
    >>> part, _ = kronecker_edges(10, 1, 40, 10)
    >>> bool((part == source[40:50]).all())
    True
    """
    source, target = np.empty(num_edges, np.int64), np.empty(num_edges, np.int64)
    shares = np.cumsum([KRONECKER_A, KRONECKER_B, KRONECKER_C])
    thresholds = np.round(shares * 2.0**32).astype(np.uint32)
    _run(_kronecker, scale, _as_uint64(seed), first, thresholds, source, target)
    return source, target


def uniform_edges(scale: int, seed: int, first: int, num_edges: int) -> tuple[Array, Array]:
    """Edges ``first .. first + num_edges - 1`` whose endpoints are uniform and independent.

    Parameters
    ----------
    scale
        Labels are 0 .. 2**scale - 1; at most 62.
    seed
        Any 64-bit integer.
    first, num_edges
        Range of edge positions.

    Returns
    -------
    source, target : (num_edges,) int64

    Examples
    --------
    >>> source, target = uniform_edges(3, 1, 0, 1000)
    >>> np.unique(source).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    source, target = np.empty(num_edges, np.int64), np.empty(num_edges, np.int64)
    if scale:
        _run(_uniform, scale, _as_uint64(seed), first, source, target)
    else:
        source[:], target[:] = 0, 0
    return source, target


@nb.njit(nogil=True, cache=True)
def _shuffle(ids: Any, num_ids: Any, scale: int, keys: Any) -> None:
    """Apply a bijection of 0 .. num_ids - 1: one of 0 .. 2**scale - 1, repeated until it is back in the range (cycle walking)."""
    one = np.empty(1, np.uint64)
    for i in range(ids.size):
        one[0] = np.uint64(ids[i])
        _permute(one, 1, scale, keys)
        while one[0] >= num_ids:
            _permute(one, 1, scale, keys)
        ids[i] = np.int64(one[0])


def shuffle_ids(ids: Array, num_ids: int, seed: int) -> None:
    """Replace ids, (n,) int64 in ``0 .. num_ids - 1``, by those that a permutation of `seed` gives them."""
    if num_ids > 1:
        _run(_shuffle, ids, np.uint64(num_ids), (num_ids - 1).bit_length(), _run(_permutation_keys, _as_uint64(seed)))


@nb.njit(nogil=True, cache=True)
def _is_kept(first: int, seed: Any, threshold: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = _mix32(np.uint32((first + i) & 0xFFFFFFFF), _stage_key(seed, first + i, _KEEPING_STAGE)) < threshold


def kept_edges(first: int, num_edges: int, share: float, seed: int) -> Array:
    """Which of the edges ``first .. first + num_edges - 1`` are kept where a `share` of all is: (num_edges,) bool."""
    kept = np.empty(num_edges, np.bool_)
    _run(_is_kept, first, _as_uint64(seed), np.uint64(round(share * 2**32)), kept)
    return kept


@nb.njit(nogil=True, cache=True)
def _hash_edges(source: Any, target: Any, low: Any, span: Any, out: Any) -> None:
    for i in range(source.size):
        a, b = np.uint64(min(source[i], target[i])), np.uint64(max(source[i], target[i]))
        out[i] = low + splitmix64(a ^ splitmix64(b)) % span


def edge_weights(source: Array, target: Array, low: int, high: int, dtype: np.dtype[Any]) -> Array:
    """Weights from `low` to `high`, both included: a hash of the two ends, so that both directions of an edge, and its duplicates, agree.

    Parameters
    ----------
    source, target : (num_edges,) int64
        Ends of edges.
    low, high
        From 0; below 2**63.
    dtype
        Of the result, which can hold `high`.

    Returns
    -------
    (num_edges,) dtype

    Examples
    --------
    >>> ends = np.array([3, 5]), np.array([5, 3])
    >>> weights = edge_weights(*ends, 1, 255, np.dtype(np.uint8))
    >>> bool(weights[0] == weights[1])
    True
    """
    weights = np.empty(source.size, dtype)
    _run(_hash_edges, source, target, np.uint64(low), np.uint64(high - low + 1), weights)
    return weights


def _run(kernel: Any, *arguments: Any) -> Any:
    """Call a kernel, which is loaded if it is not."""
    load_kernel(kernel, arguments)
    return kernel(*arguments)


def _as_uint64(seed: int) -> np.uint64:
    return np.uint64(seed & 0xFFFFFFFFFFFFFFFF)
