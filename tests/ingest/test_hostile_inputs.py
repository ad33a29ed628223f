"""Inputs are not trusted: what a header says is compared with the file before anything is allocated, and one message says what is wrong."""

from __future__ import annotations

import gzip
import io
import os
import socket
import struct
import tracemalloc
import warnings
import zipfile
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from oocgraph import InputError, build_csr
from oocgraph.ingest.sources import open_source, parquet

HUGE = 10**18


def read_all(path, **options):
    """Open a source and read all of it; returns the edges read."""
    source = open_source(path, **options)
    return sum(block.source.size for stream in source.streams(1000) for block in stream())


def npy(header, *, version=(1, 0), body=b""):
    text = header if isinstance(header, bytes) else header.encode("latin1")
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + body


def described(shape, descr="'<i8'", **options):
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n", **options)


NPY = {
    "more elements than int64 counts": described(f"({HUGE}, {HUGE})"),
    "a product that wraps to zero": described(f"({2**62}, 4)"),
    "a size of a thousand digits": described(f"({'9' * 1000}, 2)"),
    "a size of five thousand digits": described(f"({'9' * 5000}, 2)"),
    "a negative size": described("(-5, 2)", body=bytes(80)),
    "a shape nested deeply": described("(" * 3000 + "1" + ",)" * 3000),
    "brackets that stay open": described("(" * 900),
    "a dtype nested deeply": described("(1,)", "[('a', " * 500 + "'<i8'" + ")]" * 500),
    "a dtype of no element": described("(4, 2)", "[]", body=bytes(64)),
    "a dtype that is no dtype": described("(4, 2)", "7", body=bytes(64)),
    "a dtype of tuples": described("(4, 2)", "((), ())", body=bytes(64)),
    "arrays as elements": described("(4, 2)", "('<i8', (2,))", body=bytes(128)),
    "arrays in a field": described("(4,)", "[('source', '<i8', (2,)), ('target', '<i8')]", body=bytes(96)),
    "elements of no bytes": described(f"({HUGE}, 2)", "'|V0'"),
    "elements of two gigabytes": described("(3,)", "'|S2147483647'"),
    "a header of four gigabytes": npy(b"", version=(2, 0))[:8] + struct.pack("<I", 2**32 - 1) + b"{" * 1000,
    "a header longer than the file": npy("{'descr': '<i8'")[:8] + b"\xff\x00{",
    "a header of another program": npy("import os"),
    "no header": b"\x93NUMPY",
    "keys that are missing": npy("{'shape': (1, 2)}"),
    "a format of the future": npy("{}", version=(9, 9)),
}


