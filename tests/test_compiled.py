"""No command and no function compiles a kernel in its own process, or has numba make itself ready to.

That takes 25 MB, which no budget has, and half a second.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from oocgraph import build_csr
from tests.budget_draws import COMPILED, ROOT
from tests.processes import PATIENCE_SECONDS, program

COMMANDS = [
    "export {ints} {out}.npz",
    "export {ints} {out}.sg",
    "export {weights} {out}.npz --weight length",
    "components {ints} --validate",
    "bfs {weights} --source 0 --threads 1 --direction pull",
    "check {names}",
    "louvain {ints} --unweighted",
    "plan {ints} --workers 2",
    "eccentricity {path} --vertex 0",
    "diameter {path}",
    "pagerank {ints} --max-iter 200",
    "generate kronecker --edges {out}.npy --scale 10",
    "generate uniform --edges {out}.npy --scale 10",
    "generate grid {out} --rows 30 --columns 30 --keep 0.8 --shuffle --weights 1:9 --vertex-order locality",
    "build {edges} {out} --vertex-order locality",
    "build {edges} {out} --edge-column length --edge-column near --duplicates keep",
]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Graphs of 20,000 edges, and a path, on disk."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder, rng = tmp_path_factory.mktemp("graphs"), np.random.default_rng(4)
    source, target = rng.integers(0, 5000, (2, 20_000))
    edges = {"source": source, "target": target, "length": rng.integers(0, 99, 20_000), "near": rng.integers(0, 2, 20_000).astype(np.uint8)}
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    build_csr((source, target), folder / "ints", directed=False)
    build_csr(pa.table(edges), folder / "weights", directed=True, columns=("source", "target", "length"))
    build_csr((np.char.add("vertex ", source.astype(str)), np.char.add("vertex ", target.astype(str))), folder / "names", directed=True)
    build_csr((np.arange(300), np.arange(1, 301)), folder / "path", directed=False)
    return {name: folder / name for name in ("ints", "weights", "names", "path")} | {"edges": folder / "edges.parquet"}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_compiled_in_the_process_itself(tmp_path, places, command):
    arguments = command.format(**places, out=tmp_path / "out").split()
    with program([sys.executable, "-m", "tests.budget_draws", "run", *arguments], cwd=ROOT, text=True, stdout=-1, stderr=-2) as process:
        told, _ = process.communicate(timeout=300)
    assert process.returncode == 0, told
    assert COMPILED not in told


CALLS = [
    "oocgraph.open_graph(folder + '/ints').to_scipy()",
    "oocgraph.open_graph(folder + '/ints').subgraph([1, 2, 3])",
    "oocgraph.open_graph(folder + '/ints').ego(3)",
    "oocgraph.open_graph(folder + '/names').sample_neighbors(['vertex 1'], [2])",
    "oocgraph.build_csr(([1, 2], [2, 3]))",
    "oocgraph.build_csr((['a', 'b'], ['b', 'c']))",
    "oocgraph.partition_graph(folder + '/ints', 2, policy='CVC', path=out)",
    "oocgraph.bfs(folder + '/ints', 1, partition='2d')",
    "oocgraph.balanced_partition(oocgraph.open_graph(folder + '/ints').to_scipy(), 2)",
    "oocgraph.verify_cores(folder + '/path', oocgraph.core_numbers(folder + '/path'))",
    "nx.pagerank(nx.gnp_random_graph(2000, 0.01, seed=1), backend='oocgraph')",
    "list(nx.bfs_layers(nx.gnp_random_graph(2000, 0.01, seed=1), [0], backend='oocgraph'))",
    "list(nx.bfs_edges(nx.karate_club_graph(), 0, backend='oocgraph'))",
    "list(nx.connected_components(oocgraph.open_graph(folder + '/ints')))",
]

CHILD = """
import sys
import networkx as nx
import oocgraph
from numba.core.dispatcher import Dispatcher

folder, out, call = sys.argv[1:]
find = Dispatcher._compile_for_args

def found(self, *arguments, **named):
    print("numba finds", self.py_func.__name__)
    return find(self, *arguments, **named)

Dispatcher._compile_for_args = found
eval(call)
print("ready to compile:", "numba.np.linalg" in sys.modules)
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("call", CALLS)
def test_no_function_has_numba_find_what_is_compiled(tmp_path, places, call):
    for number in range(2):  # the first one may compile
        command = [sys.executable, "-c", CHILD, places["ints"].parent, tmp_path / str(number), call]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
        assert done.returncode == 0, done.stderr[-2000:]
        if done.stdout == "ready to compile: False\n":
            break
    assert done.stdout == "ready to compile: False\n"
