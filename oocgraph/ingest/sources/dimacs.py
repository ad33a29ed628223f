"""Roads of the 9th DIMACS challenge (.gr): a line ``a SOURCE TARGET LENGTH`` for each arc, streamed like any other text.

Ids are those of the file, which count from 1; vertices without arcs are none here. Lengths become the column ``weight``. Comments begin
with c. The line ``p sp VERTICES ARCS`` before the arcs says how many there are. Format: Demetrescu, Goldberg, Johnson, "9th DIMACS
Implementation Challenge: Shortest Paths", 2006.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.arrow_values import ArrowLayout, ids_from_one
from oocgraph.ingest.sources.columns import fixed_layout
from oocgraph.ingest.sources.ids import Place
from oocgraph.ingest.sources.lines import HEADER_BYTES, Dialect, line_blocks
from oocgraph.ingest.sources.parsed_lines import open_counted
from oocgraph.ingest.sources.source import MAX_DIGITS, Request, Source

MARKS = b"cp"
"""What lines begin with that are no arcs."""

LINE_BYTES = 8
"""The shortest line of an arc: ``a 1 1 1`` and its end."""

KIND = "kind"


def open_dimacs(path: Path, request: Request) -> Source:
    """Open a .gr file, compressed or not."""
    num_vertices, num_arcs = _read_header(path)
    layout = fixed_layout(str(path), {"weight": "int64"}, request, make=_Arcs)
    assert isinstance(layout, _Arcs)
    if layout.num_vertices is not None and layout.num_vertices <= num_vertices:
        raise InputError(
            f"{path}: num_vertices = {layout.num_vertices} is too few: ids count from 1 to {num_vertices}; give {num_vertices + 1}, or "
            "leave it out"
        )
    layout = replace(layout, largest_id=num_vertices)
    types: dict[int, Any] = {0: pa.large_string(), 1: pa.int64(), 2: pa.int64()}
    if (asked := layout.dtypes.get("weight")) is not None:
        types[3] = pa.from_numpy_dtype(np.dtype(asked)) if np.dtype(asked).kind == "f" else pa.int64()
    dialect = Dialect(" ", 0, (KIND, "source", "target", "weight"), types, (1, 2), may_be_text=False, marks=MARKS)

    return open_counted(path, dialect, layout, num_arcs, what="arcs", line_bytes=LINE_BYTES)


@dataclass(frozen=True, slots=True)
class _Arcs(ArrowLayout):
    """Lines that begin with a; ids are 1 .. `largest_id`."""

    largest_id: int = 0

    def ids(self, values: Any, place: Place) -> Any:
        """Return the ids of an end, checked."""
        return ids_from_one(values, place, self.largest_id, what="id", remedy="correct the line or the line 'p sp'")

    def block(self, values: Callable[[str], Any], first_row: int, place_of: Callable[[str], Place] | None = None) -> EdgeBlock:
        """Return arcs, if all lines are."""
        kinds = values(KIND)
        if place_of is not None and (position := pc.index(pc.not_equal(kinds, "a"), True).as_py()) >= 0:
            place_of(KIND).refuse(position, f"a line that begins with {kinds[position].as_py()!r:.60} is no arc", "correct or remove it")
        return super(_Arcs, self).block(values, first_row, place_of)


def _read_header(path: Path) -> tuple[int, int]:
    """Return the numbers of vertices and of arcs."""
    for block in line_blocks(path, HEADER_BYTES):
        for number, line in enumerate(block.raw.split(b"\n"), block.first_line):
            words = line.decode("ascii", "replace").split()
            if not words or words[0].startswith("c"):
                continue
            if words[:2] == ["p", "sp"] and len(words) == 4 and all(size.isdigit() and len(size) < MAX_DIGITS for size in words[2:]):
                return int(words[2]), int(words[3])
            raise InputError(
                f"{path}, line {number}: {' '.join(words)!r:.60} is not 'p sp VERTICES ARCS', which a file of DIMACS begins with; correct "
                "it, or its extension"
            )
    raise InputError(f"{path} is truncated: no line 'p sp VERTICES ARCS'; copy or write it again")
