"""README.md and the pages in docs are run: Python blocks of a page in one namespace, shell blocks with the installed command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {path.name: path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}

MOST_LINES = 120
"""Of the README: what is longer is a page of its own."""


def blocks(language, page="README.md"):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], re.DOTALL | re.MULTILINE)


def pages_with(language):
    """Pages with such blocks; those of the guide take minutes."""
    slow = {"guide.md": [pytest.mark.slow]}
    return [pytest.param(page, marks=slow.get(page, [])) for page in PAGES if blocks(language, page)]


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
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    return lambda script: subprocess.run(["bash", "-euc", script], cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_blocks_run(page, tmp_path):
    """Blocks follow on each other, as a reader would type them; in a process as small as the reader's, because they name budgets."""
    env = dict(os.environ)
    code = "\n".join(blocks("python", page))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", pages_with("bash"))
def test_shell_blocks_run(page, shell):
    """Every block of commands succeeds in an empty folder; those that install are run by CI."""
    scripts = [block for block in blocks("bash", page) if "pip install" not in block]
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


@pytest.mark.parametrize("page", PAGES)
def test_files_that_pages_name_exist(page):
    """A path or a link in a page is a path in the repository."""
    for path in re.findall(r"`((?:oocgraph|configs|docs|notebooks)/[\w./-]+)`", PAGES[page]):
        assert (ROOT / path).exists(), path
    folder = ROOT if page == "README.md" else ROOT / "docs"
    for link in re.findall(r"\]\(([^)#]+)\)", PAGES[page]):
        assert (folder / link).exists(), link


def test_the_readme_is_short():
    assert len(PAGES["README.md"].splitlines()) <= MOST_LINES
