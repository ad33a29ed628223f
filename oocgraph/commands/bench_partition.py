"""``oocgraph bench partition``: edges partitioned a second by each policy, beside METIS."""

from __future__ import annotations

from typing import Any

import click

from oocgraph.commands.clusters import Place, client_options
from oocgraph.commands.common import emit, json_option, memory_option, progress_bars
from oocgraph.commands.partition import policy_of

POLICIES = ("EEC", "HVC", "CVC", "FEC", "GVC", "SVC")

_COLUMNS = {
    "policy": "policy",
    "first_seconds": "first_seconds",
    "median_seconds": "seconds",
    "edges_per_second": "edges/s",
    "bytes_read": "bytes_read",
    "peak_host_bytes": "peak_bytes",
    "replication": "replication",
    "edge_balance": "edges",
    "master_balance": "masters",
    "proxy_balance": "proxies",
    "times_faster_than_peer": "x_peer",
}
"""Figures of a policy and their columns; the last ones before the peer's are largest share over mean share."""


@click.command("partition")
@click.argument("graph", metavar="GRAPH")
@click.option("--parts", "num_partitions", type=click.IntRange(min=1), default=4, show_default=True, help="Number of partitions.")
@click.option(
    "--policy", "policies", metavar="NAME|FILE:NAME", multiple=True, help="Policy to measure; repeat.  [default: the six of CuSP]"
)
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of each; medians are told.")
@click.option("--peer", metavar="NAME", help="Compare with pymetis.")
@click.option("--scratch", metavar="DIR", type=click.Path(exists=True, file_okay=False, writable=True), help="Folder for the partitions.")
@memory_option
@client_options
@json_option
def bench_partition(graph: str, *, policies: tuple[str, ...], place: Place, memory: str | None, as_json: bool, **options: Any) -> None:
    """Partition GRAPH by each policy, from disk to disk, and prove every result; cold page cache, runs taken in turn.

    Without --cluster or --scheduler the threads of this process do it. --memory is that of each process.
    """
    from oocgraph.bench.partition import bench_partition as run
    from oocgraph.commands.tables import print_table
    from oocgraph.store.graph import open_graph

    place.check()
    store = open_graph(graph)
    chosen = [policy_of(one) for one in policies or POLICIES]
    with progress_bars() as progress:
        report = run(
            store,
            policies=chosen,
            open_client=place.client if place.is_cluster else None,
            memory_budget=memory,
            progress=progress,
            **options,
        )
    figures = report.figures()
    emit(figures, as_json=as_json, title=repr(store))
    if not as_json:
        print_table({column: row[name] for name, column in _COLUMNS.items() if name in row} for row in figures["policies"])
