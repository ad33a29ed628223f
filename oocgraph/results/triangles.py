"""Results of counts of triangles."""

from __future__ import annotations

from oocgraph.results.values import ValuesResult


class ClusteringResult(ValuesResult):
    """Clustering coefficients: the column `clustering`; `num_triangles`, `transitivity`, `average_clustering`, `num_passes`."""

    algorithm = "clustering"
    columns = {"clustering": "float64"}


class TrianglesResult(ValuesResult):
    """Triangles: the columns `triangles` and `clustering`; `num_triangles`, `transitivity`, `average_clustering`, `num_passes`."""

    algorithm = "triangles"
    columns = {"triangles": "int64", "clustering": "float64"}
