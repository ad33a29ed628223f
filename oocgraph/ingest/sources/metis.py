"""Graphs of METIS (.graph): a line for each vertex, with its neighbours; read by a kernel, since a line may be long.

Vertices count from 1 in the file and from 0 here. The first line is ``VERTICES EDGES [FORMAT [NUMBERS]]``; a format such as 11 says that a
line begins with so many numbers of the vertex, which are not read, and that each neighbour is followed by a weight, the column ``weight``.
Source: Karypis, Kumar, "METIS: A Software Package for Partitioning Unstructured Graphs", manual, 1998, section 4.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np

from oocgraph.compiled.load import load_kernels
from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.columns import fixed_layout
from oocgraph.ingest.sources.compressed import open_text, read_text
from oocgraph.ingest.sources.ids import Place
from oocgraph.ingest.sources.lines import BYTE_ORDER_MARK, HEADER_BYTES, check_length, line_blocks, text_readers
from oocgraph.ingest.sources.source import Request, Source, single_stream
from oocgraph.kernels import metis as kernels
from oocgraph.types import Array

LINE_BYTES = 2
"""What an edge takes at the least in the line of each of its vertices, beside their ends."""

CHUNK_BYTES = 1 << 20

WRONG = {
    kernels.STRANGE: ("there is something else than whole numbers, space and comments (%)", "correct it, or write Matrix Market"),
    kernels.LARGE: (f"a number has more than {kernels.MOST_DIGITS} digits", "correct it"),
    kernels.OUTSIDE: ("a neighbour is no vertex that the first line counts", "correct it, or that line"),
    kernels.LOOP: ("a vertex is its own neighbour, which METIS does not allow", "remove it"),
    kernels.UNWEIGHTED: ("the last neighbour has no weight, as the first line says that each has", "correct it, or that line"),
    kernels.SHORT: ("there are fewer numbers than the first line says that a line begins with", "correct it, or that line"),
    kernels.BEYOND: ("there are more lines than vertices", "correct the first line"),
}


def open_metis(path: Path, request: Request) -> Source:
    """Open a .graph file, compressed or not."""
    num_vertices, num_edges, num_skipped, is_weighted = _read_header(path)
    check_length(path, num_vertices - 1 + 2 * LINE_BYTES * num_edges, f"{num_vertices} vertices and {num_edges} edges")
    layout = fixed_layout(str(path), {"weight": "int64"} if is_weighted else {}, request, declared=num_vertices)
    load_kernels(kernels.metis_calls())

    def stream(block_rows: int) -> Iterator[EdgeBlock]:
        state, text = np.zeros(kernels.NUM_WORDS, np.int64), bytearray(CHUNK_BYTES)
        state[[kernels.ROW, kernels.NEIGHBOUR]] = -1
        num_read = 0
        with open_text(path) as file:
            is_last = False
            while not is_last:
                length = read_text(file, path, memoryview(text)[: CHUNK_BYTES - 1])
                if is_last := length < CHUNK_BYTES - 1:
                    text[length] = kernels.NEW_LINE
                left = np.frombuffer(text, np.uint8, length + is_last)
                if state[kernels.LINE] == 0:
                    left = left[3 * text.startswith(BYTE_ORDER_MARK) :]
                    state[kernels.LINE] = 1
                while left.size:
                    ends = np.empty((2, block_rows), np.int64)
                    weight = np.empty(block_rows if is_weighted else 0, np.int64)
                    num_bytes, num = kernels.read_lists(left, num_vertices, num_skipped, state, *ends, weight)
                    if num < 0:
                        _refuse(path, int(state[kernels.LINE]), int(num))
                    left = left[num_bytes:]
                    if num:
                        named = {"source": ends[0, :num], "target": ends[1, :num], "weight": weight[:num]}
                        yield layout.block(named.__getitem__, num_read, lambda name: _place(path, name, state))
                    num_read += int(num)
        num_lines, num_entries = int(state[kernels.ROW]), int(state[kernels.NUM_ENTRIES])
        if state[kernels.BALANCE] and num_read == num_edges and num_entries == 2 * num_edges:
            raise InputError(f"{path}: an edge is not in the lines of both of its vertices, with the same weight; write it again")
        if num_lines < num_vertices or num_read != num_edges or num_entries != 2 * num_edges:
            raise InputError(
                f"{path}: its first line says {num_vertices} vertices and {num_edges} edges, but {num_lines} lines follow, with "
                f"{num_entries} neighbours, {num_read} of which have a larger number than their vertex; an edge is in both lines. Copy or "
                "write it again"
            )

    return layout.open(single_stream(stream), num_edges, directed=False, readers=text_readers([path]))


def _place(path: Path, column: str, state: Array) -> Place:
    return Place(str(path), column, lambda _: f"line {state[kernels.LINE]} or before")


def _refuse(path: Path, line: int, wrong: int) -> NoReturn:
    what, remedy = WRONG[wrong]
    raise InputError(f"{path}, line {line}: {what}; {remedy}")


def _read_header(path: Path) -> tuple[int, int, int, bool]:
    """Return the numbers of vertices and edges, how many numbers come before the neighbours of a vertex, and whether there are weights."""
    number, first = next((found for block in line_blocks(path, HEADER_BYTES) for found in block.data_lines()), (1, b""))
    words = first.decode("ascii", "replace").split()
    kind, sizes = (words[2:3] or ["0"])[0].zfill(3), words[:2] + words[3:4]
    is_known = 2 <= len(words) <= 4 and len(kind) == 3 and not kind.strip("01") and (len(words) < 4 or kind[1] == "1")
    if not is_known or not all(size.isdigit() and len(size) <= kernels.MOST_DIGITS for size in sizes):
        raise InputError(
            f"{path}, line {number}: {' '.join(words)!r:.60} is not 'VERTICES EDGES [FORMAT [NUMBERS]]', with which a graph of METIS "
            "begins; correct it, or the extension"
        )
    num_weights = max(1, int(words[3])) if len(words) == 4 else int(kind[1])
    return int(words[0]), int(words[1]), int(kind[0]) + num_weights, kind[2] == "1"
