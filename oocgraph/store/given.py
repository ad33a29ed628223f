"""Ids as a caller gives them: one, or any collection of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from oocgraph.errors import ArgumentError


def is_single(ids: Any) -> bool:
    """Whether `ids` is one id, not a collection of them.

    Examples
    --------
    >>> is_single("a"), is_single(np.int64(3)), is_single([3]), is_single({3})
    (True, True, False, False)
    """
    if isinstance(ids, str | bytes):
        return True
    return np.ndim(ids) == 0 if isinstance(ids, np.ndarray) else not isinstance(ids, Iterable)


def as_collection(ids: Any) -> Any:
    """Return ids as a sequence; one id as a sequence of one.

    Raises
    ------
    ArgumentError
        An id is missing, or is itself a collection; ids are a table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_collection(3), as_collection({3}), as_collection(pa.array([[1, 2]])[0])
    ([3], [3], [1, 2])
    """
    if hasattr(ids, "as_py"):  # a scalar of Arrow, such as one of the lists of neighbours
        ids = ids.as_py()
    if isinstance(ids, Mapping):  # a dict by id, or a result
        return list(ids)
    if hasattr(ids, "columns") or hasattr(ids, "column_names"):
        raise ArgumentError(f"a table ({type(ids).__name__}) is given as ids; give one of its columns")
    if isinstance(ids, np.ndarray) and ids.ndim == 0:
        ids = ids.item()
    if is_single(ids):
        return [ids]
    if np.ma.is_masked(ids):
        raise ArgumentError("an id is missing (masked); fill it in, or leave it out")
    if isinstance(ids, np.ndarray):
        return ids.reshape(-1)
    if hasattr(ids, "__array__"):
        return ids
    given = ids if isinstance(ids, list | tuple) else list(ids)
    kinds = set(map(type, given))
    if any(issubclass(kind, np.ndarray | Collection) and not issubclass(kind, str | bytes) for kind in kinds):
        wrong = next((one for one in given if not is_single(one)), None)
        if wrong is not None:
            raise ArgumentError(f"{wrong!r:.80} is given as one vertex id; give a plain list of ids")
    if any(hasattr(kind, "as_py") for kind in kinds):
        given = [one.as_py() if hasattr(one, "as_py") else one for one in given]
    return [one.item() if isinstance(one, np.ndarray) else one for one in given] if np.ndarray in kinds else given


def as_list(ids: Any) -> list[Any]:
    """Return ids, as `as_collection` takes them, as a list."""
    found = as_collection(ids)
    if hasattr(found, "to_pylist"):  # an array of Arrow
        return list(found.to_pylist())
    return list(np.asarray(found).ravel().tolist()) if hasattr(found, "dtype") else list(found)


def as_pairs(source: Any, target: Any) -> tuple[Any, Any]:
    """Return sources and targets as sequences of the same length.

    Raises
    ------
    ArgumentError
        There are more of one than of the other.
    """
    pairs = as_collection(source), as_collection(target)
    if is_single(source) != is_single(target) or len(pairs[0]) != len(pairs[1]):
        raise ArgumentError(f"there are {len(pairs[0]):,} sources and {len(pairs[1]):,} targets; give two ids, or as many of each")
    return pairs
