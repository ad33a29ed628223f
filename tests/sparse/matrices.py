"""Matrices that are hard to cut, and a library of arrays that is not NumPy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp


def of_rows(lengths, *, num_columns=50, seed=0, dtype=np.float64):
    """Make a CSR matrix whose rows have these numbers of nonzeros (more than there are columns: duplicates)."""
    rng = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int32)
    indices = rng.integers(0, max(1, num_columns), indptr[-1]).astype(np.int32)
    data = (rng.integers(-9, 10, indptr[-1])).astype(dtype)
    return sp.csr_array((data, indices, indptr), shape=(len(lengths), num_columns))


CASES = {
    "no size": of_rows([], num_columns=0),
    "no rows": of_rows([]),
    "no columns": of_rows([0, 0, 0], num_columns=0),
    "no nonzeros": of_rows([0, 0, 0]),
    "one": of_rows([1]),
    "one huge row": of_rows([0, 0, 40, 0, 0]),
    "huge row among others": of_rows([1, 2, 300, 1, 0, 3]),
    "rows of one length": of_rows([4] * 9),
    "empty rows everywhere": of_rows([0, 3, 0, 0, 2, 0, 0, 0, 5, 0, 0]),
    "a single column": of_rows([1, 0, 1, 1, 0], num_columns=1),
}

FORMATS = ["csr", "csc", "coo by row", "coo by column"]


def in_format(matrix, form):
    """Convert a matrix to a format that can be cut."""
    if form == "coo by row":
        return matrix.tocoo()
    if form == "coo by column":
        return matrix.tocsc().tocoo()
    return matrix.asformat(form)


class ForeignArray:
    """An array of a library that, like CuPy, does as NumPy does but never turns into a NumPy array by itself."""

    def __init__(self, values):
        self.values = values
        self.dtype, self.size, self.shape, self.nbytes = values.dtype, values.size, values.shape, values.nbytes

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __array_function__(self, function, _types, arguments, options):
        assert function is np.concatenate
        return ForeignArray(np.concatenate([one.values for one in arguments[0]], **options))

    def __len__(self):
        return len(self.values)

    def __getitem__(self, key):
        return ForeignArray(np.asarray(self.values[key]))

    def clip(self, low, high):
        return ForeignArray(self.values.clip(low, high))

    def all(self):
        return ForeignArray(np.asarray(self.values.all()))

    def __bool__(self):
        return bool(self.values)

    def __int__(self):
        return int(self.values)

    def __add__(self, other):
        return ForeignArray(self.values + other)

    def __sub__(self, other):
        return ForeignArray(self.values - other)

    def __gt__(self, other):
        return ForeignArray(self.values > _plain(other))

    def __lt__(self, other):
        return ForeignArray(self.values < _plain(other))

    def __ge__(self, other):
        return ForeignArray(self.values >= _plain(other))

    def __eq__(self, other):
        return ForeignArray(self.values == _plain(other))

    __hash__ = None


def _plain(value):
    return value.values if isinstance(value, ForeignArray) else value


class ForeignMatrix:
    """A compressed or coordinate matrix of such arrays, as ``cupyx.scipy.sparse`` has them."""

    def __init__(self, arrays, shape):
        data, rest = arrays[0], arrays[1:]
        self.data, self.shape, self.arrays = data, shape, rest

    @classmethod
    def of(cls, matrix):
        """Move a matrix of SciPy there."""
        if matrix.format == "coo":
            made = CoordinateMatrix((ForeignArray(matrix.data), (ForeignArray(matrix.row), ForeignArray(matrix.col))), matrix.shape)
            made.format, (made.row, made.col) = "coo", made.arrays[0]
            return made
        made = cls((ForeignArray(matrix.data), ForeignArray(matrix.indices), ForeignArray(matrix.indptr)), matrix.shape)
        made.format, (made.indices, made.indptr) = matrix.format, made.arrays
        return made

    def plain(self):
        """Return the same as SciPy's arrays."""
        flat = self.arrays[0] if isinstance(self.arrays[0], tuple) else self.arrays
        return SimpleNamespace(data=self.data.values, arrays=[one.values for one in flat])


class CoordinateMatrix(ForeignMatrix):
    """The coordinate one."""
