"""Compiled kernels: a cold cache is filled by another process, and a search compiles nothing beyond what was warmed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.kernel_caches import cache_without
from tests.reference_build import reference_build

SCRIPT = """
import dataclasses, json, numba, sys
from oocgraph import bfs, open_graph
from oocgraph.compiled import load
from oocgraph.kernels import warm
from oocgraph.engine import shard_plan
calls = warm.search_calls("uint32")
cold = load.are_cold(calls)
plan = shard_plan.plan_residency
if sys.argv[2] == "disk":
    shard_plan.plan_residency = lambda sizes, **o: dataclasses.replace(
        plan(sizes, **o), num_planes=1, num_resident=tuple(m // 9 for m in sizes.num_edges), cache_slots=9, num_kept=999)
    for direction in ("auto", "push", "pull", "half", "alpha-beta", "gemini"):
        bfs(open_graph(sys.argv[1], check_pages=direction == "auto"), 0, direction=direction)
else:
    for direction in ("auto", "pull"):  # the first finds all levels in one call, by one thread
        bfs(sys.argv[1], 0, direction=direction)
compiled = [kernel.__name__ for kernel, _ in calls if kernel.stats.cache_misses]
warmed = {(kernel, tuple(numba.typeof(argument) for argument in arguments)) for kernel, arguments in calls}
others = [kernel.__name__ for kernel, _ in calls for signature in kernel.overloads if (kernel, signature) not in warmed]
print(json.dumps({"cold": cold, "compiled": compiled + others}))
"""


ENVIRONMENT = dict(os.environ)


@pytest.mark.slow
def test_cold_cache_is_filled_elsewhere_and_then_suffices(tmp_path):
    """What a search calls is what was warmed, with the same types of arguments."""
    rng = np.random.default_rng(0)
    for name in ("directed", "undirected"):
        ends = rng.integers(0, 5000, (2, 60_000))
        reference_build(*ends, tmp_path / name, directed=name == "directed")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "undirected"), "memory"]
    cache = cache_without(tmp_path / "cache", ("serial_levels", "few"), [command], ENVIRONMENT)
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(cache)}
    for name, mode, cold in (("undirected", "memory", True), ("undirected", "disk", False), ("directed", "disk", False)):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path / name), mode], check=True, capture_output=True, text=True, env=environment
        )
        assert json.loads(done.stdout) == {"cold": cold, "compiled": []}


GATHER_SCRIPT = """
import json, sys
import numpy as np
from oocgraph.compiled import load
from oocgraph.kernels import gather, warm
from oocgraph.kernels.rows import ChunkFiles, file_extent
calls = warm.search_calls("uint32", device=True)
cold = load.are_cold(calls)
warm.load_search_kernels("uint32", device=True)
with open(sys.argv[1], "wb") as file:
    file.write(bytes(8192))
with open(sys.argv[1], "rb") as file:
    scratch, out, none = np.empty(8192, np.uint8), np.empty(5, np.uint32), np.empty(0, np.uint32)
    files = ChunkFiles(np.array([file.fileno()], np.int32), 2, file_extent(8192, 1, 4), none, 10)
    start, offset, cuts = np.array([7]), np.array([0, 5]), np.empty((3, 2), np.int64)
    gather.cut_rows(offset, 0, 5, 1024, cuts)
    gather.gather_rows(start, offset, 0, 1, 0, 5, none, files, 1, scratch, scratch.view(np.uint32), out)
    gather.copy_rows(start, offset, 0, 0, 0, 5, none, out, 7, out.copy())
compiled = [kernel.__name__ for kernel, _ in calls if kernel.stats.cache_misses]
print(json.dumps({"cold": cold, "compiled": compiled}))
"""


def test_kernels_that_gather_for_a_device_are_compiled_when_one_is_used(tmp_path):
    """They are no part of what a search without a device waits for."""
    command = [sys.executable, "-c", GATHER_SCRIPT, str(tmp_path / "file")]
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(cache_without(tmp_path / "cache", ("gather",), [command], ENVIRONMENT))}
    for cold in (True, False):
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        assert json.loads(done.stdout) == {"cold": cold, "compiled": []}


PRODUCT_SCRIPT = """
import json, logging, sys
import numpy as np, scipy.sparse as sp
from oocgraph import spmv
from oocgraph.compiled import load
from oocgraph.kernels import spmv as kernels
logging.basicConfig(level="WARNING")
asked = []
elsewhere = load._compile_elsewhere
load._compile_elsewhere = lambda cold, progress: asked.append(len(cold)) or elsewhere(cold, progress)
spmv(sys.argv[1], np.ones(200))
matrix = sp.random_array((30, 20), density=0.2, format="csc")
spmv(matrix, np.ones(20, np.float32))
locked = np.ones(30)
locked.flags.writeable = False
spmv(matrix.T, np.ones(30)), spmv(matrix.tocsr(), np.ones(20)), spmv(matrix, locked, transpose=True)
compiled = [name for name in ("multiply_csr", "multiply_csc") if getattr(kernels, name).stats.cache_misses]
print(json.dumps({"asked": asked, "compiled": compiled}))
"""


@pytest.mark.slow
def test_kernels_of_a_product_are_compiled_for_its_dtypes_elsewhere(tmp_path):
    """One process for each combination of dtypes that is not cached, none when all are."""
    src, dst = np.arange(200), (np.arange(200) * 7 + 1) % 200
    reference_build(src, dst, tmp_path / "g", implied=(0, 200))
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for num_asked in (4, 0):
        done = subprocess.run(
            [sys.executable, "-c", PRODUCT_SCRIPT, str(tmp_path / "g")], check=True, capture_output=True, text=True, env=environment
        )
        assert len(json.loads(done.stdout)["asked"]) == num_asked, done.stderr
        assert json.loads(done.stdout)["compiled"] == []


BROKEN_SCRIPT = """
import logging, sys
import numpy as np, scipy.sparse as sp
from oocgraph import spmv
from oocgraph.compiled import load
load.USUAL = ()
logging.basicConfig(level="WARNING")
sys.executable = "/bin/false"
print(spmv(sp.eye_array(3, format="csr"), np.ones(3)).tolist())
"""


def test_where_no_process_can_be_started_a_kernel_is_compiled_here_and_that_is_logged(tmp_path):
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", BROKEN_SCRIPT], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout == "[1.0, 1.0, 1.0]\n"
    assert "compiling in this process" in done.stderr
