"""The column of the weights may be given by its name in the input, wherever a column is named."""

from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest

import oocgraph
from oocgraph.errors import ArgumentError, OutputError, StoreError
from oocgraph.store.in_memory import MemoryGraph
from oocgraph.store.layout import GraphAttributes

ROADS = pa.table({"a": ["x", "y", "x"], "b": ["y", "z", "z"], "minutes": [3, 4, 9], "kind": ["street", "street", "path"]})


@pytest.fixture(params=["disk", "memory"])
def roads(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Three roads with minutes, whose shortest way from x to z goes by y."""
    path = tmp_path / "roads.zarr" if request.param == "disk" else None
    return oocgraph.build_csr(ROADS, path, weight="minutes", columns=["a", "b", "kind"])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["minutes", "weight"])
def test_both_names_of_the_weight_are_known(roads: Any, name: str) -> None:
    """Searches, conditions and streams of edges take either."""
    assert dict(oocgraph.sssp(roads, "x", weight=name)) == {"x": 0, "y": 3, "z": 7}
    assert dict(oocgraph.sssp(roads, "x", where=f"{name} > 3").reached()) == {"x": 0, "z": 9, "y": 13}
    assert sorted(next(iter(roads.edges(columns=[name]))).column(2).to_pylist()) == [3, 4, 9]
    assert next(iter(roads.edges(columns=[name]))).column_names == ["source", "target", name]
    assert roads.neighbors("x", columns=["kind", name]).column_names == ["source", "target", "kind", name]
    assert roads.to_scipy(weight=name).sum() == 32


def test_networkx_gets_the_distances_that_are_asked_for(roads: Any) -> None:
    """An attribute that no column is refused: hops would look like an answer."""
    assert dict(nx.shortest_path_length(roads, "x", weight="minutes")) == {"x": 0, "y": 3, "z": 7}
    with pytest.raises(nx.NetworkXError, match="no edge column 'hours'; give weight= of kind, minutes"):
        nx.shortest_path_length(roads, "x", weight="hours")
    with pytest.raises(nx.NetworkXError, match="hours"):
        nx.pagerank(roads, weight="hours")


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
def test_files_have_the_name_of_the_input(roads: Any, tmp_path: Path, form: str) -> None:
    """And so have edges that are not asked for by column; a build from either has the same weights."""
    graph = roads.save(tmp_path / "saved.zarr") if isinstance(roads, MemoryGraph) else roads
    oocgraph.export_graph(graph, tmp_path / f"roads.{form}")
    for source in (tmp_path / f"roads.{form}", roads.edges()):
        again = oocgraph.build_csr(source, columns=["source", "target", "kind"], weight="minutes")
        assert again.attributes.weight_name == "minutes"
        assert dict(oocgraph.sssp(again, "x")) == {"x": 0, "y": 3, "z": 7}
    with pytest.raises(ArgumentError, match=r"no edge column 'hours'; give columns= of .*minutes"):
        roads.edges(columns=["hours"])


def test_a_weight_that_was_called_as_an_end_is_called_weight_beside_it(tmp_path: Path) -> None:
    """Two columns of one name would be read as anything."""
    table = ROADS.rename_columns(["a", "b", "target", "kind"])
    graph = oocgraph.build_csr(table, tmp_path / "g.zarr", weight="target", columns=["a", "b"])
    assert next(iter(graph.edges())).column_names == ["source", "target", "weight"]
    assert graph.neighbors("x", columns=["weight"]).column_names == ["source", "target", "weight"]
    with pytest.raises(ArgumentError, match="'target' has the name of a column of ids"):
        graph.edges(columns=["target"])
    oocgraph.export_graph(graph, tmp_path / "g.csv")
    assert (tmp_path / "g.csv").read_text().splitlines()[0].replace('"', "") == "source,target,weight"
    assert {data["target"] for *_, data in graph.to_networkx().edges(data=True)} == {3, 4, 9}
    other = oocgraph.build_csr(table, tmp_path / "h.zarr", columns=["a", "b", "target"])  # of which the store has the name
    with pytest.raises(ArgumentError, match="'target' has the name of a column of ids"):
        other.edges()
    with pytest.raises(OutputError, match="'target' has the name of a column of ids"):
        oocgraph.export_graph(other, tmp_path / "h.csv")


def test_a_graph_names_what_it_is_weighted_by(roads: Any) -> None:
    """So do subgraphs of it."""
    assert "weighted by minutes, columns kind" in repr(roads)
    assert roads.subgraph(["x", "y"]).attributes.weight_name == "minutes"


def test_partitions_take_the_weight_by_either_name(tmp_path: Path) -> None:
    """A column given twice, once by each, is refused."""
    graph = oocgraph.build_csr(ROADS, tmp_path / "roads.zarr", weight="minutes", columns=["a", "b", "kind"])
    parts = oocgraph.partition_graph(graph, 2, policy="cvc", path=tmp_path / "parts.zarr", edge_columns=["minutes"])
    assert {part.store.attributes.weight_name for part in parts} == {"minutes"}
    with pytest.raises(ArgumentError, match="different names"):
        oocgraph.partition_graph(graph, 2, policy="cvc", path=tmp_path / "two.zarr", edge_columns=["minutes", "weight"])


def test_a_column_that_is_called_weight_has_one_name(tmp_path: Path) -> None:
    """Its graph says no other."""
    graph = oocgraph.build_csr(ROADS.rename_columns(["a", "b", "weight", "kind"]), weight="weight", columns=["a", "b", "kind"])
    assert graph.attributes.weight_name is None


@pytest.mark.parametrize("changed", [{"weight_name": 3}, {"weight_name": "kind"}, {"weight_name": "minutes", "weighted": False}])
def test_attributes_that_cannot_be_are_refused(roads: Any, changed: dict[str, Any]) -> None:
    """The name is a text, of a weighted graph, and that of no other column."""
    with pytest.raises(StoreError, match="weight_name"):
        GraphAttributes.from_json(roads.attributes.to_json() | {"complete": True} | changed, "roads.zarr")


def test_messages_name_the_weight_as_the_input_did(tmp_path: Path) -> None:
    """What the store calls it, nobody has seen."""
    for values, asked, said in (
        ([-1.0, 2, 3], lambda g: oocgraph.pagerank(g, weight="minutes"), "weight 0 of minutes of"),
        ([-1.0, 2, 3], oocgraph.louvain, "minutes has negative"),
        ([-1.0, 2, 3], lambda g: oocgraph.sssp(g, "x"), "minutes of the edge from"),
        ([float("inf")] * 3, oocgraph.minimum_spanning_forest, "minutes has NaN or infinite"),
        (pa.array([1, 2, 3], pa.uint64()), lambda g: oocgraph.sssp(g, "x"), "'minutes' is uint64"),
        ([1, 2, 3], lambda g: oocgraph.sssp(g, "x", weight="hours"), "one of kind, minutes"),
        ([1, 2, 3], lambda g: oocgraph.bfs(g, "x", where="hours > 1"), "there are kind, minutes"),
        ([1, 2, 3], lambda g: oocgraph.personalized_pagerank(g, ["x"], weight="hours"), "one of kind, minutes"),
    ):
        table = (
            ROADS.drop_columns(["minutes", "kind"]).append_column("kind", pa.array([1, 1, 2])).append_column("minutes", pa.array(values))
        )
        graph = oocgraph.build_csr(table, tmp_path / "g.zarr", weight="minutes", columns=["a", "b", "kind"], overwrite=True)
        with pytest.raises(ArgumentError, match=said):
            asked(graph)
