"""``oocgraph bench partition``: edges partitioned a second by each policy, beside METIS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from oocgraph.commands.bench_options import count_option, folder_option, graph_argument, peer_option, run_benchmark
from oocgraph.commands.clusters import Place, client_options
from oocgraph.commands.common import json_option, memory_option
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
"""Metrics of a policy and their columns; the last ones before the peer's are largest share over mean share."""


@click.command("partition")
@graph_argument
@count_option("--partitions", "num_partitions", default=4, text="Number of partitions.")
@click.option(
    "--policy", "policies", metavar="NAME|FILE:NAME", multiple=True, help="Policy to measure; repeat.  [default: the six of CuSP]"
)
@count_option("--repeats", default=3, text="Runs of each; medians are reported.")
@peer_option("Compare with pymetis.")
@folder_option("--scratch", "Folder for the partitions.")
@memory_option
@client_options
@json_option
def bench_partition(*, policies: tuple[str, ...], place: Place, **options: Any) -> None:
    """Partition GRAPH by each policy, from disk to disk, and prove every result; cold page cache, runs taken in turn.

    Without --cluster or --scheduler the threads of this process do it. --memory is that of each process.
    """
    place.check()
    chosen = [policy_of(one) for one in policies or POLICIES]
    client = place.client if place.is_cluster else None
    run_benchmark("partition", show=_print_policies, policies=chosen, open_client=client, **options)


def _print_policies(metrics: Mapping[str, Any]) -> None:
    from oocgraph.commands.tables import print_table

    print_table({column: row[name] for name, column in _COLUMNS.items() if name in row} for row in metrics["policies"])
