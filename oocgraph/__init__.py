"""Traversals of graphs whose edges do not fit in memory.

The public names, nothing else; each is imported from its module at first use, so that ``import oocgraph`` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oocgraph.errors import (
    ArgumentError,
    ArgumentTypeError,
    BudgetError,
    ClusterError,
    ConvergenceError,
    CorruptStoreError,
    DeviceError,
    DuplicateEdgeError,
    InputError,
    InputNotFoundError,
    MissingDependencyError,
    OocGraphError,
    OperatorError,
    OutputError,
    OutputExistsError,
    PolicyError,
    StoreError,
    StoreNotFoundError,
    ValidationError,
    VertexNotFoundError,
)

if TYPE_CHECKING:
    from oocgraph.algorithms.betweenness import betweenness_centrality
    from oocgraph.algorithms.bfs import bfs
    from oocgraph.algorithms.biconnected import biconnected_components
    from oocgraph.algorithms.closeness import closeness_centrality, harmonic_centrality
    from oocgraph.algorithms.components import connected_components
    from oocgraph.algorithms.condensation import condensation
    from oocgraph.algorithms.cores import core_numbers
    from oocgraph.algorithms.eccentricity import diameter, eccentricity
    from oocgraph.algorithms.eigenvector import eigenvector_centrality
    from oocgraph.algorithms.estimate import estimate
    from oocgraph.algorithms.greedy import greedy_coloring, maximal_independent_set
    from oocgraph.algorithms.hits import hits
    from oocgraph.algorithms.katz import katz_centrality
    from oocgraph.algorithms.label_propagation import label_propagation
    from oocgraph.algorithms.louvain import louvain
    from oocgraph.algorithms.multi_source_bfs import multi_source_bfs
    from oocgraph.algorithms.operators import Operator, run
    from oocgraph.algorithms.pagerank import pagerank
    from oocgraph.algorithms.partition_graph import partition_graph
    from oocgraph.algorithms.personalized_pagerank import personalized_pagerank
    from oocgraph.algorithms.plan_bfs import plan_bfs
    from oocgraph.algorithms.runtimes import Runtime, open_runtime
    from oocgraph.algorithms.shortest_path import shortest_path
    from oocgraph.algorithms.spanning import minimum_spanning_forest
    from oocgraph.algorithms.spmv import spmv
    from oocgraph.algorithms.sssp import sssp
    from oocgraph.algorithms.strong_components import strongly_connected_components
    from oocgraph.algorithms.topological import is_directed_acyclic_graph, topological_generations
    from oocgraph.algorithms.triangles import clustering, transitivity, triangles
    from oocgraph.errors import NoPathError
    from oocgraph.export.files import ExportReport, export_graph
    from oocgraph.ingest.append import append_edges, merge_graphs
    from oocgraph.ingest.build import build_csr
    from oocgraph.ingest.generators.grid import generate_grid
    from oocgraph.ingest.generators.kronecker import generate_kronecker
    from oocgraph.ingest.generators.uniform import generate_uniform
    from oocgraph.partition.policy import Policy
    from oocgraph.plan.forecast import BFSPlan
    from oocgraph.resources import Resources
    from oocgraph.results.bfs import BFSResult
    from oocgraph.results.biconnected import BiconnectedResult
    from oocgraph.results.centrality import BetweennessResult, EigenvectorResult, HitsResult, KatzResult
    from oocgraph.results.communities import LabelPropagationResult, LouvainResult
    from oocgraph.results.components import ComponentsResult
    from oocgraph.results.cores import CoreResult
    from oocgraph.results.dask import DaskBFSResult
    from oocgraph.results.distances import ClosenessResult, DiameterResult, EccentricityResult, HarmonicResult, MultiSourceResult
    from oocgraph.results.estimate import Estimate
    from oocgraph.results.greedy import ColoringResult, IndependentSetResult
    from oocgraph.results.pagerank import PageRankResult
    from oocgraph.results.paths import OperatorResult, SSSPResult
    from oocgraph.results.personalized import PersonalizedPageRankResult
    from oocgraph.results.spanning import SpanningForestResult
    from oocgraph.results.strong import GenerationsResult, StrongComponentsResult
    from oocgraph.results.triangles import ClusteringResult, TrianglesResult
    from oocgraph.sparse.balanced import balanced_partition
    from oocgraph.sparse.partial import PartialCOO, PartialCSC, PartialCSR
    from oocgraph.store.check import CheckReport, check_store
    from oocgraph.store.graph import CSRStore, open_graph
    from oocgraph.store.partitions import Partitions, open_partitions
    from oocgraph.verify import Validation, verify_bfs
    from oocgraph.verify_results import verify_components, verify_cores, verify_sssp

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "BFSPlan",
    "BFSResult",
    "BetweennessResult",
    "BiconnectedResult",
    "BudgetError",
    "CSRStore",
    "CheckReport",
    "ClosenessResult",
    "ClusterError",
    "ClusteringResult",
    "ColoringResult",
    "ComponentsResult",
    "ConvergenceError",
    "CoreResult",
    "CorruptStoreError",
    "DaskBFSResult",
    "DeviceError",
    "DiameterResult",
    "DuplicateEdgeError",
    "EccentricityResult",
    "EigenvectorResult",
    "Estimate",
    "ExportReport",
    "GenerationsResult",
    "HarmonicResult",
    "HitsResult",
    "IndependentSetResult",
    "InputError",
    "InputNotFoundError",
    "KatzResult",
    "LabelPropagationResult",
    "LouvainResult",
    "MissingDependencyError",
    "MultiSourceResult",
    "NoPathError",
    "OocGraphError",
    "Operator",
    "OperatorError",
    "OperatorResult",
    "OutputError",
    "OutputExistsError",
    "PageRankResult",
    "PartialCOO",
    "PartialCSC",
    "PartialCSR",
    "Partitions",
    "PersonalizedPageRankResult",
    "Policy",
    "PolicyError",
    "Resources",
    "Runtime",
    "SSSPResult",
    "SpanningForestResult",
    "StoreError",
    "StoreNotFoundError",
    "StrongComponentsResult",
    "TrianglesResult",
    "Validation",
    "ValidationError",
    "VertexNotFoundError",
    "append_edges",
    "balanced_partition",
    "betweenness_centrality",
    "bfs",
    "biconnected_components",
    "build_csr",
    "check_store",
    "closeness_centrality",
    "clustering",
    "condensation",
    "connected_components",
    "core_numbers",
    "diameter",
    "eccentricity",
    "eigenvector_centrality",
    "estimate",
    "export_graph",
    "generate_grid",
    "generate_kronecker",
    "generate_uniform",
    "greedy_coloring",
    "harmonic_centrality",
    "hits",
    "is_directed_acyclic_graph",
    "katz_centrality",
    "label_propagation",
    "louvain",
    "maximal_independent_set",
    "merge_graphs",
    "minimum_spanning_forest",
    "multi_source_bfs",
    "open_graph",
    "open_partitions",
    "open_runtime",
    "pagerank",
    "partition_graph",
    "personalized_pagerank",
    "plan_bfs",
    "run",
    "shortest_path",
    "spmv",
    "sssp",
    "strongly_connected_components",
    "topological_generations",
    "transitivity",
    "triangles",
    "verify_bfs",
    "verify_components",
    "verify_cores",
    "verify_sssp",
]

_HOMES = {
    "BFSPlan": "oocgraph.plan.forecast",
    "BFSResult": "oocgraph.results.bfs",
    "BetweennessResult": "oocgraph.results.centrality",
    "CSRStore": "oocgraph.store.graph",
    "CheckReport": "oocgraph.store.check",
    "ClosenessResult": "oocgraph.results.distances",
    "ClusteringResult": "oocgraph.results.triangles",
    "ComponentsResult": "oocgraph.results.components",
    "CoreResult": "oocgraph.results.cores",
    "DaskBFSResult": "oocgraph.results.dask",
    "DiameterResult": "oocgraph.results.distances",
    "EccentricityResult": "oocgraph.results.distances",
    "EigenvectorResult": "oocgraph.results.centrality",
    "Estimate": "oocgraph.results.estimate",
    "ExportReport": "oocgraph.export.files",
    "GenerationsResult": "oocgraph.results.strong",
    "HarmonicResult": "oocgraph.results.distances",
    "HitsResult": "oocgraph.results.centrality",
    "KatzResult": "oocgraph.results.centrality",
    "LabelPropagationResult": "oocgraph.results.communities",
    "LouvainResult": "oocgraph.results.communities",
    "MultiSourceResult": "oocgraph.results.distances",
    "NoPathError": "oocgraph.errors",
    "Operator": "oocgraph.algorithms.operators",
    "OperatorResult": "oocgraph.results.paths",
    "PageRankResult": "oocgraph.results.pagerank",
    "PartialCOO": "oocgraph.sparse.partial",
    "PartialCSC": "oocgraph.sparse.partial",
    "PartialCSR": "oocgraph.sparse.partial",
    "Partitions": "oocgraph.store.partitions",
    "PersonalizedPageRankResult": "oocgraph.results.personalized",
    "Policy": "oocgraph.partition.policy",
    "Resources": "oocgraph.resources",
    "Runtime": "oocgraph.algorithms.runtimes",
    "SSSPResult": "oocgraph.results.paths",
    "BiconnectedResult": "oocgraph.results.biconnected",
    "ColoringResult": "oocgraph.results.greedy",
    "IndependentSetResult": "oocgraph.results.greedy",
    "SpanningForestResult": "oocgraph.results.spanning",
    "StrongComponentsResult": "oocgraph.results.strong",
    "TrianglesResult": "oocgraph.results.triangles",
    "Validation": "oocgraph.verify",
    "append_edges": "oocgraph.ingest.append",
    "balanced_partition": "oocgraph.sparse.balanced",
    "betweenness_centrality": "oocgraph.algorithms.betweenness",
    "bfs": "oocgraph.algorithms.bfs",
    "build_csr": "oocgraph.ingest.build",
    "check_store": "oocgraph.store.check",
    "closeness_centrality": "oocgraph.algorithms.closeness",
    "clustering": "oocgraph.algorithms.triangles",
    "condensation": "oocgraph.algorithms.condensation",
    "connected_components": "oocgraph.algorithms.components",
    "core_numbers": "oocgraph.algorithms.cores",
    "diameter": "oocgraph.algorithms.eccentricity",
    "eccentricity": "oocgraph.algorithms.eccentricity",
    "eigenvector_centrality": "oocgraph.algorithms.eigenvector",
    "estimate": "oocgraph.algorithms.estimate",
    "export_graph": "oocgraph.export.files",
    "generate_grid": "oocgraph.ingest.generators.grid",
    "generate_kronecker": "oocgraph.ingest.generators.kronecker",
    "generate_uniform": "oocgraph.ingest.generators.uniform",
    "harmonic_centrality": "oocgraph.algorithms.closeness",
    "hits": "oocgraph.algorithms.hits",
    "is_directed_acyclic_graph": "oocgraph.algorithms.topological",
    "katz_centrality": "oocgraph.algorithms.katz",
    "label_propagation": "oocgraph.algorithms.label_propagation",
    "louvain": "oocgraph.algorithms.louvain",
    "merge_graphs": "oocgraph.ingest.append",
    "biconnected_components": "oocgraph.algorithms.biconnected",
    "greedy_coloring": "oocgraph.algorithms.greedy",
    "maximal_independent_set": "oocgraph.algorithms.greedy",
    "minimum_spanning_forest": "oocgraph.algorithms.spanning",
    "multi_source_bfs": "oocgraph.algorithms.multi_source_bfs",
    "open_graph": "oocgraph.store.graph",
    "open_partitions": "oocgraph.store.partitions",
    "open_runtime": "oocgraph.algorithms.runtimes",
    "pagerank": "oocgraph.algorithms.pagerank",
    "partition_graph": "oocgraph.algorithms.partition_graph",
    "personalized_pagerank": "oocgraph.algorithms.personalized_pagerank",
    "plan_bfs": "oocgraph.algorithms.plan_bfs",
    "run": "oocgraph.algorithms.operators",
    "shortest_path": "oocgraph.algorithms.shortest_path",
    "spmv": "oocgraph.algorithms.spmv",
    "sssp": "oocgraph.algorithms.sssp",
    "strongly_connected_components": "oocgraph.algorithms.strong_components",
    "topological_generations": "oocgraph.algorithms.topological",
    "transitivity": "oocgraph.algorithms.triangles",
    "triangles": "oocgraph.algorithms.triangles",
    "verify_bfs": "oocgraph.verify",
    "verify_components": "oocgraph.verify_results",
    "verify_cores": "oocgraph.verify_results",
    "verify_sssp": "oocgraph.verify_results",
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
