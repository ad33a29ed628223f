"""What a policy asks of a graph: the same answers compiled and not, from rows at hand and from either kind of lookup."""

from __future__ import annotations

from functools import cache

import numba as nb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.errors import TypingError

from oocgraph.compiled.borrowed import borrowed
from oocgraph.kernels.prop import NO_LOOKUP, RowLookup, make_prop
from tests.partition.reference_cusp import transpose

NONE = np.empty(0, np.int64)


def ask(prop, v):
    return prop.out_degree(v), prop.in_degree(v), prop.first_out_edge(v)


def ask_neighbours(prop, v):
    return prop.neighbours(v).sum(), prop.neighbours(v).size


@cache
def compiled(function):
    inner = nb.njit(function)

    @nb.njit
    def call(prop, v):
        return inner(borrowed(prop), v)

    return call


def explicit(indptr):
    return RowLookup(indptr, np.zeros(1, np.int64), NONE, NONE)


def by_degree(indptr):
    """Return the lookup of a degree-sorted store: one entry per distinct degree."""
    degree = np.diff(indptr)
    first = np.flatnonzero(np.append(True, degree[1:] != degree[:-1]))
    return RowLookup(NONE, first, indptr[first], degree[first])


def random_rows(rng, *, sort):
    n = int(rng.integers(1, 30))
    degree = rng.integers(0, 6, n)
    degree = np.sort(degree)[::-1] if sort else degree
    indptr = np.append(0, np.cumsum(degree)).astype(np.int64)
    return indptr, rng.integers(0, n, indptr[-1]).astype(np.uint32)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.booleans())
def test_answers_are_those_of_the_lists(seed, directed, sort, rows_are_in):
    """Degrees and positions equal the lists' own, wherever they come from; neighbours too, of rows at hand."""
    rng = np.random.default_rng(seed)
    out = random_rows(rng, sort=sort)
    into = transpose(*out) if directed else out
    n = out[0].size - 1
    lookup = by_degree(out[0]) if sort else explicit(out[0])
    prop = make_prop(n, out[1].size, 3, directed=directed, out_rows=lookup, in_rows=explicit(into[0]) if directed else NO_LOOKUP)
    indptr, indices = into if rows_are_in else out
    first = int(rng.integers(0, n))
    stop = int(rng.integers(first, n + 1))
    here = prop.with_rows(first, indptr[first : stop + 1], indices[indptr[first] : indptr[stop]], indptr[first], rows_are_in=rows_are_in)
    for v in range(n):
        expected = out[0][v + 1] - out[0][v], into[0][v + 1] - into[0][v], out[0][v]
        for asked in (prop, here):
            assert ask(asked, v) == expected
            assert compiled(ask)(asked, v) == expected
    for v in range(first, stop):
        own = indices[indptr[v] : indptr[v + 1]]
        assert here.neighbours(v).tolist() == own.tolist()
        assert compiled(ask_neighbours)(here, v) == (own.sum(), own.size)


PATH = np.array([0, 1, 3, 4])
WRONG = {
    "a vertex that is not in the graph": (ask, 3, make_prop(3, 4, 2, directed=False, out_rows=explicit(PATH)), IndexError),
    "a vertex before the first": (ask, -1, make_prop(3, 4, 2, directed=False, out_rows=explicit(PATH)), IndexError),
    "degrees that were not brought along": (ask, 1, make_prop(3, 4, 2, directed=False), LookupError),
    "neighbours of no vertex at hand": (ask_neighbours, 1, make_prop(3, 4, 2, directed=False), IndexError),
    "neighbours of another vertex": (
        ask_neighbours,
        0,
        make_prop(3, 4, 2, directed=False).with_rows(1, PATH[1:3], np.array([0, 2], np.uint32), 1, rows_are_in=False),
        IndexError,
    ),
    "neighbours of which a part is at hand": (
        ask_neighbours,
        1,
        make_prop(3, 4, 2, directed=False).with_rows(1, PATH[1:3], np.array([2], np.uint32), 2, rows_are_in=False),
        IndexError,
    ),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("mode", [lambda function: function, compiled], ids=["plain", "compiled"])
def test_what_is_not_there_is_an_error(case, mode):
    """Nothing is answered with a guess, compiled or not."""
    function, v, prop, error = WRONG[case]
    with pytest.raises(error, match=r"a policy asked|prop\.neighbours"):
        mode(function)(prop, v)


def test_scattered_arrays_are_refused():
    """A pointer and a size are only enough for contiguous arrays."""
    prop = make_prop(3, 4, 2, directed=False).with_rows(0, np.repeat(PATH, 2)[::2], np.zeros(4, np.uint32), 0, rows_are_in=False)
    with pytest.raises(TypingError, match="must be contiguous"):
        compiled(ask)(prop, 1)
