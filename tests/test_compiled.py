"""No command compiles a kernel, or loads one by numba's compiler, in its own process: that takes 20 MB, which no budget has."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from oocgraph import build_csr
from tests.budget_draws import COMPILED, ROOT
from tests.processes import program

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
