"""What happens when a device has too little memory: the processor computes, unless the device was asked for.

In: what is computed, a device, what the caller asked for, why it does not fit. Out: why the processor computes, or the error again.
"""

from __future__ import annotations

import logging

from oocgraph.arrays import Device
from oocgraph.errors import BudgetError
from oocgraph.types import DeviceKind

logger = logging.getLogger(__name__)


def processor_instead(
    what: str, device: Device, error: BudgetError, *, kind: DeviceKind, device_memory_budget: str | int | None,
    beside_searches: bool = False,
) -> str:  # fmt: skip
    """Return why the processor computes what has no room on a device, and log it as a warning; in the handler of `error`.

    Parameters
    ----------
    what
        Noun of the computation, in the singular: it is "this `what`" that does not fit.
    device, error
        The device that was tried, and what was refused there.
    kind, device_memory_budget
        What the caller asked for, or the configuration.
    beside_searches
        Whether searches of an opened graph have been given the device's memory, and the computation what they leave. It may be made on
        the processor, whatever was asked for.

    Raises
    ------
    BudgetError
        `error`: a device or bytes of its memory were asked for.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> gpu, error = SimpleNamespace(name="GPU 0"), BudgetError("2M are needed")
    >>> processor_instead("product", gpu, error, kind="auto", device_memory_budget=None)
    'this product does not fit the memory of GPU 0: 2M are needed'
    >>> processor_instead("product", gpu, error, kind="auto", device_memory_budget="1M")
    Traceback (most recent call last):
    oocgraph.errors.BudgetError: 2M are needed
    """
    if not beside_searches and (kind != "auto" or device_memory_budget is not None):
        raise error
    reason = f"this {what} does not fit the memory of {device.name}: {error}"
    logger.warning("device: cpu, because %s", reason)
    return reason
