"""Keys are sorted as NumPy sorts them, in any number of threads and on any schedule; NumPy's sort is used where it is quicker."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest

from oocgraph import sorting
from oocgraph.external_sort.workers import Scratch
from oocgraph.kernels.bucket_sort import WIDEST
from oocgraph.kernels.sort import CUT_OFF, FEW
from oocgraph.sorting import sort_by_digits, sort_keys
from oocgraph.team import Team

SIZES = [0, 1, 2, FEW, FEW + 1, 1000, CUT_OFF, CUT_OFF + 1, 300_000]


def _hubs(rng, size):
    """Half of all keys begin alike, half of these further: buckets in buckets in buckets."""
    keys = rng.integers(0, 2**63, size, dtype=np.uint64)
    for bits in (8, 16, 24, 32, 40, 48, 56):
        chosen = rng.random(size) < 0.7
        keys[: size // 2][chosen[: size // 2]] &= np.uint64((1 << (64 - bits)) - 1)
    return keys


KEYS = {
    "random": lambda rng, size: rng.integers(0, 2**64 - 1, size, dtype=np.uint64),
    "packed": lambda rng, size: rng.integers(0, 2**40, size, dtype=np.uint64) + np.uint64(5 << 50),
    "signed": lambda rng, size: rng.integers(-(2**62), 2**62, size),
    "sorted": lambda _, size: np.arange(size, dtype=np.uint64) * np.uint64(2**40),
    "reversed": lambda _, size: np.arange(size, dtype=np.int64)[::-1].copy() - 1000,
    "equal": lambda _, size: np.full(size, 2**63 + 17, np.uint64),
    "few distinct": lambda rng, size: rng.choice(np.array([-(2**63), -1, 0, 5, 2**63 - 1]), size),
    "hubs": _hubs,
}


@pytest.fixture(scope="module", params=[1, 2, 3, 8])
def team(request):
    with Team(request.param) as made:
        yield made


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("size", SIZES)
def test_sorted_as_by_numpy(team, kind, size):
    keys = KEYS[kind](np.random.default_rng(size), size)
    expected, other = np.sort(keys), np.zeros_like(keys)
    sort_by_digits(keys, other, team)
    assert keys.dtype == expected.dtype
    assert np.array_equal(keys, expected)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("size", [sorting.LARGE, 300_000])
@pytest.mark.parametrize("width", [0, 1, 31, 32, 33, WIDEST, WIDEST + 1, 63])
def test_one_thread_sorts_keys_of_any_range(monkeypatch, kind, size, width):
    """Of ranges up to `WIDEST` in buckets, of others as a team."""
    monkeypatch.setattr(sorting, "digits_pay", lambda: True)
    keys = KEYS[kind](np.random.default_rng(width), size).view(np.uint64) >> np.uint64(63 - width)
    keys += np.uint64(2**63 - 5)
    expected = np.sort(keys)
    sort_keys(keys)
    assert np.array_equal(keys, expected)


def test_many_schedules(monkeypatch, rounds):
    """Of 60 sorts of a million keys that are sorted in small buckets by eight threads on fewer cores, each is stolen from and right."""
    monkeypatch.setattr(sorting, "KEY_SECONDS", 1.0)
    with Team(8) as team:
        for seed in range(rounds(60)):
            rng = np.random.default_rng(seed)
            keys = KEYS[("hubs", "random", "packed", "few distinct")[seed % 4]](rng, int(rng.integers(CUT_OFF, 16 * CUT_OFF)))
            expected, other = np.sort(keys), np.empty_like(keys)
            sort_by_digits(keys, other, team)
            assert np.array_equal(keys, expected)
        assert team.counts.stolen.sum() > rounds(60)
        assert (team.counts.pieces > 0).all()


@pytest.mark.parametrize("pays", [False, True])
@pytest.mark.parametrize("size", [0, 10, sorting.LARGE, 100_000])
def test_whichever_is_quicker(monkeypatch, pays, size):
    """Room is taken only where keys are sorted by digits."""
    monkeypatch.setattr(sorting, "digits_pay", lambda: pays)
    keys, scratch = KEYS["random"](np.random.default_rng(1), size), Scratch()
    expected = np.sort(keys)
    sort_keys(keys, partial(scratch.get, "sorting"), threads=2)
    assert np.array_equal(keys, expected)
    assert bool(scratch._buffers) == (pays and size >= sorting.LARGE)


@pytest.mark.parametrize("slow", [False, True])
def test_the_quicker_one_is_measured(monkeypatch, slow):
    """By processor time: a sort by digits that takes a while does not pay, one that takes none does."""

    def by_digits(_keys, _scratch):
        until = time.thread_time() + 0.2 * slow
        while time.thread_time() < until:
            pass

    monkeypatch.setattr(sorting, "_sort_narrow", by_digits)
    sorting.digits_pay.cache_clear()
    try:
        assert sorting.digits_pay() is not slow
    finally:
        sorting.digits_pay.cache_clear()
