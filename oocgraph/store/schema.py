"""What each array of a graph store must be, by the attributes of the store: dtype, length, and rule of its values.

In: attributes, and the lengths of the few arrays whose length they do not tell. Out: an `ArraySpec` for every array that a store of these
attributes has. `CSRStore.array` opens nothing else, and nothing that differs from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oocgraph.store import layout
from oocgraph.store.layout import GraphAttributes, plane_group, string_arrays
from oocgraph.store.values import Ascending, Below, Offsets, Rule
from oocgraph.types import PAGE_BYTES

_INT64 = ("int64",)
_CODE = ("int32",)
_OWNER = ("int16", "int32")
_ANY_INT64 = (-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """What an array must be.

    Attributes
    ----------
    dtypes : tuple of str
        Names of the dtypes that it may have.
    length : int or None
        Elements; None where only the array itself tells.
    rule : Rule or None
        What its values must keep to; None where nothing is indexed by them.
    optional : bool
        Whether a store may lack it.
    """

    dtypes: tuple[str, ...]
    length: int | None = None
    rule: Rule | None = None
    optional: bool = False


def array_specs(a: GraphAttributes, length: Callable[[str], int]) -> dict[str, ArraySpec]:
    """Return what each array of a store with the attributes `a` must be, by name, checksums apart.

    Parameters
    ----------
    length
        Returns the length that the metadata of an array names.
    """
    specs: dict[str, ArraySpec] = {}
    for group in a.stored_groups:
        specs |= _rows(a, group, length)
    if a.vertex_order == "degree":
        specs |= _degrees(a, plane_group(a.directed), length)
    n = a.num_vertices
    specs[layout.ORDER] = ArraySpec((a.index_dtype, "uint32", "int64"), n, Below(n))
    ids = Ascending(*(a.implied_ids or _ANY_INT64))
    specs |= _ids(a, layout.SORTED_ID, n, ids, length)
    specs |= _ids(a, layout.VERTEX_ID, n, None, length)
    if a.implied_ids is None:
        specs |= _ids(a, layout.ISOLATED_ID, a.num_isolated, ids, length, optional=a.num_isolated == 0)
    if a.vertex_order == "partition":
        num_mirrors = n - (a.num_masters or 0)
        specs[layout.MIRROR_OWNER] = ArraySpec(_OWNER, num_mirrors, optional=True)
    elif a.num_self_loops:
        specs[layout.SELF_LOOPS] = ArraySpec((a.index_dtype, "uint32", "int64"), a.num_self_loops, Below(n))
    for name in (name for name, kind in a.columns.items() if kind == "string"):
        data, offsets = string_arrays(f"columns/{name}")
        specs[data] = ArraySpec(("uint8",))
        specs[offsets] = ArraySpec(_INT64, None, Offsets(length(data)))
    return specs


def checksum_spec(num_elements: int, dtype: np.dtype[Any], chunk_length: int, *, compressed: bool) -> ArraySpec:
    """Return what the checksums of an array must be: one for each page, or for each compressed chunk."""
    pages = -(-num_elements // chunk_length) if compressed else -(-num_elements * dtype.itemsize // PAGE_BYTES)
    return ArraySpec(("uint32",), pages)


def max_distinct_degrees(num_stored_edges: int) -> int:
    """Return how many distinct degrees a graph can have: 0, 1, 2, ... add up to its entries.

    Examples
    --------
    >>> max_distinct_degrees(6)
    4
    """
    return (1 + math.isqrt(1 + 8 * num_stored_edges)) // 2


def _rows(a: GraphAttributes, group: str, length: Callable[[str], int]) -> dict[str, ArraySpec]:
    n, m = a.num_vertices, a.num_stored_edges
    specs = {
        f"{group}/indptr": ArraySpec(_INT64, n + 1, Offsets(m)),
        f"{group}/indices": ArraySpec((a.index_dtype,), m, Below(n)),
    }
    optional = group != a.stored_groups[0]  # nothing reads the columns of in-lists where there are out-lists
    for name, kind in a.columns.items():
        if kind == "string":
            num_categories = length(string_arrays(f"columns/{name}")[1]) - 1
            specs[f"{group}/{name}"] = ArraySpec(_CODE, m, Below(num_categories), optional)
        else:
            specs[f"{group}/{name}"] = ArraySpec((kind,), m, None, optional)
    return specs


def _degrees(a: GraphAttributes, group: str, length: Callable[[str], int]) -> dict[str, ArraySpec]:
    """Degree classes, which `CSRStore.degree_classes` checks against each other, and planes, whose offsets follow from them."""
    specs = {
        f"{group}/degrees/value": ArraySpec(_INT64, None, Below(a.num_stored_edges + 1)),
        f"{group}/degrees/first_vertex": ArraySpec(_INT64, None, Below(a.num_vertices)),
    }
    if a.num_planes:
        planes = f"{group}/planes/indices"
        specs[planes] = ArraySpec((a.index_dtype,), None, Below(a.num_vertices))
        specs[f"{group}/planes/offsets"] = ArraySpec(_INT64, a.num_planes + 1, Offsets(length(planes)))
    return specs


def _ids(
    a: GraphAttributes, name: str, num_ids: int, rule: Rule | None, length: Callable[[str], int], *, optional: bool = False
) -> dict[str, ArraySpec]:
    if a.id_kind != "string":
        return {name: ArraySpec(_INT64, num_ids, rule, optional)}
    data, offsets = string_arrays(name)
    return {
        data: ArraySpec(("uint8",), None, None, optional),
        offsets: ArraySpec(_INT64, num_ids + 1, Offsets(length(data)), optional),
    }
