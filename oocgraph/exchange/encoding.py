"""Messages as buffers: a named tuple of numbers and arrays, and what is for one receiver alone.

In: a NamedTuple whose fields are numbers, texts, nested lists of these, None, or one-dimensional arrays. Out: buffers, of which the
arrays are views.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypeVar

import numpy as np

from oocgraph.errors import ClusterError
from oocgraph.types import Array

WORD = 8
"""Bytes at a multiple of which every array begins."""

Message = TypeVar("Message", bound=tuple[Any, ...])


class Parcel(NamedTuple):
    """What comes from one sender.

    Attributes
    ----------
    message
        For all receivers; None: the sender could not go on.
    own : (n,) uint8
        For this receiver alone; empty: nothing.
    seconds
        That the sender had spent on the hop.
    """

    message: Any
    own: Array
    seconds: float


def encode(message: tuple[Any, ...] | None, seconds: float) -> list[Array]:
    """Return what goes to every receiver; a buffer for one of them alone may follow."""
    arrays = [one for one in message or () if isinstance(one, np.ndarray)]
    fields = None if message is None else [[one.dtype.str, one.size] if isinstance(one, np.ndarray) else [one] for one in message]
    header = json.dumps([seconds, fields]).encode()
    buffers = [np.array([len(header)], np.int64).view(np.uint8), *_padded(np.frombuffer(header, np.uint8))]
    for one in arrays:
        buffers += _padded(np.ascontiguousarray(one).view(np.uint8))
    return buffers


def decode(raw: Array, kind: type[Message]) -> Parcel:
    """Return what a message holds; its arrays are views of `raw`.

    Raises
    ------
    ClusterError
        It is none.
    """
    try:
        size = int(raw[:WORD].view(np.int64)[0])
        seconds, fields = json.loads(raw[WORD : WORD + size].tobytes())
        at, found = WORD + _round_up(size), list[Any]()
        for one in fields or ():
            if len(one) == 1:
                found.append(one[0])
                continue
            dtype, count = np.dtype(one[0]), int(one[1])
            found.append(raw[at : at + count * dtype.itemsize].view(dtype))
            at += _round_up(count * dtype.itemsize)
        return Parcel(None if fields is None else kind(*found), raw[at:], float(seconds))
    except (ValueError, TypeError, IndexError) as error:
        raise ClusterError(f"a message of {raw.size} bytes between workers cannot be read: {error}; look at the workers' logs") from error


def _padded(one: Array) -> list[Array]:
    """Return bytes, and what fills their last word."""
    missing = _round_up(one.size) - one.size
    return [one, np.zeros(missing, np.uint8)] if missing else [one]


def _round_up(size: int) -> int:
    return -(-size // WORD) * WORD
