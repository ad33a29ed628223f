"""The files of configs/: every key exists in what it configures, oocgraph accepts its own, and each file does what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import dask.config
import pytest

from oocgraph.config import settings
from tests.processes import PATIENCE_SECONDS

CONFIGS = Path(__file__).parents[1] / "configs"

FILES = sorted(CONFIGS.glob("*.yaml"))

OWNERS = {
    "oocgraph": ("oocgraph", "oocgraph.yaml"),
    "distributed": ("distributed", "distributed.yaml"),
    "jobqueue": ("dask_jobqueue", "jobqueue.yaml"),
}
"""Key at the top: package that reads it, and its file of defaults; other keys are of Dask itself."""

NAMES_OF_VARIABLES = ("environ", "pre-spawn-environ")
"""Mappings whose keys anybody may choose."""


def load(path):
    (content,) = dask.config.collect_yaml([str(path)])
    return content


def defaults(key):
    package, file = OWNERS.get(key, ("dask", "dask.yaml"))
    spec = find_spec(package)
    if spec is None:
        pytest.skip(f"{package} is not installed")
    return load(Path(spec.origin).with_name(file))


def unknown(found, known, path=""):
    """Names of keys that occur in `found` only."""
    for key, value in found.items():
        if not isinstance(known, dict) or key not in known:
            yield f"{path}{key}"
        elif isinstance(value, dict) and key not in NAMES_OF_VARIABLES:
            yield from unknown(value, known[key], f"{path}{key}.")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_key_is_one_that_somebody_reads(path):
    """A setting that was renamed or misspelt would be ignored in silence."""
    content = load(path)
    assert content
    for key, value in content.items():
        assert not list(unknown({key: value}, defaults(key))), path


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_own_settings_are_accepted(path):
    """Names, types and values."""
    with dask.config.set(load(path)):
        assert settings()


def test_misspelt_key_is_found():
    """The check would see it, at any depth."""
    wrong = {"distributed": {"worker": {"memory": {"puase": False}}, "nanny": {"environ": {"ANY": "thing"}}}}
    assert list(unknown(wrong, defaults("distributed"))) == ["distributed.worker.memory.puase"]


def test_laptop_leaves_memory_and_cores():
    """The three settings of a search in process."""
    with dask.config.set(load(CONFIGS / "laptop.yaml")):
        found = settings()
    assert (found.memory_budget, found.threads, found.io_threads) == ("2G", 2, 16)


WORKERS = """
import os, sys
import dask
from oocgraph.config import settings
from oocgraph.cluster.start import local_cluster

def look():
    memory = dask.config.get("distributed.worker.memory")
    return memory["pause"], dask.config.get("distributed.worker.profile.enabled"), os.environ.get("CUDA_DEVICE_ORDER")

with dask.config.set({"oocgraph.dashboard-address": None}), local_cluster(workers=1) as client:
    print(*client.run(look).values(), settings().worker_timeout)
"""


def test_a_pool_of_gpu_memory_is_never_advised_without_cupy():
    """A search, which takes memory through CuPy, would have what the pool leaves of the GPU."""
    texts = {path.name: path.read_text() for path in [*CONFIGS.iterdir(), *CONFIGS.parent.glob("docs/*.md"), CONFIGS.parent / "README.md"]}
    lines = {name: [line for line in text.splitlines() if "--rmm-pool-size" in line] for name, text in texts.items()}
    assert sum(map(len, lines.values())) > 0
    assert [line for found in lines.values() for line in found if "--set-rmm-allocator-for-libs cupy" not in line] == []


@pytest.mark.parametrize(
    ("name", "said"), [("laptop.yaml", "(False, False, None) 30.0\n"), ("cuda-workstation.yaml", "(False, False, 'PCI_BUS_ID') 60.0\n")]
)
def test_file_named_in_dask_config_reaches_the_workers(name, said):
    """As the comment at its top says."""
    env = {**os.environ, "DASK_CONFIG": str(CONFIGS / name)}
    done = subprocess.run([sys.executable, "-c", WORKERS], env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert (done.returncode, done.stdout) == (0, said), done.stderr
