"""One opened graph serves every function: the same answers, nothing loaded twice, one budget, and clear refusals."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, OocGraphError, Resources, bfs, connected_components, open_runtime, pagerank, spmv
from oocgraph.engine import opened as opened_module
from oocgraph.ingest.generators.kronecker import KroneckerEdges
from oocgraph.memory import host_bytes
from tests.ingest.helpers_build import ArraySource
from tests.reference_build import reference_build


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return oocgraph.generate_kronecker(13, tmp_path_factory.mktemp("graph") / "kron.zarr")


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    rng = np.random.default_rng(3)
    ends, weights = rng.integers(0, 900, (2, 9000)), rng.random(9000)
    source = ArraySource(*ends, {"weight": weights}, weight="weight", directed=True)
    return oocgraph.build_csr(source, tmp_path_factory.mktemp("graph") / "g.zarr", duplicates="min")


def everything(graph, **where):
    """Return what every function answers that takes a runtime."""
    x = np.arange(graph.attributes.num_input_vertices, dtype=np.float64)
    return {
        "level": bfs(graph, graph_source(graph), **where).level,
        "rank": pagerank(graph, tol=1e-9, **where).rank,
        "component": connected_components(graph, **where).component,
        "product": spmv(graph, x, **where),
        "transposed": spmv(graph, x, transpose=True, **where),
        "pattern": spmv(graph, x, semiring="plus_second", **where),
    }


def graph_source(graph):
    return int(oocgraph.store.vertices.VertexIds(graph).ids_of([0])[0])


def assert_equal(found, expected, rtol=0.0):
    for name, values in expected.items():
        np.testing.assert_allclose(np.asarray(found[name]), np.asarray(values), rtol=rtol, err_msg=name)


@pytest.mark.parametrize("name", ["kron", "weighted"])
def test_every_function_answers_the_same_again_and_again(request, name):
    graph = request.getfixturevalue(name)
    expected = everything(graph)
    with open_runtime(graph, resources=Resources(device="cpu", threads=2)) as runtime:
        for _ in range(2):
            assert_equal(everything(graph, runtime=runtime), expected)


def test_what_is_in_memory_is_not_read_again(kron):
    """All edges fit: products, ranks and components ask the store's files for row starts at the most."""
    with open_runtime(kron, resources=Resources(device="cpu")) as runtime:
        components = connected_components(kron, runtime=runtime)
        assert components.bytes_requested == components.plane_bytes == 0
        first, second = (pagerank(kron, tol=0, max_iter=2, runtime=runtime) for _ in range(2))
        assert first.steps[0].bytes_requested < kron.edge_bytes / 2
        assert [step.bytes_requested for step in (*first.steps[1:], *second.steps)] == [0, 0, 0]
        assert second.kept_bytes == second.edge_bytes


def test_a_small_budget_is_kept_by_all_of_them_in_turn(tmp_path, monkeypatch):
    """What finds no room has the others give theirs back; and the next gets it back again."""
    graph = oocgraph.build_csr(KroneckerEdges(16, edge_factor=16, seed=1), tmp_path / "g.zarr")
    expected = everything(graph, resources=Resources(device="cpu"))
    room = 0
    for call in (lambda b: pagerank(graph, tol=1e-9, memory_budget=b), lambda b: bfs(graph, graph_source(graph), memory_budget=b)):
        with pytest.raises(BudgetError) as told:
            call(host_bytes() + (1 << 20))
        room = max(room, int(str(told.value).split("at least ")[1].split("M")[0]))
    loads = []
    original = opened_module.open_in_process
    monkeypatch.setattr(opened_module, "open_in_process", lambda *args, **options: loads.append(1) or original(*args, **options))
    with open_runtime(graph, memory_budget=f"{room + 16}M", resources=Resources(device="cpu")) as runtime:
        for _ in range(2):
            assert_equal(everything(graph, runtime=runtime), expected)
            assert runtime._budget().promised_bytes <= (room + 16) << 20
    assert len(loads) >= 2


