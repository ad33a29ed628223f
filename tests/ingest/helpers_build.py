"""Byte comparison of stores, and edge sources that tests control."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oocgraph import build_csr
from oocgraph.errors import BudgetError
from oocgraph.ingest.edges import EdgeBlock


def files_of(store):
    return {path.relative_to(store).as_posix(): path for path in Path(store).rglob("*") if path.is_file()}


def assert_same_store(left, right, *, ignore=("source",)):
    """Every file of two stores has the same bytes; the attributes agree but for those ignored."""
    one, other = files_of(left), files_of(right)
    assert one.keys() == other.keys(), sorted(one.keys() ^ other.keys())
    for name in sorted(one):
        a, b = one[name].read_bytes(), other[name].read_bytes()
        if name == "zarr.json":
            a, b = (json.loads(text)["attributes"]["oocgraph"] for text in (a, b))
            for key in ignore:
                a.pop(key), b.pop(key)
        assert a == b, name


@dataclass
class ArraySource:
    """An `EdgeSource` over arrays, with everything settable and as many streams as blocks."""

    source: Any
    target: Any
    values: dict = field(default_factory=dict)
    id_kind: str = "int64"
    num_rows: int | None = None
    likely_rows: int | None = None
    num_vertices: int | None = None
    id_bounds: tuple[int, int] | None = None
    directed: bool | None = None
    weight: str | None = None
    extra_vertices: Any = None
    description: str = "arrays"
    num_streams: int = 3

    def __post_init__(self):
        self.columns = {name: "string" if not isinstance(values, np.ndarray) else values.dtype.name for name, values in self.values.items()}

    def streams(self, block_rows):
        bounds = np.linspace(0, len(self.source), self.num_streams + 1).astype(int)
        return [lambda a=a, b=b: self._blocks(a, b, block_rows) for a, b in pairwise(bounds)]

    def _blocks(self, start, stop, block_rows):
        for first in range(start, stop, block_rows):
            part = slice(first, min(first + block_rows, stop))
            columns = {name: values[part] for name, values in self.values.items()}
            yield EdgeBlock(self.source[part], self.target[part], columns, first)


def budget_of(tmp_path, more_mib):
    """Return the smallest budget of a build now, and so many MiB more."""
    with pytest.raises(BudgetError) as caught:
        build_csr(([0], [1]), tmp_path / "refused", memory_budget="1M")
    return (int(str(caught.value).rpartition("at least ")[2].partition("M")[0]) + more_mib) << 20
