"""Notebooks: execute them as a reader would, store what they print, and compare it with what is stored.

    python -m tests.notebooks [NAME ...]

executes the notebooks of ``notebooks/`` that are named, or all, and stores their outputs. Each runs in a kernel and an empty folder of its
own. A cell whose text differs from run to run has the tag `VARIES`; of it, and of pictures, only the kind of the output is compared. What
goes to stderr (the announcement of a compilation) is not stored.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
VARIES = "varies"
LIMIT_SECONDS = 500


def executed(path, folder):
    """Return a notebook with the outputs of its cells; the first cell that fails is an error that shows it.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        A cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    metadata = notebook.metadata.copy()
    client = NotebookClient(notebook, timeout=LIMIT_SECONDS, record_timing=False, resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    notebook.metadata = metadata  # without the version of this Python
    return notebook


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def stderr_of(notebook):
    """Return what all cells wrote to stderr."""
    return "".join(output.text for cell in code_cells(notebook) for output in cell.outputs if output.get("name") == "stderr")


def without_stderr(notebook):
    """Return the notebook with what is stored of it."""
    for cell in code_cells(notebook):
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def shown(notebook):
    """Return what each code cell shows, as far as it is the same in every run: lines of text, and kinds of pictures."""
    return [_shown_by(cell, VARIES in cell.metadata.get("tags", ())) for cell in code_cells(notebook)]


def _shown_by(cell, varies):
    """Return what a cell shows: its stream as a whole, which comes in as many pieces as it happens, then its other outputs."""
    text = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    others = [_shown(output, varies) for output in cell.outputs if output.output_type != "stream"]
    return [*(["..." if varies else text.splitlines()] if text else []), *others]


def _shown(output, varies):
    picture = "image/png" in output.data
    return sorted(output.data) if varies or picture else output.data["text/plain"].splitlines()


def main(names):
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.stem in names:
            with tempfile.TemporaryDirectory() as folder:
                nbformat.write(without_stderr(executed(path, folder)), path)
            print(path.stem)


if __name__ == "__main__":
    main(sys.argv[1:])
