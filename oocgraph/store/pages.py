"""The pages of a graph that were read last, in memory: a loop that asks for one vertex after another meets many of them again.

In: a page's array and number. Out: its elements, as they were checked when they were read.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress

from oocgraph.types import PAGE_BYTES, Array

NUM_PAGES = 1024
"""Pages that are kept. A search for an id by halves looks at 20 in turn, of which the first nine are among them."""

PAGES_BYTES = NUM_PAGES * PAGE_BYTES
"""What they take at the most: 4 MiB."""

_Key = tuple[str, int]


class Pages:
    """Up to `NUM_PAGES` pages, without those that were wanted least recently.

    Any thread may call the methods: each operation on the dictionary is atomic. There is no lock, because a process that forks while a
    thread holds one leaves it locked in the child for ever.
    """

    def __init__(self) -> None:
        self._kept = OrderedDict[_Key, Array]()

    def __reduce__(self) -> tuple[type[Pages], tuple[()]]:
        return Pages, ()  # other processes keep others

    @property
    def room_bytes(self) -> int:
        """What those will take that are still to come; those that are kept are the process's own."""
        return max(0, PAGES_BYTES - PAGE_BYTES * len(self._kept))

    def get(self, key: _Key) -> Array | None:
        """Return the elements of a page, which nobody changes; None where they are not kept."""
        found = self._kept.get(key)
        if found is not None:
            with suppress(KeyError):  # another thread has removed it
                self._kept.move_to_end(key)
        return found

    def put(self, key: _Key, elements: Array) -> None:
        """Keep the elements of a page."""
        self._kept[key] = elements
        with suppress(KeyError):  # another thread has cleared all
            if len(self._kept) > NUM_PAGES:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Keep none of them any longer."""
        self._kept.clear()
