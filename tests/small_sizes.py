"""Algorithms with small blocks, pieces, lists and bags, beside NetworkX: ``python -m tests.small_sizes 200 --seed 1``.

Sizes that only large graphs reach are drawn small, so that rows lie in several blocks, lists are full and levels are handed from one way of
searching to another. What differs is printed with the seed that draws it again.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import networkx as nx
import numpy as np

import oocgraph
from oocgraph import Resources
from oocgraph.config import setting

SIZES = {
    "engine.blocks.SHIFT": (1, 2, 4, 14), "engine.blocks.MAX_BAGS": (2, 3, 16, 1 << 14), "engine.blocks.READ_AHEAD": (1, 16),
    "engine.blocks.PLACED_ROWS": (7, 1 << 16), "sparse.edge_stream.PIECE_BYTES": (64, 256, 2 << 20),
    "engine.sweeps.READ_ENTRIES": (40, 1 << 15), "engine.sweeps.READ_ROWS": (1, 5, 1 << 13), "engine.sweeps.LEAST_READ": (1, 1 << 10),
    "engine.sweeps.READ_SHARE": (2, 128), "algorithms.bfs_by_pages.LEAST_EDGES": (0, 1 << 20),
    "algorithms.bfs_by_pages.FEW_LEVELS": (2, 1 << 11), "algorithms.source_words.FEW": (2, 16),
    "algorithms.source_words.CHECKED_LEVELS": (1, 16), "algorithms.source_words.LONE_LEVELS": (2, 1 << 10),
    "algorithms.source_words.PUSH_COST": (0.01, 2.0, 100.0), "algorithms.path_counts.LEAST_LISTED": (20, 1 << 14),
    "algorithms.path_counts.ALONE_LEVELS": (1, 64), "algorithms.path_counts.ALONE_SHARE": (0, 2, 1e9),
    "algorithms.path_counts.LISTED_LEVELS": (2, 1 << 10), "algorithms.path_counts.MARKED_SHARE": (0.0, 1 / 32, 1.0),
    "algorithms.listed_front.LEAST_LISTED": (8, 1 << 12), "algorithms.lone_sources.FIRST_LEVELS": (1, 16),
    "algorithms.strong_components.FEW": (0, 64, 1 << 40), "engine.few.FEW_EDGES": (2, 1 << 16), "engine.few.SMALL_EDGES": (0, 1 << 17),
    "engine.local.SMALL_EDGES": (0, 1 << 20), "engine.forest.LISTED_ROWS": (2, 1 << 18), "engine.forest.MAX_RANGES": (1, 1 << 14),
    "engine.cpu_engine.LONG_ROW": (8, 1 << 16), "engine.cpu_engine.SERIAL_MISSES": (0, 16), "engine.cpu_engine.LOG_LEVELS": (3, 8192),
    "engine.cpu_engine.PREFETCH_MISSES": (16, 2048),
}  # fmt: skip
"""Constants of modules of the package, with what they may be; the last is what they are."""


def drawn_edges(rng, directed):
    """Draw a graph: (source, target, weight), integers."""
    n = int(rng.integers(2, 200))
    kind = rng.choice(["random", "hubs", "path", "star", "tree", "grid", "cliques", "lollipop", "cycle"])
    match kind:
        case "random":
            source, target = rng.integers(0, n, (2, int(rng.integers(1, 6 * n))))
        case "hubs":
            m = int(rng.integers(1, 8 * n))
            source, target = (rng.random(m) ** 4 * n).astype(int), rng.integers(0, n, m)
        case "path":
            source, target = np.arange(n - 1), np.arange(1, n)
        case "cycle":
            source, target = np.arange(n), np.roll(np.arange(n), 1)
        case "star":
            source, target = np.zeros(n - 1, int), np.arange(1, n)
        case "tree":
            source = np.arange(1, n)
            target = (rng.random(n - 1) * source).astype(int)
        case "grid":
            at = np.arange(14 * (n // 14 + 1)).reshape(14, -1)
            source, target = np.r_[at[:-1].ravel(), at[:, :-1].ravel()], np.r_[at[1:].ravel(), at[:, 1:].ravel()]
        case "cliques":
            size = int(rng.integers(2, 9))
            one, two = np.triu_indices(size, 1)
            first = size * np.arange(max(1, n // size))[:, None]
            source, target = np.r_[(first + one).ravel(), first[:-1, 0]], np.r_[(first + two).ravel(), first[1:, 0]]
        case _:
            half = max(2, n // 2)
            source, target = rng.integers(0, half, (2, 4 * half))
            source, target = np.r_[source, np.arange(half - 1, n - 1)], np.r_[target, np.arange(half, n)]
    if rng.random() < 0.5:
        source, target = rng.permutation(max(source.max(), target.max()) + 1)[np.array([source, target])]
    if directed and rng.random() < 0.5:
        swaps = rng.random(source.size) < 0.5
        source, target = np.where(swaps, target, source), np.where(swaps, source, target)
    keeps = source != target
    return (source[keeps], target[keeps], rng.integers(1, int(rng.choice([2, 10, 1000])), int(keeps.sum()))) if keeps.any() else None


def compare(seed, folder):
    """Draw a graph and sizes, call every algorithm, and return what differs: a list of names."""
    rng = np.random.default_rng(seed)
    directed = bool(rng.random() < 0.5)
    if (edges := drawn_edges(rng, directed)) is None:
        return []
    order = rng.choice(["original", "degree", "locality"])
    with setting("vertex-order", str(order)):
        graph = oocgraph.build_csr(edges, folder / f"{seed}.zarr", weight="weight", directed=directed, duplicates="min")
    peer = graph.to_networkx()
    options = {"resources": Resources(threads=int(rng.choice([1, 2, 5])), client=False)}
    labels, colors = (None, None) if directed else (oocgraph.label_propagation(graph).community, oocgraph.greedy_coloring(graph).color)
    source = rng.choice(sorted(peer))
    wrong = []
    with ExitStack() as stack:
        for name, values in SIZES.items():
            module, _, constant = name.rpartition(".")
            if rng.random() < 0.7:
                stack.enter_context(patch.object(import_module(f"oocgraph.{module}"), constant, rng.choice(values[:-1]).item()))
        runtime = stack.enter_context(oocgraph.open_runtime(graph, **options)) if rng.random() < 0.3 else None
        options = options if runtime is None else {"runtime": runtime}
        for name, found, expected in answers(graph, peer, source, directed, (labels, colors), options):
            try:
                why = "" if matches(found(), expected()) else "differs"
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
            if why:
                wrong.append(f"{name}: {why}")
    return wrong


def matches(found, expected):
    """Whether values are the same: of a result for ids or ids in order, of NetworkX a dict, or arrays, or numbers."""
    if isinstance(expected, dict):
        ids = np.array(sorted(expected))
        expected = np.array([expected[one] for one in ids.tolist()])
        found = np.asarray(found.of(ids) if hasattr(found, "of") else [found[one] for one in ids.tolist()])
    return np.allclose(np.asarray(found, float), np.asarray(expected, float), rtol=1e-6, atol=1e-9)


def answers(graph, peer, source, directed, plain, options):
    """Yield names, and what computes what we say and what is right."""
    ids = sorted(peer)
    schedules = ["async", "buckets", "rounds"]

    def levels(reverse=False):
        seen = nx.single_source_shortest_path_length(peer.reverse() if reverse and directed else peer, source)
        return {one: seen.get(one, -1) for one in ids}

    def distances():
        seen = nx.single_source_dijkstra_path_length(peer, source)
        return {one: seen.get(one, -1) for one in ids}

    yield "bfs", lambda: oocgraph.bfs(graph, source, **options), levels
    if "runtime" not in options:
        yield "bfs reverse", lambda: oocgraph.bfs(graph, source, reverse=True, **options), lambda: levels(True)
    for schedule in schedules:
        yield f"sssp {schedule}", lambda s=schedule: reached(oocgraph.sssp(graph, source, schedule=s, **options), ids), distances
    yield "sssp delta 1", lambda: reached(oocgraph.sssp(graph, source, schedule="async", delta=1.0, **options), ids), distances
    smallest = {v: min(c) for c in (nx.weakly_connected_components if directed else nx.connected_components)(peer) for v in c}
    yield "components", lambda: oocgraph.connected_components(graph, **options), lambda: smallest
    yield (
        "pagerank",
        lambda: oocgraph.pagerank(graph, tol=1e-12, max_iter=1000, weight=False, **options),
        lambda: nx.pagerank(peer, weight=None, tol=1e-12, max_iter=1000),
    )
    yield "betweenness", lambda: oocgraph.betweenness_centrality(graph, **options), lambda: nx.betweenness_centrality(peer)
    yield "closeness", lambda: oocgraph.closeness_centrality(graph, **options), lambda: nx.closeness_centrality(peer)
    yield "harmonic", lambda: oocgraph.harmonic_centrality(graph, **options), lambda: nx.harmonic_centrality(peer)
    cores = nx.core_number(peer)
    for schedule in ("async", "rounds"):
        yield f"core {schedule}", lambda s=schedule: oocgraph.core_numbers(graph, schedule=s, **options), lambda: cores
    if directed:
        strong = {v: min(c) for c in nx.strongly_connected_components(peer) for v in c}
        yield "scc", lambda: oocgraph.strongly_connected_components(graph, **options), lambda: strong
        if nx.is_directed_acyclic_graph(peer):
            layers = {v: i for i, layer in enumerate(nx.topological_generations(peer)) for v in layer}
            yield "generations", lambda: oocgraph.topological_generations(graph, **options), lambda: layers
        return
    yield "triangles", lambda: oocgraph.triangles(graph, **options), lambda: nx.triangles(peer)
    yield "clustering", lambda: oocgraph.clustering(graph, **options), lambda: nx.clustering(peer)
    weight = nx.minimum_spanning_tree(peer).size("weight")
    yield "forest", lambda: oocgraph.minimum_spanning_forest(graph, **options).total_weight, lambda: weight
    bridges = sum(1 for _ in nx.bridges(peer))
    yield "bridges", lambda: oocgraph.biconnected_components(graph, **options).num_bridges, lambda: bridges
    labels, colors = plain
    yield "colors", lambda: oocgraph.greedy_coloring(graph, **options).color, lambda: colors
    yield "labels", lambda: oocgraph.label_propagation(graph, **options).community, lambda: labels
    if nx.is_connected(peer):
        yield "eccentricity", lambda: oocgraph.eccentricity(graph, **options), lambda: nx.eccentricity(peer)
        yield "diameter", lambda: oocgraph.diameter(graph, **options).diameter, lambda: nx.diameter(peer)


def reached(result, ids):
    """Return distances by id, -1 where there is no path."""
    found = dict(result.reached())
    return {one: found.get(one, -1) for one in ids}


def main(compare, description):
    """Compare as many draws as are asked for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("number", type=int)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.seed, given.seed + given.number):
            for name in compare(seed, Path(folder)):
                print(f"seed {seed}: {name}", flush=True)


if __name__ == "__main__":
    main(compare, __doc__)
