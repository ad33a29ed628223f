"""Kernels over strings and joins by keys give what Python and NumPy give, with zeros, common prefixes and empty strings."""

from __future__ import annotations

import bisect
import random

import numpy as np
import pyarrow as pa
import pytest

from oocgraph.kernels.join import cut_cells, find_keys
from oocgraph.kernels.strings import split_strings
from oocgraph.store.strings import HashCollisionError, Placed
from oocgraph.team import team_of


def words(seed):
    rng = random.Random(seed)
    lengths, prefix = [0, 1, 2, 6, 7, 8, 9, 15, 16, 17, 30], b"usr/share/doc/x" * (seed % 3)
    return [prefix + bytes(rng.choice(b"\0\0ab\xff") for _ in range(rng.choice(lengths))) for _ in range(rng.choice([0, 1, 5, 50, 2000]))]


@pytest.mark.parametrize("seed", range(20))
def test_strings_are_told_apart_sorted_and_dealt_by_bytes(seed):
    given = words(seed)
    strings = Placed.of([pa.array(given[: seed % 9], pa.large_binary()), pa.array(given[seed % 9 :], pa.large_binary())])
    first, same = strings.distinct(strings.hashes(7))
    assert [given[i] for i in same] == given
    assert first.tolist() == sorted(given.index(word) for word in set(given))
    assert strings.copied(strings.ascending(first)).to_pylist() == sorted(set(given))
    cuts, bin_of = sorted(set(given))[::7], np.empty(len(given), np.uint16)
    splitters = Placed.of([pa.array(cuts, pa.large_binary())])
    split_strings(strings.place, strings.length, splitters.place, splitters.length, bin_of)
    assert bin_of.tolist() == [bisect.bisect_right(cuts, word) for word in given]


@pytest.mark.parametrize("seed", range(6))
def test_threads_together_find_what_one_finds(seed, monkeypatch):
    monkeypatch.setattr("oocgraph.team.LITTLE", 1e-12)
    given = [word + bytes([i % 251]) * (i % 3) for i, word in enumerate(words(seed) * 3)] + words(4)
    strings = Placed.of([pa.array(given, pa.large_binary())])
    with team_of(3) as team:
        hashes = strings.hashes(7, team)
        first, same = strings.distinct(hashes, team)
        ascending = strings.copied(strings.ascending(first, team), team)
    assert hashes.tolist() == strings.hashes(7).tolist()
    assert [given[i] for i in same] == given
    assert ascending.to_pylist() == sorted(set(given))


def test_two_strings_with_one_hash_are_seen():
    strings = Placed.of([pa.array([b"a", b"b"], pa.large_binary())])
    with pytest.raises(HashCollisionError):
        strings.distinct(np.zeros(2, np.uint64))


@pytest.mark.parametrize("bits", [3, 20, 64])
def test_keys_are_found_as_by_bisection(bits):
    rng = random.Random(bits)
    keys = np.unique(np.array([rng.getrandbits(bits) for _ in range(500)] + [rng.getrandbits(10)], np.uint64))
    span = int(keys[-1]) - int(keys[0])
    shift = max(0, span.bit_length() - keys.size.bit_length())
    starts, wanted = np.empty((span >> shift) + 2, np.int64), np.append(keys, np.array([0, 77, 2**63, 2**64 - 1], np.uint64))
    cut_cells(keys, np.uint64(shift), starts)
    found = np.empty(wanted.size, np.int64)
    find_keys(keys, np.uint64(shift), starts, wanted, found)
    assert found.tolist() == np.searchsorted(keys, wanted).tolist()
