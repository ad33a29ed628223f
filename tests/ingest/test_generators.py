"""The generators: edges depend on their position only, and have the shape their names promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

import oocgraph
from oocgraph import generate_grid
from oocgraph.errors import ArgumentError, OocGraphError
from oocgraph.ingest.generators.edge_file import write_edges
from oocgraph.ingest.generators.grid import GridEdges
from oocgraph.ingest.generators.kronecker import KroneckerEdges
from oocgraph.ingest.generators.uniform import UniformEdges
from oocgraph.kernels.generate import KRONECKER_A, KRONECKER_B, KRONECKER_C, edge_weights, kronecker_edges, shuffle_ids

MASK64 = (1 << 64) - 1
MASK32 = (1 << 32) - 1


def splitmix64(value):
    x = (value + 0x9E3779B97F4A7C15) & MASK64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def mix32(counter, key):
    x = (counter + (key & MASK32)) & MASK32
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & MASK32
    x = (x + (key >> 32)) & MASK32
    x = ((x ^ (x >> 15)) * 0x846CA68B) & MASK32
    return x ^ (x >> 16)


def stage_key(seed, position, stage):
    return splitmix64(seed ^ splitmix64(((position >> 32) << 8) | stage))


def plain_kronecker_edge(scale, seed, position):
    """Make one edge with Python integers: the oracle of the compiled kernel."""
    row = col = 0
    for level in range(scale):
        draw = mix32(position & MASK32, stage_key(seed, position, level)) / 2**32
        quadrant = np.searchsorted(np.cumsum([KRONECKER_A, KRONECKER_B, KRONECKER_C]), draw, side="right")
        row, col = row << 1 | quadrant >> 1, col << 1 | quadrant & 1
    return permute(row, scale, seed), permute(col, scale, seed)


def permute(label, scale, seed):
    keys = [stage_key(seed, k << 32, 255) | 1 for k in range(6)]
    mask, shift = (1 << scale) - 1, max(1, scale // 2)
    for k in range(3):
        label = (int(label) * keys[2 * k] + keys[2 * k + 1]) & mask
        label ^= label >> shift
    return label


def all_edges(source, block_rows):
    blocks = [block for stream in source.streams(block_rows) for block in stream()]
    starts = np.cumsum([0, *[block.source.size for block in blocks]])
    assert [block.first_row for block in blocks] == starts[:-1].tolist()
    assert all(0 < block.source.size <= block_rows for block in blocks)
    empty = [np.empty(0, np.int64)]
    return np.concatenate(empty + [b.source for b in blocks]), np.concatenate(empty + [b.target for b in blocks])


SOURCES = {
    "kronecker": KroneckerEdges(8, edge_factor=16, seed=5),
    "uniform": UniformEdges(8, edge_factor=16, seed=5),
    "grid": GridEdges(17, 23),
    "one vertex": KroneckerEdges(0, edge_factor=16, seed=5),
    "one uniform vertex": UniformEdges(0, edge_factor=3, seed=5),
    "no edges": KroneckerEdges(4, edge_factor=0, seed=5),
    "one street": GridEdges(1, 9),
    "one row": GridEdges(9, 1),
    "one crossing": GridEdges(1, 1),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("block_rows", [7, 100, 1 << 20])
def test_edges_do_not_depend_on_block_size(name, block_rows):
    """Blocks of any size, from any number of streams, are the same edges in the same order."""
    source = SOURCES[name]
    src, dst = all_edges(source, block_rows)
    assert src.size == source.num_rows
    expected = source.edges(0, source.num_rows)
    np.testing.assert_array_equal(src, expected[0])
    np.testing.assert_array_equal(dst, expected[1])
    assert src.dtype == dst.dtype == np.int64
    if src.size:
        assert min(src.min(), dst.min()) >= 0
        assert max(src.max(), dst.max()) < source.num_vertices


def test_several_streams_are_offered():
    """Two threads can work on a source of more than one block."""
    assert len(KroneckerEdges(12, edge_factor=16, seed=1).streams(1 << 12)) == 16
    assert len(KroneckerEdges(16, edge_factor=16, seed=1).streams(1 << 12)) == 64


@pytest.mark.parametrize(("scale", "first"), [(1, 0), (5, 1000), (20, (1 << 32) - 10), (33, (1 << 34) + 7), (40, 12345)])
def test_kernel_equals_the_plain_generator(scale, first):
    """Compiled edges equal the oracle's, across a multiple of 2**32 and above 32-bit labels too."""
    source, target = kronecker_edges(scale, 99, first, 20)
    expected = [plain_kronecker_edge(scale, 99, first + i) for i in range(20)]
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == expected


