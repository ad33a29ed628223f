"""Graphs and outputs in an object store: a real server of S3's protocol, and a proxy that counts requests and breaks answers."""

from __future__ import annotations

import urllib.request
import uuid

import dask.config
import numpy as np
import pandas as pd
import pytest
import zarr

from oocgraph import bfs, build_csr, generate_kronecker, generate_uniform, open_graph
from oocgraph.config import settings
from oocgraph.engine import windows
from oocgraph.engine.local import LocalRuntime
from oocgraph.errors import OutputError, OutputExistsError, StoreError, StoreNotFoundError
from oocgraph.memory import Budget, host_bytes
from oocgraph.store.check import check_store
from oocgraph.store.vertices import VertexIds
from tests.processes import searched_again
from tests.store.objects import BreakingProxy, options_of, s3_server

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("s3fs")
pytest.importorskip("moto")


@pytest.fixture(scope="module")
def server():
    with s3_server() as address:
        urllib.request.urlopen(urllib.request.Request(f"{address}/bucket", method="PUT")).close()
        yield address


@pytest.fixture
def proxy(server):
    with BreakingProxy(server, 0.0) as proxy:
        yield proxy


@pytest.fixture
def options(proxy):
    """Options of the file system, which are those of the settings too."""
    options = options_of(proxy.address)
    with dask.config.set({"oocgraph.storage-options": options}):
        yield options


@pytest.fixture
def impatient():
    """Wait for answers that do not come for six seconds: not in other tests, whose server may be slow."""
    with dask.config.set({"oocgraph.storage-timeout": "6s"}):
        yield


def uploaded(graph, options):
    url = f"s3://bucket/{uuid.uuid4().hex}.zarr"
    fsspec.filesystem("s3", **options).put(graph.url, url, recursive=True)
    return url


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return generate_kronecker(12, tmp_path_factory.mktemp("kron") / "g.zarr")


def test_a_search_takes_a_dozen_requests_most_of_them_at_once(kron, proxy, options):
    url = uploaded(kron, options)
    expected = bfs(kron, 1).level
    proxy.reset()
    proxy.delay_seconds = 0.05  # so that requests that are made together are under way together
    found = bfs(open_graph(url), 1)
    traffic = proxy.reset()
    np.testing.assert_array_equal(found.level, expected)
    assert len(traffic.requests) <= 12
    assert len(set(traffic.requests)) == len(traffic.requests)
    assert {request.split()[0] for request in traffic.requests} == {"GET"}
    assert traffic.most_in_flight >= 4


def test_small_files_and_metadata_are_fetched_once(kron, proxy, options):
    graph = open_graph(uploaded(kron, options))
    bfs(graph, 1)
    proxy.reset()
    bfs(graph, 2)
    again = proxy.reset().requests
    assert not [request for request in again if "zarr.json" in request or "degrees" in request or "order" in request]


def test_a_store_without_consolidated_metadata_is_read_too(kron, tmp_path, proxy, options):
    import json
    import shutil

    old = shutil.copytree(kron.url, tmp_path / "old.zarr")
    root = json.loads((old / "zarr.json").read_text())
    del root["consolidated_metadata"]
    (old / "zarr.json").write_text(json.dumps(root))
    graph = open_graph(uploaded(open_graph(old), options))
    np.testing.assert_array_equal(bfs(graph, 1).level, bfs(kron, 1).level)
    proxy.reset()
    bfs(graph, 1)
    assert not [request for request in proxy.reset().requests if "zarr.json" in request]


def test_edges_that_do_not_fit_come_in_many_requests_at_once(tmp_path, proxy, options, monkeypatch):
    """Few edges are read twice: those of the rows that a push takes, and between them."""
    monkeypatch.setattr(windows, "WINDOW_BYTES", 1 << 15)
    monkeypatch.setattr(windows, "GAP_BYTES", 1 << 12)
    graph = generate_uniform(14, tmp_path / "u.zarr", edge_factor=32)
    remote = open_graph(uploaded(graph, options))
    expected = bfs(graph, 0).level
    proxy.delay_seconds = 0.03
    part, number = cut_runtime(remote, monkeypatch), VertexIds(remote).vertices_of([0])
    proxy.reset()
    found = part.search(number)
    traffic = proxy.reset()
    part.close()
    assert traffic.most_in_flight >= 16
    assert remote.edge_bytes <= traffic.body_bytes < 1.6 * remote.edge_bytes
    assert sorted(np.asarray(found.level)[np.asarray(found.level) < 255].tolist()) == sorted(expected.tolist())


def test_a_budget_that_was_enough_is_enough_again(tmp_path, proxy, options):
    """What the thread that fetches has freed is given back before the next search."""
    graph = generate_uniform(16, tmp_path / "u.zarr", edge_factor=64)
    assert set(searched_again(uploaded(graph, options), options)) == {str(graph.num_vertices)}


def cut_runtime(store, monkeypatch):
    from dataclasses import replace

    from oocgraph.engine import shard_plan

    original = shard_plan.plan_residency
    monkeypatch.setattr(
        shard_plan, "plan_residency", lambda sizes, **options: replace(original(sizes, **options), num_planes=0, num_resident=(0,))
    )
    return LocalRuntime(store, Budget(host_bytes() + (64 << 20)), threads=2, io_threads=32, max_planes=None, knobs=settings())


