"""``oocgraph personalized-pagerank``: ranks as each of some vertices sees them."""

from __future__ import annotations

import click

from oocgraph.commands.values import values_command, weight_options

personalized_pagerank = values_command(
    "personalized-pagerank", "personalized_pagerank",
    """Rank the vertices of the graph store GRAPH as each --seed-vertex sees them: by walks that start again there.

    --top shows the ranks of the first; --out has those of all, in the columns rank_0, rank_1, ... in the order of the seeds.

    It runs in this process, or on a Dask cluster (--cluster, --scheduler); --memory and --threads are then of each worker.

    Metrics: seconds are of the iterations, load_seconds of what comes before; bytes_read is the larger of the bytes requested and the
    device bytes of this process.
    """,
    click.option("--seed-vertex", "seeds", metavar="ID", multiple=True, required=True, help="Id of a seed; repeat."),
    click.option("--damping", type=float, default=0.85, show_default=True, help="Probability of following an edge, below 1."),
    click.option(
        "--tol", type=float, default=1e-6, show_default=True, help="Stop when all changes sum to less than N * tol; 0: after --max-iter."
    ),
    click.option("--max-iter", type=int, default=100, show_default=True, help="Most iterations; more are an error, unless --tol is 0."),
    weight_options,
    on_cluster=True,
)  # fmt: skip