@pytest.mark.parametrize("scale", [0, 1, 2, 3, 7, 12])
@pytest.mark.parametrize("seed", [0, 1, -3, 2**63])
def test_labels_are_permuted_by_a_bijection(scale, seed):
    """Every label has exactly one image."""
    assert sorted(permute(label, scale, seed & MASK64) for label in range(1 << scale)) == list(range(1 << scale))


def test_seeds_give_different_graphs():
    """Two seeds share neither edges nor hubs."""
    one, two = KroneckerEdges(12, edge_factor=16, seed=1).edges(0, 1 << 16), KroneckerEdges(12, edge_factor=16, seed=2).edges(0, 1 << 16)
    assert np.bincount(one[0]).argmax() != np.bincount(two[0]).argmax()
    assert (one[0] == two[0]).mean() < 0.05


def test_kronecker_graph_has_the_shares_of_graph500():
    """Scale 20: 38.4 % of the vertices are isolated; each quadrant of the unpermuted matrix has its probability."""
    source = KroneckerEdges(20, edge_factor=16, seed=1)
    used = np.zeros(1 << 20, bool)
    for stream in source.streams(1 << 20):
        for block in stream():
            edge = block.source != block.target
            used[block.source[edge]] = True
            used[block.target[edge]] = True
    assert 100 * (1 - used.mean()) == pytest.approx(38.4, abs=0.2)
    assert expected_isolated_share(20) == pytest.approx(1 - used.mean(), abs=1e-3)


def expected_isolated_share(scale):
    """Return the expected share of vertices without an edge to another one, exactly.

    A vertex with k of `scale` bits set is the source of an edge with probability p, its target likewise, and both with probability q;
    so an edge passes it over, or is its self-loop, with probability 1 - 2 p + 2 q. There are 16 * 2**scale independent edges.
    """
    k = np.arange(scale + 1)
    p, q = 0.76 ** (scale - k) * 0.24**k, 0.57 ** (scale - k) * 0.05**k
    share = np.array([math.comb(scale, one) for one in k]) / 2.0**scale
    return float(share @ np.exp(16 * 2.0**scale * np.log1p(2 * (q - p))))


@pytest.mark.parametrize(("scale", "percent"), [(24, 47.1), (25, 49.2), (26, 51.1), (27, 53.0), (28, 54.8), (29, 56.6), (30, 58.3)])
def test_isolated_vertices_of_large_graphs(scale, percent):
    """More than half of them from scale 26 on: the reason why a store leaves them out."""
    assert round(100 * expected_isolated_share(scale), 1) == percent


@pytest.mark.parametrize("scale", [1, 2])
def test_quadrants_have_their_probabilities(scale):
    """Edge counts of the 2**scale x 2**scale matrix agree with the Kronecker power of the initiator within 5 sigma."""
    num_edges = 1 << 20
    source, target = kronecker_edges(scale, 3, 0, num_edges)
    inverse = np.empty(1 << scale, np.int64)
    inverse[[permute(label, scale, 3) for label in range(1 << scale)]] = np.arange(1 << scale)
    counts = np.zeros((1 << scale, 1 << scale))
    np.add.at(counts, (inverse[source], inverse[target]), 1)
    initiator = np.array([[KRONECKER_A, KRONECKER_B], [KRONECKER_C, 1 - KRONECKER_A - KRONECKER_B - KRONECKER_C]])
    expected = initiator if scale == 1 else np.kron(initiator, initiator)
    sigma = np.sqrt(expected * (1 - expected) * num_edges)
    assert (abs(counts - expected * num_edges) < 5 * sigma).all()


def test_uniform_endpoints_are_uniform():
    """Degrees of a uniform graph vary as a Poisson distribution's, and both endpoints differ."""
    source, target = all_edges(UniformEdges(14, edge_factor=16, seed=4), 1 << 16)
    degrees = np.bincount(np.concatenate([source, target]), minlength=1 << 14)
    assert degrees.mean() == 32
    assert degrees.var() == pytest.approx(32, rel=0.05)
    assert abs(np.corrcoef(source, target)[0, 1]) < 0.01


def test_grid_has_four_neighbours():
    """Inner vertices have degree 4, corners 2; the edges are those of NetworkX's grid."""
    networkx = pytest.importorskip("networkx")
    source, target = GridEdges(5, 4).edges(0, GridEdges(5, 4).num_rows)
    expected = {frozenset((r * 4 + c, s * 4 + d)) for (r, c), (s, d) in networkx.grid_2d_graph(5, 4).edges}
    assert {frozenset(edge) for edge in zip(source.tolist(), target.tolist(), strict=True)} == expected


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: KroneckerEdges(41, edge_factor=16, seed=1), "scale is"),
        (lambda: KroneckerEdges(-1, edge_factor=16, seed=1), "scale is"),
        (lambda: UniformEdges(4, edge_factor=-1, seed=1), "edge_factor is"),
        (lambda: GridEdges(0, 4), "rows and columns must be"),
    ],
)
def test_impossible_size_is_refused(make, words):
    """The message names the setting."""
    with pytest.raises(OocGraphError, match=words):
        make()


