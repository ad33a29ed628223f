"""Pages of a Parquet file are what its writer was asked for, and what reading them takes follows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oocgraph.ingest.sources import parquet_pages
from oocgraph.ingest.sources.parquet_pages import SPREAD, USUAL_BYTES, _page, _pages, longest_text_bytes, reader_bytes, text_bytes

ROWS = 1_500_000


def written(path, **options):
    """Write two columns of random numbers, as one row group; return what `reader_bytes` takes."""
    values = np.random.default_rng(1).integers(0, 1 << 60, (2, ROWS))
    pq.write_table(pa.table([*values], names=["a", "b"]), path, row_group_size=ROWS, **options)
    return [(path, pq.ParquetFile(path).metadata)]


@pytest.fixture(autouse=True, params=[0, 1], ids=["the system's allocator", "Arrow's allocator"])
def kept_bytes(request, monkeypatch):
    """Arrow's own allocator keeps what is freed for a while."""
    monkeypatch.setattr(parquet_pages, "arrow_bytes", lambda: request.param)
    return request.param


def held(num_bytes, kept_bytes):
    """Return what is charged for so many bytes of pages."""
    return num_bytes + max(0, num_bytes - USUAL_BYTES) * (kept_bytes > 0)


def page_of(path, offset):
    """Return what the header of a page says."""
    with path.open("rb") as file:
        return _page(file, offset)


WHOLE = {"use_dictionary": False, "data_page_size": 1 << 30, "write_batch_size": ROWS, "max_rows_per_page": 1 << 30}


@pytest.mark.parametrize("compression", ["none", "zstd", "snappy"])
def test_a_page_is_held_as_stored_and_decompressed(tmp_path, compression, kept_bytes):
    files = written(tmp_path / "e.parquet", compression=compression, **WHOLE)
    page = page_of(files[0][0], files[0][1].row_group(0).column(0).data_page_offset)
    assert page.num_bytes >= 8 * ROWS
    assert reader_bytes(files, ["a"]) == held(page.num_bytes + page.stored_bytes, kept_bytes)
    assert reader_bytes(files, ["a", "b"]) == pytest.approx(2 * reader_bytes(files, ["a"]), rel=0.01)


def test_a_large_dictionary_is_decoded_too(tmp_path, kept_bytes):
    files = written(tmp_path / "e.parquet", compression="none", dictionary_pagesize_limit=1 << 30)
    assert held(3 * 8 * ROWS, kept_bytes) < reader_bytes(files, ["a"]) < held(4 * 8 * ROWS, kept_bytes)


def test_usual_pages_and_damaged_headers_count_alike(tmp_path):
    files = written(tmp_path / "e.parquet")
    assert reader_bytes(files, ["a"]) == USUAL_BYTES
    path, _ = files[0]
    content = bytearray(path.read_bytes())
    content[4:200] = b"\xff" * 196
    path.write_bytes(content)
    assert page_of(path, 4) is None
    assert reader_bytes(files, ["a"]) == USUAL_BYTES
    path.write_bytes(b"\x15" * 3)
    assert page_of(path, 1) is None
    path.unlink()
    assert reader_bytes(files, ["a", "b"]) == 2 * USUAL_BYTES


@pytest.mark.parametrize("checksums", [False, True])
@pytest.mark.parametrize("length", [3, 5_000])
def test_a_dictionary_tells_how_long_strings_are(tmp_path, length, checksums):
    path = tmp_path / "e.parquet"
    names = pa.array([f"{i:03}" + "x" * (length - 3) for i in range(200)])
    table = pa.table({"a": names.take(pa.array(np.arange(20_000) % 200)), "b": np.arange(20_000)})
    pq.write_table(table, path, use_dictionary=["a"], write_page_checksum=checksums)
    metadata = pq.ParquetFile(path).metadata
    assert text_bytes(path, metadata, [0], ["a"], 1 << 30) == length + 4  # each with its length
    assert (
        text_bytes(path, metadata, [0], ["a", "a"], 1 << 30)
        == longest_text_bytes([(path, metadata)], ["a", "a"], 1 << 30)
        == 2 * (length + 4)
    )
    path.unlink()
    assert text_bytes(path, metadata, [0], ["a"], 1 << 30) == 0


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize(
    "options", [{}, {"write_page_checksum": True}, {"use_dictionary": False}, {"write_statistics": False}, {"compression": "none"}]
)
def test_every_page_is_found(tmp_path, options, version):
    """Headers with statistics of each page, which may be long, checksums, of both versions of pages."""
    path, rows = tmp_path / "e.parquet", 30_000
    names = [f"{i * 7919 % 10_007:05}" + "x" * (i % 300) for i in range(rows)]
    table = pa.table({"a": names, "b": pa.array([None if i % 3 else i for i in range(rows)])})
    pq.write_table(table, path, row_group_size=10_000, data_page_size=20_000, write_batch_size=500, data_page_version=version, **options)
    metadata = pq.ParquetFile(path).metadata
    with path.open("rb") as file:
        for group in range(3):
            for column in range(2):
                chunk = metadata.row_group(group).column(column)
                pages = list(_pages(file, chunk))
                assert sum(page.num_values for page in pages if page.kind != parquet_pages.DICTIONARY) == 10_000
                first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
                assert pages[-1].end == first + chunk.total_compressed_size
                assert len(pages) > 5 or column == 1


def test_longest_strings_count_wherever_they_are(tmp_path):
    """Of later pages, row groups and files; more in a page that is so large that they may lie together in it."""
    short, long = ["x" * 10] * 20_000, ["y" * 5_000] * 2000
    files = []
    for name, values in (("few", short[:10]), ("many", [*short, *long, *short])):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"a": values}), path, use_dictionary=False, row_group_size=30_000, write_batch_size=100)
        files.append((path, pq.ParquetFile(path).metadata))
    assert 5_000 <= longest_text_bytes(files, ["a"], 1 << 30) < 5_005
    (path, metadata) = files[1]
    assert int(text_bytes(path, metadata, [1], ["a"], 1 << 30)) == 14
    assert 5_000 <= text_bytes(path, metadata, [0, 1], ["a"], 1 << 30) < 5_005
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"a": [*short, *long]}), whole, **WHOLE | {"write_batch_size": 22_000})
    of_page = longest_text_bytes([(whole, pq.ParquetFile(whole).metadata)], ["a"], 1 << 30)
    assert longest_text_bytes([(whole, pq.ParquetFile(whole).metadata)], ["a"], 1 << 20) == SPREAD * of_page


def test_sizes_that_no_page_has(tmp_path):
    """Places behind them would be too large to go to."""
    path = tmp_path / "e"
    path.write_bytes(b"\x15\x00\x15\x02\x15" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" + b"\x00" * 9)
    assert page_of(path, 0) is None


def test_headers_that_are_none(tmp_path):
    """Of structures within structures, lists without end, and numbers that are too long."""
    path = tmp_path / "e"
    for content in (
        b"\x1c" * 1000,
        b"\x19\xf7\xff\xff\xff\xff\x7f" + bytes(1000),
        b"\x15" + b"\xff" * 40_000,
        b"\x18\xff\xff\xff\x7f",
        b"\x1e\x00",
        b"\x15\x01\x00",
        b"",
    ):
        path.write_bytes(content)
        assert page_of(path, 0) is None
