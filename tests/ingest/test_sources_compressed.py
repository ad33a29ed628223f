"""Compressed text: the same edges by every method, what is damaged, and how much memory decompressing takes."""

import bz2
import gzip
import lzma

import numpy as np
import pyarrow as pa
import pytest

from oocgraph import BudgetError, build_csr
from oocgraph.ingest.sources import open_source
from oocgraph.ingest.sources.compressed import LEAST_WINDOW, MOST_WINDOW, XZ_LIMITS, held_bytes
from oocgraph.ingest.sources.lines import LINES_BYTES
from tests.ingest.helpers import check, peak_anonymous_bytes, read, refused

TEXT = b"# a comment\n0 1 5\n1 2 7\n\n2 3 -1\n"
EDGES, WEIGHTS = ([0, 1, 2], [1, 2, 3]), {"f2": [5, 7, -1]}


def zstd(data):
    return pa.compress(data, codec="zstd", asbytes=True)


METHODS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}
every = pytest.mark.parametrize("suffix", METHODS)


def with_dictionary(data, num_bytes):
    return lzma.compress(data, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": num_bytes}])


@every
@pytest.mark.parametrize("name", ["e.txt", "E.EDGES", "e.edgelist"])
def test_text(tmp_path, suffix, name):
    path = tmp_path / (name + (suffix.upper() if name.isupper() else suffix))
    path.write_bytes(METHODS[suffix](TEXT))
    check(open_source(path, weight_column="f2"), EDGES, WEIGHTS, likely_rows=None)


@every
def test_parts_that_follow_one_another(tmp_path, suffix):
    """As ``cat`` and parallel compressors make them; one ends within a line."""
    path, pack = tmp_path / ("e.txt" + suffix), METHODS[suffix]
    path.write_bytes(b"".join([pack(TEXT[:20]), pack(b""), pack(TEXT[20:])]))
    check(open_source(path, weight_column="f2"), EDGES, WEIGHTS)


def test_padding_between_streams_of_xz(tmp_path):
    path = tmp_path / "e.txt.xz"
    for num in (8, 1 << 17):
        path.write_bytes(lzma.compress(TEXT[:20]) + bytes(num) + lzma.compress(TEXT[20:]) + bytes(4))
        check(open_source(path, weight_column="f2"), EDGES, WEIGHTS)


@every
def test_matrix_market(tmp_path, suffix):
    path = tmp_path / ("m.mtx" + suffix)
    path.write_bytes(METHODS[suffix](b"%%MatrixMarket matrix coordinate pattern general\n4 4 2\n1 2\n4 1\n"))
    check(open_source(path), ([0, 3], [1, 0]), num_vertices=4)


@every
def test_a_long_file_in_blocks(tmp_path, suffix):
    ends = np.random.default_rng(1).integers(0, 1000, (300_000, 2))
    path = tmp_path / ("e.csv" + suffix)
    path.write_bytes(METHODS[suffix]("\n".join(f"{u},{v}" for u, v in ends.tolist()).encode()))
    source, target, _ = read(open_source(path), 70_000)
    np.testing.assert_array_equal(np.transpose([source, target]), ends)


@every
def test_damage(tmp_path, suffix):
    path, rng = tmp_path / ("e.csv" + suffix), np.random.default_rng(1)
    data = METHODS[suffix]("\n".join(f"{u},{v}" for u, v in rng.integers(0, 10**9, (100_000, 2)).tolist()).encode())
    path.write_bytes(data[: len(data) // 2])
    assert refused(path, "is truncated", "copy or write it again").__cause__ is not None
    path.write_bytes(data[:1000] + bytes(1000) + data[2000:])
    refused(path, "e.csv" + suffix)  # what comes out may be text, of which a line is no edge
    path.write_bytes(b"1,2\n" * 5)
    refused(path, f"is not a {'gzip' if suffix == '.gz' else 'bzip2' if suffix == '.bz2' else 'xz' if suffix == '.xz' else 'zstd'} file")
    path.write_bytes(METHODS[suffix](b""))
    refused(path, "0 bytes when decompressed")


@every
def test_damage_in_a_later_part_is_refused(tmp_path, suffix):
    """Of bzip2, too, whose reader in Python takes it for the end."""
    path, rng = tmp_path / ("e.csv" + suffix), np.random.default_rng(2)
    one, two = (METHODS[suffix]("".join(f"{u},{v}\n" for u, v in rng.integers(0, 10**9, (3000, 2)).tolist()).encode()) for _ in range(2))
    path.write_bytes(one + two)
    assert len(read(open_source(path), 1000)[0]) == 6000
    path.write_bytes(one + bytes([two[0], two[1] ^ 1]) + two[2:])
    refused(path, "copy or write it again")
    path.write_bytes(one + b"nothing of the kind, and longer than any header")
    refused(path, "copy or write it again")


@pytest.mark.parametrize("num_bytes", [1 << 20, 8 << 20, 64 << 20])
def test_a_dictionary_of_xz_is_known_before(tmp_path, num_bytes):
    path = tmp_path / "e.txt.xz"
    path.write_bytes(with_dictionary(TEXT, num_bytes))
    assert num_bytes < held_bytes(path) == next(limit for limit in XZ_LIMITS if limit > num_bytes)
    check(open_source(path, weight_column="f2"), EDGES, WEIGHTS, readers=(1, LINES_BYTES + held_bytes(path)))


def test_a_later_stream_of_xz_takes_no_more_than_the_first(tmp_path):
    path = tmp_path / "e.txt.xz"
    path.write_bytes(with_dictionary(TEXT, 1 << 20) + with_dictionary(TEXT, 64 << 20))
    refused(path, "a later part takes more memory than the first, 9 MiB", "one part")
    path.write_bytes(lzma.compress(TEXT[:20], preset=0) + lzma.compress(TEXT[20:], preset=6))
    check(open_source(path, weight_column="f2"), EDGES, WEIGHTS)


def test_a_later_frame_of_zstd_takes_no_more_than_the_first(tmp_path):
    path = tmp_path / "e.txt.zst"
    path.write_bytes(zstd(TEXT[:18]) + frame(TEXT[18:], 23))
    check(open_source(path, weight_column="f2"), EDGES, WEIGHTS)
    many = "".join(f"{u} {v} 1\n" for u, v in np.random.default_rng(1).integers(0, 10**9, (20_000, 2)).tolist())
    path.write_bytes(zstd(TEXT[:18]) + zstd(many.encode()) + frame(TEXT[18:], 26))
    refused(path, "a later part takes more memory than the first, 8 MiB", "one part")
    path.write_bytes(frame(TEXT[:18], 27) + frame(TEXT[18:], 26))
    check(open_source(path, weight_column="f2"), EDGES, WEIGHTS)


def test_a_dictionary_of_xz_that_is_too_large(tmp_path):
    path = tmp_path / "e.txt.xz"
    path.write_bytes(with_dictionary(TEXT, 512 << 20))
    refused(path, f"takes more than {MOST_WINDOW >> 20} MiB", "lower level")


def frame(content, window_log, *, before=b""):
    """One frame of zstd with a window, of one block that is not compressed."""
    block = ((len(content) << 3) | 1).to_bytes(3, "little") + content
    return before + (0xFD2FB528).to_bytes(4, "little") + bytes([0, (window_log - 10) << 3]) + block


@pytest.mark.parametrize("before", [b"", (0x184D2A53).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"hello"])
def test_a_window_of_zstd_is_known_before(tmp_path, before):
    path = tmp_path / "e.txt.zst"
    path.write_bytes(frame(TEXT, 26, before=before))
    assert held_bytes(path) == 1 << 26
    check(open_source(path, weight_column="f2"), EDGES, WEIGHTS, readers=(1, LINES_BYTES + (1 << 26)))
    path.write_bytes(frame(TEXT, 28, before=before))
    refused(path, "takes more than 128 MiB", "lower level")
    path.write_bytes(before + zstd(TEXT))
    assert held_bytes(path) == LEAST_WINDOW


def test_a_name_that_is_not_utf8(tmp_path):
    path = tmp_path / b"\xff.txt.zst".decode("utf8", "surrogateescape")
    path.write_bytes(zstd(TEXT))
    check(open_source(path, weight_column="f2"), EDGES, WEIGHTS)


def test_memory_is_as_charged(tmp_path):
    """A dictionary of 64 MiB that fills up; a budget that is too small names one with it, which works."""
    path, small = tmp_path / "e.txt.xz", tmp_path / "e.txt.gz"
    lines = b"12345678 87654321\n" * 4_000_000
    path.write_bytes(with_dictionary(lines, 64 << 20))
    small.write_bytes(gzip.compress(lines, 1))
    grown, num_edges = peak_anonymous_bytes(path)
    assert num_edges == 4_000_000
    assert 64 << 20 < grown < LINES_BYTES + held_bytes(path)
    assert least_budget(path) - least_budget(small) >= 30


def least_budget(path):
    with pytest.raises(BudgetError) as error:
        build_csr(path, path.with_suffix(".zarr"), memory_budget="1M")
    return int(str(error.value).rpartition("M")[0].rpartition(" ")[2].strip("'\""))
