"""A uniform random graph, as GAPBS makes it with ``-u``: no hubs, so nothing that degree order or planes could use.

Reference: Beamer et al. 2015, "The GAP Benchmark Suite", graph "Urand" (Erdos-Renyi with 2**scale vertices).
"""

from __future__ import annotations

import os

from oocgraph.arguments import known_keywords
from oocgraph.ingest.generators.generated import RandomEdges
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption


class UniformEdges(RandomEdges):
    """``edge_factor * 2**scale`` edges with independent uniform endpoints, undirected.

    Examples
    --------
    >>> UniformEdges(22, edge_factor=16, seed=1).num_vertices
    4194304
    """

    name = "uniform"

    def edges(self, first: int, num_edges: int) -> tuple[Array, Array]:
        """Endpoints of edges ``first .. first + num_edges - 1``."""
        from oocgraph.kernels.generate import uniform_edges

        return uniform_edges(self.scale, self.seed, first, num_edges)


@known_keywords
def generate_uniform(
    scale: int,
    path: str | os.PathLike[str],
    *,
    edge_factor: int = 16,
    seed: int = 1,
    weights: tuple[int, int] | None = None,
    overwrite: bool = False,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> CSRStore:
    """Build a uniform random graph straight into a store: no hubs.

    Parameters
    ----------
    scale
        The graph has 2**scale vertices; those without edges take no space.
    path
        Folder to create.
    edge_factor
        Generated edges per vertex; duplicates and self-loops among them are dropped.
    seed
        The same seed gives the same graph, on every machine.
    weights
        Smallest and largest integer weight of an edge, as in Graph500's third kernel ``(1, 255)``: a hash of its ends, in the column
        ``weight``. None: the edges have no weights.
    overwrite, resources, memory_budget, progress
        As in `build_csr`.

    Returns
    -------
    CSRStore

    Raises
    ------
    OutputExistsError, OutputError
        `path` exists and `overwrite` is false, or cannot be written.
    BudgetError
        `memory_budget` is too small for the vertex arrays of this size.
    """
    from oocgraph.ingest.build import build_csr

    source = UniformEdges(scale, edge_factor=edge_factor, seed=seed, weights=weights)
    return build_csr(source, path, overwrite=overwrite, resources=resources, memory_budget=memory_budget, progress=progress)
