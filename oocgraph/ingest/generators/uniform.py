"""A uniform random graph, as GAPBS makes it with ``-u``: no hubs, so nothing that degree order or planes could use.

Reference: Beamer et al. 2015, "The GAP Benchmark Suite", graph "Urand" (Erdos-Renyi with 2**scale vertices).
"""

from __future__ import annotations

from oocgraph.ingest.generators.generated import GeneratedEdges, check_size
from oocgraph.types import Array


class UniformEdges(GeneratedEdges):
    """``edge_factor * 2**scale`` edges with independent uniform endpoints, undirected.

    Examples
    --------
    >>> UniformEdges(22, edge_factor=16, seed=1).num_vertices
    4194304
    """

    def __init__(self, scale: int, *, edge_factor: int, seed: int) -> None:
        check_size(scale, edge_factor)
        super().__init__(
            f"uniform(scale={scale}, edge_factor={edge_factor}, seed={seed})", num_vertices=1 << scale, num_rows=edge_factor << scale
        )
        self.scale, self.seed = scale, seed

    def edges(self, first: int, num_edges: int) -> tuple[Array, Array]:
        """Endpoints of edges ``first .. first + num_edges - 1``."""
        from oocgraph.kernels.generate import uniform_edges

        return uniform_edges(self.scale, self.seed, first, num_edges)
