"""Clusters that the contracts of computations share with the tests of clusters."""

from __future__ import annotations

from tests.cluster.conftest import thread_cluster, threads_client

__all__ = ["thread_cluster", "threads_client"]
