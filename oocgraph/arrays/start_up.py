"""What starting a GPU costs, and whether a computation is worth that: the decision of device ``auto``.

In: estimates of a computation, and what a process would have to do first. Out: an empty text, or why the processor is to be used. All
are numbers here; `oocgraph.arrays.device_choice` asks drivers and caches.

The times of starting are those of an H100 with 16 processors (``tests/gpu_run/costs.py`` measures them). A computation that is wrongly left
to the processor loses less than the start would have cost.
"""

from __future__ import annotations

from dataclasses import dataclass

from oocgraph.arrays.compiler import Source

CONTEXT_SECONDS = 0.4
"""Import of CuPy and creation of a context."""

LOAD_SECONDS = 0.01
"""Machine code of one source, from the cache to the device."""

COMPILE_SECONDS = 2.5
"""One source; NVRTC 13.5 took 2.4 s for uint32 and 2.6 s for int64."""

LINK_BYTES_PER_SECOND = 8e9
"""From pageable memory or a file through pinned memory to a device, by three host threads: 7 to 9 GB/s were measured."""


@dataclass(frozen=True, slots=True)
class Work:
    """A computation, as far as the choice of a device depends on it.

    Attributes
    ----------
    processor_seconds
        What it takes on the processor, once what it reads is in memory.
    link_bytes
        What has to reach the device and is used once only; what stays there takes no longer than loading it into host memory.
    sources
        Kernels that it needs on a device.
    """

    processor_seconds: float
    link_bytes: int
    sources: tuple[Source, ...]


def start_up_seconds(num_sources: int, *, num_uncompiled: int, has_context: bool) -> float:
    """Return what passes until kernels of some sources, of which some are not compiled, can be launched."""
    context = 0.0 if has_context else CONTEXT_SECONDS
    return context + LOAD_SECONDS * (num_sources - num_uncompiled) + COMPILE_SECONDS * num_uncompiled


def why_not_worth(work: Work, *, num_uncompiled: int, has_context: bool) -> str:
    """Say why a computation is quicker on the processor than on a device that is started for it; an empty text if it may not be.

    Examples
    --------
    >>> why_not_worth(Work(0.01, 0, ()), num_uncompiled=0, has_context=False)
    'to start a GPU takes about 0.4 s, the work on the processor about 0.01 s'
    >>> why_not_worth(Work(10.0, 0, ()), num_uncompiled=0, has_context=False)
    ''
    """
    start = start_up_seconds(len(work.sources), num_uncompiled=num_uncompiled, has_context=has_context)
    link = work.link_bytes / LINK_BYTES_PER_SECOND
    if start + link < work.processor_seconds:
        return ""
    moving = f", to bring the edges to it {_about(link)}" if link >= 0.01 else ""
    starting = f"to start a GPU{' and compile its kernels' if num_uncompiled else ''} takes {_about(start)}"
    return f"{starting}{moving}, the work on the processor {_about(work.processor_seconds)}"


def _about(seconds: float) -> str:
    return f"about {seconds:.2g} s" if seconds >= 0.01 else "less than 0.01 s"
