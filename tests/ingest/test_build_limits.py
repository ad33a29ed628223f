"""What a build does at its limits: of memory, of disk, and of its own life."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import oocgraph
from oocgraph import memory
from oocgraph.errors import BudgetError, InputError, OocGraphError, OutputError, StoreError
from oocgraph.ingest import build_job, read_edges, rows, vertex_arrays
from oocgraph.ingest.build import build_csr, build_with_report, load_build
from oocgraph.ingest.build_job import BuildOptions
from oocgraph.store.check import check_store
from oocgraph.store.graph import open_graph
from tests import every_knob
from tests.capped import run_capped
from tests.ingest.helpers_build import ArraySource, assert_same_store
from tests.processes import open_files, program

CAPPED_EDGES = int(os.environ.get("OOCGRAPH_CAPPED_EDGES", "1000000"))
"""Edges of the capped tests of ids; run with 50000000 before a release (ten minutes)."""

CAPPED_BYTES = 600 << 20 if CAPPED_EDGES > 10_000_000 else 420 << 20


def remains(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".oocgraph-building"))


def random_source(num_edges=20_000, seed=0):
    return ArraySource(*np.random.default_rng(seed).integers(0, 3000, (2, num_edges)), num_streams=4)


@pytest.mark.usefixtures("steady_memory")
def test_budget_too_small_is_refused_with_the_numbers_and_a_remedy(tmp_path):
    """Before anything is written; the budget that the message names then works."""
    with pytest.raises(BudgetError, match=r"memory budget is 100\.0 MiB; .*set memory_budget to at least (\d+)M") as refused:
        every_knob.build(random_source(), tmp_path / "g", memory_budget="100M", threads=2)
    assert list(tmp_path.iterdir()) == []
    enough = int(str(refused.value).split("at least ")[1].split("M")[0])
    every_knob.build(random_source(), tmp_path / "g", memory_budget=f"{enough}M", threads=2)


class FailingSource(ArraySource):
    """Fails in the middle of its second stream."""

    def _blocks(self, start, stop, block_rows):
        for block in super()._blocks(start, stop, min(block_rows, 500)):
            if block.first_row > len(self.source) // 2:
                raise self.error
            yield block


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "Input/output error"), OocGraphError("bad row")])
def test_failure_leaves_nothing_behind(tmp_path, error):
    """Whatever is raised while reading, neither a store nor temporary files remain, and an old store is untouched.

    What the operating system says while the input is read is told of the input.
    """
    old = build_csr(random_source(), tmp_path / "g")
    source = FailingSource(*np.random.default_rng(1).integers(0, 3000, (2, 20_000)))
    source.error = error
    with pytest.raises(InputError if isinstance(error, OSError) else type(error)) as failed:
        build_csr(source, tmp_path / "g", overwrite=True)
    assert str(tmp_path / "g") not in str(failed.value)
    assert remains(tmp_path) == []
    assert open_graph(tmp_path / "g").num_edges == old.num_edges


def test_full_disk_is_an_output_error(tmp_path):
    """A file that may not grow further ends the build with one message and no remains (as a full disk does)."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
    try:
        with pytest.raises(OutputError, match="cannot write"):
            build_csr(random_source(), tmp_path / "g")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_full_file_system_says_so(tmp_path):
    """On a real file system of 1 MiB the message is that the disk is full."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", small], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a file system here: {mounted.stderr.decode().strip()}")
    try:
        with pytest.raises(OutputError, match="disk is full"):
            build_csr(random_source(400_000), small / "g")
        assert list(small.iterdir()) == []
        assert open_files(small) == []
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)  # a process that is just begun may have what was open for a moment


KILLED = """
import sys, time
from oocgraph import Resources, build_csr
from tests.ingest.test_build_limits import random_source

def stop(phase, done, total):
    if phase == sys.argv[2] and done:
        print("there", flush=True)
        time.sleep(600)

