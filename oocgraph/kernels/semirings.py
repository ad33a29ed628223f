"""The semirings in which a matrix multiplies a vector: ``y_i = plus over j of times(A_ij, x_j)``.

In: a name. Out: `Semiring`: its code for kernels, the identity of its plus, plus as a ufunc, and which numbers it takes.
A matrix without values has ones (true, in ``or_and``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from oocgraph.errors import ArgumentError
from oocgraph.types import Array

PLUS_TIMES, MIN_PLUS, OR_AND, PLUS_SECOND = 0, 1, 2, 3
"""Integer codes that select the semiring inside kernels."""

SemiringName = Literal["plus_times", "min_plus", "or_and", "plus_second"]


@dataclass(frozen=True, slots=True)
class Semiring:
    """How products are made and added.

    Attributes
    ----------
    name : str
    code : int
        For kernels.
    identity : float
        Of plus: what a line without nonzeros gives.
    plus : ufunc
        Adds partial results; hands a NaN on.
    uses_values : bool
        Whether values of the matrix matter.
    """

    name: str
    code: int
    identity: float
    plus: Any
    uses_values: bool = True

    @property
    def is_boolean(self) -> bool:
        """Whether vectors are of bools (to kernels: bytes 0 and 1)."""
        return self.code == OR_AND

    def add(self, y: Array, other: Array) -> None:
        """Add partial results to `y`; infinities of both signs make a NaN, as in a kernel, without a warning."""
        with np.errstate(invalid="ignore", over="ignore"):
            self.plus(y, other, out=y)

    def zeros(self, shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return a vector, or a matrix, of identities."""
        return np.full(shape, self.identity, dtype)


SEMIRINGS = {
    "plus_times": Semiring("plus_times", PLUS_TIMES, 0, np.add),
    "min_plus": Semiring("min_plus", MIN_PLUS, np.inf, np.minimum),
    "or_and": Semiring("or_and", OR_AND, 0, np.bitwise_or),
    "plus_second": Semiring("plus_second", PLUS_SECOND, 0, np.add, uses_values=False),
}
"""times of ``min_plus`` is addition; of ``plus_second`` the vector's element, whatever the matrix's value."""


def semiring_of(name: str) -> Semiring:
    """Return a semiring by name.

    Raises
    ------
    ArgumentError
        There is none of this name.
    """
    if name not in SEMIRINGS:
        raise ArgumentError(f"semiring is {name!r}; it must be one of {', '.join(SEMIRINGS)}")
    return SEMIRINGS[name]
