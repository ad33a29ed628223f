"""Edges that are read once: streams of Arrow batches, and Dask collections without a cluster. Oracle: the build from a table in memory."""

from __future__ import annotations

import weakref

import dask
import dask.array as da
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from oocgraph import build_csr
from oocgraph.config import parse_bytes
from oocgraph.errors import BudgetError, InputError
from oocgraph.ingest.sources import arrow_stream, dask_collections, open_source, table
from oocgraph.ingest.sources.arrow_values import large_strings
from oocgraph.ingest.sources.ids import Place
from oocgraph.memory import PeakSampler
from tests.ingest.helpers import read, refused
from tests.ingest.helpers_build import assert_same_store, budget_of

IDS = ["dense", "sparse", "strings"]


def edge_frame(kind, num_edges=3000):
    """Edges with weights, text and duplicates, and a column that is none of them."""
    rng = np.random.default_rng(7)
    source, target = rng.integers(0, 300, (2, num_edges))
    if kind == "sparse":
        source, target = source * 10**15, target * 10**15
    if kind == "strings":
        source, target = (np.char.add("é", values.astype(str)).astype(object) for values in (source, target))
    columns = {"other": np.arange(num_edges), "source": source, "target": target}
    return pd.DataFrame({**columns, "weight": rng.random(num_edges), "kind": rng.choice(["a", "ü"], num_edges)})


OPTIONS = {"columns": (None, None, "kind"), "weight": "weight", "duplicates": "first", "directed": True}


@pytest.fixture(params=IDS)
def built(request, tmp_path):
    """Return a frame, a Parquet file of it, and a function that builds from the same edges in another form and compares the stores."""
    frame = edge_frame(request.param)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "edges.parquet", row_group_size=500)
    build_csr(frame, tmp_path / "expected", **OPTIONS)

    def same(edges):
        build_csr(edges, tmp_path / "found", **OPTIONS)
        assert_same_store(tmp_path / "expected", tmp_path / "found")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.parquet", "expected", "found"]

    return frame, tmp_path / "edges.parquet", same


def test_reader_of_batches(built):
    frame, _, same = built
    same(pa.Table.from_pandas(frame).to_reader(max_chunksize=77))


def test_arrow_interface_of_others(built):
    frame, _, same = built

    class Frame:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.Table.from_pandas(frame).__arrow_c_stream__(requested_schema)

    same(Frame())


def test_record_batch_and_polars_frame(built, tmp_path):
    frame, _, same = built
    same(pl.from_pandas(frame))
    build_csr(pa.RecordBatch.from_pandas(frame), tmp_path / "again", **OPTIONS)
    assert_same_store(tmp_path / "expected", tmp_path / "again")


@pytest.mark.parametrize("lazy", [False, True])
def test_polars_frames_with_arrow_that_makes_no_strings_of_views(built, monkeypatch, lazy):
    """As 16 does not: a frame with text was an error of Arrow."""
    frame, _, same = built
    monkeypatch.setattr(table, "casts_views", lambda: False)
    given = pl.from_pandas(frame).with_columns(pl.col("kind").cast(pl.Categorical))
    same(given.lazy() if lazy else given)


def test_what_arrow_makes_no_strings_of_is_refused():
    with pytest.raises(
        InputError, match=rf"stream, column 'source': pyarrow {pa.__version__} makes no strings of struct.*update it, or cast"
    ):
        large_strings(pa.array([{"a": 1}]), Place("stream", "source", str))


@pytest.mark.parametrize("lazy", [False, True])
def test_types_of_polars_that_arrow_lacks(lazy):
    """They matter in columns that are read only."""
    frame = pl.DataFrame({"source": [1, 2], "target": [2, 3], "large": pl.Series([1, 2], dtype=pl.Int128), "w": [5, 6]})
    given = frame.lazy() if lazy else frame
    assert read(open_source(given, weight_column="w")) == ([1, 2], [2, 3], {"w": [5, 6]})
    refused(given, "'large' is Int128", "cast it", edge_columns=["large"])


@pytest.mark.parametrize("file", [False, True])
def test_polars_lazy_frame(built, file):
    frame, path, same = built
    same(pl.scan_parquet(path) if file else pl.from_pandas(frame).lazy())


def test_duckdb_relation(built):
    _, path, same = built
    with duckdb.connect() as connection:
        connection.sql("set threads = 1")  # so that rows keep their order, which duplicates="first" asks for
        same(connection.sql(f"select * from read_parquet('{path}')"))


