"""``--device`` of ``oocgraph bfs`` and ``oocgraph sssp``: where a search runs, and what is said where it cannot."""

from __future__ import annotations

import pandas as pd
import pytest

import oocgraph
from oocgraph.arrays import drivers


@pytest.fixture
def no_driver(monkeypatch):
    """Let this be a machine without a GPU, whatever it has."""
    monkeypatch.setattr(drivers, "DRIVER_LIBRARY", "libcuda-that-is-not-there.so.1")


@pytest.mark.usefixtures("no_driver")
def test_processor_is_taken_where_there_is_no_gpu(run, kron):
    """By default, and when asked for."""
    found = [
        run("bfs", kron, "--source", 3, "--validate", "--json", *more).json for more in ((), ("--device", "cpu"), ("--device", "auto"))
    ]
    assert len({one["num_reached"] for one in found}) == 1


@pytest.mark.usefixtures("no_driver")
def test_gpu_that_is_not_there_is_told_with_the_remedy(refused, kron):
    refused("bfs", kron, "--source", 3, "--device", "cuda", words=["no NVIDIA driver is found", "docker run --gpus all"])


@pytest.mark.usefixtures("no_driver")
def test_device_memory_without_a_gpu_is_refused_with_the_reason(refused, kron):
    """Not ignored: the user counts on it."""
    refused("bfs", kron, "--source", 3, "--device-memory", "1G", words=["--device-memory", "no NVIDIA driver is found"])
    refused("bfs", kron, "--source", 3, "--device", "cpu", "--device-memory", "1G", words=["the processor was asked for"])


def test_wrong_options_are_refused(refused, kron):
    refused("bfs", kron, "--source", 3, "--device", "tpu", words=["tpu", "auto", "cuda"])
    refused("bfs", kron, "--source", 3, "--device-memory", "3X", words=["not a size", "640M"])


@pytest.mark.usefixtures("no_driver")
def test_shortest_paths_on_a_gpu_that_is_not_there_are_refused(refused, tmp_path):
    """As searches are, even on a tiny graph; workers of a cluster have none for it."""
    oocgraph.build_csr(pd.DataFrame({"source": [0, 1], "target": [1, 2], "weight": [5, 3]}), tmp_path / "g", weight="weight")
    paths = ("sssp", tmp_path / "g", "--source", 0)
    refused(*paths, "--device", "cuda", words=["no NVIDIA driver is found"])
    refused(*paths, "--device-memory", "1G", words=["--device-memory", "no NVIDIA driver is found"])
    for option in (("--device", "cuda"), ("--device-memory", "1G")):
        refused(*paths, *option, "--cluster", "local", words=[option[0], "on their processors", "without --cluster"])
