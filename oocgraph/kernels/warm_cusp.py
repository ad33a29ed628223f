"""The kernels of a partitioning, with arguments of the types that it calls them with; brings them into memory.

These depend on the dtypes of neighbours, of partitions, and of columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from oocgraph.compiled.load import Call, load_kernels
from oocgraph.kernels import cusp
from oocgraph.types import Array


def load_cusp_kernels(index_dtype: str, master_dtype: str, column_dtypes: Iterable[str] = ()) -> None:
    """Bring every kernel of a partitioning into memory, compiling what is not cached."""
    load_kernels(cusp_calls(index_dtype, master_dtype, column_dtypes))


def cusp_calls(index_dtype: str, master_dtype: str, column_dtypes: Iterable[str] = ()) -> Iterator[Call]:
    """Yield each kernel with arguments of the types that it is called with."""
    number, indices, masters = 0, _array(index_dtype), _array(master_dtype)
    ints, words, pairs, table = _array("int64"), _array("uint64"), _array("int64", 2), _array("uint64", 2)
    block = number, ints, indices, number
    yield cusp.count_owned, (*block, masters, masters, table, pairs)
    yield cusp.hash_owners, (number, masters)
    yield cusp.split_proxies, (number, masters, words, words, words)
    yield cusp.rank_words, (words, number, table)
    yield cusp.list_bits, (words, number, ints)
    yield (
        cusp.insert_edges,
        (*block, masters, masters, _array("uint64", 3), ints, ints, _array("int32"), indices, ints, ints, ints, ints),
    )
    for local in {index_dtype, "uint32"}:  # a part of a graph whose vertices need more may do with less
        lists = _array(local)
        yield cusp.count_columns, (lists, ints)
        yield cusp.transpose_rows, (number, ints, lists, number, number, number, ints, lists, ints)
    for name in sorted(set(column_dtypes)):
        yield cusp.scatter, (_array(name), ints, _array(name))


def _array(dtype: str, num_dimensions: int = 1) -> Array:
    return np.empty((0,) * num_dimensions, dtype)
