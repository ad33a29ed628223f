"""What biconnected components return: the forest of vertices and components, and what it says about vertices and edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oocgraph.results.histogram import PART_VALUES, Histogram, group_sizes, make_histogram
from oocgraph.results.values import ValuesResult
from oocgraph.results.writer import ID
from oocgraph.types import Array


class BiconnectedResult(ValuesResult):
    """A rooted forest of vertices and biconnected components: columns `component`, `parent`, `components`, `bridge`.

    `num_components`, `num_articulation_points`, `num_bridges`; `largest`, vertices of the largest component.
    """

    algorithm = "biconnected components"
    columns = {"component": ID, "parent": ID, "components": "int64", "bridge": "bool"}

    def articulation_points(self) -> Any:
        """Return the ids of the vertices that are in several components, ascending: without one of them others are apart."""
        return self.vertices[self.components > 1]

    def bridges(self) -> dict[str, Any]:
        """Return the edges without which their ends are apart: arrays ``source`` and ``target`` of ids, as pandas takes them.

        Each is there once, from the end that is nearer to the root, in ascending order of the other one.
        """
        return {"source": self.parent[self.bridge], "target": self.vertices[self.bridge]}

    def _histogram(self, max_bins: int) -> Histogram:
        return make_histogram(self._sizes, name="size", things="biconnected components", max_bins=max_bins)

    def _sizes(self) -> Iterator[Array]:
        """Yield the numbers of vertices of the components: those below each, and one above."""
        sizes, parent = group_sizes(self.stored["component"]), self.stored["parent"]
        for start in range(0, sizes.size, PART_VALUES):
            part = sizes[start : start + PART_VALUES]
            is_root = parent[start : start + PART_VALUES] == np.arange(start, start + part.size)
            yield part[(part > 0) & ~is_root] + 1