@pytest.mark.parametrize("name", NPY)
def test_npy_headers(tmp_path, name):
    (tmp_path / "a.npy").write_bytes(NPY[name])
    with pytest.raises(InputError, match=r"a\.npy"):
        read_all(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("edges.npy", NPY[name])
    with pytest.raises(InputError, match=r"a\.npz"):
        read_all(tmp_path / "a.npz")


def test_a_compressed_header_of_gigabytes_is_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("edges.npy", "w") as file:
        file.write(npy(b"", version=(2, 0))[:8] + struct.pack("<I", 1 << 28))
        for _ in range(64):
            file.write(b" " * (1 << 22))
    tracemalloc.start()
    with pytest.raises(InputError, match="a header of 268435456 bytes"):
        read_all(tmp_path / "a.npz")
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_rows_of_many_fields_are_read_a_few_at_a_time(tmp_path):
    """A row of a structured array may have any size; the fields that are not asked for do not count in the budget."""
    rows = np.zeros(400, [("source", "<i8"), ("target", "<i8"), ("rest", "V200000")])
    rows["source"] = np.arange(400)
    np.save(tmp_path / "wide.npy", rows)
    del rows
    tracemalloc.start()
    assert read_all(tmp_path / "wide.npy", source_column="source", target_column="target") == 400
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()


def scipy_npz(path, **changed):
    matrix = sp.csr_array((np.ones(4), ([0, 0, 1, 2], [1, 2, 0, 0])), shape=(3, 3))
    arrays = {
        "format": np.array(b"csr"),
        "shape": np.array([3, 3]),
        "indptr": matrix.indptr,
        "indices": matrix.indices,
        "data": matrix.data,
    }
    np.savez(path, **{**arrays, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": np.array([HUGE, HUGE])},
        {"shape": np.array([3.0, 3.0])},
        {"shape": np.array(3)},
        {"shape": np.zeros(1000, np.int64)},
        {"shape": np.array([-3, -3])},
        {"format": np.array(7)},
        {"format": np.array([b"csr", b"csr"])},
        {"indptr": np.array(0)},
        {"indptr": np.array([[0, 2], [3, 4]])},
        {"indptr": np.array([0, 2, 3, HUGE])},
        {"indptr": np.array([0.5, 2, 3, 4])},
        {"indices": np.array(1)},
        {"indices": np.zeros((2, 2), np.int32)},
        {"data": np.ones(3)},
        {"data": np.ones((4, 2))},
    ],
    ids=str,
)
def test_members_of_a_scipy_matrix_that_do_not_fit_together(tmp_path, changed):
    scipy_npz(tmp_path / "m.npz", **changed)
    with pytest.raises(InputError, match=r"m\.npz"):
        read_all(tmp_path / "m.npz")


def test_an_encrypted_or_strange_archive_is_named(tmp_path):
    np.savez(tmp_path / "a.npz", source=np.arange(3), target=np.arange(3))
    whole = bytearray((tmp_path / "a.npz").read_bytes())
    at = whole.rfind(b"PK\x01\x02")
    for offset, value in ((8, 1), (10, 99), (10, 12), (10, 14)):  # encrypted; compressed by an unknown method, bzip2, LZMA
        for start in (whole.find(b"PK\x01\x02"), at):
            damaged = bytearray(whole)
            damaged[start + offset] = value
            (tmp_path / "b.npz").write_bytes(damaged)
            with pytest.raises(InputError, match=r"b\.npz"):
                read_all(tmp_path / "b.npz")


@pytest.mark.parametrize(
    ("num_stored", "num_vertices"), [(HUGE, 3), (2, HUGE), (-1, 3), (2, -5), (2**63 - 1, 2**63 - 1), (-(2**61), 2**60), (4, 2)]
)
def test_gapbs_headers(tmp_path, num_stored, num_vertices):
    (tmp_path / "g.sg").write_bytes(struct.pack("<?qq", True, num_stored, num_vertices) + bytes(200))
    with pytest.raises(InputError, match=r"g\.sg has 217 bytes but its header"):
        open_source(tmp_path / "g.sg")


SIZES = [
    f"{HUGE} {HUGE} {HUGE}",
    f"3 3 {HUGE}",
    f"{10**30} {10**30} 1",
    f"{'9' * 5000} {'9' * 5000} 1",
    "3 3 100",
    "-3 -3 1",
    "3 3",
    "٣ ٣ 1",
]


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: sizes[:40])
@pytest.mark.parametrize("extension", ["mtx", "mtx.gz"])
def test_matrix_market_headers(tmp_path, sizes, extension):
    text = f"%%MatrixMarket matrix coordinate pattern general\n{sizes}\n1 2\n".encode()
    path = tmp_path / f"m.{extension}"
    path.write_bytes(gzip.compress(text) if extension == "mtx.gz" else text)
    with pytest.raises(InputError, match=r"m\.mtx.{1,300}$"):
        read_all(path)


def test_more_vertices_than_ids_are_refused(tmp_path):
    """From the caller, from a header, and from metadata."""
    pairs = np.array([0, 1]), np.array([1, 2])
    for wrong in (2**70, 10**400, 2**63, True, 2.5, "many"):
        with pytest.raises(InputError if type(wrong) is int else TypeError, match="num_vertices"):
            build_csr(pairs, tmp_path / "g.zarr", num_vertices=wrong)
    table = pa.table({"source": [0], "target": [1]})
    for digits in (b"9" * 30, b"9" * 5000):
        pq.write_table(table.replace_schema_metadata({b"oocgraph.num_vertices": digits}), tmp_path / "e.parquet")
        with pytest.raises(InputError, match=r"e\.parquet.{1,300}$"):
            open_source(tmp_path / "e.parquet")
    assert not (tmp_path / "g.zarr").exists()


def test_vertices_that_are_only_declared_cost_nothing(tmp_path):
    """Almost as many as there are ids: a range, not an array."""
    graph = build_csr((np.array([0, 1]), np.array([1, 2])), tmp_path / "g.zarr", num_vertices=2**62)
    assert graph.attributes.num_isolated == 2**62 - 3


@pytest.mark.parametrize(
    "name", ["pipe.csv", "pipe.npy", "pipe.npz", "pipe.parquet", "pipe.mtx", "pipe.sg", "pipe.csv.gz", "pipe", "folder"]
)
def test_a_pipe_is_no_file(tmp_path, name):
    """It has no size and is read once; nothing waits for somebody to write into it."""
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
        os.mkfifo(path / "part.parquet")
    else:
        os.mkfifo(path)
    with pytest.raises(InputError, match="is a pipe, not a file"):
        open_source(path)