def test_a_budget_that_is_too_small_for_one_of_them(kron):
    """The refusal names a budget, and the runtime goes on to serve what fits."""
    with open_runtime(kron, resources=Resources(device="cpu")) as runtime:
        limit, runtime._limit_bytes = runtime._limit_bytes, runtime._baseline_bytes + (1 << 20)
        with pytest.raises(BudgetError, match=r"ranks .* to at least \d+M"):
            pagerank(kron, runtime=runtime)
        runtime._limit_bytes = limit
        assert bfs(kron, graph_source(kron), depth_limit=1, runtime=runtime).depth == 1
        assert pagerank(kron, runtime=runtime).converged


class TestRefusals:
    def test_a_closed_runtime(self, kron):
        runtime = open_runtime(kron)
        runtime.close()
        runtime.close()
        for call in (lambda: bfs(kron, 0, runtime=runtime), lambda: pagerank(kron, runtime=runtime),
                     lambda: spmv(kron, np.ones(kron.attributes.num_input_vertices), runtime=runtime),
                     lambda: connected_components(kron, runtime=runtime)):  # fmt: skip
            with pytest.raises(OocGraphError, match="is closed; open another one"):
                call()

    def test_another_graph_a_matrix_and_no_runtime(self, kron, weighted):
        with open_runtime(kron) as runtime:
            for call in (lambda: bfs(weighted, 0, runtime=runtime), lambda: pagerank(weighted, runtime=runtime),
                         lambda: connected_components(weighted, runtime=runtime)):  # fmt: skip
                with pytest.raises(ArgumentError, match="open another runtime for that graph"):
                    call()
            with pytest.raises(ArgumentError, match="not this matrix; open one with it"):
                spmv(kron.to_scipy(), np.ones(3), runtime=runtime)
        for call in (lambda: pagerank(kron, runtime=7), lambda: connected_components(kron, runtime="r"), lambda: bfs(kron, 0, runtime=7)):
            with pytest.raises(TypeError, match="give what open_runtime returns"):
                call()

    def test_partitions_are_for_searches_only(self, tmp_path):
        reference_build(np.arange(9), np.arange(1, 10), tmp_path / "g")
        with open_runtime(tmp_path / "g", partition="2d", resources=Resources(num_partitions=4)) as runtime:
            assert bfs(tmp_path / "g", 0, runtime=runtime).depth == 9
            assert bfs(tmp_path / "g", 4, runtime=runtime).depth == 5
            for call in (lambda: pagerank(tmp_path / "g", runtime=runtime), lambda: spmv(tmp_path / "g", np.ones(10), runtime=runtime)):
                with pytest.raises(ArgumentError, match="for searches only; open one by open_runtime, without partition"):
                    call()
            with pytest.raises(ArgumentError, match="give partition to open_runtime"):
                bfs(tmp_path / "g", 0, runtime=runtime, partition="1d")
            with pytest.raises(ArgumentError, match="direction is 'pull', but a partition holds"):
                bfs(tmp_path / "g", 0, runtime=runtime, direction="pull")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["g"]

    @pytest.mark.parametrize("given", [{"memory_budget": "1G"}, {"resources": Resources(threads=1)}])
    def test_resources_beside_a_runtime(self, kron, given):
        with open_runtime(kron) as runtime:
            for call in (bfs, spmv):
                with pytest.raises(ArgumentError, match=r"the runtime has its own resources, so .* cannot apply"):
                    call(kron, np.ones(3), runtime=runtime, **given)
            for call in (pagerank, connected_components):
                with pytest.raises(ArgumentError, match=r"the runtime has its own resources, so .* cannot apply"):
                    call(kron, runtime=runtime, **given)


def test_on_a_cluster_too(threads_client, kron):
    expected = everything(kron, resources=Resources(device="cpu", client=False))
    with open_runtime(kron, client=threads_client) as runtime:
        assert_equal(everything(kron, runtime=runtime), expected, rtol=1e-9)
    for call in (lambda: bfs(kron, 0, runtime=runtime), lambda: pagerank(kron, runtime=runtime)):
        with pytest.raises(OocGraphError, match="is closed"):
            call()
