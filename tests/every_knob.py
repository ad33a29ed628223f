"""Public functions with the knobs that users set by the configuration or not at all: for tests that try their values."""

from __future__ import annotations

from contextlib import ExitStack

from oocgraph import Resources, pagerank
from oocgraph.algorithms.partition_graph import partition_options, partition_with_report
from oocgraph.config import setting
from oocgraph.ingest.build import build_with_report
from oocgraph.ingest.build_job import BuildOptions
from oocgraph.store.graph import open_graph


def build(source, path, *, progress=None, **options):
    """Build a store; `options` are fields of `BuildOptions`."""
    return build_with_report(source, path, BuildOptions(**options), progress)[0]


def partition(graph, num_partitions, policy, path, client=None, *, transpose=False, overwrite=False, progress=None, **options):
    """Partition a graph; `options` are fields of `PartitionOptions`."""
    store = open_graph(graph)
    asked = partition_options(store, num_partitions, policy, transposed=transpose, **options)
    return partition_with_report(store, path, asked, client, overwrite=overwrite, progress=progress)[0]


def rank(graph, *, threads=None, memory_budget=None, client=None, precision=None, checkpoint_every=None, **options):
    """Rank; threads, precision and number of iterations between checkpoints are arguments here."""
    given = {"precision": precision, "checkpoint-every": checkpoint_every}
    with ExitStack() as stack:
        for name, value in given.items():
            if value is not None:
                stack.enter_context(setting(name, value))
        return pagerank(graph, resources=Resources(threads=threads, memory_budget=memory_budget), client=client, **options)
