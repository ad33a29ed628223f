"""What greedy algorithms return: colours of vertices, and an independent set."""

from __future__ import annotations

from typing import Any

from oocgraph.results.values import ValuesResult


class ColoringResult(ValuesResult):
    """A colouring: the column `color`, from 0 on; `num_colors`, `num_sweeps`."""

    algorithm = "coloring"
    columns = {"color": "int32"}


class IndependentSetResult(ValuesResult):
    """A maximal independent set: the column `member`; `num_members`, `num_sweeps`."""

    algorithm = "independent set"
    columns = {"member": "bool"}

    def members(self) -> Any:
        """Return the ids of the vertices that are in the set, ascending."""
        return self.vertices[self.member]
