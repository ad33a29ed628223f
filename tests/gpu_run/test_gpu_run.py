"""What runs first on a GPU, as far as it goes without one: its answers on kernels that the processor executes, its commands and paths."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from distributed import LocalCluster

import oocgraph
from oocgraph import Resources
from oocgraph.algorithms import devices as devices_module
from oocgraph.arrays import DeviceChoice
from oocgraph.cli import cli
from oocgraph.engine import in_process
from oocgraph.kernels import cuda
from tests.cluster.conftest import QUIET
from tests.cuda_on_cpu.device import CpuDevice
from tests.gpu_run import answers, costs, matrices, searches, worker

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "first_run.sh"
pytestmark = pytest.mark.shim


@pytest.fixture(scope="module")
def kron(tmp_path_factory):
    return oocgraph.generate_kronecker(10, tmp_path_factory.mktemp("kron") / "g.zarr", seed=1)


@pytest.fixture
def devices(monkeypatch):
    """Let products find two devices of the processor."""
    found = [CpuDevice(), CpuDevice()]
    monkeypatch.setattr(devices_module, "devices_choice", lambda kind, **_: ([] if kind == "cpu" else found, "shims"))
    for module in (in_process, devices_module):
        monkeypatch.setattr(module, "device_choice", lambda kind, **_: DeviceChoice(None if kind == "cpu" else found[0], "shims"))


def test_searches_are_right(kron):
    found = list(answers.searches(kron, CpuDevice))
    assert len(found) == len(answers.RESIDENCIES) * len(answers.DIRECTIONS) * len(answers.SOURCES)
    assert [name for name, right, _ in found if not right] == []


def test_a_wrong_level_is_told(kron, monkeypatch):
    monkeypatch.setattr(answers, "np", SimpleNamespace(asarray=np.asarray, array_equal=lambda *_: False))
    assert [name for name, right, _ in answers.searches(kron, CpuDevice) if right] == []


@pytest.mark.usefixtures("devices")
def test_products_are_right():
    found = list(answers.products(device="auto"))
    assert len(found) == 3 * (len(answers.SEMIRINGS) + 3)
    assert [name for name, right in found if not right] == []


@pytest.mark.usefixtures("devices")
def test_paths_are_right(tmp_path):
    store = oocgraph.generate_kronecker(10, tmp_path / "g.zarr", seed=1, weights=(1, 255))
    found = list(answers.paths(store, "cuda", CpuDevice))
    assert len(found) == 2 * len(answers.SOURCES)
    assert [name for name, right in found if not right] == []


@pytest.mark.usefixtures("devices")
def test_ranks_are_right(kron):
    found = list(answers.ranks(kron, "cuda", CpuDevice))
    assert len(found) == 8
    assert [name for name, right in found if not right] == []


@pytest.mark.usefixtures("devices")
def test_the_rest_of_it_runs(kron):
    """With what stands for a GPU, only the time of its kernels means nothing."""
    assert [what for what, seconds in costs.measure(CpuDevice, (1 << 20,), 2, 2) if seconds < 0] == []
    assert searches.measure(kron.url, 2, device=CpuDevice())[2] > 1
    assert [device for device, _ in matrices.of_store(kron.url, ("auto", "cpu"), 1)] == ["auto", "cpu"]
    with LocalCluster(n_workers=1, processes=False, **QUIET) as cluster:
        assert worker.search(kron.url, cluster).num_reached > 1
        found = list(worker.computed(kron.url, cluster, Resources(device="cpu")))
    assert [name for name, right, *_ in found if not right] == []
    assert len(found) == 5


def test_the_script_names_what_there_is():
    """It runs where nothing can be mended: bash reads it, its files, modules, commands and kernels exist."""
    subprocess.run(["bash", "-n", SCRIPT], check=True)
    text = SCRIPT.read_text()
    paths = set(re.findall(r"tests/[\w/.]+", text))
    assert [path for path in paths if not (ROOT / path).exists()] == []
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if path.parent != SCRIPT.parent]
    on_gpus = [str(path.relative_to(ROOT)) for path in files if "pytest.mark.gpu" in path.read_text()]
    assert len(on_gpus) > 2
    assert [one for one in on_gpus if not one.startswith(tuple(paths))] == []
    modules = set(re.findall(r"-m (tests[\w.]+)", text))
    assert len(modules) == 5
    assert [name for name in modules if not (ROOT / (name.replace(".", "/") + ".py")).exists()] == []
    commands = set(re.findall(r"-m oocgraph (\w+ \w+)", text))
    assert commands == {"generate kronecker", "bench gpu", "bench spmv"}
    for command in commands:
        options = set(re.findall(rf"{command}[^\n]*", text))
        known = CliRunner().invoke(cli, [*command.split(), "--help"]).output
        assert [one for line in options for one in re.findall(r" (--[\w-]+)", line) if one not in known] == []
    sources = "".join(path.read_text() for path in Path(cuda.__path__[0]).glob("*.cu"))
    kernels = re.search(r"regex:([\w|]+)", text)[1].split("|")
    left_out = re.findall(r"--kernel-name-exclude kns=(\w+)", text)
    assert left_out == ["expand"]
    assert [name for name in [*kernels, *left_out] if not re.search(rf"\b{name}\b", sources)] == []
    meant = [path.name for path in Path(cuda.__path__[0]).glob("*.cu") if "is_culled(" in path.read_text()]
    assert meant == ["expand.cu"]
