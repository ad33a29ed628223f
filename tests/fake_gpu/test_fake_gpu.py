"""One worker for each GPU, on a machine without any: `fake_nvml.c` stands in for the driver's management library.

dask-cuda comes with a Dask of its own choice, so that CI runs these tests in a second virtual environment.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fake_gpu.driver import build_driver, needs_fake_gpus

ROOT = Path(__file__).parents[2]

pytestmark = needs_fake_gpus

SEARCH = """
import json, os, sys
import oocgraph
from oocgraph.cluster.start import open_client

def look():
    return {
        "devices": os.environ["CUDA_VISIBLE_DEVICES"].split(","),
        "pid": os.getpid(),
    }

with open_client(cluster="cuda") as client:
    result = oocgraph.bfs(sys.argv[1], 3, client=client)
    report = oocgraph.verify_bfs(sys.argv[1], result)
    parts = [[(part.partition, part.worker) for part in one.parts] for one in result.iterations if one.parts]
    print(json.dumps({"workers": client.run(look), "parts": parts, "num_reached": result.num_reached, "device": result.device}))
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """Folder of the fake library."""
    return build_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="session")
def graph(tmp_path_factory):
    """Build a store of 2**12 vertices."""
    path = tmp_path_factory.mktemp("graph") / "kron12.zarr"
    subprocess.run([sys.executable, "-m", "oocgraph", "generate", "kronecker", path, "--scale", "12"], check=True, capture_output=True)
    return path


@pytest.fixture
def run(driver):
    """Run Python where a driver shows GPUs; `gpus=None`: where there is no driver."""

    def call(*arguments, gpus, **variables):
        env = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
        if gpus is not None:
            env |= {"LD_LIBRARY_PATH": str(driver), "FAKE_NVML_GPUS": str(gpus)}
        return subprocess.run([sys.executable, *map(str, arguments)], env=env, capture_output=True, text=True, check=False, timeout=180)

    return call


@pytest.fixture
def bfs(run, graph):
    """Search with the command line on a cluster of GPUs."""
    return lambda *options, **where: run("-m", "oocgraph", "bfs", graph, "--source", 3, "--cluster", "cuda", *options, **where)


@pytest.mark.parametrize("gpus", [2, 3])
def test_each_gpu_has_a_worker_and_each_worker_a_partition(run, graph, gpus):
    """Every worker sees its own GPU first and holds one partition; CUDA itself is not there, so that it searches on the CPU."""
    done = run("-c", SEARCH, graph, gpus=gpus)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    workers = found["workers"]
    assert sorted(worker["devices"][0] for worker in workers.values()) == [str(gpu) for gpu in range(gpus)]
    assert len({worker["pid"] for worker in workers.values()}) == gpus
    assert found["device"] == "cpu"
    assert found["parts"]
    for parts in found["parts"]:
        assert {partition for partition, _ in parts} == set(range(gpus))
        assert {worker for _, worker in parts} == set(workers)


@pytest.mark.parametrize(("variables", "workers"), [({}, 1), ({"CUDA_VISIBLE_DEVICES": "2,0"}, 2)])
def test_some_of_the_gpus(bfs, variables, workers):
    """--workers takes the first of them, CUDA_VISIBLE_DEVICES those that it names."""
    options = ["--workers", 1] if not variables else []
    done = bfs(*options, "--validate", "--json", gpus=3, **variables)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["valid"]
    assert sorted(worker["partitions"] for worker in result["workers"].values()) == [[partition] for partition in range(workers)]


def test_workers_started_by_hand(driver, run, graph, tmp_path):
    """`dask scheduler` and `dask cuda worker`, as at the end of configs/cuda-workstation.yaml; the search waits for them."""
    file = tmp_path / "cluster.json"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": str(driver), "FAKE_NVML_GPUS": "2"}
    programs = [["scheduler", "--port", "0", "--dashboard-address", ":0"], ["cuda", "worker"]]
    started = []
    try:
        for program in programs:
            command = [sys.executable, "-m", "dask", *program, "--scheduler-file", str(file)]
            started.append(subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        done = run("-m", "oocgraph", "bfs", graph, "--source", 3, "--scheduler", file, "--workers", 2, "--validate", "--json", gpus=2)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(60)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["workers"]) == 2


