"""GAPBS serialized graphs."""

import struct

import numpy as np
import pytest
import scipy.sparse

from oocgraph.ingest.sources import open_source
from tests.ingest.helpers import check, read, refused


def csr(edges, n):
    u, v = np.array(edges, int).reshape(-1, 2).T
    order = np.lexsort((v, u))
    return np.concatenate([[0], np.cumsum(np.bincount(u, minlength=n))]), v[order].astype("<i4")


def write(path, edges, n, *, directed, weights=False):
    """Write what GAPBS's converter writes: an undirected edge stands in both lists."""
    edges = list(edges) if directed else [*edges, *((v, u) for u, v in edges if u != v)]
    data = struct.pack("<?qq", directed, len(edges), n)
    for lists in [edges, [(v, u) for u, v in edges]][: 2 if directed else 1]:
        indptr, neighbours = csr(lists, n)
        if weights:
            neighbours = np.stack([neighbours, neighbours * 10], axis=1)
        data += indptr.astype("<i8").tobytes() + neighbours.astype("<i4").tobytes()
    path.write_bytes(data)
    return path


EDGES = [(0, 1), (0, 3), (2, 1), (2, 2), (5, 0), (5, 3)]


def test_directed(tmp_path):
    path = write(tmp_path / "g.sg", EDGES, 7, directed=True)
    check(open_source(path), tuple(zip(*EDGES, strict=True)), num_rows=6, num_vertices=7, directed=True, weight=None, id_kind="int64")


def test_undirected_gives_each_edge_once(tmp_path):
    path = write(tmp_path / "g.sg", EDGES, 7, directed=False)
    check(open_source(path), ([0, 0, 0, 1, 2, 3], [1, 3, 5, 2, 2, 5]), num_rows=None, num_vertices=7, directed=False)


def test_weights(tmp_path):
    path = write(tmp_path / "g.wsg", EDGES, 7, directed=True, weights=True)
    expected = {"weight": [10 * v for _, v in EDGES]}
    check(open_source(path), tuple(zip(*EDGES, strict=True)), expected, weight="weight", columns={"weight": "int32"})
    path = write(tmp_path / "u.wsg", EDGES, 7, directed=False, weights=True)
    check(open_source(path), ([0, 0, 0, 1, 2, 3], [1, 3, 5, 2, 2, 5]), {"weight": [10, 30, 50, 20, 20, 50]})


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("directed", [True, False])
def test_no_edges(tmp_path, n, directed):
    check(open_source(write(tmp_path / "g.sg", [], n, directed=directed)), ([], []), num_vertices=n)


@pytest.mark.parametrize("directed", [True, False])
def test_random_graph_for_any_block_size(tmp_path, directed):
    matrix = scipy.sparse.random_array((60, 60), density=0.1, random_state=np.random.default_rng(2)).tocoo()
    edges = sorted({(int(min(u, v)), int(max(u, v))) for u, v in zip(matrix.row, matrix.col, strict=True)})
    source = open_source(write(tmp_path / "g.sg", edges, 60, directed=directed))
    for block_rows in (1, 7, 50, 10_000):
        u, v, _ = read(source, block_rows)
        assert list(zip(u, v, strict=True)) == edges


def test_damaged(tmp_path):
    path = write(tmp_path / "g.sg", EDGES, 7, directed=False)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    refused(path, "truncated", "write it again")
    path.write_bytes(data[:10])
    refused(path, "not a GAPBS serialized graph")
    path.write_bytes(b"\x07" + data[1:])
    refused(path, "not a GAPBS serialized graph")
    path.write_bytes(data[:-4] + struct.pack("<i", 7))
    refused(path, "stored edge 10", "7 is not below")
    path.write_bytes(data[:-4] + struct.pack("<i", -7))
    refused(path, "stored edge 10", "negative")
    path.write_bytes(data[:25] + struct.pack("<q", 1 << 40) + data[33:])
    refused(path, "offsets", "ascend")
    for vertex, offset in ((0, 1), (7, 9)):
        path.write_bytes(data[: 17 + 8 * vertex] + struct.pack("<q", offset) + data[25 + 8 * vertex :])
        refused(path, "offsets", "ascend from 0 to 11")


def test_weights_under_the_wrong_name(tmp_path):
    path = write(tmp_path / "g.wsg", EDGES, 7, directed=True, weights=True)
    path.rename(tmp_path / "g.sg")
    refused(tmp_path / "g.sg", ".wsg")
