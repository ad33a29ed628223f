"""Whether the attributes of a store can be those of a graph: types, ranges, and against each other.

In: attributes as a file has them. Out: what is wrong with them, or None.
Everything that is allocated for a graph follows from these numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from oocgraph.store.fields import FieldRule, first_wrong, is_count, is_flag, is_text, one_of
from oocgraph.types import MAX_UINT32_VERTICES, Codec, Duplicates, VertexOrder

if TYPE_CHECKING:
    from oocgraph.store.layout import GraphAttributes

MAX_VERTICES = 2**40
"""More than any store has, and few enough that no sum of them overflows an int64."""

MAX_EDGES = 2**48

DTYPES = frozenset(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"),
)
"""Dtypes of stored arrays; a column may be of strings, too."""


_RULES: dict[str, FieldRule] = {
    "num_vertices": is_count,
    "num_edges": is_count,
    "num_stored_edges": is_count,
    "num_input_vertices": is_count,
    "num_isolated": is_count,
    "num_self_loops": is_count,
    "num_planes": is_count,
    "directed": is_flag,
    "weighted": is_flag,
    "source": is_text,
    "library_version": is_text,
    "implied_ids": lambda ids: ids is None or _is_range(ids),
    "duplicates": one_of(*get_args(Duplicates)),
    "vertex_order": one_of(*get_args(VertexOrder), "partition"),
    "index_dtype": one_of("uint32", "int64"),
    "id_kind": one_of("int64", "string"),
    "codec": one_of(*get_args(Codec)),
    "columns": lambda columns: isinstance(columns, dict),
    "weight_name": lambda name: name is None or (isinstance(name, str) and len(name) < 1 << 10),
    "parallel_edges": lambda value: value is None or is_flag(value),
    "groups": lambda groups: groups is None or groups in (("out",), ("in",), ("out", "in")),
}


def attribute_problem(a: GraphAttributes, max_planes: int) -> str | None:
    """Return what is wrong with the attributes of a store, or None."""
    wrong = first_wrong({name: getattr(a, name) for name in _RULES}, _RULES)
    if wrong is not None:
        return f"{wrong} is {getattr(a, wrong)!r:.80}"
    for name, kind in a.columns.items():
        if not isinstance(kind, str) or kind not in DTYPES | {"string"}:
            return f"the dtype of column {name!r:.80} is {kind!r:.80}"
    if a.weight_name is not None and (not a.weighted or a.weight_name in a.columns):
        return f"weight_name is {a.weight_name!r:.80}"
    return _wrong_number(a, max_planes) or _wrong_sum(a)


def _is_range(ids: Any) -> bool:
    return isinstance(ids, tuple) and len(ids) == 2 and all(type(one) is int and abs(one) < 2**63 for one in ids)


def _wrong_number(a: GraphAttributes, max_planes: int) -> str | None:
    if a.num_vertices > MAX_VERTICES or a.num_stored_edges > MAX_EDGES or a.num_input_vertices >= 2**63:  # isolated ids may be a range
        return f"{a.num_vertices} vertices and {a.num_stored_edges} stored edges are more than a store holds"
    if a.num_vertices > MAX_UINT32_VERTICES and a.index_dtype == "uint32":
        return f"index_dtype is uint32, which {a.num_vertices} vertices are too many for"
    if a.num_planes > max_planes or (a.num_planes and a.vertex_order != "degree"):
        return f"num_planes is {a.num_planes}"
    is_part = a.vertex_order == "partition"
    if is_part != (a.num_masters is not None) or (is_part and not (type(a.num_masters) is int and 0 <= a.num_masters <= a.num_vertices)):
        return f"num_masters is {a.num_masters!r:.80}"
    if (a.groups is not None) != is_part:
        return f"groups is {a.groups!r:.80}"
    return None


def _wrong_sum(a: GraphAttributes) -> str | None:
    n, m = a.num_vertices, a.num_stored_edges
    if n > 2 * m:
        return f"{m} stored edges do not have {n} vertices"
    if a.num_input_vertices != n + a.num_isolated:
        return f"{a.num_input_vertices} input vertices are not {n} with edges and {a.num_isolated} isolated"
    if a.implied_ids is not None and (a.id_kind == "string" or a.implied_ids[1] - a.implied_ids[0] != a.num_input_vertices):
        return f"the implied ids {a.implied_ids} are not {a.num_input_vertices}"
    if a.num_self_loops > m or a.num_edges != (m if a.directed else (m + a.num_self_loops) // 2):
        return f"{a.num_edges} edges and {a.num_self_loops} self-loops do not make {m} stored entries"
    if not a.directed and (m + a.num_self_loops) % 2:
        return f"{m} stored entries and {a.num_self_loops} self-loops are not those of an undirected graph"
    return None
