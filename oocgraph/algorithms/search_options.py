"""What searches share that find part of a graph: the vertices that they stop at, and where views of a graph can be searched.

In: options as a user gives them. Out: store numbers of targets; resources of a search on this process's processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oocgraph.config import settings
from oocgraph.errors import ArgumentError
from oocgraph.resources import Resources
from oocgraph.store.columns import distinct
from oocgraph.store.given import as_list
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array


def sources_of(source: Any) -> tuple[Any, list[Any]]:
    """Return the sources of a search as results name them, one id or a list, and as a list.

    Raises
    ------
    ArgumentError
        There is none.
    """
    sources = as_list(source)
    if not sources:
        raise ArgumentError("no source was given; name at least one vertex id")
    return source if isinstance(source, (int, str, bytes, np.integer)) else sources, sources


def target_numbers(ids: VertexIds, target: Any, sources: Array, source_ids: list[Any]) -> Array:
    """Return the store numbers of the vertices at which a search may stop once it has found all of them: (n,) int64, ascending.

    None are returned where nothing can stop it: there is no target, or one that has no edge is not a source.

    Parameters
    ----------
    target
        An id, or some; None: there is none.
    sources : (n,) int64
        Store numbers of the sources, -1 of one that has no edges.
    source_ids
        Their ids.

    Raises
    ------
    VertexNotFoundError
        A target does not occur in the graph's input.
    """
    if target is None:
        return np.empty(0, np.int64)
    given = as_list(target)
    if not given:
        raise ArgumentError("target is an empty list; name at least one vertex id, or leave it out")
    numbers = ids.vertices_of(given)
    if (numbers < 0).any():
        isolated = ids.parse([one for one, number in zip(given, numbers, strict=True) if number < 0]).tolist()
        beginning = [one for one, number in zip(source_ids, sources, strict=True) if number < 0]
        if not beginning or not set(isolated) <= set(ids.parse(beginning).tolist()):
            return np.empty(0, np.int64)
        if (numbers < 0).all():  # it is a source: nothing else is to be found
            return distinct(sources[sources >= 0])
    return distinct(numbers[numbers >= 0])


def refuse_elsewhere(runtime: Any, name: str) -> None:
    """Refuse an option that only this process's processor has, with a runtime that is elsewhere.

    Raises
    ------
    ArgumentError
        It is on a cluster, on a GPU or over partitions.
    """
    if runtime.client is not None or runtime.metrics.get("device", "cpu") != "cpu" or "partition" in runtime.metrics:
        raise ArgumentError(f"{name} is given, which only a search on this process's processor takes; search without the runtime")


def on_processor(resources: Resources, options: Mapping[str, Any], *, partition: Any = None) -> Resources:
    """Return the resources of a search with options that only this process's processor has; as they are where none of these is given.

    Raises
    ------
    ArgumentError
        An option is given, and a cluster, a GPU or partitions.
    """
    given = " and ".join(name for name, value in options.items() if value is not None and value is not False)
    if not given:
        return resources
    verb = "are" if " and " in given else "is"
    if resources.client:
        raise ArgumentError(
            f"{given} {verb} given, which only a search in this process takes; pass resources=Resources(client=False) to search here"
        )
    if partition is not None:
        raise ArgumentError(f"{given} and partition are given; leave partition out")
    if (resources.device or settings().device) == "cuda" or resources.device_memory_budget is not None:
        raise ArgumentError(f"{given} {verb} given, which only a search on the processor takes; use device='cpu' or 'auto'")
    return replace(resources, device="cpu")
