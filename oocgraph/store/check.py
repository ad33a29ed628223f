"""Checks a store: every stored page against its checksum, then the structure of the arrays.

In: an open store. Out: a report, or CorruptStoreError that lists up to 20 problems. Compressed and remote stores
too; everything is streamed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.compiled.load import load_kernels
from oocgraph.config import num_cores
from oocgraph.errors import ArgumentError, CorruptStoreError
from oocgraph.listing import Listed
from oocgraph.memory import SLACK_BYTES, Budget, bytes_before, limit_bytes_of
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.store.check_pages import READ_BYTES, check_array
from oocgraph.store.check_structure import check_structure, groups_of, kernel_calls, structure_bytes
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.types import Progress, ProgressOption

MAX_PROBLEMS = 20
"""Problems listed in one message."""


@dataclass(frozen=True, slots=True)
class CheckReport(Listed):
    """What a check has seen; it exists only when the store is sound.

    Attributes
    ----------
    num_arrays
        Arrays compared with their checksums.
    num_checksums
        Pages of 4 KiB, or compressed chunks.
    checked_bytes
        Stored bytes compared.
    num_entries
        Entries of ``indices`` whose order was checked.
    seconds
        Wall time.
    """

    num_arrays: int
    num_checksums: int
    checked_bytes: int
    num_entries: int
    seconds: float


@known_keywords
def check_store(
    graph: CSRStore | str | os.PathLike[str], *, resources: Resources | None = None, memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> CheckReport:  # fmt: skip
    """Check that a store's bytes are those that were written, and that its arrays fit together.

    Parameters
    ----------
    graph
        A graph store or its path.
    resources
        Threads and memory; see `oocgraph.Resources`. Fewer threads work where the budget has no room for more.
    memory_budget
        Bytes that the process may hold, such as ``"2G"``; the same as in `resources`.
    progress
        Called with ("checksums", arrays done, arrays) and ("structure", entries done, entries); True draws bars.

    Returns
    -------
    CheckReport

    Raises
    ------
    CorruptStoreError
        Something is wrong. The message names arrays, chunk files, page numbers and byte offsets, up to 20 problems. The
        structure is looked at only when all bytes are as they were written.
    ArgumentError
        The graph is in memory.
    BudgetError
        The budget is too small for one thread; the message names the smallest that works.

    Notes
    -----
    Peak host bytes: one bit per vertex, and per thread 10 MiB, or a chunk of a compressed or remote store.
    """
    asked, store = resources_of("check_store", resources, memory_budget=memory_budget, graph=graph), open_graph(graph)
    if not store.is_shared:
        raise ArgumentError(f"{store.url} is in memory, and has no stored bytes to check; check the store that its method save writes")
    return check_within(store, asked, progress=progress)


def check_within(store: CSRStore, resources: Resources, *, following_bytes: int = 0, progress: ProgressOption = None) -> CheckReport:
    """Check a store as `check_store` does; a refusal names a budget for what follows too, which needs up to `following_bytes`."""
    begin = time.perf_counter()
    with watched(progress) as shown, returned_memory():
        num_threads = _affordable(store, resources.threads or num_cores(), resources.memory_budget, following_bytes)
        checks = _Checks(store, num_threads, shown)
        _refuse(store, checks.pages())
        _refuse(store, checks.structure())
    return CheckReport(checks.num_arrays, checks.num_checksums, checks.checked_bytes, checks.num_entries, time.perf_counter() - begin)


def _affordable(store: CSRStore, most: int, memory_budget: str | int | None, following_bytes: int) -> int:
    """Load what is needed, and return the number of threads that the budget has room for."""
    budget = Budget(limit_bytes_of(memory_budget), baseline_bytes=0)
    one, two = 2 * READ_BYTES, 4 * READ_BYTES
    try:
        load_libraries(store)
        load_kernels(kernel_calls(store))
        one, two = (structure_bytes(store, threads) + threads * 2 * READ_BYTES for threads in (1, 2))
    except CorruptStoreError:
        pass  # the check itself reports what is missing, with all else that is wrong; no structure is looked at then
    budget.baseline_bytes, budget.following_bytes = bytes_before(budget.limit_bytes), following_bytes
    budget.reserve("the check by one thread", SLACK_BYTES + one)
    return 1 + min(most - 1, budget.available_bytes // (two - one))


def _refuse(store: CSRStore, problems: Iterator[str]) -> None:
    """Raise when there are problems; stop looking when there are many."""
    found = []
    for problem in problems:
        found.append(problem)
        if len(found) > MAX_PROBLEMS:
            break
    if found:
        store.confirm()  # it may have been replaced meanwhile
    if len(found) == 1:
        raise CorruptStoreError(found[0])
    if found:
        more = "\nand more" if len(found) > MAX_PROBLEMS else ""
        raise CorruptStoreError(f"{store.url}: {len(found[:MAX_PROBLEMS])} problems\n" + "\n".join(found[:MAX_PROBLEMS]) + more)


class _Checks:
    def __init__(self, store: CSRStore, num_threads: int, progress: Progress) -> None:
        self.store, self.num_threads, self.progress = store, num_threads, progress
        self.num_arrays = self.num_checksums = self.checked_bytes = self.num_entries = 0

    def pages(self) -> Iterator[str]:
        try:
            names = self.store.array_names()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptStoreError(f"{self.store.url}: a zarr.json is damaged ({error!r}); restore the store or build it again") from error
        for done, name in enumerate(names):
            self.progress("checksums", done, len(names))
            for piece in check_array(self.store, name, self.num_threads):
                self.num_checksums += piece.num_checksums
                self.checked_bytes += piece.num_bytes
                yield from piece.problems
            self.num_arrays += 1
        self.progress("checksums", len(names), len(names))

    def structure(self) -> Iterator[str]:
        total = self.store.attributes.num_stored_edges * len(groups_of(self.store))

        def done(num_entries: int) -> None:
            self.num_entries += num_entries
            self.progress("structure", self.num_entries, total)

        try:
            yield from check_structure(self.store, self.num_threads, done)
        except CorruptStoreError as error:
            yield str(error)
