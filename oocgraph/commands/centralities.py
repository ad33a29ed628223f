"""``oocgraph hits``, ``katz``, ``eigenvector``, ``betweenness``: how central each vertex is."""

from __future__ import annotations

import click

from oocgraph.commands.values import iteration_options, values_command, weight_options

_METRICS = """

    It runs in this process, or on a Dask cluster (--cluster, --scheduler); --memory and --threads are then of each worker.

    Metrics: seconds are of the iterations, load_seconds of what comes before; bytes_read is the larger of the bytes requested and the
    device bytes of this process.
    """

hits = values_command(
    "hits", "hits",
    """Find hubs and authorities of the graph store GRAPH: edges lead from good hubs to good authorities.

    Each of the two sums up to 1; --top shows hubs."""
    + _METRICS,
    iteration_options, weight_options, on_cluster=True,
)  # fmt: skip

katz = values_command(
    "katz", "katz_centrality",
    """Find the Katz centrality of every vertex of the graph store GRAPH.

    It is alpha times the sum of those of its in-neighbours, and beta."""
    + _METRICS,
    click.option(
        "--alpha", type=float, default=0.1, show_default=True, help="Attenuation, below 1 / (largest eigenvalue)."
    ),
    click.option("--beta", type=float, default=1.0, show_default=True, help="Centrality of each vertex by itself."),
    click.option("--normalized/--absolute", default=True, show_default=True, help="Divide by the Euclidean norm, or do not."),
    iteration_options, weight_options, on_cluster=True,
)  # fmt: skip

eigenvector = values_command(
    "eigenvector", "eigenvector_centrality",
    """Find the eigenvector centrality of every vertex of the graph store GRAPH.

    It is in proportion to the sum of those of its in-neighbours; the Euclidean norm is 1."""
    + _METRICS,
    iteration_options, weight_options, on_cluster=True,
)  # fmt: skip

betweenness = values_command(
    "betweenness", "betweenness_centrality",
    """Find the betweenness centrality of every vertex of the graph store GRAPH.

    It is the share of the shortest paths between others that go through it, added up; weights are not used."""
    """

    Metrics: seconds are of the searches, load_seconds of what comes before; depth is the number of edges of the longest of the shortest
    paths, and bytes_read the larger of the bytes requested and the device bytes of this process.
    """,
    click.option("--samples", "k", metavar="K", type=int, help="Paths from so many vertices.  [default: from all of them]"),
    click.option("--seed", type=int, default=1, show_default=True, help="Seed of the choice of these vertices."),
    click.option(
        "--normalized/--absolute", default=True, show_default=True, help="Divide by the number of pairs of other vertices, or do not."
    ),
    click.option("--endpoints", is_flag=True, help="Count the ends of paths, too."),
)  # fmt: skip
