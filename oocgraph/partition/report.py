"""How good partitions are: what is replicated, and how evenly edges and vertices are shared out.

In: open partitions. Out: numbers that the parts' metadata give; nothing is read. What a search then sends is measured by searching
(`oocgraph partition --report`).

Hoang et al., "CuSP", IPDPS 2019, section 5.3 (replication factor, load balance).
"""

from __future__ import annotations

from dataclasses import dataclass

from oocgraph.listing import Listed
from oocgraph.partition.balance import imbalance
from oocgraph.store.partitions import Partitions


@dataclass(frozen=True, slots=True)
class PartMetrics:
    """One partition.

    Attributes
    ----------
    part, num_edges, num_masters, num_isolated_masters, num_mirrors : int
        Its number, stored entries, masters with and without an edge there, mirrors.
    """

    part: int
    num_edges: int
    num_masters: int
    num_isolated_masters: int
    num_mirrors: int


@dataclass(frozen=True, slots=True)
class PartitionReport(Listed):
    """All of them.

    Attributes
    ----------
    policy : str
    num_partitions, num_vertices, num_stored_edges : int
    replication_factor : float
        Proxies (masters and mirrors) for each vertex; 1: no mirrors.
    edge_balance, master_balance, proxy_balance : float
        Largest share over the mean share of edges, masters, proxies; 1 is perfect.
    parts : list of PartMetrics
    """

    policy: str
    num_partitions: int
    num_vertices: int
    num_stored_edges: int
    replication_factor: float
    edge_balance: float
    master_balance: float
    proxy_balance: float
    parts: list[PartMetrics]


def report_of(partitions: Partitions) -> PartitionReport:
    """Return the metrics of partitions.

    Raises
    ------
    StoreError
        A part is missing.
    """
    parts = [PartMetrics(part.index, part.num_edges, part.num_masters, part.num_isolated, part.num_mirrors) for part in partitions]
    masters = [part.num_masters + part.num_isolated_masters for part in parts]
    proxies = [masters_ + part.num_mirrors for masters_, part in zip(masters, parts, strict=True)]
    return PartitionReport(
        policy=partitions.policy,
        num_partitions=len(parts),
        num_vertices=partitions.num_vertices,
        num_stored_edges=partitions.num_stored_edges,
        replication_factor=sum(proxies) / max(1, partitions.num_vertices),
        edge_balance=imbalance([part.num_edges for part in parts]),
        master_balance=imbalance(masters),
        proxy_balance=imbalance(proxies),
        parts=parts,
    )
