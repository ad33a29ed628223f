"""Graphs of every shape on which searches are tested: each function builds a store and returns sources, one or several at once, to try."""

from __future__ import annotations

import numpy as np

from tests.reference_build import reference_build
from tests.stores import rewrite, string_store


def hubs(seed, num_ids=2000, num_edges=9000):
    """Edges of a graph with a few hubs."""
    rng = np.random.default_rng(seed)
    return (num_ids * rng.random(num_edges) ** 3).astype(np.int64), rng.integers(0, num_ids, num_edges)


def undirected(path):
    """Most ids are isolated or in one component; one source is isolated."""
    reference_build(*hubs(1), path, implied=(0, 2500))
    return [0, 1999, [3, 2400, 1500], 2400]


def directed(path):
    """Out- and in-rows differ."""
    reference_build(*hubs(2), path, directed=True)
    return [0, [1, 2, 7]]


def original(path):
    """Partitions are ranges of ids."""
    reference_build(*hubs(3), path, vertex_order="original")
    return [0, [5, 1999]]


def directed_original(path):
    """Both groups are looked up by indptr."""
    reference_build(*hubs(4), path, directed=True, vertex_order="original")
    return [0, [5, 9]]


def strings(path):
    """Ids are strings; an isolated one among the sources."""
    src, dst = ([f"{'n' * (i % 5)}{i}" for i in side.tolist()] for side in hubs(5, num_edges=3000))
    string_store(path, src, dst, others=["alone"])
    return [src[0], ["alone", dst[7]], "alone"]


def compressed(path):
    """Rows are decoded in windows."""
    reference_build(*hubs(6), path.with_name("plain.zarr"))
    rewrite(path.with_name("plain.zarr"), path, codec="zstd")
    return [0, [1, 1999]]


def path_graph(path):
    """Levels above 254, which a byte does not hold."""
    reference_build(np.arange(270), np.arange(1, 271), path)
    return [0, [0, 270]]


def star(path):
    """One hub that is a block of vertices alone."""
    reference_build(np.zeros(3000, np.int64), np.arange(1, 3001), path)
    return [0, 17]


def one_edge(path):
    """Fewer vertices than workers could take."""
    reference_build([7], [9], path)
    return [7, [7, 9]]


def empty(path):
    """Vertices without edges: nothing to search."""
    reference_build([], [], path, implied=(0, 3))
    return [1, [0, 2]]


GRAPHS = [undirected, directed, original, directed_original, strings, compressed, path_graph, star, one_edge, empty]
