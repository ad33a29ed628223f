"""Computations on clusters with small messages, hops, blocks and pieces: ``python -m tests.small_sizes_cluster 50 --seed 1``.

As `tests.small_sizes`; what is right is what one process finds with sizes as they are. Workers are in this process.
"""

from __future__ import annotations

import pkgutil
from contextlib import ExitStack, suppress
from functools import cache
from importlib import import_module
from unittest.mock import patch

import numpy as np
from distributed import Client, LocalCluster

import oocgraph
from oocgraph import Resources
from oocgraph.config import setting
from oocgraph.engine.shard_plan import ShardPlan
from tests.cluster import clusters
from tests.small_sizes import SIZES as ALONE
from tests.small_sizes import drawn_edges, main

SIZES = ALONE | {
    "exchange.windows.MOST_SLOT_BYTES": (16, 64, 1000), "exchange.windows.LEAST_SLOT_BYTES": (8, 40),
    "exchange.windows.FINE_PIECES": (1, 3), "exchange.windows.LEAST_BALANCED": (2, 4), "exchange.windows.FINE_RATIO": (0.0, 0.9),
    "cluster.supersteps.KEPT_HOPS": (1,), "cluster.supersteps.MOST_AHEAD": (1, 2), "cluster.supersteps.MOST_STEPS": (1, 2, 3),
    "cluster.supersteps.TOGETHER_AHEAD": (1, 3), "cluster.supersteps.HOP_SECONDS": (0.0, 0.002),
    "cluster.worker_paths.most_sent": (lambda *_: 5, lambda *_: 20), "cluster.worker_forest.FIRST_PLANES": (0, 1, 4),
    "plan.redealing.MOST_IMBALANCE": (1.0,), "plan.redealing.LEAST_BUSY_SECONDS": (0.0,), "plan.redealing.SHARES_PER_PARTITION": (1, 3),
    "engine.part.QUEUE_CAPACITY engine.part.FEW_VERTICES": (1, 8, 40), "engine.part.LEAST_SECONDS": (0.0,),
    "engine.blocks.LEAST_SHIFT": (1, 2, 4), "engine.blocks.SHARE_GROUPS": (1, 2), "cluster.worker_paths.ROUND_BUCKETS": (0, 1, 3),
    "cluster.parts.ASKED_VERTICES parts.loaded_part.ASKED_VERTICES": (3, 50), "parts.loaded_part.MIN_RANGE_EDGES": (1, 5),
    "parts.local_edges.STAGED_EDGES parts.local_parts.STAGED_EDGES": (1, 5), "partition.blocks.BLOCK_ROWS": (1, 64),
}  # fmt: skip
SETTINGS = {"exchange": ("auto", "messages"), "steps-per-task": (1, 2, None), "steps-ahead": (1, 8), "take-over": (0.0, 0.3, 1.0)}


def answers(graph, rng, folder):
    """Return functions of options by name: each finds an array."""
    ids = np.asarray(oocgraph.connected_components(graph, resources=Resources(client=False)).vertices).tolist()
    some, x, way, fixed = rng.choice(ids, 2).tolist(), rng.random(len(ids)), rng.choice(["auto", "pull"]).item(), {"tol": 0, "max_iter": 7}

    def levels(options, **asked):
        oocgraph.verify_bfs(graph, found := oocgraph.bfs(graph, some, **asked, **options))
        return found.level

    def resumed(options):
        if "resources" in options:
            return levels(options)

        def stop(phase, done, total):
            if phase == "level" and done > 1:
                raise InterruptedError

        with suppress(InterruptedError):
            oocgraph.bfs(graph, some, result_store=folder / "search", progress=stop, **options)
        levels(options)
        return levels(options, resume=folder / "search")

    def paths(options):
        oocgraph.verify_sssp(graph, found := oocgraph.sssp(graph, some, **options))
        return found.distance

    calls = {
        "bfs": lambda o: levels(o, direction=way), "resumed": resumed, "sssp": paths,
        "core": lambda o: oocgraph.core_numbers(graph, **o).core_number, "spmv": lambda o: oocgraph.spmv(graph, x, **o),
        "components": lambda o: oocgraph.connected_components(graph, **o).component,
        "pagerank": lambda o: oocgraph.pagerank(graph, **fixed, **o).rank, "hits": lambda o: oocgraph.hits(graph, **fixed, **o).hub,
    }  # fmt: skip
    over = {"bfs 1d": "1d", "bfs 2d": "2d"}
    opened = {
        name: lambda o, by=by: levels({"resources": o["runtime"].resources, "partition": by} if "runtime" in o else o)
        for name, by in over.items()
    }
    return calls | opened


def compare(seed, folder):
    """Draw a graph and sizes, compute in one process and on a cluster, and return the names of what differs."""
    import_all()
    rng, folder = np.random.default_rng(seed), folder / f"cluster-{seed}"
    if (edges := drawn_edges(rng, directed := bool(rng.random() < 0.5))) is None:
        return []
    edges = *edges[:2], edges[2] * (rng.random(edges[2].size) < rng.choice([0.6, 1.0]))  # some of weight 0
    folder.mkdir()
    with setting("vertex-order", str(rng.choice(["original", "degree", "locality"]))):
        graph = oocgraph.build_csr(edges, folder / "graph", weight="weight", directed=directed, duplicates="min")
    calls, wrong = answers(graph, rng, folder), []
    expected = {name: np.asarray(call({"resources": Resources(client=False)})) for name, call in calls.items()}
    quiet = {"processes": False, "threads_per_worker": 1, "dashboard_address": None, "scheduler_kwargs": {"dashboard_address": ":0"}}
    with LocalCluster(n_workers=1 + seed % 4, **quiet) as cluster, Client(cluster) as client, ExitStack() as stack:
        for name, values in SETTINGS.items():
            stack.enter_context(setting(name, values[rng.integers(len(values))]))
        for names, values in SIZES.items():
            value, is_small = values[rng.integers(len(values))], rng.random() < 0.5
            for name in names.split() if is_small else ():
                stack.enter_context(patch(f"oocgraph.{name}", value))
        stack.enter_context(patch.object(ShardPlan, "residency", ShardPlan.residency))
        if rng.random() < 0.5:
            clusters.cramp(float(rng.choice([0.0, 0.5])))
        runtime = stack.enter_context(oocgraph.open_runtime(graph, client=client))
        for name in rng.permutation(list(calls)).tolist():
            try:
                np.testing.assert_allclose(np.asarray(calls[name]({"runtime": runtime})), expected[name], rtol=1e-5, atol=1e-9)
            except Exception as error:
                wrong.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return wrong


@cache
def import_all():
    """Import all modules: none may be imported while sizes are small."""
    for module in pkgutil.walk_packages(oocgraph.__path__, "oocgraph."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


if __name__ == "__main__":
    main(compare, __doc__)
