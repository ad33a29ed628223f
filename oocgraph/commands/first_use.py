"""Every kernel that graphs of usual dtypes need, compiled by using it: on six graphs of a few vertices, every function is called once.

In: an empty folder. Out: numba's disk cache holds what builds, searches and algorithms call for graphs of fewer than 2**32 vertices, with
integer or string ids and no weights or those of float64; shortest paths with weights of int64, too. Other dtypes, policies of partitions
and operators of a user are compiled when they are met.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import oocgraph
from oocgraph.compiled.load import PHASE, load_kernels
from oocgraph.compiled.sound import sound_calls
from oocgraph.errors import ConvergenceError
from oocgraph.kernels import warm, warm_cusp, warm_traverse
from oocgraph.kernels.metis import metis_calls
from oocgraph.kernels.take_ids import join_search_calls, take_ids_calls
from oocgraph.kernels.vertex_order import vertex_order_calls
from oocgraph.products.ranking import rank_calls
from oocgraph.resources import Resources
from oocgraph.sorting import sort_calls
from oocgraph.types import Progress

logger = logging.getLogger(__name__)

SOURCE, TARGET, WEIGHT = (
    ["ada", "ada", "bob", "cyd", "dan", "eve"],
    ["bob", "cyd", "cyd", "dan", "eve", "fay"],
    [2.0, 1.0, 3.0, 1.0, 2.0, 1.0],
)

OPTIONS: dict[str, dict[str, int | None]] = {
    "personalized_pagerank": {"seeds": 1}, "multi_source_bfs": {"sources": 2}, "sssp": {"source": 0}, "spmv": {"x": None},
}  # fmt: skip
"""What functions take besides the graph: a vertex (0), a list of so many, or a vector (None)."""

ALL = (
    "pagerank", "personalized_pagerank", "hits", "katz_centrality", "betweenness_centrality", "closeness_centrality",
    "harmonic_centrality", "multi_source_bfs", "connected_components", "spmv",
)  # fmt: skip

UNDIRECTED = (
    "eccentricity", "eigenvector_centrality", "diameter", "core_numbers", "label_propagation", "louvain", "triangles", "clustering",
    "transitivity", "minimum_spanning_forest", "biconnected_components", "greedy_coloring", "maximal_independent_set",
)  # fmt: skip

DIRECTED = ("strongly_connected_components", "is_directed_acyclic_graph", "topological_generations")

Step = tuple[str, Callable[[], Any]]


def use_everything(folder: Path, progress: Progress) -> None:
    """Call all there is to call, and report each step."""
    steps = list(_steps(folder))
    for done, (name, call) in enumerate(steps):
        progress(PHASE, done, len(steps))
        logger.info("compiling what is needed to %s", name)
        with suppress(ConvergenceError):  # after some iterations, all of which have run
            call()
    progress(PHASE, len(steps), len(steps))


def _steps(folder: Path) -> Iterator[Step]:
    """Yield what to call, by name; each step may use the graphs of those before it."""
    names = ("weighted", "directed", "named", "plain", "counted", "long")
    weighted, directed, named, plain, counted, long = graphs = [folder / f"{name}.zarr" for name in names]
    yield (
        "search",
        lambda: load_kernels(
            [
                *warm.search_calls("uint32"),
                *sound_calls(),
                *take_ids_calls("uint32"),
                *join_search_calls("uint8", "uint32"),
                *join_search_calls("int32", "uint32"),
            ]
        ),
    )
    yield "build graphs", lambda: _build(*graphs)
    yield "merge graphs", lambda: [oocgraph.merge_graphs(one, one, folder / f"merged {one.name}") for one in (weighted, directed)]
    yield "sort", lambda: load_kernels(sort_calls())
    yield "read text of METIS", lambda: load_kernels(metis_calls())
    yield "change the order of vertices", lambda: load_kernels(vertex_order_calls("float64"))
    yield (
        "search parts of a graph",
        lambda: load_kernels([*warm.search_calls("uint32", parts=True), *warm_traverse.traverse_calls("uint32", "uint32")]),
    )
    yield "partition", lambda: load_kernels(warm_cusp.cusp_calls("uint32", "int16", ["float64"]))
    yield "generate graphs", lambda: _generate(folder)
    for graph in (weighted, directed, named):
        yield f"search the {graph.stem} graph", partial(_search, graph)
        has_weights = graph is not directed
        for name in (*ALL, *(["sssp"] if has_weights else []), *(UNDIRECTED if graph is weighted else DIRECTED)):
            yield f"{name} of the {graph.stem} graph", partial(_call, graph, name)
        yield f"export the {graph.stem} graph", partial(_export, graph)
        yield f"ask the {graph.stem} graph", partial(_ask, graph)
    for name in UNDIRECTED:
        yield f"{name} of the plain graph", partial(_call, plain, name)
    yield "rank large graphs", partial(_rank, weighted, "weight")
    yield "rank large graphs without weights", partial(_rank, plain, None)
    yield "answer NetworkX", partial(_networkx, weighted, directed)
    yield "search along some edges", lambda: oocgraph.bfs(weighted, 0, where="weight < 3", resources=Resources(client=False))
    yield "plan a search", lambda: oocgraph.plan_bfs(weighted, 4, source=0)
    for graph in (counted, long):
        yield f"sssp of the {graph.stem} graph", partial(_call, graph, "sssp")
    yield "condensation", lambda: oocgraph.condensation(directed, folder / "components.zarr", resources=Resources(client=False))


def _build(weighted: Path, directed: Path, named: Path, plain: Path, counted: Path, long: Path) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = {name: number for number, name in enumerate(dict.fromkeys([*SOURCE, *TARGET]))}
    source, target = (np.array([numbers[name] for name in names]) for names in (SOURCE, TARGET))
    numbered = pa.table({"source": source, "target": target, "weight": WEIGHT})
    oocgraph.build_csr(numbered, weighted, directed=False, weight="weight")
    integers = numbered.set_column(2, "weight", numbered["weight"].cast(pa.int64()))
    oocgraph.build_csr(integers, counted, directed=False, weight="weight")
    beyond_int32 = integers.set_column(2, "weight", pc.multiply(integers["weight"], 1 << 32))
    oocgraph.build_csr(beyond_int32, long, directed=False, weight="weight")
    for path, is_directed in ((plain, False), (directed, True)):
        oocgraph.build_csr(numbered.select(["source", "target"]), path, directed=is_directed)
    oocgraph.build_csr(pa.table({"source": SOURCE, "target": TARGET, "weight": WEIGHT}), named, directed=True, weight="weight")


def _generate(folder: Path) -> None:
    oocgraph.generate_kronecker(6, folder / "kronecker.zarr")
    oocgraph.generate_uniform(6, folder / "uniform.zarr")
    oocgraph.generate_grid((4, 4), folder / "grid.zarr")


def _search(graph: Path) -> None:
    store = oocgraph.open_graph(graph)
    found = oocgraph.bfs(store, _ids(graph, 2), resources=Resources(client=False))
    oocgraph.verify_bfs(store, found)
    found.origin_of(_ids(graph, 0))
    oocgraph.check_store(store)


def _rank(graph: Path, column: str | None) -> None:
    """Bring in what ranks of many vertices take: numbers of two widths."""
    for personalized in (False, True):
        load_kernels(rank_calls(oocgraph.open_graph(graph), column, personalized=personalized, precision="auto"))


def _ask(graph: Path) -> None:
    store, some = oocgraph.open_graph(graph), _ids(graph, 2)
    store.neighbors(some)
    store.has_edge(some[:1], some[1:])
    if not store.attributes.directed:
        store.similarity(some[:1], some[1:])
    store.subgraph(some)
    store.ego(some[0], 1)
    store.sample_neighbors(some, [2, 1], seed=0)
    store.random_walk(some, 2)
    store.to_scipy()


def _networkx(undirected: Path, directed: Path) -> None:
    """Answer NetworkX, where it is installed."""
    try:
        from oocgraph.networkx_backend.first_use import answer
    except ImportError:
        return
    answer(oocgraph.open_graph(undirected), oocgraph.open_graph(directed))


def _export(graph: Path) -> None:
    oocgraph.export_graph(graph, graph.with_suffix(".parquet"))


def _call(graph: Path, name: str) -> None:
    """Call a function of any graph."""
    own = {option: np.ones(6) if count is None else _ids(graph, count) for option, count in OPTIONS.get(name, {}).items()}
    getattr(oocgraph, name)(graph, **own, resources=Resources(client=False))


def _ids(graph: Path, count: int) -> Any:
    """Return the id of a vertex, or those of some."""
    ids = ["ada", "bob"] if graph.stem == "named" else [0, 1]
    return ids[:count] if count else ids[0]
