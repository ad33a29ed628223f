"""``oocgraph bench objects``: what it counts is what goes over the wire."""

from __future__ import annotations

import urllib.request

import dask.config
import fsspec
import pytest

from oocgraph import generate_kronecker
from oocgraph.bench.objects import bench_objects
from oocgraph.errors import ArgumentError
from oocgraph.types import ignore_progress
from tests.store.objects import options_of, s3_server

pytest.importorskip("s3fs")
pytest.importorskip("moto")


def test_requests_and_bytes_are_counted(tmp_path):
    graph = generate_kronecker(10, tmp_path / "g.zarr")
    with s3_server() as address, dask.config.set({"oocgraph.storage-options": options_of(address)}):
        urllib.request.urlopen(urllib.request.Request(f"{address}/bucket", method="PUT")).close()
        fsspec.filesystem("s3", **options_of(address)).put(graph.url, "s3://bucket/g.zarr", recursive=True)
        report = bench_objects("s3://bucket/g.zarr", delay_seconds=0.01, num_sources=2, seed=1, progress=ignore_progress)
    found = report.metrics
    assert report.invalid == ()
    assert found["search_median_requests"] <= 12
    assert found["cat_ranges_median_edge_share"] == 1
    assert found["search_median_edge_share"] > 1
    assert found["search_median_seconds"] > 3 * 0.01


def test_a_server_must_be_named():
    with dask.config.set({"oocgraph.storage-options": None}), pytest.raises(ArgumentError, match="endpoint_url"):
        bench_objects("s3://bucket/g.zarr", delay_seconds=0, num_sources=1, seed=1, progress=ignore_progress)
