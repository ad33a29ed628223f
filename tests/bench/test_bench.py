"""Benchmarks: which sources, what is validated, how peers are timed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from click.testing import CliRunner

from oocgraph import build_csr, generate_kronecker, open_graph
from oocgraph.bench.bfs import bench_bfs
from oocgraph.bench.libraries import LIBRARIES, open_library
from oocgraph.bench.peers import GapbsPeer, PeerRun
from oocgraph.bench.results_on_disk import ResultsOnDisk
from oocgraph.bench.sources import draw_sources
from oocgraph.cli import cli
from oocgraph.errors import OocGraphError, ValidationError
from oocgraph.store.vertices import VertexIds
from oocgraph.types import ignore_progress


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return generate_kronecker(10, tmp_path_factory.mktemp("bench") / "kron10.zarr")


@pytest.fixture(scope="module")
def star(tmp_path_factory):
    """Directed: 0 -> 1 .. 50, and 51 -> 0; only 0 and 51 have an out-edge."""
    source, target = np.array([0] * 50 + [51]), np.array([*range(1, 51), 0])
    return build_csr((source, target), tmp_path_factory.mktemp("bench") / "star.zarr", directed=True)


def test_sources_are_distinct_and_reproducible(kron):
    """The same seed, the same vertices; another seed, others."""
    one, two, other = draw_sources(kron, 16, 1), draw_sources(kron, 16, 1), draw_sources(kron, 16, 2)
    assert one.tolist() == two.tolist() != other.tolist()
    assert len(set(one.tolist())) == 16
    assert 0 <= one.min() <= one.max() < kron.num_rows


def test_sources_have_an_out_edge(star):
    """Of a directed graph only vertices from which an edge leaves; all of them when more are asked for."""
    ids = VertexIds(star).ids_of(draw_sources(star, 16, 1))
    assert sorted(ids.tolist()) == [0, 51]


def test_graph_without_edges_has_no_source(tmp_path):
    """One message instead of an endless search."""
    empty = build_csr((np.array([3]), np.array([3])), tmp_path / "empty.zarr")
    with pytest.raises(OocGraphError, match="no edge"):
        draw_sources(empty, 1, 1)


def bench(store, **options):
    return bench_bfs(store, num_sources=3, seed=1, progress=ignore_progress, **options)


def test_metrics_summarise_the_searches(kron):
    """Medians, extremes and the harmonic mean follow from the searches listed beside them."""
    figures = bench(kron, memory_budget="1G").metrics
    searches = figures["searches"]
    seconds = [one["seconds"] for one in searches]
    assert len(searches) == figures["num_sources"] == 3
    assert figures["median_seconds"] == sorted(seconds)[1]
    assert figures["harmonic_mean_teps"] == pytest.approx(3 / sum(1 / one["teps"] for one in searches))
    assert all(one["valid"] for one in searches)
    assert "ratio_to_peer" not in figures
    json.dumps(figures)


def test_oracle_counts_both_directions(kron):
    """Pages of either direction beside each iteration, and the ratio over all."""
    figures = bench(kron, memory_budget="1G", oracle=True).metrics
    assert all(one["push_pages"] is not None for search in figures["searches"] for one in search["iterations"])
    assert figures["num_pages_oracle"] >= 0


def test_result_comes_back_from_disk(kron, tmp_path):
    """Parent and level are on disk only in between."""
    import oocgraph

    result = oocgraph.bfs(kron, 3)
    results = ResultsOnDisk(tmp_path)
    results.put(result)
    back = results.take(0)
    np.testing.assert_array_equal(back.search.parent, result.search.parent)
    np.testing.assert_array_equal(back.search.level, result.search.level)
    assert back.summary() == result.summary()
    assert not list(tmp_path.iterdir())


def test_one_invalid_result_is_exit_code_1(kron, monkeypatch):
    """The rule that is broken is told, and the figures are printed all the same."""
    calls = []

    def verify(_store, result, **_budget):
        calls.append(result)
        if len(calls) == 2:
            raise ValidationError("vertex 5 is deeper than its parent")

    monkeypatch.setattr("oocgraph.bench.results_on_disk.verify_bfs", verify)
    outcome = CliRunner().invoke(cli, ["bench", "bfs", kron.url, "--num-sources", "3", "--memory", "1G", "--json"])
    assert outcome.exit_code == 1
    assert len(calls) == 3
    figures = json.loads(outcome.stdout)
    assert figures["num_invalid"] == 1
    assert [one["valid"] for one in figures["searches"]] == [True, False, True]
    assert "vertex 5 is deeper than its parent" in outcome.stderr


def fake_gapbs(path, *, trials, reached):
    """Write a program that prints what GAPBS prints, and logs what it was asked."""
    lines = [f'echo "$OMP_NUM_THREADS $@" >> {path}.log', "echo 'Read Time: 0.1'"]
    lines += [f"echo 'Trial Time:          {seconds:.5f}'" for seconds in trials]
    lines += [f"echo 'BFS Tree has {reached} nodes and 5 edges'", "echo 'Average Time: 9.9'"]
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def test_gapbs_time_is_the_median_of_its_trials(tmp_path):
    """Its own trial times, not the process's; threads and source are passed on."""
    program = fake_gapbs(tmp_path / "bfs", trials=[0.5, 0.1, 0.2], reached=12)
    peer = GapbsPeer("bfs", program, tmp_path / "g.sg", threads=2)
    assert peer.run(17) == PeerRun(0.2, 12)
    assert (tmp_path / "bfs.log").read_text() == f"2 -f {tmp_path}/g.sg -r 17 -n 3 -a\n"
    assert peer.peak_bytes > 0


