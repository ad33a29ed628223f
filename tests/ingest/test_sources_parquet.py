"""Parquet: types, layouts, bounds, damage."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oocgraph.errors import InputError, InputNotFoundError
from oocgraph.ingest.sources import open_source
from tests.ingest.helpers import SOURCE, TARGET, check, peak_anonymous_bytes, read, refused


def table(source=SOURCE, target=TARGET, kind=None, **columns):
    return pa.table({"source": pa.array(source, kind), "target": pa.array(target, kind), **columns})


def write(path, data, **options):
    pq.write_table(data, path, **options)
    return path


@pytest.mark.parametrize("kind", [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)])
def test_integers_of_every_width(tmp_path, kind):
    path = write(tmp_path / "e.parquet", table(kind=kind), row_group_size=3)
    check(open_source(path), (SOURCE, TARGET), id_kind="int64", num_rows=5, id_bounds=(0, 9), num_vertices=None, extra_vertices=None)


def test_large_ids_of_both_signs_of_64_bits(tmp_path):
    ids = [2**63 - 1, 2**40, 0]
    for kind in ("int64", "uint64"):
        check(open_source(write(tmp_path / "e.parquet", table(ids, ids, kind))), (ids, ids), id_bounds=(0, 2**63 - 1))


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_strings_of_every_type(tmp_path, kind):
    ids = ["a", "libç6", "", "a", "x" * 50]
    path = write(tmp_path / "e.parquet", table(ids, ids[::-1], kind), row_group_size=2)
    check(open_source(path), (ids, ids[::-1]), id_kind="string", id_bounds=None)


def test_dictionary_of_integers(tmp_path):
    kind = pa.dictionary(pa.int8(), pa.int64())
    check(open_source(write(tmp_path / "e.parquet", table(kind=kind))), (SOURCE, TARGET), id_kind="int64")


def test_whole_floats_are_ids(tmp_path):
    check(open_source(write(tmp_path / "e.parquet", table(kind="double"))), (SOURCE, TARGET), id_bounds=None)


def test_weight_and_edge_columns(tmp_path):
    w, sort, flag = [0.5, 1, 2, 3, 4], ["a", "b", "a", "b", "c"], [True, False, True, True, False]
    path = write(tmp_path / "e.parquet", table(w=w, sort=sort, flag=flag, n=pa.array(SOURCE, "int16")))
    source = open_source(path, weight_column="w", edge_columns=["sort", "flag", "n", "w"])
    expected = {"w": w, "sort": sort, "flag": [1, 0, 1, 1, 0], "n": SOURCE}
    check(source, (SOURCE, TARGET), expected, weight="w", columns={"w": "float64", "sort": "string", "flag": "uint8", "n": "int16"})


def test_missing_value_of_a_float_column_is_nan_and_of_others_an_error(tmp_path):
    data = table(f=[0.5, None, 1, 1, 1], i=pa.array([1, 2, None, 4, 5]), s=["a", "b", "c", None, "e"])
    path = write(tmp_path / "e.parquet", data)
    assert np.isnan(read(open_source(path, edge_columns=["f"]))[2]["f"][1])
    refused(path, "row 2", "'i'", "missing", "fill it in", edge_columns=["i"])
    refused(path, "row 3", "'s'", "missing", edge_columns=["s"])
    refused(path, "row 1", "'f'", "missing", weight_column="f")


@pytest.mark.parametrize("names", [("src", "dst"), ("From", "To"), ("SOURCE", "target"), ("u", "v")])
def test_usual_names_in_any_case_or_the_only_two_columns(tmp_path, names):
    data = pa.table(dict(zip(names, (SOURCE, TARGET), strict=True)))
    check(open_source(write(tmp_path / "e.parquet", data)), (SOURCE, TARGET))


def test_usual_names_among_others_and_the_two_that_are_left(tmp_path):
    path = write(tmp_path / "e.parquet", pa.table({"t": [1], "dst": [3], "src": [2]}))
    check(open_source(path), ([2], [3]))
    path = write(tmp_path / "f.parquet", pa.table({"w": [1], "u": [2], "v": [3]}))
    check(open_source(path, weight_column="w"), ([2], [3]), {"w": [1]})
    refused(path, "in columns", "'w', 'u', 'v'")


def test_wrong_column_names(tmp_path):
    path = write(tmp_path / "e.parquet", table())
    refused(path, "no column 'a'", "'source', 'target'", source_column="a", target_column="target")
    refused(path, "no column 'w'", "'source', 'target'", weight_column="w")
    refused(path, "give target_column too", source_column="source")
    refused(path, "needs two columns", source_column="source", target_column="source")


def test_folder_and_glob_are_read_in_order_of_name(tmp_path):
    (tmp_path / "d" / "kind=x").mkdir(parents=True)
    write(tmp_path / "d" / "b.parquet", table([3], [4], "int32"))
    write(tmp_path / "d" / "a.parquet", table([1, 2], [2, 3], "int64"), row_group_size=1)
    write(tmp_path / "d" / "kind=x" / "c.parquet", table([7], [8], "uint8"))
    write(tmp_path / "d" / "empty.parquet", table([], [], "string"))
    (tmp_path / "d" / "_SUCCESS").write_text("")
    edges = ([1, 2, 3, 7], [2, 3, 4, 8])
    check(open_source(tmp_path / "d"), edges, num_rows=4, id_bounds=(1, 8), description=str(tmp_path / "d"))
    check(open_source(str(tmp_path / "d" / "*.parquet")), ([1, 2, 3], [2, 3, 4]))
    check(open_source(str(tmp_path / "d" / "**" / "*.parquet")), edges)


def test_files_that_disagree(tmp_path):
    write(tmp_path / "a.parquet", table([1], [2], w=[1.0]))
    write(tmp_path / "b.parquet", table(["x"], ["y"], w=[1.0]))
    refused(tmp_path, "b.parquet", "a.parquet", "differ in kind")
    write(tmp_path / "b.parquet", table([1], [2], w=pa.array([1], "int32")))
    refused(tmp_path, "b.parquet", "differ in dtypes", weight_column="w")
    write(tmp_path / "b.parquet", table([1], [2]))
    refused(tmp_path, "b.parquet", "no column 'w'", weight_column="w")


def test_one_stream_for_each_row_group_and_no_more_than_needed(tmp_path):
    path = write(tmp_path / "e.parquet", table(range(100), range(100)), row_group_size=10)
    source = open_source(path)
    assert len(source.streams(10)) == 10
    assert len(source.streams(1)) == 10
    assert len(source.streams(50)) == 2
    write(tmp_path / "f.parquet", table(range(1000), range(1000)), row_group_size=1)
    assert len(open_source(tmp_path / "f.parquet").streams(1)) <= 17
    check(open_source(tmp_path / "f.parquet"), (range(1000), range(1000)))


def test_declared_number_of_vertices(tmp_path):
    data = table().replace_schema_metadata({"oocgraph.num_vertices": "10"})
    path = write(tmp_path / "e.parquet", data)
    check(open_source(path), (SOURCE, TARGET), num_vertices=10)
    assert open_source(path, num_vertices=10).num_vertices == 10
    refused(path, "declares 10", "num_vertices = 11", num_vertices=11)
    path = write(tmp_path / "f.parquet", data.replace_schema_metadata({"oocgraph.num_vertices": "9"}))
    refused(path, "row 3", "'target'", "9 is not below", "9")
    path = write(tmp_path / "g.parquet", data.replace_schema_metadata({"oocgraph.num_vertices": "ten"}))
    refused(path, "ten", "decimal")
    strings = table(["a"], ["b"]).replace_schema_metadata({"oocgraph.num_vertices": "9"})
    assert open_source(write(tmp_path / "h.parquet", strings)).num_vertices is None
    refused(tmp_path / "h.parquet", "num_vertices", "integer ids", num_vertices=5)


def test_no_bounds_without_statistics(tmp_path):
    assert open_source(write(tmp_path / "e.parquet", table(), write_statistics=False)).id_bounds is None


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        ([1, 2, None, 4], "int64", ("row 2", "missing", "drop the row")),
        ([1, 2, 3, -4], "int32", ("row 3", "-4 is negative", "strings")),
        ([1, 2, 2**63, 4], "uint64", ("row 2", f"{2**63} overflows", "strings")),
        ([1, float("nan"), 2, 4], "double", ("row 1", "missing (NaN)")),
        ([1, 2, 2.5, 4], "double", ("row 2", "2.5 is fractional")),
        ([1, 2, -2.0, 4], "float", ("row 2", "negative")),
        ([1, 2, 1e300, 4], "double", ("row 2", "overflows")),
        ([1, 2, float("inf"), 4], "double", ("row 2", "inf is not finite")),
        ([1, 2, 2.0**24, 4], "float", ("row 2", "overflows", "2**24")),
        ([1, 2, 2.0**53, 4], "double", ("row 2", "overflows", "2**53")),
        (["a", "b", "c", None], "string", ("row 3", "missing")),
        ([b"a", b"b", b"\xff", b"d"], "binary", ("row 2", "UTF-8")),
        ([True, False, True, True], "bool", ("integers or strings",)),
    ],
)
def test_bad_id(tmp_path, values, kind, words):
    path = write(tmp_path / "e.parquet", pa.table({"source": pa.array(values, kind), "target": pa.array(values, kind)}), row_group_size=3)
    refused(path, "'source'", *words)
    source = pa.array(["x"] * 4 if kind in ("string", "binary") else [0] * 4)
    path = write(tmp_path / "f.parquet", pa.table({"source": source, "target": pa.array(values, kind)}), row_group_size=3)
    refused(path, "'target'", *words)


@pytest.mark.parametrize("values", [["x", None, "y"], [1, None, 2]])
@pytest.mark.parametrize("null_encoding", ["encode", "mask"])
def test_a_null_of_a_dictionary_is_a_missing_id(tmp_path, values, null_encoding):
    """Whether it is among the values or the codes."""
    codes = pa.array(values).dictionary_encode(null_encoding=null_encoding)
    edges = pa.table({"source": codes, "target": values[::2] + values[:1]})
    file = [write(tmp_path / "e.parquet", edges)] if null_encoding == "mask" else []  # Arrow writes no others
    for given in (edges, edges.to_batches()[0], edges.to_reader(), *file):
        refused(given, "row 1", "'source'", "the id is missing (null)")


def test_row_number_counts_within_the_file_that_is_named(tmp_path):
    write(tmp_path / "a.parquet", table())
    write(tmp_path / "b.parquet", table([1, 2, 3, -1], [0] * 4), row_group_size=1)
    assert "b.parquet, row 3 " in str(refused(tmp_path, "-1"))


def test_kinds_of_the_ends_differ(tmp_path):
    refused(write(tmp_path / "e.parquet", pa.table({"source": [1], "target": ["a"]})), "both must be")


def test_columns_that_cannot_be_kept(tmp_path):
    path = write(tmp_path / "e.parquet", table([1], [2], t=pa.array([0], pa.timestamp("s")), s=["a"]))
    refused(path, "'t'", "timestamp", "convert it", edge_columns=["t"])
    refused(path, "'s'", "weight must be a number", weight_column="s")


def test_no_edges(tmp_path):
    for kind in ("int64", "null"):
        check(open_source(write(tmp_path / "e.parquet", table([], [], kind))), ([], []), num_rows=0, id_kind="int64", id_bounds=None)


def test_damaged_files(tmp_path):
    path = write(tmp_path / "e.parquet", table(range(1000), range(1000)), compression="none", use_dictionary=False)
    data = path.read_bytes()
    path.write_bytes(data[:-100])
    error = refused(path, "truncated", "write it again")
    assert error.__cause__ is not None
    path.write_bytes(b"")
    refused(path, "empty (0 bytes)")
    path.write_bytes(data[:4] + bytes([0xFF]) * 3000 + data[3004:])
    error = refused(path, "row 0", "decoded")
    assert error.__cause__ is not None


def test_one_row_group_of_the_whole_graph_is_read_in_bounded_memory(tmp_path):
    """96 MB of columns in one row group are streamed within a quarter of that."""
    ids = np.arange(6_000_000)
    path = write(tmp_path / "e.parquet", table(ids, ids), row_group_size=ids.size, use_dictionary=False, compression="none")
    grown, num_edges = peak_anonymous_bytes(path)
    assert num_edges == ids.size
    assert grown < 24 << 20


def test_a_list_of_files_is_read_in_its_order(tmp_path):
    for name, target in (("b", 2), ("a", 3), ("c", 4)):
        pq.write_table(pa.table({"source": [1], "target": [target]}), tmp_path / f"{name}.parquet")
    files = [tmp_path / f"{name}.parquet" for name in "bac"]
    blocks = [block for stream in open_source(files).streams(10) for block in stream()]
    assert [block.target.tolist() for block in blocks] == [[2], [3], [4]]
    assert open_source([str(files[1])]).num_rows == 1
    with pytest.raises(InputNotFoundError, match=r"d.parquet: no such file"):
        open_source([*files, tmp_path / "d.parquet"])
    (tmp_path / "e.csv").write_text("1,2\n")
    with pytest.raises(InputError, match=r"e.csv cannot be read together with .*\.parquet; only Parquet files are"):
        open_source([*files[:1], tmp_path / "e.csv"])
