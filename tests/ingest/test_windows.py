"""A file of slices is read a window at a time, slices larger than one included."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph.external_sort.bins import BinFiles
from oocgraph.external_sort.key_bins import uniform_bins
from oocgraph.external_sort.temporary import Folder
from oocgraph.external_sort.workers import Scratch


def files_of(sizes, folder):
    """Append blocks of so many keys to one bin; return the files, and all keys."""
    rng, files = np.random.default_rng(1), BinFiles(Folder(folder), uniform_bins(0, 1 << 41, 1))
    blocks = [np.sort(rng.integers(0, 1 << 41, size).astype(np.uint64)) for size in sizes]
    for block in blocks:
        files.append((block,), Scratch())
    return files, np.sort(np.concatenate(blocks))


@pytest.mark.parametrize("most", [1, 10, 5000, 1 << 20])
def test_blocks_are_all_keys_and_not_larger_than_asked_for(most, tmp_path):
    sizes = [3, 1, 700, 2, 2, 9000, 1, 40, 40, 40]
    files, keys = files_of(sizes, tmp_path)
    blocks = [block for (block,) in files.blocks(0, most)]
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), keys)
    assert all(block.size <= most or block.size in sizes for block in blocks)
    assert len(blocks) == 1 or most < 1 << 20


def test_a_file_that_ends_within_a_slice_is_an_error(tmp_path):
    """As a full disk leaves it, or another program."""
    files, _ = files_of([100, 100], tmp_path)
    with open(tmp_path / "0", "r+b") as file:
        file.truncate(files.size(0) - 1)
    with pytest.raises(OSError, match="temporary file ends within a slice"):
        list(files.blocks(0, 10))