def test_pyarrow_dataset(built):
    _, path, same = built
    same(ds.dataset(path))


@pytest.mark.parametrize("how", ["filter", "folders", "types", "row groups", "files", "no column", "other order"])
def test_datasets_of_every_kind(tmp_path, how):
    """What is not in the files as it is in the dataset is left to Arrow's scanner."""
    frame = edge_frame("dense")
    table = pa.Table.from_pandas(frame)
    expected, folder = table, tmp_path / "files"
    if how == "folders":
        ds.write_dataset(table, folder, format="parquet", partitioning=["kind"], partitioning_flavor="hive")
        given = ds.dataset(folder, partitioning="hive")
        expected = given.to_table()
    else:
        folder.mkdir()
        narrow = table.set_column(1, "source", table["source"].cast("int16")) if how == "types" else table
        shorter = table.drop_columns(["kind"]) if how == "no column" else narrow
        pq.write_table(table.slice(0, 1000), folder / "1.parquet", row_group_size=300)
        pq.write_table(table.slice(1000, 0), folder / "2.parquet")
        if how == "other order":  # and one that is declared to have no nulls
            shorter = table.select(table.column_names[::-1]).cast(
                pa.schema([field.with_nullable(field.name != "target") for field in reversed(table.schema)])
            )
        pq.write_table(shorter.slice(1000), folder / "3.parquet", row_group_size=700)
        given = ds.dataset(folder, schema=table.schema)
        if how == "filter":
            given = given.filter(ds.field("source") > 100)
            expected = given.to_table()
        elif how == "row groups":
            chosen = [fragment.subset(row_group_ids=[0]) for fragment in given.get_fragments() if fragment.metadata.num_rows]
            given = ds.FileSystemDataset(chosen, table.schema, ds.ParquetFileFormat(), chosen[0].filesystem)
            expected = pa.concat_tables([table.slice(0, 300), table.slice(1000, 700)])
        elif how == "no column":
            expected = given.to_table()
    options = OPTIONS | {"columns": None} if how == "no column" else OPTIONS
    build_csr(expected, tmp_path / "expected", **options)
    build_csr(given, tmp_path / "found", **options)
    assert_same_store(tmp_path / "expected", tmp_path / "found")


@pytest.mark.parametrize("text", [False, True])
def test_a_dataset_of_large_row_groups_holds_what_was_promised(tmp_path, text):
    """Arrow's scanner held whole row groups: a gigabyte of 190 MB that were promised."""
    ids = np.random.default_rng(1).integers(0, 20_000, (2, 600_000 if text else 3_000_000))
    names = pa.array([f"{i:05}" + "x" * 150 for i in range(20_000)])
    table = pa.table([names.take(pa.array(one)) if text else one for one in ids], names=["source", "target"])
    pq.write_table(table, tmp_path / "edges.parquet", row_group_size=table.num_rows)
    holds_what_it_names(lambda: ds.dataset(tmp_path / "edges.parquet"), tmp_path, "the build needs", "1M")


def test_a_dataset_of_large_pages_holds_what_was_promised(tmp_path):
    """What its reader holds of them is charged, as it is of files: half a gigabyte of 190 MB that were promised."""
    rng = np.random.default_rng(7)
    names = pa.array([*(f"n{i}" for i in range(900)), *(f"{i:06d}" + "x" * 200_000 for i in range(100))], pa.large_string())
    ends = [names.take(pa.array(np.sort(rng.integers(0, 1000, 2000)))) for _ in range(2)]
    pq.write_table(pa.table(ends, names=["source", "target"]), tmp_path / "edges.parquet", use_dictionary=False)
    holds_what_it_names(lambda: ds.dataset(tmp_path / "edges.parquet"), tmp_path, "the build needs", "1M")
    chosen = ds.dataset(tmp_path / "edges.parquet").filter(ds.field("source") == "n1")  # by Arrow's scanner, of which nothing is known
    assert open_source(chosen).readers == (1, 0)