def test_a_device_and_a_socket_are_no_files(tmp_path):
    with pytest.raises(InputError, match="/dev/null is a device, not a file"):
        open_source("/dev/null")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "s.csv"))
        with pytest.raises(InputError, match="is a socket, not a file"):
            open_source(tmp_path / "s.csv")


def sound_inputs():
    """Bytes of a small input of every format."""
    source, target, weight = np.arange(40), (np.arange(40) * 7) % 41, np.arange(40.0)
    pairs = np.stack([source, target], 1)
    text = "".join(f"{u},{v},{w}\n" for u, v, w in zip(source, target, weight, strict=True)).encode()
    table, coordinates = io.BytesIO(), "".join(f"{u + 1} {v + 1}\n" for u, v in pairs).encode()
    pq.write_table(pa.table({"source": source, "target": target, "weight": weight}), table)
    columns = np.rec.fromarrays([source, target, weight], names=["source", "target", "weight"])
    matrix = sp.coo_array((weight, (source, target)), shape=(41, 41)).tocsr()
    files = {"csv": text, "csv.gz": gzip.compress(text), "parquet": table.getvalue()}
    files["mtx"] = b"%%MatrixMarket matrix coordinate pattern general\n41 41 40\n" + coordinates
    offsets = np.concatenate([matrix.indptr, [40] * 0]).astype("<i8").tobytes()
    files["sg"] = struct.pack("<?qq", False, 40, 41) + offsets + matrix.indices.astype("<i4").tobytes()
    for extension, save, arrays in (
        ("npy", np.save, {"arr": pairs}),
        ("structured.npy", np.save, {"arr": np.asarray(columns)}),
        ("npz", np.savez, {"source": source, "target": target}),
        ("packed.npz", np.savez_compressed, {"source": source, "target": target}),
    ):
        file = io.BytesIO()
        save(file, **arrays)
        files[extension] = file.getvalue()
    file = io.BytesIO()
    sp.save_npz(file, matrix)
    files["scipy.npz"] = file.getvalue()
    return files


SOUND = sound_inputs()

PARQUET_PAGES = pq.ParquetFile(io.BytesIO(SOUND["parquet"])).metadata.row_group(0).total_byte_size


@pytest.mark.parametrize("extension", SOUND)
def test_random_damage_ends_with_one_message_or_an_answer(tmp_path, extension):
    """Flipped bits and bytes, cut ends: an InputError or edges, never another error, and little memory.

    Of Parquet only the pages: of some damaged footers Arrow makes an uncaught C++ exception, which ends the process.
    """
    rng = np.random.default_rng(11)
    path = tmp_path / f"e.{extension}"
    path.write_bytes(SOUND[extension])
    assert 0 < read_all(path) <= 40
    longest = 0
    tracemalloc.start()
    for _ in range(60):
        data = np.frombuffer(SOUND[extension], np.uint8).copy()
        size = data.size if extension != "parquet" else PARQUET_PAGES
        for _ in range(rng.integers(1, 4)):
            at = rng.integers(size if rng.random() < 0.5 else min(size, 200))
            data[at] = rng.integers(256) if rng.random() < 0.5 else data[at] ^ (1 << rng.integers(8))
        if rng.random() < 0.2:
            data = data[: rng.integers(1, data.size)]
        path.write_bytes(data.tobytes())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a damaged header may warn of its version
            try:
                read_all(path)
            except InputError as error:
                longest = max(longest, len(str(error)))
    assert longest < 1000, "a message, not a dump"
    assert tracemalloc.get_traced_memory()[1] < 30 << 20
    tracemalloc.stop()


def test_parquet_statistics_are_not_asked_for_where_arrow_would_end_the_process(tmp_path):
    """It does where a column's metadata names another physical type than the schema."""

    class Stored:
        physical_type = "INT96"

        @property
        def statistics(self):
            raise AssertionError("asked")

    metadata = SimpleNamespace(
        row_group=lambda group: SimpleNamespace(column=lambda column: Stored()),
        schema=SimpleNamespace(column=lambda column: SimpleNamespace(name="source", physical_type="INT64")),
    )
    with pytest.raises(InputError, match="row group 0 says that 'source' is INT96, the schema INT64"):
        parquet._statistics(parquet._File(tmp_path / "e.parquet", metadata, 0), 0, 0)
