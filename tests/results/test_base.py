"""A result is little more than its columns: a third one, made here, does all that results do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import zarr

import oocgraph
from oocgraph import memory
from oocgraph.errors import ArgumentError, BudgetError
from oocgraph.results import base
from oocgraph.results.base import VertexResult
from oocgraph.results.writer import EXTENSIONS, ID
from oocgraph.store.columns import Ids
from oocgraph.store.graph import open_graph
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array
from tests.reference_build import reference_build
from tests.stores import string_store


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class DegreeResult(VertexResult):
    """The degree of each vertex, and the first of its neighbours, by store number."""

    algorithm = "degree"
    columns = {"degree": "int64", "neighbor": ID}  # noqa: RUF012 - declared as a ClassVar by the base class

    stored_degree: Array
    stored_neighbor: Array

    @cached_property
    def degree(self) -> Any:
        """Degree of each of `vertices`."""
        return self._joined("degree")

    @cached_property
    def neighbor(self) -> Any:
        """A neighbour of each of `vertices`."""
        return self._joined("neighbor")

    def degree_of(self, ids: Any) -> Any:
        """Degree of one vertex or several."""
        return self._look_up("degree", ids)

    def values_of(self, columns: Sequence[str], vertices: Ids, numbers: Array, start: int) -> Mapping[str, Ids]:
        """See `VertexResult.values_of`."""
        linked = np.flatnonzero(numbers >= 0)
        degree = np.zeros(numbers.size, np.int64)
        degree[linked] = self.stored_degree[numbers[linked]]
        found = self.ids.stored_ids_of(self.stored_neighbor[numbers[linked]])
        if isinstance(found, np.ndarray):
            neighbor = np.full(numbers.size, -1, np.int64)
            neighbor[linked] = found
        else:
            at = np.full(numbers.size, -1)
            at[linked] = np.arange(linked.size)
            neighbor = found.take(arrow_positions(at))
        return {"degree": degree, "neighbor": neighbor}


def arrow_positions(at):
    """Return positions as Arrow takes them, null where negative."""
    import pyarrow as pa

    return pa.array(np.maximum(at, 0), mask=at < 0)


def degrees_of(store):
    indptr, indices = store.read("out/indptr"), store.read("out/indices")
    return DegreeResult(ids=VertexIds(store), stored_degree=np.diff(indptr), stored_neighbor=indices[indptr[:-1]], memory_budget=1 << 40)


@pytest.fixture
def numbers(tmp_path):
    """Return a star around 3 with the leaves 1, 4 and 8; 0, 2, 5, 6, 7 and 9 are isolated."""
    reference_build([3, 3, 3], [1, 4, 8], tmp_path / "g.zarr", implied=(0, 10))
    return degrees_of(open_graph(tmp_path / "g.zarr"))


@pytest.fixture
def names(tmp_path):
    return degrees_of(string_store(tmp_path / "s.zarr", ["b", "b"], ["é", "a"], others=["alone"]))


@pytest.mark.parametrize("block", [1, 3, 100])
def test_columns_are_aligned_with_every_input_id(numbers, names, monkeypatch, block):
    """Isolated vertices included; each array is made once."""
    monkeypatch.setattr(base, "BLOCK_VERTICES", block)
    assert numbers.vertices.tolist() == list(range(10))
    assert numbers.degree.tolist() == [0, 1, 0, 3, 1, 0, 0, 0, 1, 0]
    assert numbers.neighbor.tolist() == [-1, 3, -1, 1, 3, -1, -1, -1, 3, -1]
    assert numbers.degree is numbers.degree
    assert names.vertices.tolist() == ["a", "alone", "b", "é"]
    assert names.neighbor.tolist() == ["b", None, "a", "b"]


def test_some_vertices_are_looked_up_alone(numbers):
    assert numbers.degree_of(3) == 3
    assert isinstance(numbers.degree_of("3"), int)
    assert numbers.degree_of([8, 0, 3, 3]).tolist() == [1, 0, 3, 3]
    assert numbers.of(3) == 3
    assert numbers.of([8, 0, 3, 3], "degree").tolist() == [1, 0, 3, 3]
    assert numbers.of([]).tolist() == []
    assert "degree" not in vars(numbers)
    with pytest.raises(ArgumentError, match="no column 'level'"):
        numbers.of(3, "level")


def test_blocks_make_no_array(numbers):
    """A block has an attribute for each column."""
    blocks = list(numbers.blocks(4))
    assert [block.vertices.tolist() for block in blocks] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [block.degree.tolist() for block in blocks] == [[0, 1, 0, 3], [1, 0, 0, 0], [1, 0]]
    assert not {"vertices", "degree", "neighbor"} & set(vars(numbers))


def test_written_results_hold_the_columns(numbers, names, tmp_path):
    for name in EXTENSIONS:
        numbers.write(tmp_path / f"numbers{name}")
        names.write(tmp_path / f"names{name}")
    table = pq.read_table(tmp_path / "names.parquet")
    assert table.to_pydict() == {"vertex": ["a", "alone", "b", "é"], "degree": [1, 0, 2, 1], "neighbor": ["b", None, "a", "b"]}
    group = zarr.open_group(tmp_path / "numbers.zarr", mode="r")
    assert group.attrs["oocgraph_result"] == {"algorithm": "degree", "id_kind": "int64", **numbers.summary()}
    assert group["neighbor"][:].tolist() == numbers.neighbor.tolist()
    assert numbers.to_pandas().columns.tolist() == ["vertex", "degree", "neighbor"]


def test_blocks_have_the_columns_that_are_named(numbers):
    blocks = list(numbers.blocks(2, columns=["vertices", "degree"]))
    assert max(len(block.vertices) for block in blocks) == 2
    assert np.concatenate([block.degree for block in blocks]).tolist() == numbers.degree.tolist()
    assert next(numbers.blocks(columns="neighbor")).neighbor.tolist() == numbers.neighbor.tolist()
    for size in (0, -1, 1.5, True, "2"):
        with pytest.raises(ArgumentError, match=f"block_size is {size!r}; it must be a whole number, 1 or more"):
            numbers.blocks(size)
    with pytest.raises(ArgumentError, match="DegreeResult has no column 'color'; it has degree, neighbor"):
        numbers.blocks(columns=["degree", "color"])


def test_strings_that_do_not_fit_are_refused(tmp_path):
    """Python's, of which an array takes more than the graph; blocks of them, and numbers, are given."""
    names = [f"vertex {i}" for i in range(200_000)]
    store = oocgraph.build_csr((names[:-1], names[1:]), tmp_path / "g")
    result = oocgraph.connected_components(store, memory_budget="4G")
    object.__setattr__(result, "memory_budget", memory.host_bytes() + (4 << 20))
    for read in (lambda: result.component, lambda: result.vertices, result.to_pandas):
        with pytest.raises(BudgetError, match=r"Python strings need .* read blocks\(\) or to_arrow\(\), write\(\) it, or set "):
            read()
    assert sum(len(block.vertices) for block in result.blocks()) == len(names)
    object.__setattr__(result, "memory_budget", 4 << 30)
    assert set(result.component) == {names[0]}
