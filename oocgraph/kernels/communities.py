"""Kernels of communities: labels voted for by neighbours, and vertices that move between communities.

In: whole rows (`oocgraph.engine.sweeps`), and of each vertex the number of its community, (num_vertices,) index dtype. What a kernel
changes of a row's own vertex goes to arrays of the rows, so that all rows of a sweep see the same communities. Vertices whose neighbours
have changed are marked in bytes, which any thread may set and none clears.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from oocgraph.compiled.intrinsics import largest_of
from oocgraph.kernels.check import mix, splitmix64
from oocgraph.kernels.components import begin

NEAR = 1e-12
"""Share of the total weight below which a better place is no better: rounding."""


def scratch_of(longest: int, dtype: Any) -> list[tuple[Any, int]]:
    """Return dtypes and lengths of the scratch that kernels take where the longest row has so many neighbours, for an index dtype."""
    return [(dtype, 1 << max(1, (2 * longest - 1).bit_length())), (dtype, max(1, longest)), (np.float64, max(1, longest))]


@nb.njit(nogil=True, cache=True)
def salt_of(seed: Any, turn: Any) -> Any:
    """Return a uint64 for a turn of a run, with which the numbers of vertices are hashed."""
    return mix(splitmix64(seed) + np.uint64(turn))


@nb.njit(nogil=True, cache=True)
def _has_turn(v: Any, salt: Any, part: Any, num_parts: Any) -> Any:
    return np.int64(mix(np.uint64(v) + salt) & np.uint64(num_parts - 1)) == part


@nb.njit(nogil=True, cache=True)
def _tally(
    row: Any, begin: Any, end: Any, indices: Any, values: Any, group: Any, skips_loops: Any, places: Any, keys: Any, sums: Any
) -> Any:  # fmt: skip
    """Add up the weights of a row's neighbours by group; a table with open addressing has the place of each group in `keys` and `sums`.

    New groups are recognised without a branch, which the processor would mispredict for many of the first neighbours.

    Returns
    -------
    (num_groups, least): how many groups there are, and the least weight; NaN if one is, or is infinite.
    """
    free, slots, shift, least, num_groups = largest_of(places), 2, 63, 1.0, 0
    while slots < 2 * (end - begin):
        slots, shift = 2 * slots, shift - 1
    for s in range(slots):
        places[s] = free
    for e in range(begin, end):
        u = np.int64(indices[e])
        weight = 1.0
        if values is not None:
            weight = np.float64(values[e])
            if not least <= weight < np.inf:  # nor where there was NaN before
                least = weight if weight < least else np.nan
        if skips_loops and u == row:
            continue
        key = group[u]
        s = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))
        while places[s] != free and keys[np.int64(places[s])] != key:
            s = (s + 1) & (slots - 1)
        is_new = places[s] == free
        g = num_groups if is_new else np.int64(places[s])
        held = 0.0 if is_new else sums[g]
        places[s], keys[g], sums[g] = g, key, held + weight
        num_groups += np.int64(is_new)
    return num_groups, least


@nb.njit(nogil=True, cache=True)
def vote(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, label: Any, woken: Any, new: Any, pending: Any, salt: Any, part: Any,
    num_parts: Any, places: Any, keys: Any, sums: Any,
) -> Any:  # fmt: skip
    """Give the vertices of a piece that have their turn the label that most of their neighbours have, by weight.

    Parameters
    ----------
    label, woken : (num_vertices,) index dtype, uint8
        Read; set for those who must look again.
    new, pending : (num_rows,) index dtype, uint8
        Labels, written; which vertices must look, cleared when they have.
    salt, part, num_parts
        Of the part of the vertices that has its turn, of so many, a power of two. Of several best labels the own one stays; else a hash
        chooses.
    places, keys, sums : (num_slots,), (longest list,), (longest list,) index dtype, index dtype, float64
        Scratch.

    Returns
    -------
    (changed, least): vertices with another label, and the least weight; NaN if one is, or is infinite.
    """
    changed, least = 0, 1.0
    for r in range(new.size):
        v, own = first + r, label[first + r]
        new[r] = own
        if not pending[r] or not _has_turn(v, salt, part, num_parts):
            continue
        pending[r] = 0
        begin, end = np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)
        num_groups, lightest = _tally(v, begin, end, indices, values, label, False, places, keys, sums)
        if not lightest >= least:  # nor where there was NaN before
            least = lightest if lightest < least else np.nan
        best, most, rank, turn = own, 0.0, np.uint64(0), mix(np.uint64(v) + salt)
        for g in range(num_groups):
            if keys[g] == own:
                most = sums[g]
        for g in range(num_groups):
            if sums[g] < most or (sums[g] == most and best == own):
                continue
            hashed = mix(turn + np.uint64(keys[g]))
            if sums[g] > most or hashed < rank:
                best, most, rank = keys[g], sums[g], hashed
        if best == own:
            continue
        new[r] = best
        changed += 1
        for e in range(begin, end):
            u = np.int64(indices[e])
            if label[u] != best or _has_turn(u, salt, part, num_parts):
                woken[u] = 1
    return changed, least


@nb.njit(nogil=True, cache=True)
def wake(pending: Any, woken: Any, start: Any, stop: Any) -> Any:
    """Let vertices of a range look again that were woken; returns how many of the range must look."""
    count = 0
    for v in range(start, stop):
        if woken[v]:
            pending[v], woken[v] = 1, 0
        count += pending[v]
    return count


@nb.njit(nogil=True, cache=True)
def weigh(first: Any, pointers: Any, start: Any, indices: Any, values: Any, group: Any, strength: Any) -> Any:
    """Add up the weights of each vertex of a piece, a self-loop's twice, in `strength`, (num_rows,) float64.

    Returns
    -------
    (inner, least): weights of neighbours in the same group, a self-loop's twice, and the least weight; NaN if one is, or is infinite.
    """
    inner, least = 0.0, 1.0
    for r in range(strength.size):
        v, total = first + r, 0.0
        for e in range(np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)):
            u, weight = np.int64(indices[e]), 1.0
            if values is not None:
                weight = np.float64(values[e])
                if not least <= weight < np.inf:  # nor where there was NaN before
                    least = weight if weight < least else np.nan
            if u == v:
                weight *= 2
            total += weight
            if group[u] == group[v]:
                inner += weight
        strength[r] = total
    return inner, least


@nb.njit(nogil=True, cache=True)
def sum_squares_of_groups(group: Any, strength: Any) -> Any:
    """Return the sum of the squared weights of groups, each of which is named after one of its vertices; `strength` is used up."""
    total = 0.0
    for v in range(group.size):
        g = np.int64(group[v])
        if g != v:
            strength[g] += strength[v]
    for v in range(group.size):
        if np.int64(group[v]) == v:
            total += strength[v] * strength[v]
    return total


@nb.njit(nogil=True, cache=True, inline="always")
def _is_alone(v: Any, own: Any, volume: Any, strength: Any) -> Any:
    """Whether a vertex is the only one of its group, but for others whose edges weigh next to nothing."""
    return volume[np.int64(own)] - strength[v] <= NEAR * strength[v]


@nb.njit(nogil=True, cache=True)
def move(
    first: Any, pointers: Any, start: Any, indices: Any, values: Any, group: Any, volume: Any, strength: Any, woken: Any, new: Any,
    pending: Any, salt: Any, part: Any, num_parts: Any, factor: Any, least_gain: Any, places: Any, keys: Any, sums: Any,
) -> Any:  # fmt: skip
    """Move the vertices of a piece that have their turn to the neighbouring group where modularity gains most.

    Of two vertices that are alone and would move to each other the one with the smaller group waits: else they would change places.
    Lu, Halappanavar, Kalyanaraman, "Parallel heuristics for scalable community detection", Parallel Computing 47, 2015.

    Parameters
    ----------
    group, volume, strength, woken : (num_vertices,) index dtype, float64, float64, uint8
        Read: groups, the strength of all vertices of a group, the weights of a vertex's edges; set for those who must look again.
    new, pending : (num_rows,) index dtype, uint8
        Groups, written; which vertices must look, cleared when they have.
    salt, part, num_parts
        Of the part of the vertices that has its turn, of so many, a power of two.
    factor
        Resolution, divided by the strength of all vertices.
    least_gain
        What a move must gain, as a weight of edges; of several best groups the one with the smallest number is taken.
    places, keys, sums : (num_slots,), (longest list,), (longest list,) index dtype, index dtype, float64
        Scratch.

    Returns
    -------
    (moved, gain): vertices with another group, and the weight that they gain, each as if it alone moved.
    """
    moved, gain = 0, 0.0
    for r in range(new.size):
        v, own = first + r, group[first + r]
        new[r] = own
        if not pending[r] or not _has_turn(v, salt, part, num_parts):
            continue
        pending[r] = 0
        begin, end = np.int64(pointers[r] - start), np.int64(pointers[r + 1] - start)
        num_groups, _ = _tally(v, begin, end, indices, values, group, True, places, keys, sums)
        pull = factor * strength[v]
        stay, best, most = -pull * (volume[np.int64(own)] - strength[v]), own, -np.inf
        for g in range(num_groups):
            key = keys[g]
            if key == own:
                stay += sums[g]
                continue
            score = sums[g] - pull * volume[np.int64(key)]
            if score > most or (score == most and key < best):
                best, most = key, score
        if most <= stay + least_gain:
            continue
        if best > own and _is_alone(v, own, volume, strength):
            waits = False
            for e in range(begin, end):
                u = np.int64(indices[e])
                if group[u] == best:
                    waits = _has_turn(u, salt, part, num_parts) and _is_alone(u, best, volume, strength)
                    break
            if waits:
                pending[r] = 1
                continue
        new[r] = best
        moved += 1
        gain += most - stay
        for e in range(begin, end):
            u = np.int64(indices[e])
            if group[u] != best or _has_turn(u, salt, part, num_parts):
                woken[u] = 1
    return moved, gain


@nb.njit(nogil=True, cache=True)
def add_volumes(group: Any, strength: Any, volume: Any) -> None:
    """Add the strength of each vertex to the volume of its group."""
    for v in range(group.size):
        volume[np.int64(group[v])] += strength[v]


@nb.njit(nogil=True, cache=True)
def settle(group: Any, new: Any, strength: Any, volume: Any, start: Any, stop: Any) -> None:
    """Let vertices of a range be in their new groups, and take their strength along, always in the same order."""
    for v in range(start, stop):
        if new[v] != group[v]:
            volume[np.int64(group[v])] -= strength[v]
            volume[np.int64(new[v])] += strength[v]
            group[v] = new[v]


@nb.njit(nogil=True, cache=True)
def compact(group: Any, names: Any) -> Any:
    """Give groups numbers from 0 on, in the order of their first vertices; `names`, as long, is used up. Returns how many there are."""
    none, count = largest_of(names), 0
    names[:] = none
    for v in range(group.size):
        g = np.int64(group[v])
        if names[g] == none:
            names[g] = count
            count += 1
        group[v] = names[g]
    return count


@nb.njit(nogil=True, cache=True)
def follow(ids: Any, group: Any, num_groups: Any, following: Any) -> Any:
    """Give groups of groups numbers: vertex v of a quotient graph is the group ``ids[v]``, and now in ``group[v]``.

    Parameters
    ----------
    following : (num_old_groups,) index dtype
        Of each old group the new one; written. One without edges is one of its own, from `num_groups` on.

    Returns
    -------
    New groups that there are.
    """
    none = largest_of(following)
    following[:] = none
    for v in range(ids.size):
        following[ids[v]] = group[v]
    for g in range(following.size):
        if following[g] == none:
            following[g] = num_groups
            num_groups += 1
    return num_groups


@nb.njit(nogil=True, cache=True)
def rename(member: Any, following: Any, start: Any, stop: Any) -> None:
    """Put the vertices of a range into the groups that follow theirs."""
    for v in range(start, stop):
        member[v] = following[np.int64(member[v])]


@nb.njit(nogil=True, cache=True)
def sum_squares(numbers: Any) -> Any:
    """Return the sum of the squares of numbers."""
    total = 0.0
    for x in numbers:
        total += x * x
    return total


def louvain_calls(dtype: Any) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the kernels of Louvain's method that are given rows, and its others, with arguments of their types, for an index dtype."""
    index, sums, marks, ids, salt = np.empty(0, dtype), np.empty(0), np.empty(0, np.uint8), np.empty(0, np.int64), np.uint64(0)
    return [(move, index, sums, sums, marks, index, marks, salt, 0, 0, 0.0, 0.0, index, index, sums)], [
        (wake, marks, marks, 0, 0), (begin, index, 0, 0), (salt_of, 0, 0), (sum_squares, sums), (sum_squares_of_groups, index, sums),
        (add_volumes, index, sums, sums), (compact, index, index), (settle, index, index, sums, sums, 0, 0), (follow, ids, index, 0, index),
        (rename, index, index, 0, 0),
    ]  # fmt: skip
