"""Arrow's layout of strings, as two NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from oocgraph.types import Array


def string_buffers(strings: Any) -> tuple[Array, Array]:
    """Return uint8 bytes and int64 offsets (from 0) of a pyarrow.LargeStringArray without nulls.

    Examples
    --------
    >>> import pyarrow as pa
    >>> string_buffers(pa.array(["ab", "", "c"], pa.large_string()))[1].tolist()
    [0, 2, 2, 3]
    """
    if not len(strings):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = strings.buffers()
    bounds = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return raw[bounds[0] : bounds[-1]], bounds - bounds[0]
