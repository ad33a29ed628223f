"""Results of algorithms that find communities: of each vertex the one that its community is named after."""

from __future__ import annotations

from oocgraph.results.values import ValuesResult
from oocgraph.results.writer import ID


class LabelPropagationResult(ValuesResult):
    """Communities by label propagation: the column `community`; `num_communities`, `modularity`, `num_iterations`."""

    algorithm = "label-propagation"
    columns = {"community": ID}
    groups = "communities"


class LouvainResult(ValuesResult):
    """Communities by Louvain's method: the column `community`; `num_communities`, `modularity`, `num_levels`, `num_sweeps`."""

    algorithm = "louvain"
    columns = {"community": ID}
    groups = "communities"
