"""What all benchmarks share: who runs when, files that leave the page cache, rates of a disk, results and peers that fail."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph.bench.disk import chunk_files, drop_page_cache, sequential_bytes_per_second
from oocgraph.bench.harness import in_turn, scratch_folder
from oocgraph.bench.peers import open_peers
from oocgraph.errors import OocGraphError
from tests.stores import rewrite


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    source, target = np.array([0, 1, 2, 4]), np.array([1, 2, 0, 5])
    return oocgraph.build_csr((source, target), tmp_path_factory.mktemp("bench") / "small.zarr", directed=True)


@pytest.mark.parametrize(("alternate", "order"), [(False, "ababab"), (True, "abbaab")])
def test_subjects_take_turns(alternate, order):
    """In the same order in each round, or reversed in every second one; results stay in the order of the inputs."""
    called, steps = [], []
    subjects = {name: lambda value, name=name: called.append(name) or f"{name}{value}" for name in "ab"}
    found = in_turn(subjects, [1, 2, 3], lambda *step: steps.append(step), phase="measuring", alternate=alternate)
    assert "".join(called) == order
    assert found == {"a": ["a1", "a2", "a3"], "b": ["b1", "b2", "b3"]}
    assert steps == [("measuring", done, 6) for done in range(7)]


def test_scratch_folder_is_removed_after_a_failure(tmp_path):
    with pytest.raises(FileExistsError), scratch_folder(str(tmp_path)) as folder:
        folder.mkdir()
    assert not list(tmp_path.iterdir())


def test_a_sequential_reader_reads_every_chunk(store, tmp_path):
    """Of plain files; a compressed graph has none, and no rate."""
    arrays = [store.array("out/indptr"), store.array("out/indices")]
    assert [path.stat().st_size for path in chunk_files(arrays)] == [one.chunk_length * one.dtype.itemsize for one in arrays]
    assert sequential_bytes_per_second(arrays) > 0
    compressed = rewrite(store.url, tmp_path / "z", codec="zstd").array("out/indices")
    assert chunk_files([compressed]) == []
    assert sequential_bytes_per_second([arrays[0], compressed]) is None


def test_files_that_are_gone_have_no_pages(tmp_path):
    """Folders and missing files are passed over: the search that follows reports what is missing."""
    drop_page_cache([tmp_path, tmp_path / "missing"])


def test_results_of_a_library_are_those_of_its_own_process(store, tmp_path):
    """From each row of the exported graph, in the order of the input ids: 0 reaches 1 and 2, 4 reaches 5."""
    with open_peers("bfs", "scipy", store, threads=1, folder=tmp_path) as (peer,):
        assert [peer.run(row).count for row in (0, 3, 4)] == [3, 2, 1]
        assert peer.peak_bytes > 20 << 20
    with open_peers("bfs", None, store, threads=1, folder=tmp_path) as peers:
        assert peers == []


@pytest.mark.parametrize(
    ("algorithm", "spec", "words"),
    [
        ("bfs", "nobody", "choose scipy, networkit, igraph, graphblas or gapbs:PATH .the path of GAPBS's bfs program"),
        ("pagerank", "gapbs:/", "give the path of GAPBS's pr"),
        ("partition", "gapbs:/bin/true", "unknown; choose pymetis$"),
    ],
)
def test_a_peer_of_another_algorithm_is_refused(store, tmp_path, algorithm, spec, words):
    with pytest.raises(OocGraphError, match=f"--peer {spec}: .*{words}"), open_peers(algorithm, spec, store, threads=1, folder=tmp_path):
        pass
