"""What the root of a result store says of its search: read, and not trusted.

In: the folder of a result store. Out: its fields, those that oocgraph uses of the right type and in range, or one error. Whoever can
write to the folder can write any JSON there, and a disk may have changed it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oocgraph.errors import StoreError
from oocgraph.store.metadata import read_json

SEARCH_FORMAT = 1
SEARCH_KEY = "oocgraph_search"

MAX_PARTITIONS = 1 << 16
"""Of a search: more than any cluster has workers, and few enough to go through."""

MAX_BYTES = 256 << 20
"""Of the JSON: ten million sources take half of it."""


def _is_int(value: Any, low: int, high: int = 2**62) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_count(value: Any) -> bool:
    return _is_int(value, 0)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


_NEEDED: dict[str, Callable[[Any], bool]] = {
    "format": _is_count,
    "num_partitions": lambda value: _is_int(value, 1, MAX_PARTITIONS),
    "complete": lambda value: isinstance(value, bool),
}
_KNOWN: dict[str, Callable[[Any], bool]] = {
    **_NEEDED,
    "algorithm": _is_text,
    "graph": _is_text,
    "graph_fingerprint": _is_text,
    "sources": _is_list,
    "isolated_sources": _is_list,
    "epoch": lambda value: _is_int(value, -1),
    "few": lambda value: _is_list(value) and len(value) == 2 and all(map(_is_count, value)),
    "depth": _is_count,
    "num_reached": _is_count,
    "num_reached_edges": _is_count,
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
        raise StoreError(f"{place}: no permission to read it; ask its owner, or choose another with --result-store") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _no_result_store(place) from error
    if not isinstance(fields, dict) or wrong is not None:
        raise _no_result_store(place)
    if _is_int(fields["format"], SEARCH_FORMAT + 1):
        raise StoreError(
            f"{place}: result format {fields['format']} is newer than format {SEARCH_FORMAT} of this oocgraph; upgrade oocgraph"
        )
    if wrong := next((name for name, is_sound in _KNOWN.items() if name in fields and not is_sound(fields[name])), None):
        raise damaged(place, wrong)
    return fields


def damaged(place: Path, name: str) -> StoreError:
    """Return the error of a field that is missing or cannot be right."""
    return StoreError(f"{place}: the attributes of this result store are damaged ({name}); remove it and start the search again")


def _no_result_store(place: Path) -> StoreError:
    return StoreError(
        f"{place}: not the result store of a search; give the folder that --result-store named, "
        "or remove this one and start the search again"
    )
