"""Core numbers on a cluster: those of one process, whatever the graph and the shares; budgets."""

from __future__ import annotations

import re

import numpy as np
import pytest

import oocgraph
from oocgraph import ArgumentError, BudgetError, Resources, core_numbers
from oocgraph.engine import blocks
from oocgraph.memory import host_bytes
from oocgraph.store.graph import open_graph
from tests.algorithms.test_sssp_on_cluster import table, way
from tests.stores import rewrite

__all__ = ["way"]


@pytest.mark.one_in(4)
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("partitions", "directed", "duplicates"), [(1, True, "keep"), (2, False, "drop"), (4, False, "keep"), (4, True, "drop")]
)
def test_core_numbers_are_those_of_one_process(threads_client, tmp_path, monkeypatch, partitions, directed, duplicates):
    """On random graphs, a path, and one with hubs, in blocks of 4 entries."""
    monkeypatch.setattr(blocks, "SHIFT", 2)
    path = (np.arange(800), np.arange(1, 801))
    hubs = (np.arange(1500) % 7, np.arange(1500))
    for i, edges in enumerate((table(partitions)[["source", "target"]], path, hubs)):
        store = oocgraph.build_csr(edges, tmp_path / f"g{i}", directed=directed, duplicates=duplicates)
        here = core_numbers(store, resources=Resources(client=False))
        found = core_numbers(store, client=threads_client, resources=Resources(num_partitions=partitions))
        np.testing.assert_array_equal(found.core_number, here.core_number)
        oocgraph.verify_cores(store, found)
        assert found.num_blocks == here.num_blocks


def test_processes_of_a_runtime_and_compressed_chunks(client, tmp_path):
    oocgraph.generate_kronecker(12, tmp_path / "g")
    store = open_graph(rewrite(tmp_path / "g", tmp_path / "z", codec="zstd"))
    with oocgraph.open_runtime(store, client=client) as runtime:
        found = core_numbers(store, runtime=runtime)
    oocgraph.verify_cores(store, found)
    assert found.degeneracy == core_numbers(store, resources=Resources(client=False)).degeneracy


def test_what_is_wrong_is_said(threads_client, tmp_path):
    store = oocgraph.generate_kronecker(8, tmp_path / "g")
    with pytest.raises(ArgumentError, match="schedule is 'rounds'; a cluster has async alone"):
        core_numbers(store, client=threads_client, schedule="rounds")


def test_a_worker_without_memory_is_named_and_what_it_names_works(client, tmp_path):
    store = oocgraph.generate_kronecker(12, tmp_path / "g.zarr", seed=1)
    with pytest.raises(BudgetError, match=r"worker tcp://\S+ .* at least \d+M") as refused:
        core_numbers(store, client=client, memory_budget=max(client.run(host_bytes).values()) + (1 << 16))
    enough = re.search(r"at least (\d+M)", str(refused.value))[1]
    oocgraph.verify_cores(store, core_numbers(store, client=client, memory_budget=enough))
