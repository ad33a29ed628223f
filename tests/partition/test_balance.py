"""Partitions of degree-sorted graphs have equal shares of edges, of vertices and of planes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from oocgraph.ingest.generators.grid import GridEdges
from oocgraph.ingest.generators.kronecker import KroneckerEdges
from oocgraph.ingest.generators.uniform import UniformEdges
from oocgraph.partition.balance import imbalance
from oocgraph.partition.vertex_partition import BLOCK_BYTES, BLOCK_VERTICES, MIN_BLOCKS, partition_vertices
from tests.reference_build import distinct

KRONECKER = KroneckerEdges(16, edge_factor=16, seed=1)

GRAPHS = {
    "kronecker-16": (KRONECKER, "drop"),
    "kronecker-20": (KroneckerEdges(20, edge_factor=16, seed=1), "keep"),
    "uniform-16": (UniformEdges(16, edge_factor=16, seed=1), "drop"),
    "uniform-20": (UniformEdges(20, edge_factor=16, seed=1), "keep"),
    "grid": (GridEdges(700, 900), "drop"),
    "long-grid": (GridEdges(3, 20_000), "drop"),
    "kronecker-16-with-duplicates": (KRONECKER, "keep"),
}
"""Edges, and what becomes of duplicates; 16 million edges are too many to look for them in a test."""

ALIKE = [name for name in GRAPHS if "with" not in name]
"""Graphs without a hub that has 5 % of an eighth of the edges: one owner has it, and no block is as large to make up for it."""

PLANES = 16
"""As many planes as a store of a Kronecker graph of scale 20 holds."""


@dataclass(frozen=True)
class Degrees:
    """What vertex_partition knows of a degree-sorted store: no more than its degrees."""

    num_rows: int
    degree_classes: tuple[np.ndarray, np.ndarray]
    attributes: SimpleNamespace
    index_dtype: np.dtype

    @classmethod
    def of(cls, degree):
        value, first = np.unique(-degree, return_index=True)
        return cls(
            degree.size, (-value, first), SimpleNamespace(vertex_order="degree", num_stored_edges=int(degree.sum())), np.dtype(np.uint32)
        )


@cache
def sorted_degrees(name):
    """Degrees of a generated graph, descending, without self-loops and isolated vertices."""
    source, duplicates = GRAPHS[name]
    n = source.num_vertices
    degree = np.zeros(n, np.int64)
    keys = []
    for block in (block for stream in source.streams(1 << 20) for block in stream()):
        u, v = np.minimum(block.source, block.target), np.maximum(block.source, block.target)
        key = (u * n + v)[u != v]
        if duplicates == "drop":
            keys.append(key)
        else:
            degree += np.bincount(key // n, minlength=n) + np.bincount(key % n, minlength=n)
    if keys:
        key = distinct(np.concatenate(keys))
        degree = np.bincount(key // n, minlength=n) + np.bincount(key % n, minlength=n)
    return -np.sort(-degree[degree > 0])


def plane_entries(vertex_partition, degree):
    """Count the entries of each partition in planes 0, 1, ...: (PLANES, num_partitions)."""
    lengths = [np.count_nonzero(degree > k) for k in range(PLANES)]
    first, stop = vertex_partition.first[:-1], vertex_partition.first[1:]
    return np.array(
        [np.bincount(vertex_partition.owner, np.clip(np.minimum(stop, length) - first, 0, None)) for length in lengths if length]
    )


@pytest.mark.one_in(4)
@pytest.mark.parametrize("num_partitions", [2, 4, 8])
@pytest.mark.parametrize("name", ALIKE)
def test_shares_are_within_five_percent(name, num_partitions):
    """The largest share is at most 1.05 of the mean: edges, vertices, entries of each plane and of the planes together."""
    degree = sorted_degrees(name)
    vertex_partition = partition_vertices(Degrees.of(degree), num_partitions)
    assert max(imbalance(vertex_partition.num_edges), imbalance(vertex_partition.num_owned)) <= 1.05
    entries = plane_entries(vertex_partition, degree)
    assert (entries.max(axis=1) <= 1.05 * entries.mean(axis=1)).all()
    assert entries.sum(axis=0).max() <= 1.02 * entries.sum(axis=0).mean()


@pytest.mark.parametrize("num_partitions", [2, 3, 8, 16, 100])
@pytest.mark.parametrize("name", [name for name in GRAPHS if "16" in name])
def test_no_share_exceeds_the_mean_by_more_than_the_first_block(name, num_partitions):
    """Whatever hubs there are: the snake makes up for each round in the next."""
    degree = sorted_degrees(name)
    vertex_partition = partition_vertices(Degrees.of(degree), num_partitions)
    largest_block = max(int(degree[0]), degree.sum() // (MIN_BLOCKS * num_partitions))
    assert vertex_partition.num_edges.max() <= vertex_partition.num_edges.mean() + largest_block
    assert imbalance(vertex_partition.num_owned) <= 1.05


def test_blocks_end_at_their_limits():
    """No block of a large graph, of which two of one owner may be adjacent, has more edges or vertices than it may, but for a hub."""
    degree = sorted_degrees("kronecker-20")
    vertex_partition = partition_vertices(Degrees.of(degree), 2)
    sizes = np.diff(vertex_partition.first)
    edges = np.diff(np.append(0, np.cumsum(degree))[vertex_partition.first])
    assert (sizes <= 2 * BLOCK_VERTICES).all()
    assert ((edges <= 2 * BLOCK_BYTES // 4) | (degree[vertex_partition.first[:-1]] > BLOCK_BYTES // 4)).all()
    assert vertex_partition.num_bytes < 64 << 10


def test_a_large_power_law_is_dealt_without_python_for_each_block():
    """Thousands of degree classes and 8 million vertices, so tens of thousands of blocks: few Python calls."""
    distinct = np.unique(np.geomspace(1, 400_000, 12_000).astype(np.int64))[::-1]
    counts = np.maximum(1, (9e6 / distinct.astype(float) ** 1.8).astype(np.int64))
    first = np.cumsum(counts) - counts
    attributes = SimpleNamespace(vertex_order="degree", num_stored_edges=int((counts * distinct).sum()))
    graph = Degrees(int(counts.sum()), (distinct, first), attributes, np.dtype(np.uint32))
    calls = []
    partition_vertices(graph, 4)
    sys.setprofile(lambda frame, event, argument: calls.append(event))
    try:
        vertex_partition = partition_vertices(graph, 4)
    finally:
        sys.setprofile(None)
    assert vertex_partition.owner.size > 10_000
    assert len(calls) < 1000
