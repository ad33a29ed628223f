"""``oocgraph spanning-forest``: the edges of least total weight that connect a graph."""

from __future__ import annotations

from oocgraph.commands.values import values_command, weight_options

spanning_forest = values_command(
    "spanning-forest", "minimum_spanning_forest",
    """Find a minimum spanning forest of the graph store GRAPH, which is undirected: a tree of each component.

    --out has the parent of each vertex (a root is its own), and the weight of the edge between them.

    Metrics: seconds are of the rounds, load_seconds of what comes before; bytes_read is the larger of the bytes requested and the
    device bytes of this process.
    """,
    weight_options,
    num_shown=None,
)  # fmt: skip
