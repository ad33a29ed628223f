"""Graphs to be partitioned, crews of several readers in one process, and comparison with the reference partitioner."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms import partition_graph as entry
from oocgraph.partition import phases as steps
from oocgraph.partition.check import check_partitions
from oocgraph.partition.policy import Policy
from oocgraph.store.check import check_store
from oocgraph.store.graph import open_graph
from tests import every_knob
from tests.ingest.helpers_build import ArraySource
from tests.partition.reference_cusp import reference_partition
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite


def _kronecker(path):
    return oocgraph.generate_kronecker(6, path, edge_factor=5, seed=2)


def _words(path):
    """Directed, string ids, a weight, a column of numbers and one of text."""
    src, dst = random_edges(5, 40, 150)
    rng = np.random.default_rng(5)
    names = [pa.array([f"v{v}" for v in ends], pa.large_string()) for ends in (src, dst)]
    values = {
        "weight": rng.random(src.size).astype(np.float32),
        "size": rng.integers(-9, 9, src.size).astype(np.int16),
        "kind": pa.array(rng.choice(["a", "bee", "é", ""], src.size), pa.large_string()),
    }
    return oocgraph.build_csr(ArraySource(*names, values, id_kind="string", weight="weight", directed=True), path)


def _weighted(path):
    """Undirected with weights, in the order of the input."""
    src, dst = random_edges(6, 50, 120)
    values = {"weight": np.random.default_rng(6).random(src.size)}
    return every_knob.build(ArraySource(src, dst, values, weight="weight"), path, vertex_order="original")


def _reference(src, dst, **options):
    def build(path):
        reference_build(src, dst, path, **options)
        return open_graph(path)

    return build


def _compressed(path):
    reference_build(*random_edges(8, 60, 200), path.with_name("plain"), directed=True)
    return rewrite(path.with_name("plain"), path, codec="zstd")


GRAPHS = {
    "kronecker": _kronecker,
    "words": _words,
    "weighted": _weighted,
    "directed": _reference(*random_edges(1, 60, 200), directed=True),
    "original order": _reference(*random_edges(2, 60, 200), directed=True, vertex_order="original"),
    "isolated": _reference([3, 9, 9, 4], [9, 4, 2, 3], implied=(0, 30)),
    "star": _reference([0] * 40, range(1, 41)),
    "path": _reference(range(30), range(1, 31), vertex_order="original"),
    "self-loops": _reference(*random_edges(3, 12, 60), keep_self_loops=True),
    "multi-edges": _reference(*random_edges(4, 9, 80), directed=True, keep_self_loops=True, duplicates="keep"),
    "compressed": _compressed,
}
"""Builders by name; each has at least 5 vertices with an edge but for ``isolated``, which has 4."""


class Readers:
    """A executor of several workers in this process; `choose` names the worker of a call.

    Parameters
    ----------
    num_readers
    choose
        (call, calls) -> worker; by default as on a cluster where all goes well.
    """

    def __init__(self, num_readers, choose=lambda i, _: i):
        self.num_readers, self._choose, self._stages = num_readers, choose, {}

    def run(self, spec, phase, calls):
        found = []
        for i, call in enumerate(calls):
            reader = self._choose(i, len(calls)) % self.num_readers
            if reader not in self._stages:
                self._stages[reader] = steps.make_stage(replace(spec, threads=1))
            found.append(steps.run_phase(self._stages[reader], phase, call))
        return found

    def close(self):
        for stage in self._stages.values():
            steps.close(stage)


def partition_with(executor, *arguments, **options):
    """Partition a graph by a executor."""
    with mock.patch.object(entry, "_executor", return_value=nullcontext(executor)):
        return every_knob.partition(*arguments, **options)


def assert_is_reference(partitions, store, policy):
    """Assert that every array of every part is what the reference partitioner makes, columns included."""
    read, group = partitions.attributes.read, partitions.attributes.read if store.attributes.directed else "out"
    reference = reference_partition(store.read("out/indptr"), store.read("out/indices"), partitions.num_partitions, policy, read=read)
    columns = {name: store.read(f"{group}/{name}") for name in store.attributes.columns}
    np.testing.assert_array_equal(partitions.masters.read(0, store.num_rows), reference.masters)
    for part, wanted in zip(partitions, reference.parts, strict=True):
        assert (part.num_masters, part.num_mirrors, part.num_edges) == (wanted.num_masters, wanted.num_mirrors, wanted.num_edges)
        assert part.num_isolated == wanted.isolated_masters.size
        np.testing.assert_array_equal(part.global_id(), wanted.global_id)
        np.testing.assert_array_equal(part.isolated_masters(), wanted.isolated_masters)
        np.testing.assert_array_equal(part.mirror_owner(), wanted.mirror_owner)
        np.testing.assert_array_equal(part.store.read(f"{read}/indptr"), wanted.indptr)
        np.testing.assert_array_equal(part.store.read(f"{read}/indices"), wanted.indices)
        for name, values in columns.items():
            np.testing.assert_array_equal(part.store.read(f"{read}/{name}"), values[wanted.entries], err_msg=name)
        if partitions.attributes.transposed:
            assert_is_transpose(part, read)
    return reference


def assert_is_transpose(part, read):
    """Assert that the other lists are those that were read, by neighbour, and that columns moved with them."""
    n, other = part.num_vertices, {"out": "in", "in": "out"}[read]
    rows, columns = np.repeat(np.arange(n), np.diff(part.store.read(f"{read}/indptr"))), part.store.read(f"{read}/indices")
    order = np.argsort(columns, kind="stable")
    np.testing.assert_array_equal(part.store.read(f"{other}/indptr"), np.append(0, np.cumsum(np.bincount(columns, minlength=n)))[: n + 1])
    np.testing.assert_array_equal(part.store.read(f"{other}/indices"), rows[order])
    for name in part.store.attributes.columns:
        np.testing.assert_array_equal(part.store.read(f"{other}/{name}"), part.store.read(f"{read}/{name}")[order])


def assert_sound(partitions, store):
    """Assert that the checkers find nothing, in the whole and in each part."""
    seen = check_partitions(partitions, store)
    assert (seen.num_edges, seen.num_masters) == (store.attributes.num_stored_edges, store.num_rows)
    assert seen.num_mirrors == sum(part.num_mirrors for part in partitions)
    for part in partitions:
        check_store(part.store, resources=Resources(threads=1))


def bytes_of(folder):
    """Return every file of a folder by name."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


def assert_same_bytes(one, other):
    """Assert that two folders hold the same files."""
    left, right = bytes_of(one), bytes_of(other)
    assert left.keys() == right.keys()
    assert [name for name in left if left[name] != right[name]] == []


def plain(policy):
    """Return a policy that is not compiled."""
    return Policy(
        policy.name, policy.get_master, policy.get_edge_owner, master_state=policy.master_state, edge_state=policy.edge_state,
        merge=policy.merge, compiled=False,
    )  # fmt: skip
