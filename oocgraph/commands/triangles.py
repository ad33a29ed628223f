"""``oocgraph triangles``: in how many triangles each vertex is, and how many of its neighbours know each other."""

from __future__ import annotations

from oocgraph.commands.values import values_command

triangles = values_command(
    "triangles", "triangles",
    """Count the triangles of every vertex of the undirected graph store GRAPH, and find its clustering coefficient.

    Transitivity is the share of all pairs of edges with a common end that are part of a triangle. --top shows the vertices of most
    triangles.

    Metrics: num_passes says how often all edges were swept, besides once to count and once to hold them; seconds are of these sweeps,
    load_seconds of what comes before; bytes_read is the larger of the bytes requested and the device bytes of this process.
    """,
)  # fmt: skip
