"""What a command promises to hold, it holds, under a control group that would kill it otherwise."""

from __future__ import annotations

import json

import pytest

from tests.capped import run_capped
from tests.commands.conftest import ROOT, command

pytestmark = pytest.mark.capped


def capped_json(limit_bytes, *arguments):
    done = run_capped(limit_bytes, command(*arguments, "--json"), env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_measured_peak_is_within_the_budget(run, tmp_path):
    """Generate, search and export, each under a cap that leaves 15 % for mapped libraries and page cache."""
    store = tmp_path / "kron18.zarr"
    assert run("generate", "kronecker", store, "--scale", 18).code == 0  # kernels compiled: a compiler needs more than the cap
    assert run("bfs", store, "--source", 3).code == 0
    assert run("export", store, tmp_path / "first.sg").code == 0
    budget, limit = 192 << 20, 226 << 20
    built = capped_json(limit, "generate", "kronecker", tmp_path / "again.zarr", "--scale", 18, "--memory", "192M")
    found = capped_json(limit, "bfs", store, "--source", 3, "--memory", "192M", "--out", tmp_path / "levels.csv")
    run_capped(limit, command("export", store, tmp_path / "second.sg", "--memory", "192M"))
    assert built["memory_budget"] == found["memory_budget"] == budget
    assert 50 << 20 < built["peak_host_bytes"] <= budget
    assert 50 << 20 < found["peak_host_bytes"] <= budget
    assert (tmp_path / "first.sg").read_bytes() == (tmp_path / "second.sg").read_bytes()
    for name in ("out/indices", "vertices/id"):
        for chunk in (store / name / "c").iterdir():
            assert chunk.read_bytes() == (tmp_path / "again.zarr" / name / "c" / chunk.name).read_bytes()


@pytest.mark.parametrize("name", ["louvain", "label-propagation"])
def test_communities_hold_what_they_promise(run, tmp_path, name):
    """Graphs of communities are built within the same budget."""
    store = tmp_path / "kron17.zarr"
    assert run("generate", "kronecker", store, "--scale", 17).code == 0
    assert run(name, store).code == 0
    found = capped_json(320 << 20, name, store, "--memory", "272M")
    assert found["memory_budget"] == 272 << 20
    assert 50 << 20 < found["peak_host_bytes"] <= found["memory_budget"]
