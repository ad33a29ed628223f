import errno
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oocgraph import Resources
from oocgraph.errors import BudgetError, OocGraphError, OutputError
from oocgraph.export import edge_tables, ordered_rows, text
from oocgraph.export.files import export_graph
from oocgraph.ingest.build import build_csr
from oocgraph.store import scipy as store_scipy
from oocgraph.store.graph import open_graph
from oocgraph.store.vertices import VertexIds
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite, string_store, strings


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several temporary files, blocks that cut rows, several row groups."""
    monkeypatch.setattr(ordered_rows, "BIN_ENTRIES", 150)
    monkeypatch.setattr(ordered_rows, "BLOCK_ENTRIES", 97)
    monkeypatch.setattr(ordered_rows, "_SAMPLE", 16)
    monkeypatch.setattr(edge_tables, "BLOCK_ENTRIES", 101)
    monkeypatch.setattr(text, "BLOCK_ENTRIES", 103)
    monkeypatch.setattr(store_scipy, "BLOCK_ENTRIES", 89)


def read_sg(path):
    """Directed?, and a CSR for each group."""
    raw = path.read_bytes()
    directed = bool(raw[0])
    num_entries, num_rows = np.frombuffer(raw, "<i8", 2, 1).tolist()
    at, groups = 17, []
    for _ in range(2 if directed else 1):
        offsets = np.frombuffer(raw, "<i8", num_rows + 1, at)
        at += offsets.nbytes
        neighbours = np.frombuffer(raw, "<i4", num_entries, at)
        at += neighbours.nbytes
        groups.append((offsets, neighbours))
    assert at == len(raw)
    return directed, groups


def plain_csr(src, dst, ids, *, directed, loops, keep):
    """Make the matrix as a page of SciPy: rows and columns by position among `ids`."""
    u, v = np.searchsorted(ids, src), np.searchsorted(ids, dst)
    if not loops:
        u, v = u[u != v], v[u != v]
    if not directed:
        other = u != v
        u, v = np.concatenate([u, v[other]]), np.concatenate([v, u[other]])
    pairs = np.stack([u, v], 1)
    pairs = pairs[np.lexsort((v, u))] if keep else np.unique(pairs, axis=0)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=ids.size))])
    return indptr, pairs[:, 1]


VARIANTS = [
    {"directed": directed, "keep_self_loops": loops, "duplicates": "keep" if loops else "drop", "implied": implied, "vertex_order": order}
    for directed in (False, True)
    for loops in (False, True)
    for implied in (None, (0, 230))
    for order in ("degree", "original")
]


@pytest.fixture(params=VARIANTS, ids=lambda one: "-".join(str(value) for value in one.values()))
def case(request, tmp_path):
    """Build a store; return it with its edges as SciPy would order them."""
    src, dst = random_edges(11)
    options = request.param
    if options["implied"] is None:
        src, dst = src * 10**14 - 5, dst * 10**14 - 5
    reference_build(src, dst, tmp_path / "g.zarr", **options)
    ids = np.unique(np.concatenate([src, dst])) if options["implied"] is None else np.arange(*options["implied"])
    wanted = plain_csr(src, dst, ids, directed=options["directed"], loops=options["keep_self_loops"], keep=options["keep_self_loops"])
    return open_graph(tmp_path / "g.zarr"), ids, wanted


def test_sg_in_input_order(case, tmp_path):
    """GAPBS's file: isolated vertices included, neighbours ascending, the in-lists behind when directed."""
    store, ids, (indptr, indices) = case
    report = export_graph(store, tmp_path / "g.sg")
    directed, groups = read_sg(tmp_path / "g.sg")
    assert directed == store.attributes.directed
    np.testing.assert_array_equal(groups[0][0], indptr)
    np.testing.assert_array_equal(groups[0][1], indices)
    assert (report.num_vertices, report.num_edges, report.file_bytes) == (ids.size, store.num_edges, (tmp_path / "g.sg").stat().st_size)
    if directed:
        transposed = sp.csr_array((np.ones(indices.size), indices, indptr), shape=(ids.size,) * 2).tocsc()
        transposed.sort_indices()
        np.testing.assert_array_equal(groups[1][0], transposed.indptr)
        np.testing.assert_array_equal(groups[1][1], transposed.indices)


