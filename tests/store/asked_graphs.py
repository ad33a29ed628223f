"""Small graphs that tests ask about, each with what it was made from: the oracle is plain Python on the list of edges."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import count

import dask
import fsspec
import numpy as np
import pyarrow as pa

from oocgraph import build_csr, open_graph

_numbers = count()


@dataclass
class Asked:
    """A graph, and what it must answer by.

    Attributes
    ----------
    pairs : list of (source, target)
        As kept by the build; of an undirected graph in one of both directions.
    vertices : list
        Ascending, isolated ones included.
    """

    graph: object
    pairs: list
    vertices: list
    directed: bool

    def lists(self, direction="out"):
        """Return the neighbours of each vertex, with repetitions, in no order."""
        found = {v: [] for v in self.vertices}
        for u, v in self.pairs:
            if direction == "out" or not self.directed:
                found[u].append(v)
            if (direction == "in" and self.directed) or (not self.directed and u != v):
                found[v].append(u)
        return found


def weigh(u, v):
    """Weight of an edge, the same in both directions."""
    return float(hash_of(u) + hash_of(v))


def hash_of(one):
    """Return a small number for an id."""
    return one % 1009 if isinstance(one, int) else sum(one.encode())


def hubs(seed, num_ids=700, num_edges=3000):
    """Edges of a graph with hubs; some join a vertex to itself, some occur twice."""
    rng = np.random.default_rng(seed)
    return (num_ids * rng.random(num_edges) ** 3).astype(np.int64), rng.integers(0, num_ids, num_edges)


def make(
    path, source, target, *, vertices=None, directed=False, loops=False, duplicates="drop", num_vertices=None, weighted=True, config=None
):
    """Build a graph from lists of ids, and what it is expected to be, which no code of the library has a part in."""
    pairs = list(zip(source, target, strict=True))
    if not loops:
        pairs = [(u, v) for u, v in pairs if u != v]
    if not directed:
        pairs = [min((u, v), (v, u)) for u, v in pairs]
    if duplicates == "drop":
        pairs = list(dict.fromkeys(pairs))
    known = (
        range(num_vertices)
        if num_vertices is not None
        else sorted({*source, *target}, key=lambda one: one.encode() if isinstance(one, str) else one)
    )
    columns = {"source": pa.array(source), "target": pa.array(target)}
    if weighted:
        columns |= {
            "weight": pa.array([weigh(u, v) for u, v in zip(source, target, strict=True)], pa.float64()),
            "kind": pa.array([f"kind {int(weigh(u, v)) % 3}" for u, v in zip(source, target, strict=True)], pa.string()),
        }
    options = {"columns": ("source", "target", "kind"), "weight": "weight"} if weighted else {}
    with dask.config.set(config or {}):
        graph = build_csr(
            pa.table(columns),
            *([] if path is None else [path]),
            directed=directed,
            keep_self_loops=loops,
            duplicates=duplicates,
            num_vertices=num_vertices,
            **options,
        )
    return Asked(graph, pairs, list(known), directed)


def undirected(path):
    """Use dense ids, some of them isolated."""
    u, v = (one.tolist() for one in hubs(1))
    return make(path, u, v, num_vertices=900)


def directed(path):
    """Make a graph whose in-lists are in the order of degree, and whose out-lists are not."""
    u, v = (one.tolist() for one in hubs(2))
    return make(path, u, v, directed=True, num_vertices=900)


def strings(path):
    """Use strings as ids; one that is joined to itself only is isolated."""
    u, v = ([f"{'ä' * (i % 4)}{i}" for i in one.tolist()] for one in hubs(3))
    return make(path, [*u, "alone"], [*v, "alone"])


def sparse(path):
    """Spread ids over 64 bits."""
    ids = np.unique(np.random.default_rng(4).integers(0, 2**62, 700))
    u, v = (ids[one % ids.size].tolist() for one in hubs(4))
    return make(path, [*u, 2**62], [*v, 2**62], directed=True)


def loops(path):
    """Keep self-loops and parallel edges."""
    u, v = (one.tolist() for one in hubs(5))
    return make(path, [*u, 3, 3, 699], [*v, 3, 3, 699], loops=True, duplicates="keep")


def directed_loops(path):
    """Keep self-loops and parallel edges of a directed graph."""
    u, v = (one.tolist() for one in hubs(6))
    return make(path, [*u, 3, 3], [*v, 3, 3], directed=True, loops=True, duplicates="keep")


def original(path):
    """Sort vertices by id: rows are looked up by indptr."""
    u, v = (one.tolist() for one in hubs(7))
    return make(path, u, v, num_vertices=900, config={"oocgraph.vertex-order": "original"})


def compressed(path):
    """Compress chunks."""
    u, v = (one.tolist() for one in hubs(8))
    return make(path, u, v, num_vertices=900, config={"oocgraph.codec": "zstd"})


def in_memory(path):
    """Hold the arrays in memory."""
    u, v = (one.tolist() for one in hubs(9))
    return make(None, u, v, directed=True, num_vertices=900)


def checked(path):
    """Compare pages with their checksums."""
    asked = undirected(path)
    asked.graph = open_graph(path, check_pages=True)
    return asked


def remote(path):
    """Put the store behind a file system that is not local."""
    asked = undirected(path)
    name = f"asked-{next(_numbers)}"
    fsspec.filesystem("memory").put(str(path), f"/{name}", recursive=True)
    asked.graph = open_graph(f"memory://{name}")
    return asked


def disconnected(path):
    """Make two parts of which none reaches the other."""
    return make(path, [0, 1, 2, 10, 11], [1, 2, 0, 11, 12], num_vertices=14, weighted=False)


def empty(path):
    """Make vertices without edges."""
    return make(path, [0, 1], [0, 1], num_vertices=3, weighted=False)


GRAPHS = [
    undirected, directed, strings, sparse, loops, directed_loops, original, compressed, in_memory, checked, remote, disconnected, empty,
]  # fmt: skip


def same(found, expected):
    """Whether two collections hold the same things as often."""
    return Counter(found) == Counter(expected)
