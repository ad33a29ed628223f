"""A uniform random graph, as GAPBS makes it with ``-u``: no hubs, so nothing that degree order or planes could use.

Reference: Beamer et al. 2015, "The GAP Benchmark Suite", graph "Urand" (Erdos-Renyi with 2**scale vertices).
"""

from __future__ import annotations

from oocgraph.ingest.generators.generated import RandomEdges
from oocgraph.types import Array


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
