"""Traversals of graphs whose edges do not fit in memory.

The public names, nothing else; each is imported from its module at first use, so that ``import oocgraph`` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oocgraph.errors import (
    BudgetError,
    ClusterError,
    ConvergenceError,
    CorruptStoreError,
    DeviceError,
    DuplicateEdgeError,
    InputError,
    MissingDependencyError,
    OocGraphError,
    OutputError,
    PolicyError,
    StoreError,
    ValidationError,
    VertexNotFoundError,
)

if TYPE_CHECKING:
    from oocgraph.algorithms.bfs import bfs
    from oocgraph.algorithms.components import connected_components
    from oocgraph.algorithms.pagerank import pagerank
    from oocgraph.algorithms.partition_graph import partition_graph
    from oocgraph.algorithms.plan_bfs import plan_bfs
    from oocgraph.algorithms.spmv import spmv
    from oocgraph.engine.in_process import open_runtime
    from oocgraph.export.files import export_graph
    from oocgraph.ingest.build import build_csr
    from oocgraph.ingest.generators.kronecker import generate_kronecker
    from oocgraph.partition.policy import Policy
    from oocgraph.results.bfs import BFSResult
    from oocgraph.results.components import ComponentsResult
    from oocgraph.results.pagerank import PageRankResult
    from oocgraph.sparse.balanced import balanced_partition
    from oocgraph.sparse.partial import PartialCOO, PartialCSC, PartialCSR
    from oocgraph.store.check import check_store
    from oocgraph.store.graph import CSRStore, open_graph
    from oocgraph.store.partitions import Partitions, open_partitions
    from oocgraph.verify import verify_bfs
    from oocgraph.verify_connectivity import verify_components

__version__ = "0.1.0"

__all__ = [
    "BFSResult",
    "BudgetError",
    "CSRStore",
    "ClusterError",
    "ComponentsResult",
    "ConvergenceError",
    "CorruptStoreError",
    "DeviceError",
    "DuplicateEdgeError",
    "InputError",
    "MissingDependencyError",
    "OocGraphError",
    "OutputError",
    "PageRankResult",
    "PartialCOO",
    "PartialCSC",
    "PartialCSR",
    "Partitions",
    "Policy",
    "PolicyError",
    "StoreError",
    "ValidationError",
    "VertexNotFoundError",
    "balanced_partition",
    "bfs",
    "build_csr",
    "check_store",
    "connected_components",
    "export_graph",
    "generate_kronecker",
    "open_graph",
    "open_partitions",
    "open_runtime",
    "pagerank",
    "partition_graph",
    "plan_bfs",
    "spmv",
    "verify_bfs",
    "verify_components",
]

_HOMES = {
    "BFSResult": "oocgraph.results.bfs",
    "CSRStore": "oocgraph.store.graph",
    "ComponentsResult": "oocgraph.results.components",
    "PageRankResult": "oocgraph.results.pagerank",
    "PartialCOO": "oocgraph.sparse.partial",
    "PartialCSC": "oocgraph.sparse.partial",
    "PartialCSR": "oocgraph.sparse.partial",
    "Partitions": "oocgraph.store.partitions",
    "Policy": "oocgraph.partition.policy",
    "balanced_partition": "oocgraph.sparse.balanced",
    "bfs": "oocgraph.algorithms.bfs",
    "build_csr": "oocgraph.ingest.build",
    "check_store": "oocgraph.store.check",
    "connected_components": "oocgraph.algorithms.components",
    "export_graph": "oocgraph.export.files",
    "generate_kronecker": "oocgraph.ingest.generators.kronecker",
    "open_graph": "oocgraph.store.graph",
    "open_partitions": "oocgraph.store.partitions",
    "open_runtime": "oocgraph.engine.in_process",
    "partition_graph": "oocgraph.algorithms.partition_graph",
    "pagerank": "oocgraph.algorithms.pagerank",
    "plan_bfs": "oocgraph.algorithms.plan_bfs",
    "spmv": "oocgraph.algorithms.spmv",
    "verify_bfs": "oocgraph.verify",
    "verify_components": "oocgraph.verify_connectivity",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module at first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
