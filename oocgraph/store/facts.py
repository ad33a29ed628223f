"""What a graph says of itself in one line or one table: first what its user asks, then how it is stored."""

from __future__ import annotations

from typing import Any

from oocgraph.memory import format_bytes
from oocgraph.store.layout import GraphAttributes
from oocgraph.text import counted


def graph_facts(attributes: GraphAttributes, num_bytes: int | None) -> dict[str, Any]:
    """Return facts by name; `num_bytes` is the size of its files or arrays, None where that is not known."""
    a = attributes
    size = {} if num_bytes is None else {"num_bytes": num_bytes}
    return {
        "num_vertices": a.num_input_vertices,
        "num_isolated": a.num_isolated,
        "num_edges": a.num_edges,
        "directed": a.directed,
        "weighted": a.weighted,
        "columns": ", ".join(f"{name} ({kind})" for name, kind in a.columns.items()) or "none",
        **size,
        "ids": a.id_kind,
        "vertex_order": a.vertex_order,
        "num_planes": a.num_planes,
        "codec": a.codec,
    }


def graph_line(attributes: GraphAttributes, num_bytes: int | None) -> str:
    """Return the facts in a line."""
    a = attributes
    weighted = f", weighted{f' by {a.weight_name}' if a.weight_name else ''}" if a.weighted else ""
    kinds = f"{'directed' if a.directed else 'undirected'}{weighted}"
    columns = [name for name in a.columns if not (a.weighted and name == "weight")]
    parts = [
        f"{counted(a.num_input_vertices, 'vertices')} ({a.num_isolated:,} isolated)",
        f"{counted(a.num_edges, 'edges')}, {kinds}",
        *([f"columns {', '.join(columns)}"] if columns else []),
        *([] if num_bytes is None else [format_bytes(num_bytes)]),
        f"ids {a.id_kind}",
        f"{a.vertex_order} order",
        counted(a.num_planes, "planes"),
    ]
    return ", ".join(parts)