def test_small_batches_are_put_together(tmp_path, monkeypatch):
    """In order, with their rows, but for large ones, and those of types that are rarely joined."""
    monkeypatch.setattr(arrow_stream, "GATHERED_BYTES", 2000)
    rng = np.random.default_rng(2)
    lengths = [1, 0, 3, 2, 500, 1, 1, 700, 90, 40, 0, 2]
    batches = [pa.record_batch({"source": rng.integers(0, 99, n), "target": rng.integers(0, 99, n)}) for n in lengths]
    gathered = list(arrow_stream._gathered(iter(batches), "stream"))
    assert [len(one) for one in gathered] == [3, 1, 2, 1, 2, 1]
    table = pa.Table.from_batches(batches)
    assert pa.Table.from_batches([batch for one in gathered for batch in one]) == table
    assert read(open_source(table.to_reader(max_chunksize=7))) == (table["source"].to_pylist(), table["target"].to_pylist(), {})
    coded = pa.table({name: table[name].cast("string").dictionary_encode() for name in ("source", "target")})
    assert {len(one) for one in arrow_stream._gathered(iter(coded.to_batches(max_chunksize=7)), "stream")} == {1}
    build_csr(coded.to_reader(max_chunksize=7), tmp_path / "found")
    build_csr(coded, tmp_path / "expected")
    assert_same_store(tmp_path / "expected", tmp_path / "found")


@pytest.mark.parametrize("num_partitions", [1, 7])
def test_dask_frame(built, num_partitions):
    frame, _, same = built
    same(dd.from_pandas(frame, npartitions=num_partitions))


def test_dask_frame_of_parquet(built):
    _, path, same = built
    same(dd.read_parquet(path, split_row_groups=True))


@pytest.mark.parametrize("kind", IDS)
def test_dask_arrays_and_series(tmp_path, kind):
    frame = edge_frame(kind)
    source, target = (frame[name].to_numpy() for name in ("source", "target"))
    parts = dd.from_pandas(frame, npartitions=4)
    build_csr((source, target), tmp_path / "expected")
    forms = {
        "rows": da.from_array(np.stack([source, target], axis=1), chunks=(999, 1)),
        "pair": (da.from_array(source, chunks=100), da.from_array(target, chunks=777)),
        "series": (parts["source"], parts["target"]),
    }
    if kind != "strings":
        forms["unknown lengths"] = (parts["source"].to_dask_array(), parts["target"].to_dask_array())
    for name, edges in forms.items():
        build_csr(edges, tmp_path / name)
        assert_same_store(tmp_path / "expected", tmp_path / name)


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_streams_without_edges(tmp_path, kind):
    schema = pa.schema([("source", kind), ("target", kind)])
    empty = schema.empty_table()
    forms = [pa.RecordBatchReader.from_batches(schema, []), pl.from_arrow(empty).lazy(), dd.from_pandas(empty.to_pandas(), npartitions=1)]
    for number, edges in enumerate(forms):
        graph = build_csr(edges, tmp_path / str(number))
        assert (graph.num_vertices, graph.num_edges, graph.attributes.id_kind) == (0, 0, "string" if kind == "string" else "int64")


def test_an_empty_partition_among_others(tmp_path):
    frames = [pd.DataFrame({"source": ids, "target": ids[::-1]}) for ids in (["a", "b"], np.empty(0, object), ["c", "d"])]
    graph = build_csr(dd.from_map(lambda i: frames[i], range(3), meta=frames[0]), tmp_path / "g")
    assert (graph.num_vertices, graph.num_edges) == (4, 2)


def test_a_declared_number_of_vertices_and_self_loops(tmp_path):
    reader = pa.table({"source": [0, 1, 3], "target": [1, 1, 0]}).to_reader()
    graph = build_csr(reader, tmp_path / "g", num_vertices=6, keep_self_loops=True)
    assert (graph.num_vertices, graph.num_edges, graph.attributes.num_self_loops) == (6, 3, 1)
    refused(pa.table({"source": [0, 7], "target": [1, 1]}).to_reader(), "7 is not below the declared", "row 1", num_vertices=6)


@pytest.mark.parametrize("kind", IDS)
def test_a_graph_in_memory_from_streams_and_partitions(tmp_path, kind):
    frame = edge_frame(kind)
    build_csr(frame, tmp_path / "expected", **OPTIONS)
    forms = {"reader": pa.Table.from_pandas(frame).to_reader(max_chunksize=77), "dask": dd.from_pandas(frame, npartitions=3)}
    for name, edges in forms.items():
        build_csr(edges, **OPTIONS).save(tmp_path / name)
        assert_same_store(tmp_path / "expected", tmp_path / name)


