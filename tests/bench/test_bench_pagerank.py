"""``oocgraph bench pagerank``: ratios to peers, and to the disk, are made of what was measured."""

from __future__ import annotations

import pytest

from oocgraph import OocGraphError, generate_kronecker, pagerank
from oocgraph.bench.harness import paired_ratios
from oocgraph.bench.libraries import networkx_pagerank, scipy_pagerank
from oocgraph.bench.pagerank import RankRun, bench_pagerank, disk_metrics
from oocgraph.config import setting
from oocgraph.memory import host_bytes
from oocgraph.types import ignore_progress

GAPBS = """#!/bin/sh
test -f "$2" && test "$5 $6 $7 $8 $9" = "-i 4 -t 0 -l" || exit 3
printf 'Read Time:           0.01\\n   0    0.5\\n   1    0.25\\n   2    0.1\\n   3    0.09\\nTrial Time:          0.08\\n'
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return generate_kronecker(10, tmp_path_factory.mktemp("bench") / "k.zarr")


def measured(store, **options):
    return bench_pagerank(store, num_iterations=4, num_rounds=2, progress=ignore_progress, threads=1, **options)


@pytest.mark.parametrize("peer", ["scipy", "networkx"])
def test_library_in_a_process_of_its_own(store, peer):
    figures = measured(store, peer=peer).metrics
    assert figures["peer_1"] == peer
    assert figures["ratio_to_peer_1"] > 0
    assert figures["peer_1_peak_bytes"] > 1 << 20
    assert "fraction_of_sequential" not in figures, "all edges were in memory"


def test_gapbs_on_both_orders(store, tmp_path):
    """A program that answers as GAPBS does."""
    program = tmp_path / "pr"
    program.write_text(GAPBS)
    program.chmod(0o755)
    figures = measured(store, peer=f"gapbs:{program}", scratch=str(tmp_path)).metrics
    assert figures["peer_1_median_iteration_seconds"] == figures["peer_2_median_iteration_seconds"] == pytest.approx(0.02)
    assert figures["peer_2"].endswith("in degree order")
    assert list(tmp_path.iterdir()) == [program], "exported graphs are gone"


@pytest.mark.parametrize(("answer", "words"), [("exit 3", "ended with code 3"), ("echo nothing", "without its metrics")])
def test_gapbs_that_fails_is_told(store, tmp_path, answer, words):
    program = tmp_path / "pr"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    with pytest.raises(OocGraphError, match=words):
        measured(store, peer=f"gapbs:{program}")


@pytest.mark.parametrize(("peer", "words"), [("nobody", "unknown; choose scipy, networkx or gapbs:PATH"), ("gapbs:/", "not a program")])
def test_unknown_peer_is_refused(store, peer, words):
    with pytest.raises(OocGraphError, match=words):
        measured(store, peer=peer)


def test_peers_rank_as_we_do(store):
    matrix = store.to_scipy(dtype=float)
    with setting("precision", "double"):
        ours = pagerank(store, tol=0, max_iter=6).rank
    assert scipy_pagerank(matrix).run(6) == pytest.approx(ours, abs=1e-15)
    assert networkx_pagerank(matrix).run(6) is None, "with tol=0 NetworkX ends with an error"


def test_ratios_are_made_inside_a_round():
    assert paired_ratios("ratio", [1, 3, 9], [2, 3, 2])["ratio"] == 1
    read = RankRun(iteration_seconds=1, bytes_per_second=90.0, sequential_bytes_per_second=100.0)
    not_read = RankRun(iteration_seconds=3, bytes_per_second=50.0)
    assert disk_metrics([read, not_read]) == {"median_bytes_per_second": 70.0, "fraction_of_sequential": 0.9}
    assert disk_metrics([not_read]) == {}


@pytest.mark.usefixtures("steady_memory")
def test_edges_on_disk_are_compared_with_the_disk(store, monkeypatch):
    from oocgraph.sparse.edge_stream import EdgeStream

    monkeypatch.setattr(EdgeStream, "_keep", lambda _self, _budget: 0)
    figures = measured(store, memory_budget=host_bytes() + (64 << 20)).metrics
    assert figures["kept_bytes"] == 0
    assert figures["fraction_of_sequential"] > 0
