"""Products by several threads: cut rows and columns are put together whatever the number of parts and threads."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph.kernels.semirings import SEMIRINGS, semiring_of
from oocgraph.products.product import multiply, num_private_vectors
from oocgraph.sparse.balanced import balanced_partition
from tests.oracles.products import dense_product
from tests.sparse.matrices import CASES, FORMATS, in_format, of_rows


def random_vectors(matrix, name, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.uint8 if name == "or_and" else np.float64
    return [rng.integers(0, 2 if name == "or_and" else 9, size).astype(kind) for size in matrix.shape[::-1]]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("num_parts", [1, 2, 5, 50])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_and_semiring(form, num_parts, threads):
    for case, matrix in CASES.items():
        for name in SEMIRINGS:
            x, y = random_vectors(matrix, name)
            expected = dense_product(matrix, x, y, name)
            parts = balanced_partition(in_format(matrix, form), num_parts)
            multiply(parts, x, y, semiring_of(name), threads=threads)
            np.testing.assert_allclose(y, expected, err_msg=f"{case}, {name}")


def test_a_row_in_many_parts_is_added_once_from_each():
    matrix = of_rows([0, 1000, 0])
    x, y = np.ones(50), np.full(3, 7.0)
    multiply(balanced_partition(matrix, 999), x, y, semiring_of("plus_times"), threads=4)
    np.testing.assert_allclose(y, 7 + matrix @ x)


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 5, 8])
def test_vectors_of_threads_are_added_as_a_tree(threads):
    """Each is added exactly once, for any number of them."""
    matrix = of_rows([30] * 20)
    parts = balanced_partition(matrix.tocsc(), 11)
    assert num_private_vectors(parts, threads) == threads - 1
    x, y = np.ones(50), np.zeros(20)
    multiply(parts, x, y, semiring_of("plus_times"), threads=threads)
    np.testing.assert_allclose(y, matrix @ x)


def test_no_parts_add_nothing():
    y = np.ones(3)
    multiply([], np.ones(3), y, semiring_of("plus_times"), threads=2)
    assert (y == 1).all()
