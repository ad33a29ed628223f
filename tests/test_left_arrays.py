"""Arrays go when the last result that has them goes: none waits in a reference cycle for the garbage collector.

Until that runs, later calls find them in the process and are refused a budget that would do.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from contextlib import suppress
from itertools import count
from traceback import walk_tb

import numpy as np
import pytest

import oocgraph
from oocgraph import ArgumentTypeError, InputError

NUM_VERTICES = 20_000
PATH = np.arange(NUM_VERTICES)


def call_of(*arguments, **keywords):
    """Return the arguments behind the graph, and keywords, of a call."""
    return arguments, keywords


OTHERS = {name for name in oocgraph.__all__ if name[0].isupper()} | {
    "open_graph", "open_partitions", "open_runtime", "run", "balanced_partition"
}  # fmt: skip
"""Names of what is no function on a graph, or returns what it has."""

ON_UNDIRECTED = {
    "bfs": call_of(0), "betweenness_centrality": call_of(k=4), "biconnected_components": call_of(), "check_store": call_of(),
    "closeness_centrality": call_of(k=4), "clustering": call_of(), "connected_components": call_of(), "core_numbers": call_of(),
    "diameter": call_of(max_searches=3), "eccentricity": call_of([0, 1]), "eigenvector_centrality": call_of(max_iter=3, tol=0),
    "estimate": call_of(), "harmonic_centrality": call_of([0, 1]), "hits": call_of(max_iter=3, tol=0),
    "katz_centrality": call_of(alpha=1e-3), "label_propagation": call_of(), "louvain": call_of(), "minimum_spanning_forest": call_of(),
    "multi_source_bfs": call_of([0, 1, 2]), "pagerank": call_of(), "personalized_pagerank": call_of([0, 1]), "plan_bfs": call_of(2),
    "shortest_path": call_of(0, 7), "spmv": call_of(np.ones(NUM_VERTICES)), "sssp": call_of(0), "transitivity": call_of(),
    "triangles": call_of(), "greedy_coloring": call_of(), "maximal_independent_set": call_of(),
}  # fmt: skip

ON_DIRECTED = {
    "bfs": call_of(0), "betweenness_centrality": call_of(k=4), "condensation": call_of(), "is_directed_acyclic_graph": call_of(),
    "strongly_connected_components": call_of(), "topological_generations": call_of(),
}  # fmt: skip

CHECKED = {
    "verify_bfs": call_of("bfs", 0), "verify_components": call_of("connected_components"), "verify_cores": call_of("core_numbers"),
    "verify_sssp": call_of("sssp", 0),
}  # fmt: skip
"""Functions that check the result of another."""

WRITING = {
    "append_edges": lambda g, path, **k: oocgraph.append_edges(oocgraph.build_csr(([1], [2]), path, **k), (PATH[:-1], PATH[1:]), **k),
    "build_csr": lambda g, path, **k: oocgraph.build_csr(g.edges(), path, weight="weight", **k),
    "export_graph": lambda g, path, **k: oocgraph.export_graph(g, f"{path}.parquet", **k),
    "generate_grid": lambda _, path, **k: oocgraph.generate_grid((150, 150), path, **k),
    "generate_kronecker": lambda _, path, **k: oocgraph.generate_kronecker(14, path, **k),
    "generate_uniform": lambda _, path, **k: oocgraph.generate_uniform(14, path, **k),
    "merge_graphs": lambda g, path, **k: oocgraph.merge_graphs(g, g, path, **k),
    "partition_graph": lambda g, path, **k: oocgraph.partition_graph(g, 4, policy="cvc", path=path, **k),
}  # fmt: skip


@pytest.fixture(scope="module")
def undirected(tmp_path_factory):
    """Make a connected graph with weights."""
    path, rng = tmp_path_factory.mktemp("undirected") / "g.zarr", np.random.default_rng(1)
    source = np.append(PATH[:-1], rng.integers(0, NUM_VERTICES, 4 * NUM_VERTICES))
    target = np.append(PATH[1:], rng.integers(0, NUM_VERTICES, 4 * NUM_VERTICES))
    return oocgraph.build_csr((source, target, rng.integers(1, 100, source.size)), path)


@pytest.fixture(scope="module")
def directed(tmp_path_factory):
    """Make a graph without cycles, which topological generations need."""
    path, ends = tmp_path_factory.mktemp("directed") / "g.zarr", np.random.default_rng(1).integers(0, NUM_VERTICES, (2, 4 * NUM_VERTICES))
    return oocgraph.build_csr((ends.min(axis=0), ends.max(axis=0)), path, directed=True)


@pytest.fixture
def left():
    """Return a function that makes a call twice, and returns what garbage the second has left that holds an array of all vertices."""

    def find(call):
        call()  # what stays for good: kernels, settings, threads
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            call()
            gc.collect()
            kept = [(one, array) for one in gc.garbage for array in gc.get_referents(one) if isinstance(array, np.ndarray)]
            return {type(one).__qualname__ for one, array in kept if array.nbytes >= NUM_VERTICES}
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
            gc.collect()

    return find


@pytest.fixture
def new_path(tmp_path):
    """Return a function that returns a new path."""
    numbers = count()
    return lambda: str(tmp_path / f"{next(numbers)}.zarr")


def called(name, graph, call, **keywords):
    arguments, own = call
    return getattr(oocgraph, name)(graph, *arguments, **own, **keywords)


@pytest.mark.parametrize("name", ON_UNDIRECTED)
def test_undirected(undirected, left, name):
    assert not left(lambda: called(name, undirected, ON_UNDIRECTED[name], memory_budget="2G"))


@pytest.mark.parametrize("name", ON_DIRECTED)
def test_directed(directed, left, name):
    assert not left(lambda: called(name, directed, ON_DIRECTED[name], memory_budget="2G"))


@pytest.mark.parametrize("name", CHECKED)
def test_checks(undirected, left, name):
    (found_by, *arguments), _ = CHECKED[name]
    assert not left(lambda: called(name, undirected, call_of(called(found_by, undirected, call_of(*arguments)))))


@pytest.mark.parametrize("name", WRITING)
def test_writing(undirected, left, new_path, name):
    assert not left(lambda: WRITING[name](undirected, new_path(), memory_budget="2G"))


def test_every_function_is_here():
    assert {*ON_UNDIRECTED, *ON_DIRECTED, *CHECKED, *WRITING} == {*oocgraph.__all__} - OTHERS


@pytest.mark.parametrize("name", sorted({*ON_UNDIRECTED} - {"check_store", "estimate", "plan_bfs", "spmv"}))
def test_calls_that_are_ended_by_an_error(undirected, left, name):
    """In a progress function, which is not called where everything takes no time."""

    def fail(*_):
        raise InputError("not now")

    def call():
        with suppress(InputError):
            called(name, undirected, ON_UNDIRECTED[name], progress=fail)

    assert not left(call)


def test_a_kept_error_keeps_no_locals(undirected):
    """Notebooks keep the last one."""

    def fail(*_):
        mine = np.ones(3)
        raise InputError(f"not now, {mine}")

    with pytest.raises(InputError) as kept:
        oocgraph.betweenness_centrality(undirected, k=4, progress=fail)
    frames = [frame for frame, _ in walk_tb(kept.tb)]
    names = [frame.f_code.co_name for frame in frames]
    assert "compute" in names
    assert [name for frame, name in zip(frames, names, strict=True) if frame.f_locals] == [names[0], "call", "fail"]


def test_in_development_mode_errors_keep_locals():
    program = "import oocgraph\ntry:\n    oocgraph.bfs('absent.zarr', 0)\nexcept oocgraph.OocGraphError as error:\n"
    shown = "    print('graph' in error.__traceback__.tb_next.tb_next.tb_frame.f_locals)"
    for options, kept in (((), "False"), (("-X", "dev", "-W", "ignore"), "True")):
        done = subprocess.run([sys.executable, *options, "-c", program + shown], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == kept


def test_refused_arguments(undirected, left):
    def call():
        with pytest.raises(ArgumentTypeError):
            oocgraph.spmv(undirected, np.ones(NUM_VERTICES), unknown=1)

    assert not left(call)
