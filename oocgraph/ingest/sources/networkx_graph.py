"""NetworkX graphs: labels that are integers or strings, attributes on demand, and vertices without edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import isnan
from typing import Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock
from oocgraph.ingest.sources.arrays import ArrayLayout, large_strings
from oocgraph.ingest.sources.columns import Columns, asked_dtypes, refuse_endpoint_columns
from oocgraph.ingest.sources.ids import Place, row_place
from oocgraph.ingest.sources.source import Request, Source, agreed_num_vertices, single_stream
from oocgraph.types import IdKind

DESCRIPTION = "NetworkX graph"


def open_networkx(graph: Any, request: Request) -> Source:
    """Open a networkx.Graph, DiGraph or multigraph. Attributes become columns when they are named."""
    refuse_endpoint_columns(DESCRIPTION, request)
    if request.directed and not graph.is_directed():
        graph = graph.to_directed(as_view=True)  # each edge in both directions
    kind = _label_kind(graph)
    dtypes = {name: _attribute_dtype(graph, name, weight=name == request.weight_column) for name in request.beside}
    dtypes = asked_dtypes(DESCRIPTION, dtypes, request)
    columns = Columns("source", "target", request.weight_column, request.beside)
    layout = ArrayLayout(DESCRIPTION, columns, kind, dtypes, agreed_num_vertices(DESCRIPTION, None, request))

    def stream(block_rows: int) -> Iterator[EdgeBlock]:
        edges, row = iter(graph.edges(data=True) if dtypes else graph.edges()), 0
        while part := list(islice(edges, block_rows)):
            sources, targets, *_ = zip(*part, strict=True)
            source, target = _ids(layout, sources, "source", row), _ids(layout, targets, "target", row)
            attributes = {
                name: _column([edge[2][name] for edge in part], dtype, row_place(DESCRIPTION, name, row)) for name, dtype in dtypes.items()
            }
            yield EdgeBlock(source, target, attributes, row)
            row += len(part)

    isolated = _isolated(graph)
    return layout.open(
        single_stream(stream),
        graph.number_of_edges(),
        directed=bool(graph.is_directed()),
        extra_vertices=_ids(layout, isolated, "isolated vertices", 0) if isolated else None,
    )


def _ids(layout: ArrayLayout, labels: Sequence[Any], name: str, first_row: int) -> Any:
    """Return labels, whose kind is known, as ids; those that are not in range are refused."""
    place = row_place(DESCRIPTION, name, first_row)
    if layout.kind == "string":
        return large_strings(labels, place)
    try:
        return layout.ids(np.array(labels, np.int64), place)
    except OverflowError:
        return layout.ids(np.array(labels, object), place)  # names the one that is too large


def _isolated(graph: Any) -> list[Any]:
    alone = [vertex for vertex, neighbours in graph.adjacency() if not neighbours]
    return [vertex for vertex in alone if not graph.pred[vertex]] if graph.is_directed() else alone


def _label_kind(graph: Any) -> IdKind:
    kinds = set(map(type, graph))
    if kinds <= {int} or kinds == {str}:
        return "string" if str in kinds else "int64"
    strings = integers = 0
    for label in graph:
        if isinstance(label, str):
            strings += 1
        elif isinstance(label, int | np.integer) and not isinstance(label, bool):
            integers += 1
        else:
            remedy = "relabel them, as networkx.convert_node_labels_to_integers does"
            raise InputError(f"{DESCRIPTION}: the label {label!r} is neither an integer nor a string; {remedy}")
    if strings and integers:
        raise InputError(f"{DESCRIPTION}: {integers} labels are integers and {strings} are strings; relabel one sort")
    return "string" if strings else "int64"


def _attribute_dtype(graph: Any, name: str, *, weight: bool) -> str:
    """Dtype that holds the attribute of every edge: int64, float64 or string."""
    values = [value for *_, value in graph.edges(data=name)]
    kinds = set(map(type, values))
    if kinds == {float} and not (weight and any(map(isnan, values))):
        return "float64"
    if kinds == {int} and -(2**63) <= min(values) <= max(values) < 2**63:
        return "int64"
    found = set()
    for source, target, attributes in graph.edges(data=True):
        where = f"{DESCRIPTION}, edge ({source!r}, {target!r})"
        if name not in attributes:
            listed = ", ".join(repr(key) for key in attributes) or "none"
            raise InputError(f"{where} has no attribute {name!r} (its attributes: {listed}); set it on every edge or leave it out")
        value = attributes[name]
        if isinstance(value, float | np.floating):
            found.add("float64")
        elif isinstance(value, int | np.integer) and -(2**63) <= value < 2**63:
            found.add("int64")
        elif isinstance(value, str) and not weight:
            found.add("string")
        else:
            wanted = "a number" if weight else "a number or a string"
            raise InputError(f"{where}: attribute {name!r} is {value!r}, not {wanted} of 64 bits; correct it")
        if weight and np.isnan(value):
            raise InputError(f"{where}: the weight {name!r} is NaN; correct it")
    if "string" in found and len(found) > 1:
        raise InputError(f"{DESCRIPTION}: attribute {name!r} is text on some edges and a number on others; convert it")
    return "string" if "string" in found else "float64" if "float64" in found else "int64"


def _column(values: list[Any], dtype: str, place: Place) -> Any:
    return large_strings(values, place) if dtype == "string" else np.array(values, dtype)