WEIGHTED = {
    "kronecker": KroneckerEdges(8, edge_factor=16, seed=5, weights=(1, 255)),
    "uniform": UniformEdges(8, edge_factor=16, seed=5, weights=(1000, 70000)),
    "grid": GridEdges(17, 23, keep=0.8, shuffle=True, seed=3, weights=(0, 3)),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("block_rows", [7, 1 << 20])
def test_weights_are_a_hash_of_the_two_ends(name, block_rows):
    """Every weight of the range occurs; neither direction nor block nor thread makes a difference."""
    source = WEIGHTED[name]
    blocks = [block for stream in source.streams(block_rows) for block in stream()]
    src, dst, weight = (np.concatenate(one) for one in zip(*((b.source, b.target, b.columns["weight"]) for b in blocks), strict=True))
    assert (source.columns, source.weight) == ({"weight": weight.dtype.name}, "weight")
    low, high = source.weights
    assert weight.dtype == np.min_scalar_type(high)
    assert low <= weight.min() <= weight.max() <= high
    assert np.unique(weight).size == high - low + 1 or name == "uniform"
    again = edge_weights(dst, src, low, high, weight.dtype)
    np.testing.assert_array_equal(again, weight)
    assert abs(weight.mean() / ((low + high) / 2) - 1) < 0.1


def test_a_grid_with_closed_streets_keeps_a_share_of_them():
    """Those that are kept are edges of the whole grid; shuffled ids are a permutation of it."""
    whole, some = GridEdges(300, 200), GridEdges(300, 200, keep=0.8, seed=3)
    src, dst = some.edges(0, whole.num_rows)
    assert some.num_rows is None
    assert abs(src.size / whole.num_rows - 0.8) < 0.01
    kept, streets = (set(zip(*(ends.tolist() for ends in edges), strict=True)) for edges in ((src, dst), whole.edges(0, whole.num_rows)))
    assert kept < streets
    shuffled = GridEdges(300, 200, keep=0.8, shuffle=True, seed=3).edges(0, whole.num_rows)
    ids = np.arange(60_000)
    shuffle_ids(ids, 60_000, 3)
    np.testing.assert_array_equal(np.sort(ids), np.arange(60_000))
    assert (ids != np.arange(60_000)).mean() > 0.99
    np.testing.assert_array_equal(shuffled, (ids[src], ids[dst]))


@pytest.mark.parametrize("weights", [(1,), (2, 1), (-1, 5), (0, 1 << 32), (1.5, 2), "12", 7, (True, 2)])
def test_weights_that_are_none_are_refused(weights, tmp_path):
    for call in (
        lambda: generate_grid((3, 3), tmp_path / "g", weights=weights),
        lambda: KroneckerEdges(3, edge_factor=1, seed=1, weights=weights),
    ):
        with pytest.raises(ArgumentError, match="give the smallest and the largest weight"):
            call()


@pytest.mark.parametrize("keep", [0, -0.5, 1.5, float("nan"), True, "all"])
def test_a_share_that_is_none_is_refused(keep, tmp_path):
    with pytest.raises(ArgumentError, match=r"keep is .*; it must be above 0 and at most 1"):
        generate_grid((3, 3), tmp_path / "g", keep=keep)


def test_stores_and_edge_lists_have_the_weights(tmp_path):
    """A store built straight, and one of the edge list, are the same."""
    straight = oocgraph.generate_kronecker(8, tmp_path / "a.zarr", weights=(1, 255))
    write_edges(KroneckerEdges(8, edge_factor=16, seed=1, weights=(1, 255)), tmp_path / "e.parquet")
    listed = oocgraph.build_csr(tmp_path / "e.parquet", tmp_path / "b.zarr", weight="weight", directed=False)
    assert straight.attributes.weighted
    assert listed.attributes.weighted
    for name in ("out/indices", "out/weight", "out/indptr"):
        np.testing.assert_array_equal(straight.read(name), listed.read(name))
    with pytest.raises(OocGraphError, match=r"\.npy holds the ends of edges only, no weights"):
        write_edges(KroneckerEdges(8, edge_factor=16, seed=1, weights=(1, 255)), tmp_path / "e.npy")
