"""Shortest paths on the workers of a Dask cluster: each has a share of the blocks of edges, and all hear what each has found.

In: a store, what is asked, a client. Out: distances and parents, in this process. See `oocgraph.cluster.paths` for what becomes of it when
a worker is lost.
"""

from __future__ import annotations

import uuid
from time import perf_counter
from typing import Any

from oocgraph.algorithms.relaxing import Relaxed
from oocgraph.cluster.events import Watch
from oocgraph.cluster.paths import PathsRounds
from oocgraph.cluster.placement import Placement
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.specs import url_for_workers
from oocgraph.cluster.supersteps import Supersteps
from oocgraph.cluster.worker_paths import PathsSpec, acquire
from oocgraph.config import settings
from oocgraph.engine.blocks import num_shares
from oocgraph.resources import Resources
from oocgraph.store.fingerprint import graph_fingerprint
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress


def paths_on_cluster(store: CSRStore, resources: Resources, progress: Progress, **asked: Any) -> Relaxed:
    """Find shortest paths on the workers of the client of `resources`, whose memory and threads are each worker's.

    Parameters
    ----------
    **asked
        Fields of `PathsSpec`.

    Returns
    -------
    Relaxed
        Its time begins when all is loaded.
    """
    knobs = settings()
    with ClusterSession(resources.client) as session, session.loss_reported():
        fingerprint = graph_fingerprint(store)
        workers = session.find_workers(store.url, fingerprint)
        wanted = resources.num_partitions or len(workers)
        spec = PathsSpec(
            url=url_for_workers(store), fingerprint=fingerprint, num_partitions=num_shares(store, wanted), settings=knobs,
            memory_budget=resources.memory_budget or knobs.memory_budget, threads=resources.threads, check_pages=store.check_pages,
            device="cpu", **asked,
        )  # fmt: skip
        name = uuid.uuid4().hex
        with Watch(session.client, name) as watch:
            placement = Placement(session, spec, workers, acquire)
            placement.load(watch)
            began = perf_counter()
            found = Supersteps(placement, watch).run(PathsRounds(placement, name, progress))
        num_blocks = sum(part["num_blocks"] for part in placement.parts)
        distance, parent = (array if array.flags.writeable else array.copy() for array in (found.distance, found.parent))
        return Relaxed(distance, parent, num_blocks, found.work._replace(seconds=perf_counter() - began), found.device_bytes)
