"""The columns beside the edges of a source: which there are, and what becomes of duplicates; and the distinct strings of one.

In: a source, and the user's choice. Out: the `Payload` of its records (`oocgraph.store.records`).
"""

from __future__ import annotations

import logging
import threading
from typing import Any

import numpy as np

from oocgraph.arrow import from_numbers, to_numbers
from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeSource
from oocgraph.store.layout import WEIGHT, column_name_fault
from oocgraph.store.records import CODE, Payload, meant_duplicates
from oocgraph.types import Array, Duplicates

NO_CODE = np.full(1, -1, np.int32)
"""Of a string that is missing."""

logger = logging.getLogger(__name__)

MEANT = {
    "min": "of a graph with weights means 'min': an edge that occurs more than once gets its smallest weight",
    "drop": "of a graph without weights means 'drop': an edge that occurs more than once is kept once",
}
"""What is done instead of what was asked for, by the value that stands for it."""


def choose_payload(edges: EdgeSource, duplicates: Duplicates | None) -> Payload:
    """Columns of a source, and what becomes of its duplicates.

    Raises
    ------
    InputError
        An edge column is called ``weight`` but is not the weight, or its name cannot be a name in a store.
    """
    dtypes = {name: None if kind == "string" else np.dtype(kind) for name, kind in edges.columns.items()}
    weight = None
    if edges.weight is not None:
        dtype = dtypes.pop(edges.weight)
        if dtype is None:
            raise InputError(f"{edges.description}: the weight column {edges.weight!r} holds text; give a column of numbers")
        weight = (edges.weight, dtype)
    for name in dtypes:
        if fault := "is the name of the weight" if name == WEIGHT else column_name_fault(name):
            raise InputError(f"{edges.description}: the edge column name {name!r:.100} {fault}; rename the column")
    chosen = meant_duplicates(duplicates or "drop", weighted=weight is not None)
    if chosen != (duplicates or "drop"):
        logger.info("%s: duplicates='%s' %s", edges.description, duplicates or "drop", MEANT[chosen])
    return Payload(dtypes, weight, chosen)


class Categories:
    """The distinct strings of one edge column, while they are being found.

    Codes are given in order of arrival; `finish` tells what they become in the sorted list. They take
    ``num_bytes``, about.
    """

    def __init__(self) -> None:
        self.num_bytes = self._num_rows = 0
        self._codes: dict[str, int] = {}
        self._lock = threading.Lock()

    def encode(self, strings: Any) -> Array:
        """Provisional codes of a pyarrow string array: (n,) int32."""
        encoded = strings.dictionary_encode()
        words = encoded.dictionary.to_pylist()
        with self._lock:
            self._num_rows += len(strings)
            lookup = np.empty(len(words) + 1, CODE)
            lookup[-1] = -1
            for position, word in enumerate(words):
                code = self._codes.get(word)
                if code is None:
                    code = self._codes[word] = len(self._codes)
                    self.num_bytes += 200 + 4 * len(word)
                lookup[position] = code
        return lookup[to_numbers(encoded.indices.fill_null(from_numbers(NO_CODE)[0]))]

    def counts(self) -> tuple[int, int]:
        """Return how many there are, and the rows they were found in."""
        with self._lock:
            return len(self._codes), self._num_rows

    def finish(self) -> tuple[list[bytes], Array]:
        """Return the strings in ascending order of their bytes, and the final code of each provisional one (the last: null)."""
        words = sorted(self._codes)
        final = np.empty(len(words) + 1, CODE)
        final[[self._codes[word] for word in words]] = np.arange(len(words), dtype=CODE)
        final[-1] = -1
        return [word.encode() for word in words], final
