"""What is appended to bins comes back, whatever the range of keys, the columns, the blocks and the threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from oocgraph.external_sort.bins import CACHED_BYTES, BinFiles
from oocgraph.external_sort.key_bins import SplitterBins, uniform_bins
from oocgraph.external_sort.temporary import Folder
from oocgraph.external_sort.workers import Scratch

COLUMNS = [[], ["f4"], ["u8"], ["?", "f2", "i4", "f8", "i1", "u2"], ["f8"] * 20]


def ranges(width):
    """Bins of keys below ``2 ** width``, or of any by splitters."""
    if width is None:
        return SplitterBins(np.array([5, 1 << 20, 1 << 50, (1 << 64) - 3], np.uint64))
    return uniform_bins(0, 1 << width, 7)


def records_of(count, bins, dtypes, rng):
    """Random keys, spread over the digits, and random bits beside them."""
    digits, most = rng.integers(0, 64, count).astype(np.uint64), np.uint64(bins.starts[-1] - 1)
    keys = np.minimum(rng.integers(0, 1 << 64, count, dtype=np.uint64) >> digits, most)
    sizes = [(dtype, 2 if dtype == "?" else 250, count * np.dtype(dtype).itemsize) for dtype in dtypes]
    return (keys, *(rng.integers(0, stop, num_bytes).astype(np.uint8).view(dtype) for dtype, stop, num_bytes in sizes))


def sorted_rows(records):
    """Rows of records as bytes, ascending."""
    columns = [np.ascontiguousarray(values).view(np.uint8).reshape(values.size, values.itemsize) for values in records]
    return sorted(map(bytes, np.concatenate(columns, axis=1)))


def joined(parts, dtypes):
    """Put parts of records together."""
    empty = tuple(np.empty(0, dtype) for dtype in ["u8", *dtypes])
    return tuple(np.concatenate(values) for values in zip(empty, *parts, strict=True))


@pytest.mark.parametrize("width", [3, 32, 35, 43, 51, 60, None])
@pytest.mark.parametrize("dtypes", COLUMNS, ids=len)
def test_all_records_come_back(tmp_path, width, dtypes):
    rng, bins = np.random.default_rng(len(dtypes)), ranges(width)
    files = BinFiles(Folder(tmp_path), bins, dtypes)
    given = [records_of(count, bins, dtypes, rng) for count in (0, 1, 40, 3_000, CACHED_BYTES // 100 + 1)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda records: files.append(records, Scratch()), given))
    for index in range(bins.num_bins):
        belong = [tuple(values[own] for values in records) for records in given for own in [_inside(records[0], bins, index)]]
        expected, scratch = sorted_rows(joined(belong, dtypes)), Scratch()
        assert files.counts[index] == len(expected)
        assert sorted_rows(files.read(index, scratch)) == expected
        for length in (7, 1000, 1 << 20):
            assert sorted_rows(joined(list(files.blocks(index, length)), dtypes)) == expected
        keys = np.sort(np.concatenate([np.empty(0, np.uint64), *files.key_blocks(index, 500)]))
        np.testing.assert_array_equal(keys, np.sort(joined(belong, dtypes)[0]))
    files.close()


def _inside(keys, bins, index):
    low, high = bins.starts[index], bins.starts[index + 1] - 1
    return (keys >= np.uint64(low)) & (keys <= np.uint64(high))


@pytest.mark.parametrize("width", [20, 45, None])
def test_a_bin_is_replaced_by_records_with_other_columns(tmp_path, width):
    rng, bins = np.random.default_rng(2), ranges(width)
    files = BinFiles(Folder(tmp_path), bins, ["u8", "f4"])
    given = records_of(5_000, bins, ["u8", "f4"], rng)
    files.append(given, Scratch())
    untouched = sorted_rows(files.read(0, Scratch()))
    other = files.retyped(["f4"])
    keys, _, values = files.read(2, Scratch())
    kept = (keys[::3].copy(), values[::3].copy())
    other.replace(2, kept, Scratch())
    other.append_to(2, kept, Scratch())
    assert sorted_rows(other.read(2, Scratch())) == sorted_rows(joined([kept, kept], ["f4"]))
    assert other.counts[2] == 2 * kept[0].size
    assert sorted_rows(files.read(0, Scratch())) == untouched


def test_keys_that_are_stored_whole_are_read_from_any_place(tmp_path):
    bins = ranges(None)
    files = BinFiles(Folder(tmp_path), bins)
    keys = np.arange((1 << 20) + 5, (1 << 20) + 105, dtype=np.uint64)
    files.append_to(2, (keys,), Scratch())
    out = np.empty(30, np.uint64)
    files.read_keys(2, 50, out)
    np.testing.assert_array_equal(out, keys[50:80])
    with open(tmp_path / "2", "r+b") as file:
        file.truncate(8 * 60)
    with pytest.raises(OSError, match="temporary file ends"):
        files.read_keys(2, 50, out)