build_csr(random_source(), sys.argv[1], resources=Resources(threads=2), progress=stop)
"""


@pytest.mark.parametrize("phase", ["read edges", "write out"])
def test_killed_build_leaves_no_store_and_the_next_one_cleans(tmp_path, phase):
    """SIGKILL: nothing opens, and the next build there removes what was left."""
    path = tmp_path / "g"
    with program([sys.executable, "-c", KILLED, path, phase], stdout=subprocess.PIPE, cwd=os.getcwd()) as process:
        assert process.stdout.readline() == b"there\n"
        process.kill()
    assert len(remains(tmp_path)) == 1
    with pytest.raises(StoreError):
        open_graph(path)
    build_csr(random_source(), path)
    assert remains(tmp_path) == []
    build_csr(random_source(), tmp_path / "again")
    assert_same_store(path, tmp_path / "again")


MEASURED = """
import json, sys
from dataclasses import asdict
from oocgraph.ingest.build import build_with_report
from oocgraph.ingest.build_job import BuildOptions
path, place, budget, *more = sys.argv[1:]
columns = dict(pair.split("=") for pair in more)
graph, report = build_with_report(path, place, BuildOptions(memory_budget=budget, threads=2, overwrite=True, directed=True, **columns))
print(json.dumps(asdict(report) | graph.attributes.to_json()))
"""


APPENDED = """
import json, sys
from dataclasses import asdict
from oocgraph.ingest.append import append_with_report
from oocgraph.ingest.build_job import BuildOptions
graph, report = append_with_report(sys.argv[2], sys.argv[1], BuildOptions(memory_budget=sys.argv[3], threads=2))
print(json.dumps(asdict(report) | graph.attributes.to_json()))
"""

LONG_NAME = "a long name of a thing, as paths and addresses are, which begins like those of the others: {:x}"


def write_edges(path, num_edges, kind, *, num_ids=2**63 - 1, name="user-{:x}", seed=1):
    """Write random edges in row groups of a million."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    schema = pa.schema([(name, pa.string() if kind == "string" else pa.int64()) for name in ("source", "target")])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for first in range(0, num_edges, 1 << 20):
            ends = rng.integers(0, num_ids, (2, min(1 << 20, num_edges - first)))
            columns = [pa.array(end) for end in ends]
            if kind == "string":
                columns = [pa.array([name.format(value) for value in end.tolist()], pa.string()) for end in ends]
            writer.write_table(pa.table(columns, schema=schema))


