"""NetworkX graphs: labels that are integers or strings, attributes on demand, and vertices without edges."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from oocgraph.errors import InputError
from oocgraph.ingest.edges import EdgeBlock, IdKind
from oocgraph.ingest.sources.arrays import ArrayLayout, large_strings
from oocgraph.ingest.sources.columns import Columns, refuse_endpoint_columns
from oocgraph.ingest.sources.ids import row_place
from oocgraph.ingest.sources.source import Request, Source, agreed_num_vertices, single_stream

DESCRIPTION = "NetworkX graph"


def open_networkx(graph: Any, request: Request) -> Source:
    """Open a networkx.Graph, DiGraph or multigraph. Attributes become columns when they are named."""
    refuse_endpoint_columns(DESCRIPTION, request)
    kind = _label_kind(graph)
    dtypes = {name: _attribute_dtype(graph, name, weight=name == request.weight_column) for name in request.beside}
    columns = Columns("source", "target", request.weight_column, request.beside)
    layout = ArrayLayout(DESCRIPTION, columns, kind, dtypes, agreed_num_vertices(DESCRIPTION, None, request))

    def stream(block_rows: int) -> Iterator[EdgeBlock]:
        edges, row = iter(graph.edges(data=True)), 0
        while part := list(islice(edges, block_rows)):
            source, target = (
                layout.ids(np.array([edge[k] for edge in part], object), row_place(DESCRIPTION, name, row))
                for k, name in enumerate(("source", "target"))
            )
            attributes = {name: _column([edge[2][name] for edge in part], dtype) for name, dtype in dtypes.items()}
            yield EdgeBlock(source, target, attributes, row)
            row += len(part)

    isolated = np.array([vertex for vertex, degree in graph.degree() if degree == 0], object)
    return layout.open(
        single_stream(stream),
        graph.number_of_edges(),
        directed=bool(graph.is_directed()),
        extra_vertices=layout.ids(isolated, row_place(DESCRIPTION, "isolated vertices", 0)) if isolated.size else None,
    )


def _label_kind(graph: Any) -> IdKind:
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


def _column(values: list[Any], dtype: str) -> Any:
    return large_strings(values) if dtype == "string" else np.array(values, dtype)
