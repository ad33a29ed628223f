"""Entries in files by range of rows: what is read is what was dealt, whatever the bits of a vertex number."""

from __future__ import annotations

import numpy as np
import pytest

from oocgraph.external_sort.key_bins import uniform_bins
from oocgraph.external_sort.temporary import Folder
from oocgraph.external_sort.workers import Scratch
from oocgraph.ingest.entries import EntryFiles, deal_edges
from oocgraph.kernels.entries import HEADER_BYTES, LIST_BYTES, column_form
from oocgraph.store.records import key_bits


@pytest.mark.parametrize("num_ids", [2, 200, 300, 1000, 2000, 5000, 70_000, 200_000, 600_000])
@pytest.mark.parametrize("directed", [False, True])
def test_what_is_read_is_what_was_dealt(num_ids, directed, tmp_path):
    """Ids of 1 to 20 bits: in whole bytes, and with 1, 2 or 4 bits above them."""
    rng, bits = np.random.default_rng(num_ids), key_bits(num_ids)
    rank, scratch = rng.permutation(num_ids).astype(np.uint32), Scratch()
    groups = [EntryFiles(Folder(tmp_path / name), uniform_bins(0, num_ids, 5), bits, rank) for name in ("forward", "backward")]
    forward, backward = groups if directed else (groups[0], groups[0])
    wanted = {name: [] for name in ("forward", "backward")}
    for _ in range(3):
        hub = rng.integers(num_ids)
        row, col = np.unique(
            np.c_[np.where(rng.random(3000) < 0.3, hub, rng.integers(0, num_ids, 3000)), rng.integers(0, num_ids, 3000)], axis=0
        ).T
        deal_edges((row.astype(np.uint64) << np.uint64(bits)) | col.astype(np.uint64), bits, forward, backward, scratch)
        wanted["forward"].append((rank[row], rank[col]))
        is_dealt = slice(None) if directed else row != col
        wanted["backward" if directed else "forward"].append((rank[col][is_dealt], rank[row][is_dealt]))
    for name, files in zip(wanted, groups[: 1 + directed], strict=False):
        expected = np.sort(np.concatenate([(a.astype(np.uint64) << np.uint64(bits)) | b for a, b in wanted[name]]))
        by_block = np.concatenate([keys for index in range(files.bins.num_bins) for (keys,) in files.blocks(index, 100)])
        np.testing.assert_array_equal(np.sort(by_block), expected)
        whole = np.concatenate([files.read(index, scratch)[0].copy() for index in range(files.bins.num_bins)])
        np.testing.assert_array_equal(np.sort(whole), expected)
        assert files.counts.sum() == expected.size
        files.close()


def test_a_bit_above_whole_bytes_takes_a_bit(tmp_path):
    """One row of 1000 columns, of 17 bits each."""
    num_ids, scratch = 70_000, Scratch()
    rank = np.arange(num_ids, dtype=np.uint32)
    forward, backward = (EntryFiles(Folder(tmp_path / name), uniform_bins(0, num_ids, 1), 17, rank) for name in "ab")
    deal_edges((np.uint64(5) << np.uint64(17)) | np.arange(1000, dtype=np.uint64) * np.uint64(70), 17, forward, backward, scratch)
    assert column_form(17) == (2, 1)
    assert forward.size(0) == HEADER_BYTES + LIST_BYTES + 2000 + 125
