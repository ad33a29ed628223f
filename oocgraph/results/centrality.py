"""Results of centralities: a few numbers of each vertex."""

from __future__ import annotations

from oocgraph.results.values import ValuesResult


class HitsResult(ValuesResult):
    """Hubs and authorities: the columns `hub` and `authority`, each of which sums up to 1; `num_iterations`."""

    algorithm = "hits"
    columns = {"hub": "float64", "authority": "float64"}


class KatzResult(ValuesResult):
    """Katz centrality: the column `centrality`; `num_iterations`."""

    algorithm = "katz"
    columns = {"centrality": "float64"}


class EigenvectorResult(ValuesResult):
    """Eigenvector centrality: the column `centrality`; `num_iterations`."""

    algorithm = "eigenvector"
    columns = {"centrality": "float64"}


class BetweennessResult(ValuesResult):
    """Betweenness centrality: the column `centrality`; `num_sources`, and `depth`, the edges of the longest of the shortest paths."""

    algorithm = "betweenness"
    columns = {"centrality": "float64"}
