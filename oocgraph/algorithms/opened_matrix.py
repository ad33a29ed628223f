"""A matrix in memory, open for many products: on GPUs it is brought to them once.

In: a sparse matrix, resources. Out: `OpenedMatrix`, what `oocgraph.open_runtime` returns for one; `oocgraph.spmv` alone takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from oocgraph.closing import Closing
from oocgraph.engine.lifetime import Lifetime
from oocgraph.engine.on_devices import HoldsOnDevices, Kept, KeptOnDevices
from oocgraph.errors import BudgetError
from oocgraph.memory import Budget, bytes_before
from oocgraph.resources import Resources
from oocgraph.sparse.balanced import balanced_partition

Found = TypeVar("Found")


class OpenedMatrix(HoldsOnDevices, Closing):
    """A sparse matrix in host memory for any number of products, which take turns. Use it in a ``with`` statement.

    Parameters
    ----------
    matrix
        In CSR, CSC or sorted COO; it must not be changed meanwhile.
    resources
        Memory, threads and device.

    Raises
    ------
    ArgumentError
        The matrix cannot be cut.
    """

    client = None
    """The Dask client on whose workers it is: none."""

    lease = None
    """Name under which workers keep edges for it: there are none."""

    keeps = True
    """Whether what a product has on devices serves the next."""

    def __init__(self, matrix: Any, resources: Resources) -> None:
        balanced_partition(matrix, 1)  # which refuses what cannot be cut
        self.matrix, self.resources = matrix, resources
        self._lifetime = Lifetime(f"a matrix of shape {matrix.shape}")
        self._on_devices = KeptOnDevices()
        self._limit_bytes, self._baseline_bytes = resources.limit_bytes, bytes_before(resources.limit_bytes)

    def check(self) -> None:
        """Refuse to do anything once it is closed."""
        self._lifetime.check()

    def close(self) -> None:
        """Give back what it holds; closing again does nothing."""
        with self._lifetime.ending() as was_open:
            if was_open:
                self._on_devices.give_back()

    def within(self, compute: Callable[[Budget], Found]) -> Found:
        """Return what `compute` makes within what is left of the budget; where that is too little, of all of it."""
        self._lifetime.check()
        with self._lifetime.searching:
            self._lifetime.check()
            try:
                return compute(self._budget())
            except BudgetError:
                if not self._on_devices:
                    raise
                self._on_devices.give_back()
            return compute(self._budget())

    @contextmanager
    def on_devices(self, key: Hashable, make: Callable[[], Kept]) -> Iterator[Kept]:
        """Yield what `make` has made at the first call with this key, and keep it for the next; inside of `within`."""
        with self._on_devices.lend(key, make, keep=True) as found:
            yield found

    def _budget(self) -> Budget:
        return Budget(self._limit_bytes, self._baseline_bytes + self._on_devices.host_bytes)
