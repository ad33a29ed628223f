"""What STABILITY.md says of stores that a later release wrote, with the same number of the format or a higher one."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import zarr

from oocgraph import bfs, check_store, open_graph
from oocgraph.errors import StoreError
from oocgraph.store.layout import ATTRIBUTES_KEY, FORMAT
from tests.reference_build import reference_build


@pytest.fixture
def changed(tmp_path):
    """Change the attributes of a small store; return its path."""
    reference_build([0, 1, 2], [1, 2, 3], tmp_path / "g")

    def change(**attributes):
        path = tmp_path / "g" / "zarr.json"
        root = json.loads(path.read_text())
        root["attributes"][ATTRIBUTES_KEY] |= attributes
        path.write_text(json.dumps(root))
        return tmp_path / "g"

    return change


def test_attributes_and_arrays_that_are_not_known_are_ignored(changed):
    """They are of a later release that writes the same format."""
    path = changed(colour="blue")
    zarr.open_group(path, mode="a").create_array("later", shape=(4,), dtype="int64")[:] = 7
    graph = open_graph(path)
    np.testing.assert_array_equal(bfs(graph, 0).level, [0, 1, 2, 3])
    check_store(graph)


def test_a_later_format_is_refused_with_the_remedy(changed):
    """Reading it as if it were this one could give wrong results."""
    with pytest.raises(StoreError, match=re.escape(f"format {FORMAT + 1} is newer than format {FORMAT}") + ".*upgrade oocgraph"):
        open_graph(changed(format=FORMAT + 1))
