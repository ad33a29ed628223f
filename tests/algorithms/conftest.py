"""Clusters, as the tests of the runtime have them."""

from tests.cluster.conftest import client, process_cluster, thread_cluster, threads_client

__all__ = ["client", "process_cluster", "thread_cluster", "threads_client"]
