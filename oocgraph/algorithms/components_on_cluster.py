"""Connected components on the workers of a Dask cluster: each links its share of the edges, and their trees are joined in pairs.

In: a store, a client. Out: the trees of all, in this process. First planes are linked, a share on each worker; with the trees that these
make each links its share of the lists of vertices outside of the largest one. A run whose worker is lost is made again.
"""

from __future__ import annotations

from typing import Any

from oocgraph.cluster import worker_forest
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.specs import url_for_workers
from oocgraph.cluster.worker import with_plugin
from oocgraph.cluster.worker_forest import ForestSpec, Linked
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress


def link_on_cluster(store: CSRStore, client: Any, progress: Progress, **options: Any) -> Linked:
    """Link all edges on the workers of `client`; `options` are memory_budget and threads of each worker."""

    def attempt() -> Linked:
        addresses = sorted(session.find_workers(store.url, graph_fingerprint(store)))
        specs = [
            ForestSpec(url=url_for_workers(store), check_pages=store.check_pages, share=(i, len(addresses)), **options)
            for i in range(len(addresses))
        ]
        before = None
        for i, phase in enumerate(("planes", "lists")):
            progress(phase, 0, 1)
            joined = session.combine(
                {
                    session.submit(address, with_plugin, worker_forest.link, session.lease, spec, before): address
                    for spec, address in zip(specs, addresses, strict=True)
                },
                with_plugin, worker_forest.join, session.lease, specs[0],
            )  # fmt: skip
            if i:
                found = Linked(*session.gather(joined, needed=addresses)[0])
                progress(phase, 1, 1)
                return found
            (before,) = joined
        raise AssertionError("unreachable")

    with ClusterSession(client) as session:
        return session.rerun(attempt)
