"""All edges as a stream of Arrow batches."""

from __future__ import annotations

import pyarrow as pa
import pytest

from oocgraph import build_csr
from oocgraph.errors import ArgumentError, BudgetError
from tests.store.asked_graphs import same, undirected, weigh


@pytest.mark.parametrize("batch_size", [100, 1 << 16])
def test_every_edge_comes_once(asked, batch_size):
    """With its columns, and an undirected edge in one direction."""
    reader = asked.graph.edges(batch_size=batch_size)
    assert isinstance(reader, pa.RecordBatchReader)
    batches = list(reader)
    assert all(0 < batch.num_rows <= batch_size for batch in batches)
    table = pa.Table.from_batches(batches, reader.schema)
    pairs = list(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))
    assert same([min(p, p[::-1]) for p in pairs] if not asked.directed else pairs, asked.pairs)
    if asked.graph.attributes.columns:
        assert table["weight"].to_pylist() == [weigh(*pair) for pair in pairs]
        assert table["kind"].to_pylist() == [f"kind {int(weigh(*pair)) % 3}" for pair in pairs]


def test_only_the_columns_asked_for_are_read(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    assert graph.edges(columns=["kind"]).schema.names == ["source", "target", "kind"]
    assert graph.edges(columns=[]).read_all().column_names == ["source", "target"]


def test_a_graph_can_be_built_again_from_its_edges(tmp_path):
    asked = undirected(tmp_path / "g.zarr")
    again = build_csr(asked.graph.edges(columns=[]), tmp_path / "again.zarr", num_vertices=900)
    assert again.degree().tolist() == asked.graph.degree().tolist()


def test_bad_questions_are_refused(tmp_path):
    graph = undirected(tmp_path / "g.zarr").graph
    for size in (0, -1, 1.5, True):
        with pytest.raises(ArgumentError, match="batch_size is"):
            graph.edges(batch_size=size)
    with pytest.raises(ArgumentError, match="no edge column 'time'"):
        graph.edges(columns=["time"])
    with pytest.raises(BudgetError, match="ids of all vertices"):
        graph.edges(memory_budget="1M")
