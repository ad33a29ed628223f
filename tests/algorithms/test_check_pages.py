"""Whatever reads a graph can compare what it reads with the checksums: one rule for searches, products, ranks, exports and partitions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from click.testing import CliRunner

import oocgraph
from oocgraph import Resources
from oocgraph.cli import cli
from oocgraph.errors import CorruptStoreError
from tests import every_knob
from tests.reference_build import reference_build


@pytest.fixture
def flipped(tmp_path):
    """Return a graph of which one neighbour is another that it might be: no rule is broken, but the checksum of its page is."""
    rng = np.random.default_rng(5)
    reference_build(rng.integers(0, 512, 9000), rng.integers(0, 512, 9000), tmp_path / "g", directed=True)
    store = oocgraph.open_graph(tmp_path / "g")
    for group in ("out", "in"):
        file = store.array(f"{group}/indices").chunk_path(0)
        indices = np.fromfile(file, np.uint32)
        indices[7000] ^= 1
        indices.tofile(file)
    return store


READERS = {
    "bfs": lambda g, out: oocgraph.bfs(g, 7),
    "bfs over parts": lambda g, out: oocgraph.bfs(g, 7, partition="1d", resources=Resources(num_partitions=2)),
    "spmv": lambda g, out: oocgraph.spmv(g, np.ones(512)),
    "pagerank": lambda g, out: oocgraph.pagerank(g, tol=0, max_iter=2),
    "sweeps": lambda g, out: oocgraph.hits(g, tol=0, max_iter=1),
    "strong components": lambda g, out: oocgraph.strongly_connected_components(g),
    "condensation": lambda g, out: oocgraph.condensation(g, out / "c"),
    "export": lambda g, out: oocgraph.export_graph(g, out / "g.parquet"),
    "partition": lambda g, out: every_knob.partition(g, 2, "EEC", out / "p", compiled=False),
    "to_scipy": lambda g, out: g.to_scipy(),
}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_compares_pages_when_asked(flipped, tmp_path, name):
    with pytest.raises(CorruptStoreError, match=r"(out|in)/indices differs from its checksum"):
        READERS[name](oocgraph.open_graph(flipped.url, check_pages=True), tmp_path / "checked")


@pytest.mark.parametrize("name", sorted(set(READERS) - {"bfs"}))
def test_streams_read_what_is_there_otherwise(flipped, tmp_path, name):
    """What a search keeps in memory is compared even then."""
    (tmp_path / "out").mkdir()
    READERS[name](flipped, tmp_path / "out")


def test_a_store_that_compares_goes_on_doing_so(flipped):
    """As an argument, and in another process."""
    checked = oocgraph.open_graph(flipped.url, check_pages=True)
    for store in (checked, pickle.loads(pickle.dumps(checked)), oocgraph.open_graph(checked)):
        with pytest.raises(CorruptStoreError, match="differs from its checksum"):
            oocgraph.spmv(store, np.ones(512))


COMMANDS = {
    "bfs": ["--source", "7"],
    "pagerank": [],
    "export": ["OUT/g.sg"],
    "partition": ["OUT/p", "--partitions", "2", "--policy", "EEC", "--slow"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_take_the_option(flipped, tmp_path, command):
    arguments = [text.replace("OUT", str(tmp_path)) for text in COMMANDS[command]]
    done = CliRunner().invoke(cli, [command, flipped.url, *arguments, "--check-pages"])
    assert done.exit_code == 2
    assert "differs from its checksum" in done.output
