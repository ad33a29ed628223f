"""Scores of pairs of nodes by the neighbours that they have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm


def _refused(given: Mapping[str, Any]) -> str | None:
    return "all pairs that are no edges are too many; give ebunch" if given["ebunch"] is None else None


def _scored(graph: Nodes, pairs: Iterable[tuple[Any, Any]], kind: str) -> Iterator[tuple[Any, Any, float]]:
    pairs = [(u, v) for u, v in pairs]
    ids = [[graph.require(node, f"Node {node} not in G.") for node in pair] for pair in pairs]
    source, target = ([one[end] for one in ids] for end in (0, 1))
    scores = graph.store.similarity(source, target, kind=kind, memory_budget=graph.resources.memory_budget)
    return _paired(pairs, scores.tolist())


def _paired(pairs: list[tuple[Any, Any]], scores: list[float]) -> Iterator[tuple[Any, Any, float]]:
    for (u, v), score in zip(pairs, scores, strict=True):
        if math.isinf(score):
            raise ZeroDivisionError("float division by zero")
        yield u, v, score


@algorithm(refuse=_refused)
def jaccard_coefficient(graph: Nodes, ebunch: Any = None) -> Iterator[tuple[Any, Any, float]]:
    """See `networkx.jaccard_coefficient`."""
    return _scored(graph, ebunch, "jaccard")


@algorithm(refuse=_refused)
def adamic_adar_index(graph: Nodes, ebunch: Any = None) -> Iterator[tuple[Any, Any, float]]:
    """See `networkx.adamic_adar_index`."""
    return _scored(graph, ebunch, "adamic-adar")


@algorithm(refuse=_refused)
def resource_allocation_index(graph: Nodes, ebunch: Any = None) -> Iterator[tuple[Any, Any, float]]:
    """See `networkx.resource_allocation_index`."""
    return _scored(graph, ebunch, "resource-allocation")
