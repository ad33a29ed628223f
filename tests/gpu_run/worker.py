"""A search on a Dask worker that has a GPU, of dask-cuda's cluster where that is installed: ``python -m tests.gpu_run.worker STORE``."""

from __future__ import annotations

import sys

from distributed import Client, LocalCluster

import oocgraph
from oocgraph import Resources


def search(url, cluster, **options):
    """Search on a cluster; return a valid result."""
    with Client(cluster, set_as_default=False) as client:
        found = oocgraph.bfs(url, 3, client=client, **options)
        oocgraph.verify_bfs(url, found)
        return found


if __name__ == "__main__":
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError:
        made = LocalCluster(n_workers=1, threads_per_worker=8, dashboard_address=":0")
    else:
        made = LocalCUDACluster(dashboard_address=":0")
    with made as cluster:
        found = search(sys.argv[1], cluster, resources=Resources(device="cuda"))
        print(type(cluster).__name__, found.device, found.seconds, "s")