def test_built_at_a_url_it_is_the_same_store(tmp_path, proxy, options):
    rng = np.random.default_rng(1)
    edges = {"source": rng.integers(0, 500, 3000), "target": rng.integers(0, 500, 3000), "weight": rng.random(3000)}
    local = build_csr(pd.DataFrame(edges), tmp_path / "g.zarr", weight="weight", directed=True)
    url = f"s3://bucket/{uuid.uuid4().hex}/built.zarr"
    remote = build_csr(pd.DataFrame(edges), url, weight="weight", directed=True)
    writes = [request for request in proxy.reset().requests if request.startswith("PUT")]
    assert "built.zarr/zarr.json" in writes[-1]
    files = fsspec.filesystem("s3", **options)
    names = {file.relative_to(local.url).as_posix() for file in (tmp_path / "g.zarr").rglob("*") if file.is_file()}
    assert names == {name.split("built.zarr/")[1] for name in files.find(url)}
    assert all(files.cat_file(f"{url}/{name}") == (tmp_path / "g.zarr" / name).read_bytes() for name in names)
    check_store(remote)


def test_a_graph_is_built_from_parquet_at_a_url(proxy, options):
    url = f"s3://bucket/{uuid.uuid4().hex}.parquet"
    pd.DataFrame({"source": [0, 1], "target": [1, 2]}).to_parquet(url, storage_options=options)
    assert build_csr(url).num_edges == 2


@pytest.mark.parametrize("extension", ["zarr", "parquet", "csv"])
def test_results_are_written_to_urls(kron, proxy, options, extension):
    url = f"s3://bucket/{uuid.uuid4().hex}.{extension}"
    result = bfs(kron, 1)
    result.write(url)
    if extension == "zarr":
        found = zarr.open_group(url, mode="r", storage_options=options)["level"][:]
    else:
        read = pd.read_parquet if extension == "parquet" else pd.read_csv
        found = read(url, storage_options=options)["level"]
    np.testing.assert_array_equal(found, result.level)
    with pytest.raises(OutputExistsError, match="overwrite"):
        result.write(url)
    result.write(url, overwrite=True)


def test_only_an_output_of_the_same_kind_is_replaced(kron, proxy, options):
    url = f"s3://bucket/{uuid.uuid4().hex}.zarr"
    bfs(kron, 1).write(url)
    with pytest.raises(OutputError, match="another kind"):
        build_csr(([0], [1]), url, overwrite=True)


def test_a_replaced_store_keeps_nothing_of_the_old_one(proxy, options):
    url = f"s3://bucket/{uuid.uuid4().hex}.zarr"
    build_csr(([0, 1], [1, 2]), url, directed=True)
    graph = build_csr(([0, 1], [1, 2]), url, overwrite=True)
    assert not [name for name in fsspec.filesystem("s3", **options).find(url) if f"{url[5:]}/in/" in name]
    check_store(graph)


def test_an_upload_that_breaks_leaves_no_store(proxy, options, impatient):
    url = f"s3://bucket/{uuid.uuid4().hex}.zarr"
    proxy.silent = "/out/indices/c/0"
    with pytest.raises(OutputError, match="cannot be uploaded"):
        build_csr(([0, 1], [1, 2]), url)
    proxy.silent = ""
    with pytest.raises(StoreNotFoundError):
        open_graph(url)
    assert not fsspec.filesystem("s3", **options).find(url)


@pytest.mark.parametrize("how", ["silent", "cut"])
def test_a_server_that_breaks_off_is_one_error(kron, proxy, options, impatient, how):
    graph = open_graph(uploaded(kron, options))
    setattr(proxy, how, "out/indices/c/0")
    with pytest.raises(StoreError, match="out of reach") as raised:
        bfs(graph, 1)
    assert "credentials" in str(raised.value)


def test_a_bucket_that_is_not_there(proxy, options):
    with pytest.raises(StoreNotFoundError, match=r"s3://nothing/g\.zarr.*check the URL, bucket"):
        open_graph("s3://nothing/g.zarr")
    with pytest.raises(OutputError, match=r"s3://nothing/g\.zarr.*bucket does not exist"):
        build_csr(([0], [1]), "s3://nothing/g.zarr")


def test_no_credentials(proxy, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    nothing = {"client_kwargs": options_of(proxy.address)["client_kwargs"]}
    with pytest.raises(StoreError, match=r"Unable to locate credentials.*storage_options"):
        open_graph("s3://bucket/g.zarr", storage_options=nothing)
    with (
        dask.config.set({"oocgraph.storage-options": nothing}),
        pytest.raises(OutputError, match=r"Unable to locate credentials.*storage-options"),
    ):
        build_csr(([0], [1]), "s3://bucket/g.zarr")


def test_partitions_and_result_stores_are_refused_before_any_work(kron, proxy, options):
    from oocgraph import partition_graph

    with pytest.raises(OutputError, match="local file systems only"):
        partition_graph(kron, 2, policy="EEC", path="s3://bucket/parts.zarr")
