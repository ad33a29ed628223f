"""The Graph500 graph: Kronecker edges with permuted labels, and the shortest way to a store of one.

Half of its vertices have no edge (47 % at scale 24, edge factor 16) and its degrees follow a power law; see
`oocgraph.kernels.generate` for how an edge is made. Reference: Graph500 specification; Yasui et al. 2014, table of
isolated vertices by scale.
"""

from __future__ import annotations

import os

from oocgraph.arguments import known_keywords
from oocgraph.ingest.generators.generated import RandomEdges
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array, ProgressOption


class KroneckerEdges(RandomEdges):
    """``edge_factor * 2**scale`` Kronecker edges over 2**scale vertices, undirected.

    Self-loops and duplicates occur, as Graph500 makes them; a build drops them.

    Examples
    --------
    >>> KroneckerEdges(20, edge_factor=16, seed=1).num_rows
    16777216
    """

    name = "kronecker"

    def edges(self, first: int, num_edges: int) -> tuple[Array, Array]:
        """Endpoints of edges ``first .. first + num_edges - 1``."""
        from oocgraph.kernels.generate import kronecker_edges

        return kronecker_edges(self.scale, self.seed, first, num_edges)


@known_keywords
def generate_kronecker(
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
    """Build a Graph500 Kronecker graph straight into a store; no edge list is written.

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
    OutputError
        `path` exists and `overwrite` is false, or cannot be written.
    BudgetError
        `memory_budget` is too small for the vertex arrays of this scale.
    """
    from oocgraph.ingest.build import build_csr

    source = KroneckerEdges(scale, edge_factor=edge_factor, seed=seed, weights=weights)
    return build_csr(source, path, overwrite=overwrite, resources=resources, memory_budget=memory_budget, progress=progress)
