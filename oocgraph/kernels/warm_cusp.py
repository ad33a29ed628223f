"""Loads the compiled kernels of a partitioning; where the disk cache is cold they are compiled first, in a process of its own.

As `oocgraph.kernels.warm` does for a search, and for the same reason: what a compiler leaves behind would count as the process's memory.
``python -m oocgraph.kernels.warm_cusp uint32 int16 float32`` fills the cache for the dtype of neighbours, of partitions, and of columns.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numba as nb
import numpy as np

from oocgraph.kernels import cusp
from oocgraph.kernels.load import compile_elsewhere


def load_cusp_kernels(index_dtype: str, master_dtype: str, column_dtypes: Iterable[str] = ()) -> None:
    """Bring every kernel of a partitioning into memory, compiling what is not cached."""
    names = [index_dtype, master_dtype, *sorted(set(column_dtypes))]
    wanted = list(_signatures(*names))
    # numba tells by this alone whether a signature is cached: its public way to ask is to compile
    if any(
        signature not in kernel.overloads and kernel._cache.load_overload(signature, kernel.targetctx) is None
        for kernel, signature in wanted
    ):
        compile_elsewhere("oocgraph.kernels.warm_cusp", *names)
    compile_cusp_kernels(*names)


def compile_cusp_kernels(index_dtype: str, master_dtype: str, *column_dtypes: str) -> None:
    """Compile what is not cached in this process, and load what is."""
    for kernel, signature in _signatures(index_dtype, master_dtype, *column_dtypes):
        kernel.compile(signature)


def _signatures(index_dtype: str, master_dtype: str, *column_dtypes: str) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield each kernel with the types that it is called with."""
    number, indices, masters = nb.int64, _array(index_dtype), _array(master_dtype)
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
    for name in column_dtypes:
        yield cusp.scatter, (_array(name), ints, _array(name))


def _array(dtype: str, num_dimensions: int = 1) -> Any:
    return nb.typeof(np.empty((0,) * num_dimensions, dtype))


if __name__ == "__main__":
    compile_cusp_kernels(*sys.argv[1:])
