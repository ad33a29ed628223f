"""Results about the direction of paths: strongly connected components, and generations of a graph without cycles."""

from __future__ import annotations

from oocgraph.results.values import ValuesResult
from oocgraph.results.writer import ID


class StrongComponentsResult(ValuesResult):
    """Strongly connected components: the column `component`, their smallest ids; `num_components`; `largest`, vertices of the largest."""

    algorithm = "strong components"
    columns = {"component": ID}
    groups = "components"


class GenerationsResult(ValuesResult):
    """Topological generations: the column `generation`, from 0 on; `num_generations`."""

    algorithm = "topological generations"
    columns = {"generation": "int64"}
