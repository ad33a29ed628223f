"""Arrays of a device: what a search that runs on one asks of it, and how one is chosen.

In: a wish (``auto``, ``cpu``, ``cuda``). Out: a `Device`, or None for the processor's own memory. All that runs on a device is written
against the protocol `Device`; `oocgraph.arrays.cuda` is its implementation on CuPy, imported when a device is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, get_args

from oocgraph.arrays.start_up import Work, why_not_worth
from oocgraph.errors import ArgumentError, DeviceError, MissingDependencyError
from oocgraph.types import Array, DeviceKind

__all__ = ["Device", "DeviceChoice", "DeviceKind", "Work", "device_choice", "devices_choice"]


class Device(Protocol):
    """Memory, streams and kernels of one device.

    Attributes
    ----------
    name
        For people, such as ``NVIDIA H200``.
    ordinal
        Number among the devices that this process sees.
    num_multiprocessors
        Streaming multiprocessors, from which grids are sized.
    total_bytes
        Device memory.
    bus_id
        Address on the PCI bus, such as ``0000:3b:00.0``; None if it is not known.

    Notes
    -----
    Methods may be called from several threads. All raise `oocgraph.errors.DeviceError`: of a kernel's fault whichever is next.
    """

    name: str
    ordinal: int
    num_multiprocessors: int
    total_bytes: int
    bus_id: str | None

    def free_bytes(self) -> int:
        """Return the bytes of device memory that could be allocated now."""
        ...

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """Allocate an array in device memory, with any content."""
        ...

    def pinned(self, num_bytes: int) -> Array:
        """Allocate page-locked host memory: (num_bytes,) uint8 NumPy array, with any content; it lives as long as its views."""
        ...

    def mapped(self, pinned: Array) -> Array:
        """Return what kernels take to read (a view of) pinned memory where it is, without a copy (zero-copy); it keeps that alive."""
        ...

    def stream(self) -> Any:
        """Make a stream whose work is ordered with that of no other stream."""
        ...

    def event(self, *, blocking: bool = False) -> Any:
        """Make an event that notes when it was reached; a thread that waits for a `blocking` one sleeps, and is woken some time later."""
        ...

    def record(self, event: Any, stream: Any) -> None:
        """Let the event be reached when all work that `stream` has now is done."""
        ...

    def wait(self, stream: Any, event: Any) -> None:
        """Let later work of `stream` wait for the event; the host goes on."""
        ...

    def synchronize(self, what: Any) -> None:
        """Let the host wait for a stream or an event."""
        ...

    def wait_for_others(self) -> None:
        """Let the host wait for what the calling thread has asked of the device by other ways, such as CuPy's operators."""
        ...

    def seconds(self, start: Any, stop: Any) -> float:
        """Return the time between two events that have been reached."""
        ...

    def copy(self, source: Array, target: Array, stream: Any) -> None:
        """Copy without waiting for it: pinned to device, device to pinned, or device to device.

        Parameters
        ----------
        source, target
            Contiguous, of equally many bytes; neither may be changed or freed before `stream` is through.
        stream
            Where the copy takes its turn.
        """
        ...

    def reaches(self, other: Any) -> bool:
        """Whether a copy from another `Device` comes straight from its memory, not by way of the host's."""
        ...

    def module(self, code: str, names: Sequence[str]) -> Any:
        """Compile CUDA C++; ``.get_function(name)`` of what returns gives each of `names`, such as ``expand<unsigned int, 3>``."""
        ...

    def lacks(self, code: str, names: Sequence[str]) -> bool:
        """Whether `module` would have to compile: neither this process nor the cache on disk has the kernels for this device."""
        ...

    def resident_blocks(self, function: Any, block: int) -> int:
        """Return how many blocks, of `block` threads each, of a kernel of `module` a multiprocessor holds at once."""
        ...

    def launch(self, function: Any, grid: int, block: int, args: tuple[Any, ...], stream: Any) -> None:
        """Start a kernel of `module`.

        Parameters
        ----------
        function
            From ``get_function``.
        grid, block
            Blocks, and threads of each.
        args
            Device or mapped arrays, NumPy scalars of the parameters' sizes, or None for a null pointer.
        stream
            Where it takes its turn.
        """
        ...

    def close(self) -> None:
        """Give memory that is no longer used back to the driver; arrays that are still referred to stay."""
        ...


class DeviceChoice(NamedTuple):
    """A device, or None for the processor, and why."""

    device: Device | None
    reason: str


def device_choice(kind: DeviceKind, ordinal: int | None = None, *, work: Callable[[], Work] | None = None) -> DeviceChoice:
    """Open the device that `kind` asks for and say why it is that one.

    Parameters
    ----------
    kind
        ``cpu``: none. ``cuda``: a GPU, or an error. ``auto``: a GPU if one can be used, and `work` is worth the start.
    ordinal
        Which of the visible GPUs; by default the one that CuPy regards as current (dask-cuda shows each worker its own first).
    work
        Says what is to be done, and is called where there is a driver; by default any work is worth a start. One costs less on a GPU on
        which this process has a context, and whose kernels are compiled.

    Raises
    ------
    DeviceError
        ``cuda``, and no GPU can be used: the message says why and what to do.
    MissingDependencyError
        ``cuda``, and CuPy is not installed.
    ArgumentError
        `kind` is none of the three.

    Examples
    --------
    >>> device_choice("cpu")
    DeviceChoice(device=None, reason='the processor was asked for')
    """
    if kind not in get_args(DeviceKind):
        raise ArgumentError(f"device is {kind!r}; it must be one of {', '.join(get_args(DeviceKind))}")
    if kind == "cpu":
        return DeviceChoice(None, "the processor was asked for")
    from oocgraph.arrays import drivers

    try:
        if drivers.driver_version() is None:
            raise drivers.no_driver()
        from oocgraph.arrays import cuda

        if kind == "auto" and work is not None and (why := _why_not(work, ordinal)):
            return DeviceChoice(None, why)
        device = cuda.open_cuda(ordinal)
    except (DeviceError, MissingDependencyError) as error:
        if kind == "cuda":
            raise
        return DeviceChoice(None, str(error))
    return DeviceChoice(device, "a GPU was asked for" if kind == "cuda" else "a GPU can be used")


def _why_not(work: Callable[[], Work], ordinal: int | None) -> str:
    """Say why some work is not worth a start of the GPU; an empty text if it is.

    CuPy is not even imported where the work would not be worth it with all kernels compiled.
    """
    from oocgraph.arrays import cuda, drivers

    what, has_context = work(), drivers.has_context(ordinal or 0)
    why = why_not_worth(what, num_uncompiled=0, has_context=has_context)
    return why or why_not_worth(what, num_uncompiled=cuda.num_uncompiled(what.sources, ordinal), has_context=has_context)


def devices_choice(
    kind: DeviceKind, ordinal: int | None = None, *, work: Callable[[], Work] | None = None
) -> tuple[tuple[Device, ...], str]:  # fmt: skip
    """Open all devices that `kind` asks for, and say why: none for the processor, else every GPU that this process sees.

    The first decides, as in `device_choice`: `ordinal` says which it is.

    Raises
    ------
    DeviceError, MissingDependencyError, OocGraphError
        As `device_choice`. Of several GPUs those that cannot be used are left out, which is logged.
    """
    first, reason = device_choice(kind, ordinal, work=work)
    if first is None:
        return (), reason
    from oocgraph.arrays.cuda import CudaDevice, open_others

    return (first, *(open_others(first) if isinstance(first, CudaDevice) else ())), reason