def test_sg_in_store_order(case, tmp_path):
    """The store's own arrays: by degree, isolated vertices left out."""
    store, _, _ = case
    assert export_graph(store, tmp_path / "g.sg", order="store").num_vertices == store.num_rows
    directed, groups = read_sg(tmp_path / "g.sg")
    for group, (offsets, neighbours) in zip(("out", "in") if directed else ("out",), groups, strict=True):
        np.testing.assert_array_equal(offsets, store.read(f"{group}/indptr"))
        np.testing.assert_array_equal(neighbours, store.read(f"{group}/indices"))


@pytest.mark.parametrize("extension", [".npz", ".wsg"])
def test_parallel_edges_have_one_order_wherever_blocks_are_cut(tmp_path, monkeypatch, extension):
    """Their values ascend, as they are stored: threads deal blocks to temporary files in any order."""
    rng = np.random.default_rng(3)
    edges = (*rng.integers(0, 9, (2, 700)), rng.integers(0, 1000, 700))
    graph = build_csr(edges, tmp_path / "g.zarr", duplicates="keep")
    found = []
    for entries in (1, 97, 1 << 20):
        monkeypatch.setattr(ordered_rows, "BLOCK_ENTRIES", entries)
        export_graph(graph, tmp_path / f"{entries}{extension}", resources=Resources(threads=4))
        if extension == ".npz":
            matrix = sp.load_npz(tmp_path / f"{entries}.npz")
            np.testing.assert_array_equal(matrix.data, graph.to_scipy().data)
        found.append((tmp_path / f"{entries}{extension}").read_bytes() if extension == ".wsg" else matrix.data.tobytes())
    assert found[0] == found[1] == found[2]


def test_npz_and_to_scipy(case, tmp_path):
    """`scipy.sparse.load_npz` reads it; the matrix in memory is the same."""
    store, ids, (indptr, indices) = case
    export_graph(store, tmp_path / "g.npz")
    for matrix in (sp.load_npz(tmp_path / "g.npz"), store.to_scipy()):
        assert isinstance(matrix, sp.csr_array)
        assert matrix.shape == (ids.size, ids.size)
        np.testing.assert_array_equal(matrix.indptr, indptr)
        np.testing.assert_array_equal(matrix.indices, indices)
        assert matrix.data.dtype == np.float32
        assert (matrix.data == 1).all()


def test_parquet_holds_each_edge_once(case, tmp_path):
    """Under the user's ids; either end of an undirected edge may come first."""
    store, ids, (indptr, indices) = case
    export_graph(store, tmp_path / "g.parquet")
    table = pq.read_table(tmp_path / "g.parquet")
    found = np.stack([table["source"].to_numpy(), table["target"].to_numpy()], 1)
    wanted = np.stack([ids[np.repeat(np.arange(ids.size), np.diff(indptr))], ids[indices]], 1)
    if not store.attributes.directed:
        found.sort(axis=1)
        wanted = wanted[wanted[:, 0] <= wanted[:, 1]]
    np.testing.assert_array_equal(found[np.lexsort(found.T)], wanted[np.lexsort(wanted.T)])
    assert len(found) == store.num_edges


@pytest.fixture
def weighted(tmp_path):
    """Build a directed graph whose weight and text column follow from the ends of each edge."""
    src, dst = random_edges(12)
    reference_build(src, dst, tmp_path / "g.zarr", directed=True, implied=(0, 220))
    store = open_graph(tmp_path / "g.zarr")
    ids = VertexIds(store).ids_of(np.arange(store.num_rows))
    u, v = ids[np.repeat(np.arange(ids.size), np.diff(store.read("out/indptr")))], ids[store.read("out/indices")]
    arrays = {"out/weight": u * 1000.0 + v, "out/kind": ((u + v) % 3).astype(np.int32), **strings("columns/kind", ["", "é", "long"])}
    columns = {"weight": "float64", "kind": "string"}
    return rewrite(store.url, tmp_path / "w.zarr", arrays=arrays, weighted=True, columns=columns)


