"""The folder in which results and partitions are made that go with a graph for a while."""

from __future__ import annotations

import os
from pathlib import Path

from oocgraph.config import settings
from oocgraph.errors import ArgumentError
from oocgraph.store.graph_arrays import GraphArrays


def folder_beside(store: GraphArrays, remedy: str) -> Path:
    """Return the folder that the setting ``oocgraph.result-folder`` names, else the one that the graph is in: every worker sees it.

    Raises
    ------
    ArgumentError
        The graph is in no local folder, and none is set; the message ends with `remedy`.
    """
    folder = settings().result_folder
    if folder is not None:
        return Path(os.path.abspath(folder))
    if "://" in store.place:
        raise ArgumentError(f"{store.url} is in no local folder: {remedy}")
    return Path(store.place).parent