def test_a_stream_is_read_once():
    source = open_source(pa.table({"source": [1, 2], "target": [3, 4]}).to_reader())
    assert read(source) == ([1, 2], [3, 4], {})
    with pytest.raises(InputError, match="read only once"):
        read(source)


def test_a_stream_that_breaks_off_leaves_nothing(tmp_path):
    def batches():
        yield pa.record_batch({"source": [1, 2], "target": [3, 4]})
        raise OSError("the other side has gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("source", "int64"), ("target", "int64")]), batches())
    with pytest.raises(InputError, match=r"row 2 or after.*the other side has gone"):
        build_csr(reader, tmp_path / "g")
    assert not list(tmp_path.iterdir())


def test_bad_values_are_named_by_their_place():
    reader = pa.table({"source": [1, 2, 3], "target": [3, None, 4]}).to_reader(max_chunksize=1)
    refused(reader, "row 1 (counted from 0), column 'target'", "missing (null)")
    frame = pd.DataFrame({"source": [1, 2, 3, -4], "target": [1, 2, 3, 4]})
    refused(dd.from_pandas(frame, npartitions=2), "partition 1 of the 2 of the Dask DataFrame", "row 1 (counted", "-4 is negative")


def test_streams_that_hold_no_table():
    refused(pl.Series([1, 2]), "Series", "record batches")
    refused(pa.chunked_array([[1, 2]]), "ChunkedArray", "record batches")


class FailingRelation:
    def __arrow_c_stream__(self, requested_schema=None):
        raise ValueError("Binder Error: no such table")


def test_a_query_that_fails_is_an_input_error():
    refused(FailingRelation(), "FailingRelation", "no such table")


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"source": ["a"], "target": ["b"], "w": [1]}, ("source: ", "string", "metadata say source: int64, target: int64, w: int64")),
        ({"source": [1], "target": [2], "w": [0.5]}, ("w: double", "astype")),
        ({"source": [1], "from": [2], "w": [1]}, ("has 'source', 'from', 'w' in place of the columns 'source', 'target', 'w'",)),
        ({"source": [1], "from": [2], "w": [1], "more": [1]}, ("KeyError", "must have the columns 'source', 'target', 'w'")),
        ({"source": [1], "target": [{}], "w": [1]}, ("metadata say",)),
        ({"source": [1], "target": [2 + 1j], "w": [1]}, ("column 'target'",)),
    ],
)
def test_a_partition_of_another_schema_is_refused(second, words):
    first = {"source": [1], "target": [2], "w": [3], **({"more": [1]} if "more" in second else {})}
    frames = [pd.DataFrame(first), pd.DataFrame(second)]
    collection = dd.from_map(lambda i: frames[i], range(2), meta=frames[0])
    refused(collection, "partition 1 of the 2 of the Dask DataFrame", *words, edge_columns=["w"])


def test_partitions_that_do_not_match_are_refused():
    ids = da.from_array(np.arange(10), chunks=5)
    refused((ids, ids[:8].rechunk(8)), "2 partitions", "1;")
    refused((ids, ids[:8].rechunk((4, 4))), "partition 0 of the 2", "5 sources but 4 targets")
    refused((ids, np.arange(10)), "the target is a ndarray")
    refused(ids, "shape (10,)")
    lying = da.map_blocks(lambda block: block[:, :1], da.ones((4, 2), chunks=(2, 2), dtype=int), dtype=int, chunks=(2, 2))
    refused(lying, "partition 0 of the 2 of the Dask array", "shape (2, 1)")
    refused(dask.delayed(5), "Dask Delayed")


def test_a_partition_that_fails_is_named():
    def load(index):
        if index:
            raise RuntimeError("the disk is on fire")
        return pd.DataFrame({"source": [1], "target": [2]})

    refused(dd.from_map(load, range(2), meta=load(0)), "partition 1 of the 2", "RuntimeError: the disk is on fire")


@pytest.fixture
def alive(monkeypatch):
    """Count the partitions that this process holds: the most at once, and how many in all."""
    seen = [0, 0]
    references = []
    original = dask_collections._blocks

    def blocks(partitions, index, fetch, *arguments):
        def fetched():
            values = fetch()
            references.append(weakref.ref(values[0]))
            seen[:] = max(seen[0], sum(one() is not None for one in references)), seen[1] + 1
            return values

        return original(partitions, index, fetched, *arguments)

    monkeypatch.setattr(dask_collections, "_blocks", blocks)
    return seen