def test_columns_travel_with_their_edges(weighted, tmp_path):
    """Weights and text in Parquet; weights as values in matrices."""
    export_graph(weighted, tmp_path / "g.parquet")
    table = pq.read_table(tmp_path / "g.parquet")
    source, target = table["source"].to_numpy(), table["target"].to_numpy()
    np.testing.assert_array_equal(table["weight"].to_numpy(), source * 1000.0 + target)
    assert table["kind"].to_pylist() == [["", "é", "long"][kind] for kind in (source + target) % 3]
    export_graph(weighted, tmp_path / "g.npz")
    for matrix in (sp.load_npz(tmp_path / "g.npz"), weighted.to_scipy(weight="weight")):
        rows = np.repeat(np.arange(220), np.diff(matrix.indptr))
        np.testing.assert_array_equal(matrix.data, rows * 1000.0 + matrix.indices)
        assert matrix.nnz == weighted.num_edges
    export_graph(weighted, tmp_path / "store.npz", order="store")
    np.testing.assert_array_equal(sp.load_npz(tmp_path / "store.npz").data, weighted.read("out/weight"))


def test_a_column_that_is_no_weight_is_refused(weighted, tmp_path):
    with pytest.raises(OocGraphError, match="'kind' is no numeric edge column; give weight=, one of weight"):
        weighted.to_scipy(weight="kind")
    with pytest.raises(OocGraphError, match="'length' is no numeric"):
        export_graph(weighted, tmp_path / "g.npz", weight="length")
    assert not (tmp_path / "g.npz").exists()


def test_a_column_called_source_is_refused(weighted, tmp_path):
    m = weighted.attributes.num_stored_edges
    clash = rewrite(weighted.url, tmp_path / "c.zarr", arrays={"out/source": np.zeros(m)}, columns={"source": "float64"})
    with pytest.raises(OutputError, match="edge column 'source' has the name"):
        export_graph(clash, tmp_path / "g.parquet")


