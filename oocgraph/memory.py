"""Who holds how many bytes: the budget that is checked before a run, and the measurement that tests it.

A budget counts the whole process (interpreter and imports included), as ``peak_host_bytes`` does:
the peak of RssAnon + RssShmem, sampled every 10 ms. Page cache is not counted: it is the
kernel's to give and to take.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import TypeVar

from oocgraph.allocator import return_all_freed
from oocgraph.config import parse_bytes, settings
from oocgraph.errors import BudgetError
from oocgraph.machine import available_bytes, cgroup_limit_bytes, kernel_text, kib_of
from oocgraph.pool import start

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

SAMPLE_SECONDS = 0.01
"""Interval of the peak sampler."""

IDLE_SAMPLES = 100
"""Intervals that the thread of the peak samplers waits for another one before it ends."""

DEFAULT_SHARE = 0.8
"""Share of the memory available to the process that a budget takes when none is given."""

CGROUP_SHARE = 0.85
"""Share of a control group's limit that may be promised: the rest holds mapped libraries and page cache."""

SLACK_BYTES = 12 << 20
"""Interpreter objects, thread stacks and allocator slack of a run, charged to the budget; measured 4 - 9 MiB."""

PROGRAM_BYTES = 256 << 20
"""What the interpreter, imports and compiled kernels take at the most; what a process holds beyond that, its users have made."""

SPARE_BYTES = 8 << 20
"""Bytes that a refusal adds to the budget it names, because the process that tries again holds a little more before the run begins."""


