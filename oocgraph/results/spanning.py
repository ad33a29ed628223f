"""What a minimum spanning forest is: of every vertex its parent, and the weight of the edge between them."""

from __future__ import annotations

from typing import Any

from oocgraph.results.histogram import Histogram, in_parts, make_histogram
from oocgraph.results.values import ValuesResult
from oocgraph.results.writer import ID


class SpanningForestResult(ValuesResult):
    """A rooted spanning forest: `parent`, its own id where a vertex is a root; `weight` of the edge to the parent, 0 of a root.

    `num_trees`, isolated vertices among them; `num_edges`; `total_weight`; `num_rounds`.
    """

    algorithm = "spanning-forest"
    columns = {"parent": ID, "weight": "float64"}

    def edges(self) -> dict[str, Any]:
        """Return the edges of the forest: arrays ``source``, ``target`` (user ids) and ``weight``, as pandas takes them.

        Each edge is there once, from a vertex to its parent, in ascending order of the former.
        """
        linked = self.parent != self.vertices
        return {"source": self.vertices[linked], "target": self.parent[linked], "weight": self.weight[linked]}

    def _histogram(self, max_bins: int) -> Histogram:
        weights = self.stored["weight"]
        return make_histogram(lambda: in_parts(weights), name="weight", things="vertices", max_bins=max_bins)