def test_gapbs_that_reports_no_time_is_an_error(tmp_path):
    """Its last words are in the message."""
    program = tmp_path / "bfs"
    program.write_text("#!/bin/sh\necho 'Could not open file'\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(OocGraphError, match=r"code 3.*Could not open file"):
        GapbsPeer("bfs", program, tmp_path / "g.sg", threads=1).run(1)


def test_gapbs_runs_on_both_exports(kron, tmp_path):
    """Input ids and degree order, each source in both; the ratio comes from the input ids."""
    (reached,) = {one["num_reached"] for one in bench(kron, memory_budget="1G").metrics["searches"]}
    program = fake_gapbs(tmp_path / "bfs", trials=[1.0], reached=reached)
    report = bench(kron, memory_budget="1G", peer=f"gapbs:{program}", threads=1)
    figures = report.metrics
    assert figures["peer_median_seconds"] == figures["peer_degree_ordered_median_seconds"] == 1.0
    assert figures["ratio_to_peer"] == pytest.approx(figures["median_seconds"], rel=1e-4)
    assert figures["ratio_to_peer_quartiles"] == sorted(figures["ratio_to_peer_quartiles"])
    asked = (tmp_path / "bfs.log").read_text().splitlines()
    assert len(asked) == 6
    assert sum("degree" in line for line in asked) == 3


def test_peer_that_reaches_others_is_an_error(kron, tmp_path):
    """A peer that searches another graph measures nothing."""
    program = fake_gapbs(tmp_path / "bfs", trials=[1.0], reached=7)
    with pytest.raises(OocGraphError, match="do not search the same graph"):
        bench(kron, memory_budget="1G", peer=f"gapbs:{program}")


@pytest.mark.parametrize("peer", ["nobody", "gapbs:/no/such/program", "gapbs:/"])
def test_unknown_peer_is_refused(kron, peer):
    """Before anything is measured."""
    with pytest.raises(OocGraphError, match="--peer"):
        bench(kron, memory_budget="1G", peer=peer)


def test_scipy_is_measured_on_the_same_sources(kron):
    """In a process of its own, whose memory is told apart."""
    figures = bench(kron, memory_budget="1G", peer="scipy").metrics
    assert figures["ratio_to_peer"] > 0
    assert figures["peer_peak_bytes"] > 20 << 20
    assert all(one["peer_seconds"] > 0 for one in figures["searches"])


REACHED = """
import sys
import scipy.sparse
from oocgraph.bench.libraries import open_library

matrix, directed = scipy.sparse.load_npz(sys.argv[2]), sys.argv[3] == "True"
library = open_library("bfs", sys.argv[1], matrix, directed=directed, threads=1)
print([library.count(library.run(source)) for source in (0, 1, 7, 299)])
"""


@pytest.mark.parametrize("name", LIBRARIES["bfs"])
@pytest.mark.parametrize("directed", [False, True])
def test_libraries_reach_the_same_vertices(name, directed, tmp_path):
    """Each library that is installed, in a process as in a benchmark, on a random graph with isolated vertices."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    matrix = scipy.sparse.random(300, 300, density=0.008, random_state=5, format="csr", dtype=np.float64)
    matrix = matrix if directed else (matrix + matrix.T).tocsr()
    matrix.data[:] = 1
    scipy.sparse.save_npz(tmp_path / "m.npz", matrix)
    command = [sys.executable, "-c", REACHED, name, str(tmp_path / "m.npz"), str(directed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    plain = open_library("bfs", "scipy", matrix, directed=directed, threads=1)
    assert json.loads(done.stdout.splitlines()[-1]) == [plain.count(plain.run(source)) for source in (0, 1, 7, 299)]


def test_bench_leaves_no_files(kron, tmp_path):
    """Results that waited for their validation are removed from the scratch folder."""
    bench(open_graph(kron.url), memory_budget="1G", scratch=str(tmp_path))
    assert not list(tmp_path.iterdir())