@pytest.mark.parametrize("num_ids", [1 << 20, 2**63 - 1])
def test_peak_memory_is_within_the_budget(tmp_path, num_ids):
    """RssAnon + RssShmem of a process that builds three million edges never exceed what it was given."""
    write_edges(tmp_path / "edges.parquet", 3_000_000, "int", num_ids=num_ids)
    command = [sys.executable, "-c", MEASURED, tmp_path / "edges.parquet", tmp_path / "g", "330M"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(ran.stdout)
    assert report["peak_host_bytes"] <= report["memory_budget"] <= 330 << 20
    assert report["num_rows"] == 3_000_000


@pytest.mark.one_in(2)
@pytest.mark.parametrize("order", ["degree", "original"])
def test_rows_without_entries_take_no_memory(tmp_path, order):
    """Six million vertices that no edge leaves are between or behind the rows of one piece: all their starts took 150 MB at once."""
    import pyarrow.parquet as pq

    num_edges = 6_000_000
    place = np.arange(num_edges)
    table = pa.table([place // (num_edges // 4) * (num_edges // 3), place[::-1]], names=["source", "target"])
    pq.write_table(table, tmp_path / "edges.parquet", row_group_size=1 << 20)
    command = [sys.executable, "-c", MEASURED, tmp_path / "edges.parquet", tmp_path / "g", "170M", f"vertex_order={order}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(ran.stdout)
    print(f"peak {report['peak_host_bytes'] >> 20} of {report['memory_budget'] >> 20} MiB")
    assert report["peak_host_bytes"] <= report["memory_budget"]
    graph = open_graph(tmp_path / "g")
    check_store(graph)
    options = BuildOptions(memory_budget="2G", directed=True, vertex_order=order)
    ample, _ = build_with_report(tmp_path / "edges.parquet", tmp_path / "ample", options)
    assert_same_store(graph.url, ample.url)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("length", "num_edges"), [(80, 150_000), (1000, 70_000)])
def test_long_strings_fit_the_least_budget_that_is_named(tmp_path, length, num_edges):
    """What is sampled of them first, too: it took 64 MiB of strings of 1,000 bytes."""
    write_edges(tmp_path / "edges.parquet", num_edges, "string", name="x" * length + "{:x}")
    command = [sys.executable, "-c", MEASURED, tmp_path / "edges.parquet", tmp_path / "g"]
    refused = subprocess.run([*command, "1M"], capture_output=True, text=True, check=False).stderr
    named = refused.rpartition("at least ")[2].split()[0]
    report = json.loads(subprocess.run([*command, named], capture_output=True, text=True, check=True).stdout)
    print(f"peak {report['peak_host_bytes'] >> 20} of {report['memory_budget'] >> 20} MiB")
    assert report["peak_host_bytes"] <= report["memory_budget"] < 250 << 20
    check_store(open_graph(tmp_path / "g"))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("duplicates", ["sum", "keep"])
def test_an_edge_with_a_column_repeated_often_fits_the_least_budget(tmp_path, duplicates):
    """It was refused, with a second budget, after everything had been read."""
    import pyarrow.parquet as pq

    num_edges = 2_000_000
    weights = np.random.default_rng(1).integers(0, 1 << 20, num_edges)
    table = pa.table({"source": np.full(num_edges, 3), "target": np.full(num_edges, 9), "weight": weights})
    pq.write_table(table, tmp_path / "edges.parquet")
    command = [sys.executable, "-m", "oocgraph", "build", tmp_path / "edges.parquet", tmp_path / "g", "--directed", "--json"]
    command += ["--weight-column", "weight", "--duplicates", duplicates, "--memory"]
    refused = subprocess.run([*command, "1M"], capture_output=True, text=True, check=False)
    named = refused.stderr.rpartition("at least ")[2].split()[0]
    report = json.loads(subprocess.run([*command, named], capture_output=True, text=True, check=True).stdout)
    assert report["peak_host_bytes"] <= int(named.split("M")[0]) << 20
    stored = open_graph(tmp_path / "g").read("out/weight")
    assert stored.tolist() == [weights.sum()] if duplicates == "sum" else np.array_equal(stored, np.sort(weights))


@pytest.mark.parametrize("order", ["degree", "original"])
@pytest.mark.parametrize("seed", range(4))
def test_starts_of_rows_that_have_few_entries(tmp_path, monkeypatch, order, seed):
    """However many rows are written at a time, and whether most of them are empty, the store is the same."""
    rng = np.random.default_rng(seed)
    src, dst = rng.choice(rng.integers(0, 2000, 40), 500), rng.permutation(2000)[:500]
    src[:20] = dst[:20]
    options = BuildOptions(directed=True, vertex_order=order, memory_budget="1G")
    expected, _ = build_with_report(ArraySource(src, dst), tmp_path / "expected", options)
    for size in (1, 7, 10_000):
        monkeypatch.setattr(rows, "STARTS_ROWS", size)
        assert_same_store(expected.url, build_with_report(ArraySource(src, dst), tmp_path / str(size), options)[0].url)


def test_readers_of_dictionaries_hold_what_was_promised(tmp_path):
    """Arrow's reader of Parquet uses the allocator that Arrow began with, which kept 8 MB more for each thread than promised."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 1 << 21, 8_000_000) for _ in range(2)]
    table = pa.table([*columns, rng.integers(1, 100, 8_000_000, np.int32)], names=["source", "target", "weight"])
    pq.write_table(table, tmp_path / "edges.parquet", row_group_size=1 << 20)
    command = [sys.executable, "-c", MEASURED, tmp_path / "edges.parquet", tmp_path / "g", "206M", "weight_column=weight", "duplicates=min"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"})
    report = json.loads(ran.stdout)
    assert report["peak_host_bytes"] <= report["memory_budget"]
    print(f"peak {report['peak_host_bytes'] >> 20} of {report['memory_budget'] >> 20} MiB")


@pytest.mark.one_in(2)
@pytest.mark.capped
@pytest.mark.parametrize("shape", ["many columns", "a large dictionary"])
def test_what_readers_hold_of_columns_and_pages_is_charged(tmp_path, shape):
    """A build was killed with the budget that was named, which did not count them."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    columns, num_rows, how = {
        "many columns": (20, 1_000_000, {"row_group_size": 500_000}),
        "a large dictionary": (0, 4_000_000, {"row_group_size": 1 << 22, "dictionary_pagesize_limit": 1 << 30, "compression": "zstd"}),
    }[shape]
    names = ["source", "target", *(f"c{i}" for i in range(columns))]
    table = pa.table([*(rng.integers(0, 1 << 40, num_rows) for _ in range(2)), *(rng.random((columns, num_rows)))], names=names)
    pq.write_table(table, tmp_path / "edges.parquet", **how)
    command = [sys.executable, "-m", "oocgraph", "build", tmp_path / "edges.parquet", tmp_path / "g", "--directed", "--json", "--memory"]
    chosen = [word for name in names[2:] for word in ("--edge-column", name)]
    refused = subprocess.run([*command, "1M", *chosen], capture_output=True, text=True, check=False)
    named = int(refused.stderr.rpartition("at least ")[2].split("M")[0])
    ran = run_capped(int((named << 20) / 0.85), [*command, f"{named}M", *chosen])
    assert ran.returncode == 0, ran.stderr[-2000:]
    peak = json.loads(ran.stdout)["peak_host_bytes"]
    assert peak <= named << 20
    print(f"{shape}: peak {peak >> 20} of {named} MiB")


@pytest.mark.one_in(2)
@pytest.mark.capped
@pytest.mark.parametrize("kind", ["int", "string"])
def test_ids_are_found_on_disk_under_a_memory_cap(tmp_path, kind):
    """Random 64-bit ids and strings, nearly all distinct, build in a control group that counts page cache too."""
    write_edges(tmp_path / "edges.parquet", CAPPED_EDGES, kind)
    command = [sys.executable, "-c", MEASURED, tmp_path / "edges.parquet", tmp_path / "g", str(CAPPED_BYTES)]
    began = time.perf_counter()
    ran = run_capped(CAPPED_BYTES, command, timeout=3000)
    assert ran.returncode == 0, ran.stderr[-2000:]
    report = json.loads(ran.stdout)
    assert report["peak_host_bytes"] <= report["memory_budget"] < CAPPED_BYTES
    assert report["num_edges"] == CAPPED_EDGES
    assert report["num_input_vertices"] == 2 * CAPPED_EDGES
    print(f"{kind}: {time.perf_counter() - began:.1f} s, peak {report['peak_host_bytes'] >> 20} MiB")


@pytest.mark.capped
def test_long_strings_hold_what_was_promised(tmp_path):
    """Ids of 100 bytes, of which a block of vertices would be a quarter of the budget; more are appended to the store."""
    write_edges(tmp_path / "edges.parquet", 600_000, "string", name=LONG_NAME)
    write_edges(tmp_path / "more.parquet", 10_000, "string", name=LONG_NAME, seed=2)
    for source, code, budget in (("edges", MEASURED, 215 << 20), ("more", APPENDED, 255 << 20)):
        ran = run_capped(int(budget * 1.18), [sys.executable, "-c", code, tmp_path / f"{source}.parquet", tmp_path / "g", str(budget)])
        assert ran.returncode == 0, ran.stderr[-2000:]
        report = json.loads(ran.stdout)
        assert report["peak_host_bytes"] <= report["memory_budget"] == budget
    assert report["num_input_vertices"] == 2 * 610_000


def long_ids(path, *, is_sorted):
    """Write edges among ids of 3,000 bytes, which lie together, and short ones: last, or anywhere."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(5)
    names = pa.array([*(f"n{i}" for i in range(60_000)), *(f"data:{i:06d}" + "x" * 3000 for i in range(6000))], pa.large_string())
    ends = [np.append(rng.integers(0, 60_000, 200_000), 60_000 + rng.permutation(6000)) for _ in range(2)]
    order = np.arange(206_000) if is_sorted else rng.permutation(206_000)
    pq.write_table(pa.table([names.take(pa.array(end[order])) for end in ends], names=["source", "target"]), path)


def one_page(path):
    """Write edges among short ids and, at the end, ids of 200,000 bytes, all sources in one page, and all targets."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(7)
    names = pa.array([*(f"n{i}" for i in range(1800)), *(f"{i:06d}" + "x" * 200_000 for i in range(200))], pa.large_string())
    ends = [np.sort(rng.integers(0, 2000, 4000)) for _ in range(2)]
    pq.write_table(pa.table([names.take(pa.array(end)) for end in ends], names=["source", "target"]), path, use_dictionary=False)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("num_bytes", [1, 4000, 100_000])
def test_bins_of_more_text_than_fits_are_dealt_again(tmp_path, monkeypatch, num_bytes):
    """The store is the same."""
    long_ids(tmp_path / "edges.parquet", is_sorted=False)
    expected, _ = build_with_report(tmp_path / "edges.parquet", tmp_path / "expected", BuildOptions(memory_budget="4G"))
    monkeypatch.setattr(vertex_arrays, "BIN_TEXTS", num_bytes / build_job.LEAST_TEXT_BYTES)
    found, _ = build_with_report(tmp_path / "edges.parquet", tmp_path / "g", BuildOptions(memory_budget=memory.host_bytes() + (160 << 20)))
    check_store(found)
    assert_same_store(expected.url, found.url)


@pytest.mark.one_in(3)
@pytest.mark.capped
@pytest.mark.parametrize("allocator", ["mimalloc", "system"])
@pytest.mark.parametrize("ids", ["last", "mixed", "a page"])
def test_few_long_ids_among_short_ones_hold_what_was_promised(tmp_path, ids, allocator):
    """Blocks of vertices and of edges had as many ids as of average length: a build was killed with the budget that was named.

    Later, pages were taken to be as large as the first ones, and Arrow's allocator kept what was freed.
    """
    if ids == "a page":
        one_page(tmp_path / "edges.parquet")
    else:
        long_ids(tmp_path / "edges.parquet", is_sorted=ids == "last")
    command = [sys.executable, "-m", "oocgraph", "build", tmp_path / "edges.parquet", tmp_path / "g", "--json", "--memory"]
    env = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": allocator}
    refused = subprocess.run([*command, "1M"], capture_output=True, text=True, check=False, env=env)
    named = int(refused.stderr.rpartition("at least ")[2].split("M")[0])
    ran = run_capped(int((named << 20) / 0.85), [*command, f"{named}M"], env=env)
    assert ran.returncode == 0, ran.stderr[-2000:]
    peak = json.loads(ran.stdout)["peak_host_bytes"]
    assert peak <= named << 20
    print(f"{ids}, {allocator}: peak {peak >> 20} of {named} MiB")


def test_report_says_when_vertex_arrays_stay_on_disk(tmp_path, monkeypatch):
    """vertex_bytes is what was held, 0 when nothing was."""
    monkeypatch.setattr(build_job, "VERTEX_SHARE", 0.0)
    _, report = build_with_report(random_source(), tmp_path / "g", build_job.BuildOptions(memory_budget="4G"))
    assert report.vertex_bytes == 0


@pytest.mark.parametrize("codec", ["zstd", "blosc"])
def test_compressed_chunk_of_zeros_is_a_real_one(tmp_path, codec):
    """A triangle: every vertex has the same degree, so the first vertex of each degree is 0 and nothing else."""
    store = every_knob.build((np.array([0, 1, 2]), np.array([1, 2, 0])), tmp_path / "g", codec=codec)
    check_store(store)
    assert store.read("out/degrees/first_vertex").tolist() == [0]


@pytest.mark.parametrize(("option", "value"), [("duplicates", "maximum"), ("vertex_order", "foo"), ("codec", "gzip"), ("codec", None)])
def test_unknown_options_are_refused_before_anything_is_written(tmp_path, option, value):
    with pytest.raises(OocGraphError, match=rf"{option} is {value!r}; it must be one of"):
        every_knob.build((np.array([0]), np.array([1])), tmp_path / "g", **{option: value})
    assert not list(tmp_path.iterdir())


def test_url_is_no_place_to_build(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match=r"https://bucket/g\.zarr.*local file systems only"):
        build_csr((np.array([0]), np.array([1])), "https://bucket/g.zarr")
    assert not list(tmp_path.iterdir())


WITHOUT_PANDAS = """
import sys
import oocgraph
from oocgraph.store import publish

publish.sync_tree = publish.sync_folder = lambda _: None  # as of tests in this process

class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise AssertionError("pandas is imported")

sys.meta_path.insert(0, Refusal())
source, place, *columns = sys.argv[1:]
store = oocgraph.build_csr(source, place, columns=columns or None)
for _ in range(2 - bool(columns)):
    store = oocgraph.append_edges(place, source, columns=columns or None)
print(store.num_edges, "pandas" in sys.modules)
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["integers.tsv", "strings.tsv", "integers.parquet", "strings.parquet"])
def test_no_build_waits_for_pandas(tmp_path, kind):
    """Arrow imports it, where it is installed, to exchange arrays with NumPy: 0.15 s, and 30 MB that no budget knows of."""
    import pyarrow.parquet as pq

    names, columns = [f"{'v' if kind.startswith('strings') else ''}{i}" for i in range(40)], []
    path = tmp_path / kind
    if kind.endswith(".tsv"):
        path.write_text("".join(f"{u}\t{v}\n" for u, v in pairwise(names)))
    else:
        ends = names if kind.startswith("strings") else [int(name) for name in names]
        columns = ["source", "target", "score", "is_new", "kind"]
        beside = [[None, 0.5] * 20, [True, False] * 20, ["a", "b", "b", "c"] * 10]
        pq.write_table(pa.table(dict(zip(columns, [ends, ends[1:] + ends[:1], *beside], strict=True))), path)
    command = [sys.executable, "-c", WITHOUT_PANDAS, path, tmp_path / "g", *columns]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == (f"{39 + bool(columns)} False\n", 0), ran.stderr[-2000:]


@pytest.fixture
def many_columns(tmp_path):
    """Write an edge list with text of its own in each row, and return its path."""
    rng, n = np.random.default_rng(3), 120_000
    lines = zip(*rng.integers(0, 9999, (2, n)).tolist(), rng.random(n).tolist(), [f"name {i}" for i in range(n)], strict=True)
    path = tmp_path / "edges.csv"
    path.write_text("source,target,w,name\n" + "".join(f"{s},{t},{w},{name}\n" for s, t, w, name in lines))
    return path


@pytest.mark.one_in(3)
@pytest.mark.capped
@pytest.mark.parametrize("columns", [["source", "target"], ["source", "target", "w"], ["source", "target", "name"]])
def test_a_refused_build_in_memory_names_a_budget_that_works(many_columns, columns):
    """It named one for what was read until then, a dozen times, and readers of files were not counted: the process was killed."""
    code = f"import sys, oocgraph; oocgraph.build_csr({str(many_columns)!r}, columns={columns}, memory_budget=sys.argv[1], progress=False)"
    load_build("none")
    oocgraph.build_csr(([0], [1]))
    budget, refusals = 64, 0
    while (ran := run_capped(int((budget << 20) / 0.85), [sys.executable, "-c", code, f"{budget}M"])).returncode:
        assert "BudgetError" in ran.stderr, ran.stderr
        budget, refusals = int(ran.stderr.rpartition("at least ")[2].split("M")[0]), refusals + 1
        assert refusals <= 1 + ("name" in columns)  # how long strings are is known once some are read


@pytest.mark.parametrize("num_rows", [120_000, None])
def test_refused_categories_name_a_budget(tmp_path, many_columns, monkeypatch, num_rows):
    """For as many in the rest of the rows; with it the build is not refused."""
    monkeypatch.setattr(read_edges, "CATEGORY_SHARE", 0.02)
    columns = ["source", "target", "name"]
    source = pd.read_csv(many_columns) if num_rows else many_columns
    budget = memory.host_bytes() + (200 << 20)
    with pytest.raises(BudgetError, match=r"'name' has [\d,]+ distinct strings in [\d,]+ rows, .* at least \d+M, if the others") as refused:
        build_csr(source, tmp_path / "g", columns=columns, memory_budget=budget)
    named = int(str(refused.value).rpartition("at least ")[2].split("M")[0])
    assert named << 20 > budget
    assert build_csr(source, tmp_path / "g", columns=columns, memory_budget=f"{named}M").num_edges > 100_000
