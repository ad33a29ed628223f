"""Pages of a Parquet file are what its writer was asked for, and what reading them takes follows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oocgraph.ingest.sources.parquet_pages import USUAL_BYTES, _page, reader_bytes, text_bytes

ROWS = 1_500_000


def written(path, **options):
    """Write two columns of random numbers, as one row group; return what `reader_bytes` takes."""
    values = np.random.default_rng(1).integers(0, 1 << 60, (2, ROWS))
    pq.write_table(pa.table([*values], names=["a", "b"]), path, row_group_size=ROWS, **options)
    return [(path, pq.ParquetFile(path).metadata)]


def page_of(path, offset):
    """Return what the header of a page says."""
    with path.open("rb") as file:
        return _page(file, offset)


WHOLE = {"use_dictionary": False, "data_page_size": 1 << 30, "write_batch_size": ROWS, "max_rows_per_page": 1 << 30}


@pytest.mark.parametrize("compression", ["none", "zstd", "snappy"])
def test_a_page_is_held_as_stored_and_decompressed(tmp_path, compression):
    files = written(tmp_path / "e.parquet", compression=compression, **WHOLE)
    page = page_of(files[0][0], files[0][1].row_group(0).column(0).data_page_offset)
    assert page.num_bytes >= 8 * ROWS
    assert reader_bytes(files, ["a"]) == page.num_bytes + page.stored_bytes
    assert reader_bytes(files, ["a", "b"]) == pytest.approx(2 * reader_bytes(files, ["a"]), rel=0.01)


def test_a_large_dictionary_is_decoded_too(tmp_path):
    files = written(tmp_path / "e.parquet", compression="none", dictionary_pagesize_limit=1 << 30)
    assert 3 * 8 * ROWS < reader_bytes(files, ["a"]) < 4 * 8 * ROWS


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
    assert text_bytes(path, metadata, 0, ["a"]) == length + 4  # each with its length
    assert text_bytes(path, metadata, 0, ["b"]) == 0
    path.unlink()
    assert text_bytes(path, metadata, 0, ["a"]) == 0
