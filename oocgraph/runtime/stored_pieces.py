"""A stored graph's edges, piece by piece, to any function: several times over, as many pieces kept as the budget allows.

In: a store and a budget, as for `oocgraph.runtime.stored_product.StoredProduct`, which this is. Out: `StoredPieces.each`, which hands every
piece to a function in one of several threads. Pieces that are kept are visited between those that are read, so that neither the disk nor
the processor waits for the other.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from oocgraph.kernels.semirings import semiring_of
from oocgraph.partition.partial import PartialCSR
from oocgraph.runtime.stored_product import StoredProduct

_ANY = semiring_of("plus_times")
"""Where no product is made: nothing more is asked of values."""

_T = TypeVar("_T")


class StoredPieces(StoredProduct):
    """The edges of a graph for algorithms that visit all of them again and again."""

    def each(self, use: Callable[[PartialCSR], _T]) -> list[_T]:
        """Return what `use` makes of every piece, in the order of the pieces.

        Parameters
        ----------
        use
            Called in several threads at once; a piece is in memory for as long as the call lasts.

        Raises
        ------
        CorruptStoreError
            The store cannot be read, or a neighbour is no vertex.
        """
        num_parts = len(self.parts)
        order = _interleaved(self._num_kept, num_parts) if self._kept else list(range(num_parts))
        threads = self.threads if len(self._kept) == num_parts else self._num_workers
        with ThreadPoolExecutor(threads, thread_name_prefix="oocgraph-pieces") as pool:
            made = dict(zip(order, pool.map(lambda i: self._visit(i, use), order), strict=True))
        return [made[i] for i in range(num_parts)]

    def _visit(self, i: int, use: Callable[[PartialCSR], _T]) -> _T:
        if i in self._kept:
            return use(self._kept[i])
        if i < self._num_kept:
            self._kept[i] = self._read(self.parts[i], None, _ANY)
            return use(self._kept[i])
        buffers = self._buffers.get()
        try:
            return use(self._read(self.parts[i], buffers, _ANY))
        finally:
            self._buffers.put(buffers)


def _interleaved(num_kept: int, num_parts: int) -> list[int]:
    """Order of visit: pieces that are kept spread evenly between those that are read.

    Examples
    --------
    >>> _interleaved(2, 6)
    [2, 0, 3, 4, 1, 5]
    """
    num_read = num_parts - num_kept
    kept = [((i + 0.5) / num_kept, i) for i in range(num_kept)]
    return [i for _, i in sorted(kept + [((i + 0.5) / num_read, num_kept + i) for i in range(num_read)])]
