"""PageRank on the workers of a Dask cluster: each has the in-edges of a range of vertices, and all exchange their ranks in each iteration.

In: what is asked, a client. Out: the last state of the run, whose ranks are fetched to this process. A worker streams its edges from the
store and keeps as many as its budget allows. See `oocgraph.cluster.ranks` for what becomes of it when a worker is lost.
"""

from __future__ import annotations

import uuid
from time import perf_counter
from typing import Any

from oocgraph.algorithms.pagerank_arguments import Ranked, result_bytes
from oocgraph.cluster.events import Watch
from oocgraph.cluster.placement import placed
from oocgraph.cluster.ranks import PowerIteration
from oocgraph.cluster.session import ClusterSession
from oocgraph.cluster.supersteps import Supersteps
from oocgraph.cluster.worker_ranks import RanksSpec, acquire
from oocgraph.config import settings
from oocgraph.memory import SLACK_BYTES, Budget, effective_budget_bytes
from oocgraph.products.personalization import charge_personalization
from oocgraph.products.rank_run import RankOptions, RankRun

CLIENT_VECTORS = 2
"""Vectors of ranks that this process holds: the result, and a range of it that has just come, or the state of a checkpoint."""


def rank_on_cluster(options: RankOptions, run: RankRun, client: Any, lease: str | None = None) -> Ranked:
    """Rank on the workers of `client`; see `oocgraph.pagerank`. threads and memory of its resources are each worker's.

    With the `lease` of a runtime workers keep edges for its next run.
    """
    start, store = perf_counter(), options.store
    budget = Budget(effective_budget_bytes(settings().memory_budget))
    budget.alternatively("the result, when it is written,", result_bytes(store, options.personalization))
    with budget.all_or_none():
        budget.reserve("threads and compiled code", SLACK_BYTES)
        charge_personalization(store, options.personalization, budget)
        budget.reserve("ranks", CLIENT_VECTORS * 8 * store.num_rows)
    with ClusterSession(client) as session, session.loss_reported():
        run.begin()
        state = run.resumed()
        if state is not None and run.is_done(state):
            return Ranked(state=state, edge_bytes=0, kept_bytes=0, load_seconds=perf_counter() - start, memory_budget=budget.limit_bytes)
        del state
        with Watch(client, uuid.uuid4().hex) as watch:
            placement = placed(
                session, store, options.resources, watch, RanksSpec, acquire, divide=lambda workers: max(1, min(store.num_rows, workers)),
                damping=options.damping, precision=options.precision, column=options.column, personalization=options.personalization,
                kept_for=lease, beside_searches=lease is not None,
            )  # fmt: skip
            placement.check_device_is_used("rank")
            load_seconds = perf_counter() - start
            state = Supersteps(placement, watch).run(PowerIteration(placement, watch.search, run))
        return Ranked(
            state=state,
            edge_bytes=sum(part["edge_bytes"] for part in placement.parts),
            kept_bytes=sum(part["kept_bytes"] for part in placement.parts),
            load_seconds=load_seconds,
            memory_budget=budget.limit_bytes,
        )
