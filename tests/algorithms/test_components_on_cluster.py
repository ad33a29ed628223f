"""Connected components on a cluster: those of one process, whatever the graph, the workers and what they share; budgets."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

import oocgraph
from oocgraph import BudgetError, connected_components
from oocgraph.cluster.worker_forest import Phase
from oocgraph.config import setting
from oocgraph.exchange.shared_memory import SharedMemory
from oocgraph.memory import format_bytes, host_bytes
from oocgraph.store.graph import open_graph
from tests.algorithms.test_components import check, cycles
from tests.cluster.clusters import PATIENCE, Cluster, Trap, in_background
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite

EXCHANGES = {"windows": "windows in shared memory: workers of one host", "messages": "messages of Dask: as asked"}


@pytest.fixture(params=["windows", "windows, a task for each step", "messages"])
def exchange(request):
    """Have workers share one forest, or send each other theirs; returns what the result says of it."""
    way, *each = request.param.split(", ")
    with setting("exchange", way), setting("steps-per-task", 1 if each else None):
        yield EXCHANGES[way]


def mapped():
    """Return which shared memory a process maps or has open."""
    maps = {line.split(maxsplit=5)[5] for line in Path("/proc/self/maps").read_text().splitlines() if "memfd:oocgraph" in line}
    return sorted(maps), [fd.name for fd in Path("/proc/self/fd").iterdir() if "memfd:oocgraph" in _target(fd)]


def _target(fd):
    try:
        return os.readlink(fd)
    except FileNotFoundError:  # of the folder that is listed
        return ""


@pytest.mark.one_in(6)
@pytest.mark.parametrize("edges", [([], []), ([0], [1]), ([0] * 50, list(range(1, 51))), ([3, 4], [3, 5]), random_edges(3, 300, 200)])
@pytest.mark.parametrize("order", ["degree", "original"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.usefixtures("exchange")
def test_small_graphs(threads_client, tmp_path, edges, order, directed):
    """No edge, one, a star, a self-loop, many small components; more workers than edges."""
    reference_build(*edges, tmp_path / "g", implied=(0, 400), directed=directed, vertex_order=order)
    check(open_graph(tmp_path / "g"), *edges, client=threads_client)


def test_many_components_on_an_odd_number_of_processes(tmp_path, exchange):
    """Nearly all lists are read, from compressed chunks; trees of three are joined, or made by three at once."""
    source, target = cycles(300, 20)
    oocgraph.build_csr((source, target), tmp_path / "g.zarr", directed=True)
    store = open_graph(rewrite(tmp_path / "g.zarr", tmp_path / "z.zarr", codec="zstd"))
    with Cluster(tmp_path, workers=3) as cluster:
        found = check(store, source, target, client=cluster.client)
        assert found.num_components == 300
        assert found.summary()["exchange"] == exchange
        assert set(map(repr, cluster.client.run(mapped).values())) == {"([], [])"}


@pytest.mark.kill
@pytest.mark.parametrize("loses_first", [True, False])
def test_components_begin_again_in_memory_that_is_left(tmp_path, loses_first):
    """The worker that has the memory is killed, or the other one, as lists are linked; the one that is left has threads for both shares."""
    source, target = cycles(300, 20)
    oocgraph.build_csr((source, target), tmp_path / "g.zarr")
    with Cluster(tmp_path, workers=2, threads=2) as cluster:
        with Trap(cluster.client, "compute", int(Phase.LISTS), 0 if loses_first else 1) as trap:
            found = trap.watch(in_background(connected_components, open_graph(tmp_path / "g.zarr"), client=cluster.client))
            os.kill(trap.wait()["pid"], signal.SIGKILL)
            trap.let_go()
            result = found.result(timeout=PATIENCE)
        assert result.exchange == "windows in shared memory: one worker"
        oocgraph.verify_components(open_graph(tmp_path / "g.zarr"), result)
        assert list(cluster.client.run(mapped).values()) == [([], [])]


def test_workers_without_shared_memory_for_the_trees(threads_client, tmp_path, monkeypatch):
    """The windows have room, the trees have none: one clear error, with the setting that does without."""
    store = oocgraph.generate_kronecker(8, tmp_path / "g.zarr", seed=1)
    create, size = SharedMemory.create, 64 + 64 * -(-store.num_rows * store.index_dtype.itemsize // 64)

    def full(num_bytes):
        if num_bytes == size:
            raise OSError(28, "No space left on device")
        return create(num_bytes)

    monkeypatch.setattr(SharedMemory, "create", full)
    with pytest.raises(BudgetError, match=r"cannot share 0 MiB of memory: No space left on device; set oocgraph\.exchange to messages"):
        connected_components(store, client=threads_client)
    with setting("exchange", "messages"):
        oocgraph.verify_components(store, connected_components(store, client=threads_client))


@pytest.mark.usefixtures("exchange")
def test_little_is_read_of_a_graph_with_hubs(client, tmp_path):
    """As in one process: two planes, and lists outside of the largest component."""
    store = oocgraph.generate_kronecker(14, tmp_path / "g.zarr", seed=1)
    found, expected = connected_components(store, client=client), connected_components(store)
    np.testing.assert_array_equal(found.stored_component, expected.stored_component)
    assert 0 < found.bytes_requested < 0.2 * found.edge_bytes
    assert found.plane_bytes == int(store.plane_offsets[2]) * store.index_dtype.itemsize


@pytest.mark.usefixtures("exchange")
def test_a_worker_without_memory_is_named_and_what_it_names_works(client, tmp_path):
    store = oocgraph.generate_kronecker(10, tmp_path / "g.zarr", seed=1)
    with pytest.raises(BudgetError, match=r"worker tcp://\S+: .* at least \d+M") as refused:
        connected_components(store, client=client, memory_budget=max(client.run(host_bytes).values()) + (1 << 16))
    enough = re.search(r"at least (\d+M)", str(refused.value))[1]
    found = connected_components(store, client=client, memory_budget=enough)
    oocgraph.verify_components(store, found)


@pytest.mark.parametrize(("way", "num_vectors"), [("windows", 3), ("messages", 7)])
def test_what_a_worker_holds_is_reserved(client, tmp_path, way, num_vectors):
    """A refusal says how much; trees that workers have in common are fewer."""
    store = oocgraph.generate_kronecker(16, tmp_path / "g.zarr", seed=1)
    with setting("exchange", way), pytest.raises(BudgetError) as refused:
        connected_components(store, client=client, memory_budget=max(client.run(host_bytes).values()) + (1 << 16))
    held = store.num_rows * (num_vectors * store.index_dtype.itemsize + 1)
    assert f"components {format_bytes(held)}, " in str(refused.value)


def test_no_client(tmp_path):
    store = oocgraph.generate_kronecker(8, tmp_path / "g.zarr", seed=1)
    with pytest.raises(TypeError, match=r"client is 3; give a distributed\.Client"):
        connected_components(store, client=3)