def format_bytes(num_bytes: float) -> str:
    """Human form of a size, in powers of 1024.

    Examples
    --------
    >>> format_bytes(671088640), format_bytes(12)
    ('640.0 MiB', '12 B')
    """
    size, unit = float(num_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{int(size)} B" if unit == "B" else f"{size:.1f} {unit}"


def _status(pid: int | str) -> str:
    return kernel_text(f"/proc/{pid}/status")


def host_bytes(pid: int | str = "self") -> int:
    """RssAnon + RssShmem of a process now; 0 where /proc does not tell."""
    try:
        text = _status(pid)
    except OSError:
        return 0
    return kib_of(text, "RssAnon") + kib_of(text, "RssShmem")


def mapped_bytes() -> int:
    """RssFile of this process now: pages of files that it has mapped, libraries above all; 0 where /proc does not tell."""
    try:
        return kib_of(_status("self"), "RssFile")
    except OSError:
        return 0


def device_bytes_read() -> int:
    """Bytes this process has caused to be read from block devices so far; 0 where /proc does not tell."""
    try:
        said = os.pread(_io_file(os.getpid()), 4096, 0)
    except OSError:
        return 0
    _, name, rest = said.partition(b"\nread_bytes:")
    return int(rest.split(maxsplit=1)[0]) if name else 0


@lru_cache(maxsize=1)
def _io_file(pid: int) -> int:
    """Open the file in which the kernel counts a process's input, once for all questions: steps of a cluster's searches ask twice each."""
    return os.open(f"/proc/{pid}/io", os.O_RDONLY | os.O_CLOEXEC)


def page_cache_bytes(budget_bytes: int) -> int:
    """Bytes of files that the kernel could keep cached beside a process that holds `budget_bytes`."""
    limit = cgroup_limit_bytes()
    room = available_bytes() + host_bytes()
    return max(0, (room if limit is None else min(room, limit)) - budget_bytes)


def default_budget_bytes() -> int:
    """Return the budget when the user gives none: most of what the machine and the control group leave."""
    limit = cgroup_limit_bytes()
    free = int(DEFAULT_SHARE * available_bytes()) + host_bytes()
    return free if limit is None else min(free, int(CGROUP_SHARE * limit))


def effective_budget_bytes(requested: str | int | None) -> int:
    """Return the user's budget, held below the control group's limit so that mapped libraries still fit."""
    if requested is None:
        return default_budget_bytes()
    limit = cgroup_limit_bytes()
    wanted = parse_bytes(requested)
    return wanted if limit is None else min(wanted, int(CGROUP_SHARE * limit))


def limit_bytes_of(memory_budget: str | int | None) -> int:
    """Return the `effective_budget_bytes` of a call's parameter, whose default is the setting."""
    return effective_budget_bytes(settings().memory_budget if memory_budget is None else memory_budget)


def least_budget(error: BudgetError) -> int:
    """Return the budget that a refusal names, in bytes; 0 if it names none.

    Examples
    --------
    >>> least_budget(BudgetError(enough_memory(59 << 20))) >> 20
    67
    """
    named = re.search(r"at least\s+(\d+)M", str(error))
    return int(named[1]) << 20 if named else 0


def enough_memory(needed_bytes: int) -> str:
    """Return the remedy of a refusal: the smallest budget that works, for a process that needs so many bytes in all.

    Where its control group leaves less than that, the limit that it needs is named too.

    Examples
    --------
    >>> enough_memory(59 << 20)
    'set memory_budget to at least 67M'
    """
    least, limit = -(-(needed_bytes + SPARE_BYTES) >> 20), cgroup_limit_bytes()
    remedy = f"set memory_budget to at least {least}M"
    if limit is None or least << 20 <= int(CGROUP_SHARE * limit):
        return remedy
    return (
        f"{remedy}, and give the process more: the limit of its control group (container, batch job) is {format_bytes(limit)}, "
        f"of which {CGROUP_SHARE:.0%} may be used; it needs {-int(-(least / CGROUP_SHARE) // 1)}M"
    )


def with_threads_that_fit(compute: Callable[[int], Found], most: int, least: int = 1) -> Found:
    """Return what `compute` makes with `most` threads or, where their buffers do not fit, half as many, and so on: results are the same.

    It must refuse before anything is changed. What it raises with `least` threads names the smallest budget that works.

    Raises
    ------
    BudgetError
        There is no room for so few.
    """
    while most > least:
        try:
            return compute(most)
        except BudgetError as error:
            logger.info("%d threads do not fit, half as many are tried: %s", most, error)
        most = max(least, most // 2)
    return compute(most)


ROOM_BYTES = 256 << 20
"""Where a budget leaves less than this, what the C library keeps of earlier runs is given back: 10 to 60 MiB, whose pages cost the next run
some milliseconds then."""

_refused = threading.Event()
"""Set where a budget has been refused: by then parts of the work may have been done, and what they held is free, but not given back."""


def bytes_before(limit_bytes: int) -> int:
    """Return what the process holds before a run within `limit_bytes`; where they leave little room, without what has been freed.

    A budget that was enough, or that a refusal has named, would be refused the next time otherwise.
    """
    held = host_bytes()
    if limit_bytes - held >= ROOM_BYTES and not _refused.is_set():
        return held
    _refused.clear()
    return_all_freed()
    return host_bytes()


@dataclass(slots=True)
class Budget:
    """A promise about host memory: reservations by name that never exceed the limit.

    Parameters
    ----------
    limit_bytes
        What the whole process may hold.
    baseline_bytes
        What it holds before the run (interpreter and imports); measured where it is not given.
    reservations
        Bytes held at once, by name.
    alternatives
        Bytes held at another time, when the reservations are released (a result that is written or checked), by name.
    following_bytes
        Bytes that what follows may need, and will check when more is known: a refusal names a budget for that, too.
    reclaim
        Called with the bytes that are missing before anything is refused: gives back what of the baseline can be made again, and returns
        how many bytes that were.

    Examples
    --------
    >>> budget = Budget(1000, baseline_bytes=100)
    >>> budget.reserve("planes", 500)
    >>> budget.available_bytes
    400
    """

    limit_bytes: int
    baseline_bytes: int = -1
    reservations: dict[str, int] = field(default_factory=dict)
    alternatives: dict[str, int] = field(default_factory=dict)
    following_bytes: int = 0
    reclaim: Callable[[int], int] | None = field(default=None, repr=False)
    _is_all_or_none: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.baseline_bytes < 0:
            self.baseline_bytes = bytes_before(self.limit_bytes)

    @property
    def baseline_text(self) -> str:
        """What the process holds before the run, for a refusal."""
        return f"{'memory in use already' if self._holds_more else 'interpreter and imports'} {format_bytes(self.baseline_bytes)}"

    def remedy(self, needed_bytes: int) -> str:
        """Return the remedy of a refusal, as `enough_memory` does: to hold less before the run, too, where that is more than a program."""
        return ("drop tables, results and runtimes that are not needed any more, or " if self._holds_more else "") + enough_memory(
            needed_bytes
        )

    @property
    def _holds_more(self) -> bool:
        return self.baseline_bytes > PROGRAM_BYTES

    @property
    def reserved_bytes(self) -> int:
        """Sum of the reservations."""
        return sum(self.reservations.values())

    @property
    def promised_bytes(self) -> int:
        """What the process will hold at most: baseline and reservations."""
        return self.baseline_bytes + self.reserved_bytes

    @property
    def available_bytes(self) -> int:
        """What may still be reserved."""
        return self.limit_bytes - self.promised_bytes

    @property
    def least_bytes(self) -> int:
        """What the process will hold at another time, by the largest of the alternatives."""
        return self.baseline_bytes + max(self.alternatives.values(), default=0)

    @property
    def named_bytes(self) -> int:
        """What a refusal names at the least: what is held at another time, or follows."""
        return max(self.least_bytes, self.baseline_bytes + self.following_bytes)

    def reserve(self, name: str, num_bytes: int) -> None:
        """Charge `num_bytes` to `name`.

        Raises
        ------
        BudgetError
            It does not fit; the message lists what is held and the smallest budget that works.
        """
        if not self._is_all_or_none and not self._has_room(num_bytes):
            self._refuse(f"{name} needs {format_bytes(num_bytes)}", num_bytes)
        self.hold(name, num_bytes)

    def reserve_up_to(self, name: str, num_bytes: int) -> None:
        """Raise the charge of `name` to `num_bytes`, if it is lower; refuse as `reserve` does."""
        self.reserve(name, max(0, num_bytes - self.reservations.get(name, 0)))

    def hold(self, name: str, num_bytes: int) -> None:
        """Charge `num_bytes` to `name`, even beyond the limit: what is charged next names a budget for both, and refuses."""
        self.reservations[name] = self.reservations.get(name, 0) + num_bytes

    def reserve_all(self, charges: Mapping[str, int]) -> None:
        """Charge bytes by name, all of them or, where they do not fit, none; see `all_or_none`."""
        with self.all_or_none():
            for name, num_bytes in charges.items():
                self.reserve(name, num_bytes)

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Refuse what is reserved inside as a whole, at the end, so that the message names all that is needed; make nothing of it before.

        Raises
        ------
        BudgetError
            It does not fit; nothing of it is reserved then.

        Examples
        --------
        >>> budget = Budget(50 << 20, baseline_bytes=20 << 20)
        >>> with budget.all_or_none():
        ...     budget.reserve("planes", 40 << 20)
        ...     budget.reserve("ids", 7 << 20)
        Traceback (most recent call last):
        oocgraph.errors.BudgetError: planes 40.0 MiB, ids 7.0 MiB need 47.0 MiB but only 30.0 MiB of the memory budget 50.0 MiB are left \
(interpreter and imports 20.0 MiB); set memory_budget to at least 75M
        """
        before, self._is_all_or_none = dict(self.reservations), True
        with self.unless_it_fails():
            try:
                yield
            finally:
                self._is_all_or_none = False
            more = {name: size - before.get(name, 0) for name, size in self.reservations.items() if size > before.get(name, 0)}
            if more and not self._has_room(0):
                self.reservations = before
                total = sum(more.values())
                parts = ", ".join(f"{name} {format_bytes(size)}" for name, size in more.items())
                self._refuse(f"{parts} {'needs' if len(more) == 1 else 'need'} {format_bytes(total)}", total)
            self.check_alternatives()

    @contextmanager
    def unless_it_fails(self) -> Iterator[None]:
        """Give back what is reserved inside if that ends with an error: something else may be tried then.

        Examples
        --------
        >>> budget = Budget(1000, baseline_bytes=100)
        >>> try:
        ...     with budget.unless_it_fails():
        ...         budget.reserve("planes", 500)
        ...         budget.reserve("ids", 500)
        ... except BudgetError:
        ...     print(budget.reserved_bytes)
        0
        """
        before = dict(self.reservations)
        try:
            yield
        except BaseException:
            self.reservations = before
            raise

    def check_alternatives(self) -> None:
        """Refuse what does not fit at another time.

        Raises
        ------
        BudgetError
            The largest of the alternatives does not fit.
        """
        if self.alternatives and self.least_bytes > self.limit_bytes:
            _refused.set()
            name, size = max(self.alternatives.items(), key=lambda one: one[1])
            raise BudgetError(
                f"{name} needs {format_bytes(size)} beside the {self.baseline_text}, but the memory budget is "
                f"{format_bytes(self.limit_bytes)}; {self.remedy(self.named_bytes)}"
            )

    def _has_room(self, num_bytes: int) -> bool:
        if num_bytes > self.available_bytes and self.reclaim is not None:
            self.baseline_bytes -= self.reclaim(num_bytes - self.available_bytes)
        return num_bytes <= self.available_bytes

    def _refuse(self, what: str, num_bytes: int) -> None:
        held = ", ".join(f"{key} {format_bytes(value)}" for key, value in self.reservations.items())
        need = max(self.promised_bytes + num_bytes, self.named_bytes)
        _refused.set()
        raise BudgetError(
            f"{what} but only {format_bytes(max(0, self.available_bytes))} of the memory budget "
            f"{format_bytes(self.limit_bytes)} are left ({self.baseline_text}{', ' + held if held else ''}); {self.remedy(need)}"
        )

    def alternatively(self, name: str, num_bytes: int) -> None:
        """Note what is held at another time, when the reservations are released; `all_or_none` refuses what does not fit.

        Examples
        --------
        >>> budget = Budget(50 << 20, baseline_bytes=20 << 20)
        >>> budget.alternatively("writing the result", 40 << 20)
        >>> with budget.all_or_none():
        ...     budget.reserve("planes", 10 << 20)
        Traceback (most recent call last):
        oocgraph.errors.BudgetError: writing the result needs 40.0 MiB beside the interpreter and imports 20.0 MiB, but the memory \
budget is 50.0 MiB; set memory_budget to at least 68M
        """
        self.alternatives[name] = num_bytes

    def release(self, name: str) -> None:
        """Give back what `name` holds."""
        self.reservations.pop(name)


class PeakSampler:
    """Context manager that records the peak of this process's host bytes, every 10 ms, by a thread that all samplers share.

    Examples
    --------
    >>> with PeakSampler() as sampler:
    ...     block = bytearray(1 << 20)
    >>> sampler.peak_bytes > 1 << 20
    True
    """

    def __init__(self) -> None:
        self.peak_bytes = 0

    def see(self, num_bytes: int) -> None:
        """Take notice of what the process holds."""
        self.peak_bytes = max(self.peak_bytes, num_bytes)

    def __enter__(self) -> PeakSampler:
        self.see(host_bytes())
        _sampling.begin(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _sampling.end(self)
        self.see(host_bytes())


class _Sampling:
    """The thread of all samplers. It ends when there has been none for a while: a series of short calls starts one, not one each."""

    def __init__(self) -> None:
        self._lock, self._samplers = threading.Lock(), list[PeakSampler]()
        self._is_running = False

    def begin(self, sampler: PeakSampler) -> None:
        with self._lock:
            self._samplers.append(sampler)
            if not self._is_running:
                start(threading.Thread(target=self._sample, name="oocgraph-peak-sampler", daemon=True))
                self._is_running = True

    def end(self, sampler: PeakSampler) -> None:
        with self._lock:
            if sampler in self._samplers:  # not where the process was forked since
                self._samplers.remove(sampler)

    def _sample(self) -> None:
        idle = 0
        while True:
            time.sleep(SAMPLE_SECONDS)
            with self._lock:
                samplers = list(self._samplers)
                idle = 0 if samplers else idle + 1
                if idle > IDLE_SAMPLES:
                    self._is_running = False
                    return
            held = host_bytes() if samplers else 0
            for sampler in samplers:
                sampler.see(held)


_sampling = _Sampling()


def _forget_sampling() -> None:
    """Begin again in a child process, which the thread is not in."""
    global _sampling  # noqa: PLW0603 - its lock may be held
    _sampling = _Sampling()


os.register_at_fork(after_in_child=_forget_sampling)
