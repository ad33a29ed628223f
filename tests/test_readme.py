"""The README is run: Python blocks in one namespace, shell blocks with the installed command; CI runs its two install commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def shell(tmp_path):
    """Run a script in an empty folder where ``oocgraph`` and ``dask`` are those of this checkout."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("oocgraph", "dask"):
        (tools / tool).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {tool} "$@"\n')
        (tools / tool).chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return lambda script: subprocess.run(["bash", "-euc", script], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_python_blocks_run(tmp_path):
    """Blocks follow on each other, as a reader would type them; in a process as small as the reader's, because they name budgets."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    code = "\n".join(blocks("python"))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_shell_blocks_run(shell):
    """Every block of commands succeeds in an empty folder; those that install are run by CI."""
    scripts = [block for block in blocks("bash") if "pip install" not in block]
    assert scripts
    for script in scripts:
        done = shell(script)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"


def test_ci_runs_the_install_commands():
    """The README's test command stands in .ci/run as it is, and the demo is run there."""
    main_job, tests = (block.strip() for block in blocks("bash") if "pip install" in block)
    script = (ROOT / ".ci" / "run").read_text()
    assert tests in script
    assert main_job.endswith(".venv/bin/oocgraph demo")
    assert ".venv/bin/oocgraph demo" in script


def test_files_that_the_readme_names_exist():
    """A path in the README is a path in the repository."""
    for path in re.findall(r"`((?:oocgraph|configs)/[\w./]+)`", README):
        assert (ROOT / path).exists(), path