def test_string_ids_are_exported(tmp_path):
    """Parquet has the strings; matrices their positions."""
    src, dst = ["b", "é", "x", "b"], ["é", "", "y", "b"]
    store = string_store(tmp_path / "s.zarr", src, dst, others=["alone"])
    export_graph(store, tmp_path / "g.parquet")
    table = pq.read_table(tmp_path / "g.parquet")
    assert {frozenset(pair) for pair in zip(*(table[name].to_pylist() for name in ("source", "target")), strict=True)} == {
        frozenset(pair) for pair in (("b", "é"), ("é", ""), ("x", "y"))
    }
    names = ["", "alone", "b", "x", "y", "é"]
    dense = store.to_scipy().toarray()
    assert dense[names.index("b"), names.index("é")] == dense[names.index("é"), names.index("")] == 1
    assert dense.sum() == 6


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_tables_are_cut_where_strings_are_long(tmp_path, monkeypatch, form):
    """What is written has the same edges in the same order: categories of text count, which a Parquet file has once."""
    names = ["a" + "y" * 3000, *(f"n{i}" for i in range(300))]
    frame = pd.DataFrame({"source": [names[0]] * 300, "target": names[1:], "kind": ["z" * 500, "k"] * 150})
    store = build_csr(frame, tmp_path / "g", directed=True)
    export_graph(store, tmp_path / f"expected.{form}")
    monkeypatch.setattr(edge_tables, "MIN_BLOCK_BYTES", 1)
    monkeypatch.setattr(edge_tables, "BLOCK_ENTRIES", 50)
    made = []
    monkeypatch.setattr(edge_tables, "map_buffers_of_codecs", lambda: made.append(1))
    export_graph(store, tmp_path / f"g.{form}")
    assert made
    if form == "csv":
        assert (tmp_path / "g.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()
    else:
        assert pq.read_table(tmp_path / "g.parquet").equals(pq.read_table(tmp_path / "expected.parquet"))
        assert pq.read_metadata(tmp_path / "g.parquet").num_row_groups > 6


@pytest.mark.parametrize("codec", ["blosc", "zstd"])
def test_compressed_stores_are_exported_alike(case, tmp_path, codec):
    store, _, _ = case
    packed = rewrite(store.url, tmp_path / "p.zarr", codec=codec)
    for name in ("a.sg", "b.sg"):
        export_graph(store if name == "a.sg" else packed, tmp_path / name, resources=Resources(threads=1))
    assert (tmp_path / "a.sg").read_bytes() == (tmp_path / "b.sg").read_bytes()


@pytest.mark.parametrize("name", ["g.sg", "g.npz", "g.parquet"])
@pytest.mark.parametrize("implied", [(0, 0), (0, 1), (0, 3)])
def test_graphs_without_edges_are_exported(tmp_path, name, implied):
    reference_build([], [], tmp_path / "s.zarr", implied=implied)
    export_graph(open_graph(tmp_path / "s.zarr"), tmp_path / name)
    if name == "g.sg":
        assert read_sg(tmp_path / name)[1][0][0].tolist() == [0] * (implied[1] + 1)
    elif name == "g.npz" and implied[1]:
        assert sp.load_npz(tmp_path / name).shape == (implied[1], implied[1])
    elif name == "g.parquet":
        assert pq.read_table(tmp_path / name).num_rows == 0


@pytest.fixture
def small(tmp_path):
    (tmp_path / "in").mkdir()
    reference_build([1, 2], [2, 3], tmp_path / "in/g.zarr", implied=(0, 5))
    return open_graph(tmp_path / "in/g.zarr")


def test_existing_outputs_are_replaced_only_when_told(small, tmp_path):
    export_graph(small, tmp_path / "g.sg")
    with pytest.raises(OutputError, match="exists already"):
        export_graph(small, tmp_path / "g.sg")
    export_graph(small, tmp_path / "g.sg", overwrite=True)
    (tmp_path / "d.sg").mkdir()
    with pytest.raises(OutputError, match="exists and is not a file, so it is not overwritten"):
        export_graph(small, tmp_path / "d.sg", overwrite=True)


def test_unknown_forms_and_orders_are_refused(small, tmp_path):
    with pytest.raises(OutputError, match=r"unknown extension '\.txt'"):
        export_graph(small, tmp_path / "g.txt")
    with pytest.raises(OutputError, match="order is 'random'"):
        export_graph(small, tmp_path / "g.sg", order="random")


@pytest.mark.parametrize("name", ["g.sg", "g.npz", "g.parquet"])
def test_a_small_budget_is_refused_with_numbers(small, tmp_path, name):
    with pytest.raises(BudgetError, match="at least"):
        export_graph(small, tmp_path / name, memory_budget="10M")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_budget_that_is_named_first_sorts_a_hub(tmp_path, threads):
    """Blocks on their way to the files took a third of what the longest row needs: another budget was named after all had been read."""
    rng, leaves = np.random.default_rng(0), np.arange(1, 1_000_001)
    edges = np.concatenate([0 * leaves, rng.integers(1, 1_000_001, 100_000)]), np.concatenate([leaves, rng.integers(1, 1_000_001, 100_000)])
    graph, resources = build_csr(edges, tmp_path / "in"), Resources(threads=threads)
    with pytest.raises(BudgetError) as refused:
        export_graph(graph, tmp_path / "g.npz", memory_budget="1M", resources=resources)
    named = str(refused.value).rpartition("at least ")[2]
    export_graph(graph, tmp_path / "g.npz", memory_budget=named, resources=resources)
    export_graph(graph, tmp_path / "ample.npz", resources=resources)
    assert (tmp_path / "g.npz").read_bytes() == (tmp_path / "ample.npz").read_bytes()


@pytest.mark.parametrize("name", ["g.sg", "g.npz", "g.parquet"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_export_leaves_nothing(small, tmp_path, name, error):
    """The disk fills up, or the user stops it."""

    def fail(phase, done, total):
        raise error

    expected = pytest.raises(OutputError, match="disk is full") if isinstance(error, OSError) else pytest.raises(KeyboardInterrupt)
    with expected:
        export_graph(small, tmp_path / name, progress=fail)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_progress_ends_at_the_total(case, tmp_path):
    store, _, _ = case
    for name in ("g.sg", "g.npz", "g.parquet"):
        seen = []
        export_graph(store, tmp_path / name, progress=lambda *one, seen=seen: seen.append(one))
        assert max(done for _, done, _ in seen) == seen[0][2]


def test_a_copy_in_input_order_is_what_gapbs_writes(tmp_path):
    """Byte for byte, where GAPBS's converter is installed."""
    converter = Path(os.environ.get("GAPBS_CONVERTER", "converter"))
    if not converter.is_file():
        pytest.skip("GAPBS_CONVERTER names no converter of GAPBS")
    src, dst = random_edges(13)
    (tmp_path / "g.el").write_text("".join(f"{a} {b}\n" for a, b in zip([*src, 199], [*dst, 0], strict=True)))
    subprocess.run([converter, "-s", "-f", tmp_path / "g.el", "-b", tmp_path / "gapbs.sg"], check=True, capture_output=True)
    reference_build([*src, 199], [*dst, 0], tmp_path / "g.zarr", implied=(0, 200))
    export_graph(open_graph(tmp_path / "g.zarr"), tmp_path / "g.sg")
    assert (tmp_path / "g.sg").read_bytes() == (tmp_path / "gapbs.sg").read_bytes()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edges=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=60),
    directed=st.booleans(),
    entries=st.integers(1, 20),
    threads=st.integers(1, 3),
)
def test_any_graph_in_any_blocks(tmp_path, monkeypatch, edges, directed, entries, threads):
    """The external sort equals SciPy whatever the sizes of blocks and files."""
    monkeypatch.setattr(ordered_rows, "BIN_ENTRIES", entries)
    monkeypatch.setattr(ordered_rows, "BLOCK_ENTRIES", entries)
    src, dst = np.array([a for a, _ in edges], np.int64), np.array([b for _, b in edges], np.int64)
    reference_build(src, dst, tmp_path / "g.zarr", directed=directed)
    export_graph(open_graph(tmp_path / "g.zarr"), tmp_path / "g.sg", overwrite=True, resources=Resources(threads=threads))
    ids = np.unique(np.concatenate([src, dst]))
    indptr, indices = plain_csr(src, dst, ids, directed=directed, loops=False, keep=False)
    offsets, neighbours = read_sg(tmp_path / "g.sg")[1][0]
    np.testing.assert_array_equal(offsets, indptr)
    np.testing.assert_array_equal(neighbours, indices)


def test_isolated_vertices_survive_export_and_build(tmp_path):
    """Parquet lists edges only; the number of vertices travels in the schema."""
    reference_build([1, 4], [4, 5], tmp_path / "g", implied=(0, 9))
    export_graph(open_graph(tmp_path / "g"), tmp_path / "g.parquet")
    again = build_csr(tmp_path / "g.parquet", tmp_path / "h")
    assert (again.attributes.num_input_vertices, again.attributes.num_isolated) == (9, 6)


def test_input_that_cannot_be_read_is_named_instead_of_the_output(small, tmp_path, monkeypatch):
    """A chunk that belongs to somebody else: the message is about it."""
    chunk = str(tmp_path / "in/g.zarr/out/indices/c/0")
    really = os.open

    def refuse(path, *arguments, **options):
        if str(path) == chunk:
            raise PermissionError(errno.EACCES, "Permission denied", chunk)
        return really(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    for name in ("g.parquet", "g.npz", "g.sg"):
        with pytest.raises(OocGraphError, match=r"g\.zarr/out/indices/c/0: .*Permission denied") as failed:
            export_graph(small, tmp_path / name)
        assert not isinstance(failed.value, OutputError)
        assert name not in str(failed.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("order", ["input", "store"])
def test_wsg_has_a_weight_behind_each_neighbour(tmp_path, directed, order):
    """What is written builds the same graph with the same weights again."""
    rng = np.random.default_rng(4)
    frame = {"source": rng.integers(0, 90, 400), "target": rng.integers(0, 90, 400), "weight": rng.integers(-7, 2**31 - 1, 400)}
    store = build_csr(pa.table(frame), tmp_path / "g.zarr", weight="weight", directed=directed, num_vertices=95, duplicates="min")
    report = export_graph(store, tmp_path / "g.wsg", order=order)
    assert report.file_bytes == (tmp_path / "g.wsg").stat().st_size
    again = build_csr(tmp_path / "g.wsg", tmp_path / "again.zarr")
    a, b = store.to_scipy(dtype=np.float64), again.to_scipy(dtype=np.float64)
    if order == "input":
        assert again.attributes.num_input_vertices == 95
        assert (a != b).nnz == 0
    else:
        assert sorted(a.data) == sorted(b.data)
    assert again.attributes.directed == directed


def test_wsg_refuses_weights_that_gapbs_has_not(small, tmp_path):
    pairs = [0, 1], [1, 2]
    for values, message in (
        ([0.5, 1], "holds integer weights, and 'weight' is float64"),
        ([1, 2**31], "holds 32-bit weights, and there are 1 to"),
    ):
        table = pa.table({"source": pairs[0], "target": pairs[1], "weight": values})
        store = build_csr(table, tmp_path / "w.zarr", weight="weight", overwrite=True)
        with pytest.raises(OutputError, match=message):
            export_graph(store, tmp_path / "w.wsg")
    with pytest.raises(OutputError, match=r"\.wsg holds weights, and .* has none; write \.sg"):
        export_graph(small, tmp_path / "w.wsg")
    assert not list(tmp_path.glob("*.wsg*"))
