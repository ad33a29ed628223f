"""Compiled kernels are kept in one folder for all processes of a user, and a cold cache is announced."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from oocgraph.compiled.announce import COMPILING
from tests.kernel_caches import cache_without

ROOT = Path(__file__).parents[2]
ME, NOBODY = os.getuid(), 65534

SCRIPT = """
import json, os
from oocgraph.kernels import cached
from oocgraph.compiled import load
from oocgraph.compiled.sound import load_read_sound, read_sound
load.USUAL = ()
load_read_sound()
print(json.dumps({"folder": str(cached.kernel_folder()), "named": os.environ.get("NUMBA_CACHE_DIR")}))
"""


FIND = """
import json, os
from oocgraph.kernels import cached
print(json.dumps({"folder": str(cached.kernel_folder()), "named": os.environ.get("NUMBA_CACHE_DIR")}))
"""


def run(script, temporary, source, **variables):
    """Run a script that can write to the temporary folder alone: what is in the place of a home and of the cache are no folders."""
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(temporary), "HOME": "/dev/null", "PYTHONPATH": str(source), **variables}
    done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, env=environment, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return a copy of the package in which nothing can be cached, by root neither."""
    copy = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "oocgraph", copy / "oocgraph", ignore=shutil.ignore_patterns("__pycache__", "*.parquet"))
    (copy / "oocgraph/kernels/__pycache__").touch()
    return copy


@pytest.fixture
def temporary(tmp_path):
    """Return a temporary folder of all, as /tmp is."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    return tmp_path / "tmp"


def test_processes_that_can_write_nowhere_else_share_a_folder(source, temporary):
    """The second of them compiles nothing, and the folder is closed to others."""
    first, said = run(SCRIPT, temporary, source)
    shared = temporary / f"oocgraph-kernels-{ME}"
    assert said == f"{COMPILING}\n"
    assert first["named"] == str(shared)
    assert Path(first["folder"]).is_relative_to(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o700
    assert run(SCRIPT, temporary, source) == (first, "")


def test_a_home_that_can_be_written_to_is_used_and_a_name_that_is_given_too(source, temporary):
    for name in ("home", "named"):
        (temporary / name).mkdir()
    found, _ = run(FIND, temporary, source, HOME=str(temporary / "home"))
    assert Path(found["folder"]).is_relative_to(temporary / "home/.cache/numba")
    found, _ = run(FIND, temporary, source, NUMBA_CACHE_DIR=str(temporary / "named"))
    assert Path(found["folder"]).is_relative_to(temporary / "named")
    assert not list(temporary.glob("oocgraph-kernels-*"))


@pytest.mark.parametrize("danger", ["other owner", "open", "link", "file", "parent"])
def test_a_folder_into_which_others_could_put_code_is_not_used(source, temporary, danger):
    """The process compiles for itself, says why, and leaves nothing behind."""
    shared = temporary / f"oocgraph-kernels-{ME}"
    if danger == "link":
        (temporary / "elsewhere").mkdir(mode=0o700)
        shared.symlink_to(temporary / "elsewhere")
    elif danger == "file":
        shared.touch()
    else:
        shared.mkdir(mode=0o700)
    if danger == "other owner":
        if ME:
            pytest.skip("only root can give a folder away")
        os.chown(shared, NOBODY, NOBODY)
    elif danger in ("open", "parent"):
        (shared if danger == "open" else temporary).chmod(0o777)
    before = sorted(temporary.iterdir())
    found, said = run(FIND, temporary, source)
    assert not Path(found["folder"]).is_relative_to(shared)
    assert Path(found["named"]).name.startswith("oocgraph-kernels-")
    assert "each process compiles its own; set NUMBA_CACHE_DIR" in said
    assert sorted(temporary.iterdir()) == before


ANNOUNCE = """
import logging, sys
from oocgraph.compiled import announce
if "worker" in sys.argv:
    announce.silence()
import numpy as np
import oocgraph
u = np.arange(50)
graph = oocgraph.build_csr((u, (u * 7 + 1) % 50), sys.argv[1], directed=False)
oocgraph.generate_uniform(5, sys.argv[1] + "-uniform.zarr")
print(graph.num_vertices)
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("role", "said"), [("user", [f"{COMPILING}\n", ""]), ("worker", [""])])
def test_compiling_is_announced_once_in_python_too(tmp_path, role, said):
    """Not where all is cached, nor in a worker."""
    environment = dict(os.environ)
    command = [sys.executable, "-c", ANNOUNCE, str(tmp_path / "first.zarr"), role]
    environment["NUMBA_CACHE_DIR"] = str(cache_without(tmp_path / "cold", ("generate",), [command], environment))
    for i, expected in enumerate(said):
        command = [sys.executable, "-c", ANNOUNCE, str(tmp_path / f"{i}.zarr"), role]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        assert (done.stdout, done.stderr) == ("50\n", expected)
