"""Searches, ranks and products on Dask workers that have a GPU: ``python -m tests.gpu_run.worker STORE [KIND]...``.

In: a store, and kinds of clusters, all by default: a worker of dask-cuda, one whose GPU memory is a pool of RMM, two that share a GPU.
Out: a line for each computation on each; the exit code is 1 if an answer is wrong.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from distributed import Client, LocalCluster

import oocgraph
from oocgraph import Resources

SOURCE = 3


def cuda_cluster(**options):
    """Return dask-cuda's cluster."""
    from dask_cuda import LocalCUDACluster

    return LocalCUDACluster(dashboard_address=":0", **options)


KINDS = {
    "dask-cuda": cuda_cluster,
    "pool of RMM": lambda: cuda_cluster(
        rmm_pool_size=0.8,
        rmm_allocator_external_lib_list="cupy",
        rmm_track_allocations=True,
        device_memory_limit=0.7,
    ),
    "two on one": lambda: LocalCluster(n_workers=2, threads_per_worker=4, dashboard_address=":0"),
}
"""What each cluster is made by."""


def budget_of(kind):
    """Return what of a GPU's memory a worker may hold, None: what is free."""
    return "20G" if kind == "two on one" else None


def search(url, cluster, **options):
    """Search on a cluster; return a valid result."""
    with Client(cluster, set_as_default=False) as client:
        found = oocgraph.bfs(url, SOURCE, client=client, **options)
        oocgraph.verify_bfs(url, found)
        return found


def computed(url, cluster, resources):
    """Iterate over computations on a cluster: name, whether the answer is that of this process's processor, seconds, the device."""
    graph, here = oocgraph.open_graph(url), Resources(device="cpu")
    x = np.random.default_rng(0).random(graph.attributes.num_input_vertices)
    levels = np.asarray(oocgraph.bfs(graph, SOURCE, resources=here).level)
    rank = oocgraph.pagerank(graph, tol=1e-10, resources=here).rank
    product = oocgraph.spmv(graph, x, resources=here)
    with Client(cluster, set_as_default=False) as client:
        calls = {
            "bfs": lambda: oocgraph.bfs(graph, SOURCE, client=client, resources=resources),
            "bfs, 1D": lambda: oocgraph.bfs(graph, SOURCE, client=client, resources=resources, partition="1d"),
            "bfs, 2D": lambda: oocgraph.bfs(graph, SOURCE, client=client, resources=resources, partition="2d"),
            "pagerank": lambda: oocgraph.pagerank(graph, tol=1e-10, client=client, resources=resources),
            "spmv": lambda: oocgraph.spmv(graph, x, client=client, resources=resources),
        }
        for name, call in calls.items():
            began = time.perf_counter()
            found = call()
            if name.startswith("bfs"):
                right = np.array_equal(np.asarray(found.level), levels)
            elif name == "spmv":
                right = np.allclose(np.asarray(found), product, rtol=1e-10)
            else:
                right = np.allclose(np.asarray(found.rank), rank, rtol=1e-9)
            yield name, right, time.perf_counter() - began, found.device if name.startswith("bfs") else ""


def main(url, kinds):
    """Compute all on each kind of cluster; return the exit code."""
    wrong = 0
    for kind in kinds:
        try:
            with KINDS[kind]() as cluster:
                for name, right, seconds, device in computed(url, cluster, Resources(device="cuda", device_memory_budget=budget_of(kind))):
                    wrong += not right
                    print(kind, type(cluster).__name__, name, "right" if right else "WRONG", f"{seconds:.3f} s", device, flush=True)
        except Exception as error:  # the other kinds are tried all the same
            wrong += 1
            print(kind, "FAILED", type(error).__name__, error, flush=True)
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:] or list(KINDS)))
