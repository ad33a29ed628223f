"""The sound stores that are damaged: small, one for each kind of thing that a store may hold.

In: a folder. Out: a `Base` for each; its folder holds ``g.zarr``, and ``parts.zarr``, ``search.zarr`` or ``checkpoint`` where
the kind says so. Graphs have some 900 vertices and several pages of neighbours.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np

import oocgraph
from oocgraph import Resources
from oocgraph.store import writer
from oocgraph.store.search_store import SearchStore
from oocgraph.types import PAGE_BYTES
from tests import every_knob
from tests.ingest.helpers_build import ArraySource
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite, string_store

GRAPH, PARTS, SEARCH, CHECKPOINT = "g.zarr", "parts.zarr", "search.zarr", "checkpoint"

QUIET_CLUSTER = {
    "n_workers": 2,
    "threads_per_worker": 1,
    "processes": False,
    "dashboard_address": None,
    "scheduler_kwargs": {"dashboard_address": ":0"},
}


@dataclass(frozen=True, slots=True)
class Base:
    """One sound folder.

    Attributes
    ----------
    name
        What it is called in a report.
    folder
        Where it is; it is copied before anything is changed.
    damaged
        Folder in it of which files are damaged.
    sources
        Ids of vertices; the last one is isolated where there are such.
    weights
        Numeric edge columns.
    """

    name: str
    folder: Path
    damaged: str
    sources: tuple[int | str, ...]
    weights: tuple[str, ...] = ()

    @property
    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self.name in ("directed", "original") or self.name.endswith("-directed")

    @property
    def kind(self) -> str:
        """``graph``, or what else is damaged."""
        return {PARTS: "partitions", SEARCH: "search", CHECKPOINT: "checkpoint"}.get(self.damaged, "graph")


def edges(seed=1):
    """Return skewed edges of ids from 0 to 899, with self-loops and duplicates."""
    rng = np.random.default_rng(seed)
    return ((rng.random(6000) ** power * 900).astype(np.int64) for power in (2, 1))


def plain(**options):
    """Return a maker of a graph of integer ids."""

    def make(folder):
        reference_build(*edges(), folder / GRAPH, **{"implied": (-5, 950), **options})

    return make


def compressed(codec, **options):
    """Return a maker of the same graph, compressed."""

    def make(folder):
        plain(**options)(folder)
        rewrite(folder / GRAPH, folder / "c.zarr", codec=codec)
        shutil.rmtree(folder / GRAPH)
        (folder / "c.zarr").rename(folder / GRAPH)

    return make


def several_chunks(folder):
    """Make every array in chunks of two pages."""
    with patch.object(writer, "CHUNK_BYTES", 2 * PAGE_BYTES):
        plain(directed=True)(folder)


def named(folder):
    """Make a graph whose ids are strings, isolated ones among them."""
    src, dst = ([f"v{i:x}" for i in side] for side in random_edges(3, 300, 2000))
    string_store(folder / GRAPH, src, dst, others=["a", "zzz"])
    shutil.rmtree(folder / "scratch-store", ignore_errors=True)


def columns(*, directed):
    """Return a maker of weights, integers and strings along the edges."""

    def make(folder):
        import pyarrow as pa
        from pyarrow import parquet

        source, target = edges(2)
        rng = np.random.default_rng(0)
        values = {
            "w": rng.random(source.size),
            "n": rng.integers(-5, 9, source.size).astype(np.int32),
            "kind": [f"kind {i}" for i in rng.integers(0, 20, source.size)],
        }
        parquet.write_table(pa.table({"source": source, "target": target, **values}), folder / "edges.parquet")
        options = {"weight_column": "w", "edge_columns": ("n", "kind"), "duplicates": "keep"}
        every_knob.build(folder / "edges.parquet", folder / GRAPH, directed=directed, **options)
        (folder / "edges.parquet").unlink()

    return make


def road(folder):
    """Make a grid: low degrees and many levels."""
    at = np.arange(30 * 30).reshape(30, 30)
    src, dst = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()]), np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    reference_build(src, dst, folder / GRAPH, implied=(0, 950))


def partitions(policy, **options):
    """Return a maker of a graph and its partitions."""

    def make(folder):
        plain(directed=True)(folder)
        every_knob.partition(folder / GRAPH, 3, policy, folder / PARTS, threads=1, **options)

    return make


def search(*, complete):
    """Return a maker of a graph and the result store of a search: complete, or as it was when its last step had been taken."""

    def make(folder):
        from distributed import Client, LocalCluster

        plain()(folder)
        finish = SearchStore.finish

        def note(store, **fields):
            if not complete:
                shutil.copytree(store.path, folder / SEARCH)
            finish(store, **fields)

        path = folder / (SEARCH if complete else "complete.zarr")
        with (
            patch.object(SearchStore, "finish", note),
            LocalCluster(**QUIET_CLUSTER) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            oocgraph.bfs(folder / GRAPH, 3, client=client, result_store=path)
        shutil.rmtree(folder / "complete.zarr", ignore_errors=True)

    return make


def checkpoint(folder):
    """Make a graph, and the checkpoint of its PageRank after some iterations."""
    plain(directed=True)(folder)
    oocgraph.pagerank(folder / GRAPH, max_iter=5, tol=0, checkpoint=folder / CHECKPOINT, resources=Resources(threads=1))


def listed_isolated(folder):
    """List isolated ids, which are no range, in the store."""
    source, target = edges()
    table = ArraySource(source, target, extra_vertices=np.array([5000, 7777, 10**12]))
    oocgraph.build_csr(table, folder / GRAPH)


_RANGE, _LISTED = (3, 4, 949), (3, 4, 5)

_MAKERS: dict[str, tuple[str, tuple[int | str, ...], Callable[[Path], None]]] = {
    "undirected": (GRAPH, _RANGE, plain()),
    "directed": (GRAPH, _RANGE, plain(directed=True)),
    "original": (GRAPH, _RANGE, plain(directed=True, vertex_order="original")),
    "original-undirected": (GRAPH, _RANGE, plain(vertex_order="original")),
    "loops": (GRAPH, _RANGE, plain(keep_self_loops=True, duplicates="keep")),
    "listed": (GRAPH, _LISTED, plain(implied=None)),
    "isolated": (GRAPH, (3, 4, 7777), listed_isolated),
    "strings": (GRAPH, ("v3", "v4", "a"), named),
    "columns": (GRAPH, _LISTED, columns(directed=False)),
    "columns-directed": (GRAPH, _LISTED, columns(directed=True)),
    "chunks": (GRAPH, _RANGE, several_chunks),
    "road": (GRAPH, _RANGE, road),
    "zstd": (GRAPH, _RANGE, compressed("zstd")),
    "blosc-directed": (GRAPH, _RANGE, compressed("blosc", directed=True)),
    "parts-cvc": (PARTS, _RANGE, partitions("CVC")),
    "parts-transposed": (PARTS, _RANGE, partitions("HVC", transpose=True)),
    "search-complete": (SEARCH, _RANGE, search(complete=True)),
    "search-log": (SEARCH, _RANGE, search(complete=False)),
    "checkpoint": (CHECKPOINT, _RANGE, checkpoint),
}


def bases_in(folder: Path) -> dict[str, Base]:
    """Return all bases; their folders are made by `make_bases`."""
    weights = ("n", "weight")
    return {
        name: Base(name, folder / name, damaged, sources, weights if name.startswith("columns") else ())
        for name, (damaged, sources, _) in _MAKERS.items()
    }


def make_bases(folder: Path, names: Iterable[str]) -> None:
    """Build the stores of some bases."""
    for name in names:
        (folder / name).mkdir(parents=True)
        _MAKERS[name][2](folder / name)


if __name__ == "__main__":  # in a process of its own, whose threads and loops no forked process will miss
    make_bases(Path(sys.argv[1]), sys.argv[2:])
