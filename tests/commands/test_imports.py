"""What a search from the shell imports: with a cold disk each library costs as much as reading part of the graph."""

from __future__ import annotations

import os
import subprocess
import sys

import oocgraph
from oocgraph.cli import BLAS

NOT_NEEDED = {"dask", "distributed", "zarr", "pyarrow", "asyncio", "cupy", "oocgraph.arrays.cuda"}

CODE = """if True:
    import sys
    from oocgraph.arrays import drivers
    from oocgraph.cli import cli
    drivers.DRIVER_LIBRARY = "libcuda-that-is-not-there.so.1"
    cli(sys.argv[1:], standalone_mode=False)
    print(*sorted(sys.modules), file=sys.stderr)
"""


def test_search_from_the_shell_imports_what_it_needs(tmp_path):
    """Neither Dask nor Zarr, Arrow or what GPUs need: a store of integers in plain files on this machine."""
    oocgraph.build_csr(([0, 1, 2], [1, 2, 3]), tmp_path / "graph.zarr")
    command = [sys.executable, "-c", CODE, "bfs", str(tmp_path / "graph.zarr"), "--source", "0", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "4 of 4 vertices reached" in done.stdout
    assert "numba" in loaded
    assert sorted(loaded & NOT_NEEDED) == []


def test_numpy_is_imported_after_threads_are_told_not_to_spin():
    """Each of those that multiply matrices, one for every processor but one, would take 0.1 s of it."""
    code = """if True:
        import os, sys
        from oocgraph import cli
        assert "numpy" not in sys.modules
        cli.cli = lambda: print(os.environ[cli.BLAS[0]])
        cli.main()"""
    environment = {name: value for name, value in os.environ.items() if name != BLAS[0]}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == f"{BLAS[1]}\n"
