"""What the root of a result store says of its search: read, and not trusted.

In: the folder of a result store. Out: its fields, those that oocgraph uses of the right type and in range, or one error
(`oocgraph.store.fields`).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from oocgraph.errors import StoreError
from oocgraph.store.fields import FieldRule, between, first_wrong, is_count, is_flag, is_list, is_text
from oocgraph.store.metadata import read_json

SEARCH_FORMAT = 2
"""Newest format of a result store: 2 is of unequal shares, which an older oocgraph would read as equal ones."""

EQUAL_SHARES_FORMAT = 1
"""Format of a result store whose partitions own equal shares of the edges."""

SEARCH_KEY = "oocgraph_search"

MAX_PARTITIONS = 1 << 16
"""Of a search: more than any cluster has workers, and few enough to go through."""

MAX_SHARE = 1 << 20
"""Of a partition: 16 for each of `MAX_PARTITIONS` in all."""

MAX_BYTES = 256 << 20
"""Of the JSON: ten million sources take half of it."""


_NEEDED: dict[str, FieldRule] = {"format": is_count, "num_partitions": between(1, MAX_PARTITIONS), "complete": is_flag}
_RULES: dict[str, FieldRule] = {
    **_NEEDED,
    "algorithm": is_text,
    "graph": is_text,
    "graph_fingerprint": is_text,
    "sources": is_list,
    "isolated_sources": is_list,
    "epoch": between(-1, 2**62),
    "shares": lambda value: value is None or (is_list(value) and all(map(between(1, MAX_SHARE), value))),
    "few": lambda value: is_list(value) and len(value) == 2 and all(map(is_count, value)),
    "depth": is_count,
    "num_reached": is_count,
    "num_reached_edges": is_count,
    "seconds": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf,
}


def read_fields(place: Path) -> dict[str, Any]:
    """Read what the root of a result store says.

    Raises
    ------
    StoreError
        It is something else, damaged, or of a newer format.
    """
    try:
        fields = read_json(place / "zarr.json", MAX_BYTES)["attributes"][SEARCH_KEY]
        wrong = next((name for name in _NEEDED if name not in fields), None)
    except PermissionError as error:
        raise StoreError(f"{place}: no permission to read it; ask its owner, or choose another result_store") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _no_result_store(place) from error
    if not isinstance(fields, dict) or wrong is not None:
        raise _no_result_store(place)
    if is_count(fields["format"]) and fields["format"] > SEARCH_FORMAT:
        raise StoreError(
            f"{place}: result format {fields['format']} is newer than format {SEARCH_FORMAT} of this oocgraph; upgrade oocgraph"
        )
    if wrong := first_wrong(fields, _RULES):
        raise damaged(place, wrong)
    return fields


def damaged(place: Path, name: str) -> StoreError:
    """Return the error of a field that is missing or cannot be right."""
    return StoreError(f"{place}: the attributes of this result store are damaged ({name}); remove it and start the search again")


def _no_result_store(place: Path) -> StoreError:
    return StoreError(
        f"{place}: not the result store of a search; give the folder that result_store named, or remove this one and start the search again"
    )
