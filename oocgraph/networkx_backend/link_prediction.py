"""Scores of pairs of nodes by the neighbours that they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.memory import Budget
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.networkx_backend.store_nodes import StoreNodes
from oocgraph.store.vertices import ABSENT
from oocgraph.types import Array

PIECE_PAIRS = 1 << 14
"""Pairs that are scored together."""

SCORE_BYTES = 120
"""Of a pair whose score is a product of degrees: both nodes in lists, their numbers, and the score, as an object at last."""


def _refused(given: Mapping[str, Any]) -> str | None:
    return "ebunch is None: to score all pairs that are not edges is not supported; give ebunch" if given["ebunch"] is None else None


def _scored(graph: Nodes, ebunch: Iterable[tuple[Any, Any]], kind: str) -> Iterator[tuple[Any, Any, float]]:
    pairs = [(u, v) for u, v in ebunch]
    scores = [_scores(graph, pairs[start : start + PIECE_PAIRS], kind) for start in range(0, len(pairs), PIECE_PAIRS)]
    return _joined(pairs, chain.from_iterable(scores))


def _scores(graph: Nodes, pairs: list[tuple[Any, Any]], kind: str) -> Array:
    try:
        source, target = ([graph.id_of(_known(graph, pair[end])) for pair in pairs] for end in range(2))
    except KeyError as error:
        raise nx.NodeNotFound(f"Node {error.args[0]} not in G.") from error
    scores: Array = graph.store.similarity(source, target, kind=kind, memory_budget=graph.resources.memory_budget)
    return scores


def _known(graph: Nodes, node: Any) -> Any:
    """Return a node; a string that a store would take for an integer is none."""
    if isinstance(node, str) and isinstance(graph, StoreNodes) and graph.store.attributes.id_kind != "string":
        raise KeyError(node)
    return node


def _joined(pairs: list[tuple[Any, Any]], scores: Iterable[Any]) -> Iterator[tuple[Any, Any, float]]:
    for (u, v), score in zip(pairs, scores, strict=True):
        if np.isinf(score):
            raise ZeroDivisionError("float division by zero")
        yield u, v, float(score)


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


@algorithm(refuse=_refused, takes_parallel_edges=False)
def preferential_attachment(graph: Nodes, ebunch: Any = None) -> Iterator[tuple[Any, Any, int]]:
    """See `networkx.preferential_attachment`."""
    if graph.is_directed:
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    pairs = [(u, v) for u, v in ebunch]
    Budget(graph.resources.limit_bytes).reserve_all({"degrees": 24 * len(graph), "scores of pairs": SCORE_BYTES * len(pairs)})
    try:
        numbers = [graph.numbers_of([_known(graph, pair[end]) for pair in pairs]) for end in range(2)]
    except KeyError as error:
        raise nx.NodeNotFound(f"Node {error.args[0]} not in G.") from error
    for end, found in enumerate(numbers):
        if (found == ABSENT).any():
            raise nx.NodeNotFound(f"Node {pairs[int(np.argmax(found == ABSENT))][end]} not in G.")
    degrees = np.append(graph.degrees(), 0)  # of nodes that own order does not have, which are -1
    return ((u, v, score) for (u, v), score in zip(pairs, (degrees[numbers[0]] * degrees[numbers[1]]).tolist(), strict=True))
