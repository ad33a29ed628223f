"""Notebooks run from top to bottom, and what is stored of them is what they show."""

from __future__ import annotations

import json
import re
import shlex
import tempfile

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from oocgraph.cli import cli
from tests.notebooks import FOLDER, code_cells, executed, shown, stderr_of, without_stderr

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

SLOW = {False: [], True: [pytest.mark.slow]}

OF_ONE_MACHINE = rf"{re.escape(tempfile.gettempdir())}/|{re.escape(str(FOLDER.parent))}/|/home/|/root/|\b\d+\.\d+\.\d+\.\d+:\d+"
"""Folders, and addresses of workers."""


@pytest.mark.parametrize("path", [pytest.param(path, marks=SLOW[path.stem != "quickstart"], id=path.stem) for path in NOTEBOOKS])
def test_notebook_shows_what_is_stored(path, tmp_path):
    """Every cell runs, without a warning; ``python -m tests.notebooks`` stores outputs again after a change."""
    notebook = executed(path, tmp_path)
    assert "Warning" not in stderr_of(notebook)
    assert shown(without_stderr(notebook)) == shown(nbformat.read(path, as_version=4)), f"run python -m tests.notebooks {path.stem}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_complete_and_of_no_machine(path):
    """Cells are numbered from 1 in order, something is shown, and no output names a folder or address."""
    cells = code_cells(nbformat.read(path, as_version=4))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert sum(bool(cell.outputs) for cell in cells) >= len(cells) // 2
    for cell in cells:
        assert not re.search(OF_ONE_MACHINE, json.dumps([output for output in cell.outputs if "image/png" not in output.get("data", {})]))


def notebook_of(path, *sources):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbformat.write(notebook, path)
    return path


def test_a_cell_that_fails_is_an_error_that_shows_it(tmp_path):
    """Whatever stands below it."""
    path = notebook_of(tmp_path / "fails.ipynb", "1 + 1", "1 / 0", "print('never')")
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        executed(path, tmp_path)


def test_another_text_is_noticed(tmp_path):
    """An output that is stale; a warning is found where cells print it."""
    path = notebook_of(tmp_path / "prints.ipynb", "import warnings\nprint(6 * 7)", "warnings.warn('old')")
    notebook = executed(path, tmp_path)
    assert "UserWarning: old" in stderr_of(notebook)
    assert shown(without_stderr(notebook)) == [[["42"]], []]
    assert shown(notebook) != shown(nbformat.read(path, as_version=4))


def shell_lines():
    """Commands that notebooks show, with the notebook of each."""
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            text = cell.source.replace("\\\n", " ") if cell.cell_type == "markdown" else ""
            yield from ((path.stem, line.strip()) for line in text.splitlines() if line.strip().startswith("oocgraph "))


@pytest.mark.parametrize(("name", "line"), list(shell_lines()))
def test_commands_that_are_shown_exist(name, line):
    """With these options; they are not run."""
    _, command, *arguments = shlex.split(line.partition(" #")[0].partition(" > ")[0].partition(" | ")[0])
    found = cli.get_command(None, command)
    while hasattr(found, "commands"):
        subcommand, *arguments = arguments
        found = found.get_command(None, subcommand)
    found.make_context(command, arguments)
