"""``oocgraph label-propagation``, ``louvain``: which vertices belong together."""

from __future__ import annotations

import click

from oocgraph.commands.values import values_command, weight_options

_METRICS = """

    Communities are named after their smallest ids. Metrics: seconds are of the sweeps and what is between them, load_seconds of what comes
    before; bytes_read is the larger of the bytes requested and the device bytes of this process.
    """

_seed = click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same communities.")

label_propagation = values_command(
    "label-propagation", "label_propagation",
    """Find communities of the undirected graph store GRAPH by label propagation.

    Each vertex takes the community that most of its neighbours are in, until each has one of these."""
    + _METRICS,
    _seed,
    click.option("--max-iter", type=int, default=100, show_default=True, help="Maximum number of iterations; more are an error."),
    weight_options, num_shown=0,
)  # fmt: skip

louvain = values_command(
    "louvain", "louvain",
    """Find communities of high modularity of the undirected graph store GRAPH by Louvain's method.

    Graphs of communities are written beside GRAPH, or to the folder oocgraph.result-folder, and removed at the end."""
    + _METRICS,
    _seed,
    click.option("--resolution", type=float, default=1.0, show_default=True, help="Above 1 communities get smaller, below 1 larger."),
    click.option("--threshold", type=float, default=1e-7, show_default=True, help="Stop when modularity grows by no more than this."),
    weight_options, num_shown=0,
)  # fmt: skip
