"""A product of a matrix and a vector, entry by entry."""

from __future__ import annotations

import numpy as np

from oocgraph.kernels.semirings import semiring_of


def dense_product(matrix, x, y, name):
    """Multiply the matrix as triples."""
    coo = matrix.tocoo()
    products = {
        "plus_times": coo.data * x[coo.col],
        "plus_second": x[coo.col],
        "min_plus": coo.data + x[coo.col],
        "or_and": ((coo.data != 0) & (x[coo.col] != 0)).astype(np.uint8),
    }[name]
    y = y.copy()
    semiring_of(name).plus.at(y, coo.row, products.astype(y.dtype))
    return y