@pytest.mark.parametrize(
    ("gpus", "variables", "options", "words"),
    [
        (None, {}, [], ["needs a GPU with NVIDIA's driver", "Library Not Found"]),
        (0, {}, [], ["needs a GPU: the driver finds none"]),
        (2, {"CUDA_VISIBLE_DEVICES": ""}, [], ["needs a GPU: CUDA_VISIBLE_DEVICES is ''"]),
        (2, {"CUDA_VISIBLE_DEVICES": "7"}, [], ["the workers did not start", "Invalid device index", "7"]),
        (2, {"CUDA_VISIBLE_DEVICES": "gpu"}, [], ["the workers did not start", "CUDA_VISIBLE_DEVICES must be"]),
        (2, {}, ["--workers", 3], ["--workers 3 asks for more GPUs than the 2"]),
        (2, {}, ["--worker-memory", "1M"], ["--worker-memory is 1.0 MiB"]),
    ],
)
def test_what_is_missing_is_told(bfs, gpus, variables, options, words):
    """Exit code 2 and one message; where there is no GPU it names the way without one."""
    done = bfs(*options, gpus=gpus, **variables)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    if not options:
        assert "--cluster local works without a GPU" in done.stderr


OPTIONS = """
import json, sys
import numpy as np
import oocgraph
from dask_cuda import LocalCUDACluster
from distributed import Client

graph = oocgraph.open_graph(sys.argv[1])
with LocalCUDACluster(dashboard_address=None, **json.loads(sys.argv[2])) as cluster, Client(cluster) as client:
    result = oocgraph.bfs(graph, 3, client=client)
    alone = oocgraph.Resources(client=False, device="cpu")
    x = np.ones(graph.num_vertices)
    print(json.dumps({
        "workers": len(client.scheduler_info()["workers"]), "device": result.device,
        "levels": bool((result.level.compute() == oocgraph.bfs(graph, 3, resources=alone).level).all()),
        "products": bool((oocgraph.spmv(graph, x, client=client) == oocgraph.spmv(graph, x, resources=alone)).all()),
        "ranks": float(abs(oocgraph.pagerank(graph, client=client).rank - oocgraph.pagerank(graph, resources=alone).rank).max()),
    }))
"""


def spilling():
    """Options of workers that manage device memory, as far as this dask-cuda has them: newer ones have no jit_unspill."""
    found = [{"device_memory_limit": "1GiB"}, {"device_memory_limit": "1GiB", "memory_limit": "2GiB"}]
    if find_spec("dask_cuda") is None:
        return found
    from dask_cuda import LocalCUDACluster

    has_jit = "jit_unspill" in inspect.signature(LocalCUDACluster.__init__).parameters
    return [*found, {"device_memory_limit": "1GiB", "jit_unspill": True}] if has_jit else found


@pytest.mark.parametrize("options", spilling())
def test_workers_that_spill_device_memory(run, graph, options):
    """dask-cuda's memory managers of workers leave what is here alone: searches, products and ranks are right under each of them."""
    done = run("-c", OPTIONS, graph, json.dumps(options), gpus=2)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("ranks") < 1e-10
    assert found == {"workers": 2, "device": "cpu", "levels": True, "products": True}


def test_the_notebook_and_the_readme_show_what_runs(run, graph, tmp_path):
    """Their examples with LocalCUDACluster, as they are, under a driver that shows two GPUs."""
    (tmp_path / "graph.zarr").symlink_to(graph)
    (tmp_path / "kron.zarr").symlink_to(graph)
    notebook = json.loads((ROOT / "notebooks" / "cluster.ipynb").read_text())
    text = "\n".join("".join(cell["source"]) for cell in notebook["cells"]) + "\n" + (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    examples = [block for block in blocks if "LocalCUDACluster() as" in block]
    assert len(examples) == 2
    for example in examples:
        code = f"import os\nos.chdir({str(tmp_path)!r})\nimport oocgraph\nfrom distributed import Client\n{example}\nprint('it runs')"
        done = run("-c", code, gpus=2)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "it runs\n"
