"""Which degrees are joined by edges: each function takes a product of the adjacency matrix and the degrees."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any

import networkx as nx
import numpy as np

from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.registry import algorithm
from oocgraph.types import Array

GROUPS = {"out": "out", "in": "in", "in+out": None}
"""Lists whose lengths are added, by the name that NetworkX has for degrees."""

VECTOR_BYTES, WEIGHT_BYTES, MEAN_BYTES = 72, 32, 16
"""Of a vertex: degrees, vectors that are multiplied, in two orders, and what comes of them; of the other vector that weights take; and of
degrees from which their mean is taken."""


def _checked(graph: Nodes, default: str, **given: str) -> None:
    """Refuse names of degrees that there are not; an undirected graph has one."""
    for name, kind in given.items():
        if not graph.is_directed and kind != default:
            raise nx.NetworkXError("source and target arguments are only supported for directed graphs")
        if kind not in GROUPS:
            raise nx.NetworkXError(f"{name} argument {kind} must be 'in', 'out' or 'in+out'")


def _degrees(graph: Nodes, kind: str) -> Array:
    return graph.degrees(GROUPS[kind] if graph.is_directed else None)


def _sums_and_strengths(graph: Nodes, source: str, target: str, weight: Any, ways: list[bool]) -> tuple[Array, Array]:
    """Return the sum of the neighbours' degrees, by weight, and the degree that it is divided by.

    `ways` are those in which neighbours are found: against the edges, or not.
    """
    column = graph.column_of(weight)
    graph.charge_product(degrees=VECTOR_BYTES + (0 if column is None else WEIGHT_BYTES))
    degrees = _degrees(graph, target).astype(np.float64)
    if column is None:
        return sum(graph.sums(degrees, reverse=way) for way in ways), _degrees(graph, source)  # type: ignore[return-value]
    check_loops(graph)
    vectors = np.stack([degrees, np.ones(degrees.size)], axis=1)
    found = {way: graph.sums(vectors, reverse=way, column=column) for way in {*ways, *_ways(graph, source)}}
    return sum(found[way][:, 0] for way in ways), sum(found[way][:, 1] for way in _ways(graph, source))  # type: ignore[return-value]


def check_loops(graph: Nodes) -> None:
    """Refuse weights where a self-loop's count twice.

    Raises
    ------
    NotImplementedError
        The graph is undirected, and has some.
    """
    if not graph.is_directed and graph.num_self_loops:
        raise NotImplementedError("weights of undirected graphs with self-loops are not supported")


def _ways(graph: Nodes, source: str) -> list[bool]:
    """Return the ways in which the neighbours are that a degree counts: of an undirected graph one."""
    return [kind == "in" for kind in source.split("+")] if graph.is_directed else [False]


@algorithm(takes_parallel_edges=False)
def average_neighbor_degree(
    graph: Nodes, source: str = "out", target: str = "out", nodes: Any = None, weight: Any = None
) -> Mapping[Any, float]:
    """See `networkx.average_neighbor_degree`."""
    _checked(graph, "out", source=source, target=target)
    sums, degrees = _sums_and_strengths(graph, source, target, weight, _ways(graph, source))
    average = np.divide(sums, degrees, out=np.zeros(sums.size), where=degrees != 0)
    found = graph.from_own(average, 0.0)
    return found if nodes is None else {node: found[node] for node in graph.chosen(nodes)}


@algorithm(takes_parallel_edges=False)
def average_degree_connectivity(
    graph: Nodes, source: str = "in+out", target: str = "in+out", nodes: Any = None, weight: Any = None
) -> dict[int, float]:
    """See `networkx.average_degree_connectivity`."""
    _checked(graph, "in+out", source=source, target=target)
    ways = [source == "in"]  # NetworkX takes the successors alone for in+out
    sums, strengths = _sums_and_strengths(graph, source, target, weight, ways)
    degrees, num_others = _degrees(graph, source), len(graph) - sums.size
    if nodes is not None:
        numbers = graph.numbers_of([nodes] if nodes in graph else nodes)
        num_others, numbers = int((numbers == -1).sum()), numbers[numbers >= 0]
        sums, strengths, degrees = sums[numbers], strengths[numbers], degrees[numbers]
    kinds, kind = np.unique(degrees, return_inverse=True)
    total, norm = (np.bincount(kind, values, kinds.size).astype(np.float64) for values in (sums, strengths))
    found = dict(zip(kinds.tolist(), np.divide(total, norm, out=total, where=norm != 0).tolist(), strict=True))
    return {0: 0.0, **found} if num_others else found


def _correlation(graph: Nodes, x: str, y: str) -> float:
    """Return the correlation of the degrees at both ends of the edges; NaN where all are the same at one end."""
    if graph.is_directed and not {x, y} <= {"in", "out"}:
        raise nx.NetworkXError(f"x and y are {x!r} and {y!r}; each must be 'in' or 'out'")
    graph.charge_product(degrees=VECTOR_BYTES + MEAN_BYTES)
    first, second = (_degrees(graph, kind).astype(np.float64) for kind in (x, y))
    if graph.is_directed:
        ends = [graph.degrees("out"), graph.degrees("in")]
    else:
        ends = 2 * [graph.sums(np.ones(first.size)) if graph.num_self_loops else graph.degrees()]
    variances = [_centred(*both) for both in zip((first, second), ends, strict=True)]
    return float(np.dot(first, graph.sums(second)) / np.sqrt(variances[0] * variances[1])) if all(variances) else nan


def _centred(values: Array, often: Array) -> float:
    """Take the mean from values, each of which there is so often, and return the sum of their squares; 0 where they are all the same."""
    there = values[often > 0]
    if not there.size or np.ptp(there) == 0:
        return 0.0
    values -= np.dot(values, often) / often.sum()
    return float(np.dot(values * values, often))


@algorithm(unsupported=["weight", "nodes"])
def degree_assortativity_coefficient(graph: Nodes, x: str = "out", y: str = "in", weight: Any = None, nodes: Any = None) -> float:
    """See `networkx.degree_assortativity_coefficient`."""
    return _correlation(graph, x, y)


@algorithm(unsupported=["weight", "nodes"])
def degree_pearson_correlation_coefficient(graph: Nodes, x: str = "out", y: str = "in", weight: Any = None, nodes: Any = None) -> float:
    """See `networkx.degree_pearson_correlation_coefficient`."""
    return _correlation(graph, x, y)


@algorithm()
def s_metric(graph: Nodes) -> float:
    """See `networkx.s_metric`."""
    graph.charge_product(degrees=VECTOR_BYTES)
    degrees = graph.degrees().astype(np.float64)
    total = np.dot(degrees, graph.sums(degrees))
    if graph.is_directed:
        return float(total)
    if graph.num_self_loops:  # edges of their own, which a degree counts twice
        total += np.dot(degrees - graph.sums(np.ones(degrees.size)), degrees * degrees)
    return float(total) / 2