def test_one_partition_is_held_at_a_time(alive, tmp_path):
    build_csr(dd.from_map(lambda i: pd.DataFrame({"source": [i], "target": [i + 1]}), range(9)), tmp_path / "g")
    assert alive == [1, 9]


def test_a_partition_that_does_not_fit_is_refused(tmp_path):
    """With a budget that works."""
    rng = np.random.default_rng(1)
    edges = da.from_array(rng.integers(0, 1000, (8_000_000, 2)), chunks=(4_000_000, 2))
    build_csr(([0], [1]), tmp_path / "first")  # what this process imports and compiles counts
    with pytest.raises(
        BudgetError, match=r"partition 0 of the 2 of the Dask array needs 61\.0 MiB.*set memory_budget to at least"
    ) as caught:
        build_csr(edges, tmp_path / "g", memory_budget=budget_of(tmp_path, 20))
    assert not (tmp_path / "g").exists()
    least = int(str(caught.value).rpartition("at least ")[2].partition("M")[0])
    assert build_csr(edges.rechunk((1_000_000, 2)), tmp_path / "g", memory_budget=f"{least}M").num_vertices == 1000


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["a", "b", "c", "d"])])
@pytest.mark.parametrize("lazy", [False, True])
def test_categories_of_polars_are_strings(tmp_path, kind, lazy):
    """As ids and in columns, in one chunk and in several: Arrow has them as dictionaries of string views."""
    columns = {"source": ["a", "b", "a"], "target": ["b", "c", "d"], "label": ["c", "d", "c"]}
    frame = pl.DataFrame({name: pl.Series(values, dtype=kind) for name, values in columns.items()})
    given = pl.concat([frame.slice(1), frame.slice(0, 1)], rechunk=False)
    build_csr(given.lazy() if lazy else given, tmp_path / "categories", columns=("source", "target", "label"))
    build_csr(pa.table(columns), tmp_path / "strings", columns=("source", "target", "label"))
    assert_same_store(tmp_path / "categories", tmp_path / "strings")


def holds_what_it_names(reader, tmp_path, words, too_small=None):
    """Judge a build of what a function opens within the budget that one refusal names."""
    build_csr(reader(), tmp_path / "ample")  # imports and kernels are loaded
    with pytest.raises(BudgetError, match=words) as caught:
        build_csr(reader(), tmp_path / "g", memory_budget=too_small or budget_of(tmp_path, 0))
    named = str(caught.value).rpartition("at least ")[2].partition(",")[0]
    with PeakSampler() as sampler:
        build_csr(reader(), tmp_path / "g", memory_budget=named)
    assert sampler.peak_bytes <= parse_bytes(named)
    assert_same_store(tmp_path / "ample", tmp_path / "g")


def test_a_large_batch_is_refused_once(tmp_path):
    """What the build is to take later is not held beside the batch, and not part of the budget that is named for it."""

    def reader():
        schema = pa.schema([("source", "int64"), ("target", "int64")])

        def batches():
            yield pa.record_batch([pa.array(np.arange(number, number + 5_000_000)) for number in (0, 1)], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    holds_what_it_names(reader, tmp_path, r"batch 1 of .* needs 76\.3 MiB.*or make it smaller")


def test_a_stream_of_long_strings_holds_what_was_promised(tmp_path):
    """Its reader was opened before, and has the allocator that Arrow began with; a batch is not read back at once."""
    text = "x" * 150
    with pa.OSFile(str(tmp_path / "parts.arrow"), "wb") as sink:
        schema = pa.schema([("source", pa.large_string()), ("target", pa.large_string())])
        with pa.ipc.new_file(sink, schema) as writer:
            for start in (0, 1, 2):
                ends = [np.char.add(text, (np.arange(150_000) * step + start).astype(str)) for step in (3, 7)]
                writer.write_batch(pa.record_batch([pa.array(one.tolist(), pa.large_string()) for one in ends], schema=schema))
                del ends

    def reader():
        file = pa.ipc.open_file(pa.OSFile(str(tmp_path / "parts.arrow")))
        return pa.RecordBatchReader.from_batches(file.schema, (file.get_batch(i) for i in range(file.num_record_batches)))

    holds_what_it_names(reader, tmp_path, r"batch 1 of .* needs 4\d\.\d MiB")
