"""The compiled kernel of common entries against the plain one, on random rows of any lengths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocgraph.kernels import intersect
from tests.oracles import intersect as reference


@pytest.mark.parametrize("dtype", ["uint32", "int64"])
@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=200)
def test_common_entries(dtype, seed):
    """Empty, equal, nested and very unequal rows; pairs that are in their rows; room for all that is found, for some and for none."""
    rng = np.random.default_rng(seed)
    most = int(rng.choice([5, 60, 3000]))
    rows = [np.flatnonzero(rng.random(most) < share) for share in rng.choice([0, 0.002, 0.1, 0.5, 0.9, 1], 8)]
    entries, ends = np.concatenate(rows).astype(dtype), np.cumsum([row.size for row in rows])
    starts = ends - [row.size for row in rows]
    which = rng.integers(0, len(rows), (2, int(rng.integers(0, 9))))
    pairs = rng.integers(0, most + 5, which.shape)
    for room in (0, int(rng.integers(0, 50)), entries.size * 9):
        outcomes = []
        for kernel in (intersect.common_entries, reference.common_entries):
            counts, found = np.full(which.shape, -1), np.full(room, -1)
            outcomes.append((kernel(entries, starts[which], ends[which], pairs, counts, found), counts.tolist(), found.tolist()))
        assert outcomes[0] == outcomes[1]
