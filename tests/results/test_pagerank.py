"""What PageRank returns, made by hand: the highest ranks, and counts of them that cannot be meant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oocgraph import OocGraphError, append_edges, build_csr, pagerank
from oocgraph.results.pagerank import PageRankResult
from oocgraph.store.graph import open_graph
from oocgraph.store.vertices import VertexIds
from tests.reference_build import reference_build


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """Ranks of the vertices 0 to 4, of which 4 has no edge."""
    path = tmp_path_factory.mktemp("rank") / "g"
    reference_build([0, 1, 2], [1, 2, 3], path, implied=(0, 5), vertex_order="original")
    return PageRankResult(
        stored_rank=np.array([0.2, 0.3, 0.2, 0.1]), ids=VertexIds(open_graph(path)), isolated_scale=1.0, damping=0.85, tol=1e-6,
        weights=None, iterations=1, converged=True, change=0.0, steps=(),
    )  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 3, 5, 9])
def test_the_highest_ranks_come_first_and_of_equals_the_smaller_id(result, count):
    best = [(1, 0.3), (0, 0.2), (2, 0.2), (4, 0.2), (3, 0.1)]
    assert result.top(count) == [(vertex, pytest.approx(rank)) for vertex, rank in best[:count]]


@pytest.mark.parametrize("count", [-1, 1.5, 2.0, True, "3", [1]])
def test_a_count_that_cannot_be_meant_is_refused(result, count):
    result.top(2)
    with pytest.raises(OocGraphError, match=r"count is .*; it must be a whole number, 0 or more"):
        result.top(count)


def test_ranks_of_more_ids_than_the_graph_has(result):
    """An id may be named often, also where the personalization says what isolated vertices want."""
    personal = replace(result, personalization=np.array([0.1, 0.2, 0.3, 0.2, 0.2]))
    assert personal.rank_of([1, 2] * 5).tolist() == [0.3, 0.2] * 5
    assert personal.rank_of([4, 1, 4] * 3).tolist() == [pytest.approx(0.2), 0.3, pytest.approx(0.2)] * 3
    assert isinstance(personal.rank_of(4), float)
    assert personal.of([1, 4]).tolist() == personal.rank_of([1, 4]).tolist()


def test_a_result_is_shown_when_its_graph_was_replaced(tmp_path):
    """Without the ids that rank highest, which cannot be read any more."""
    build_csr(([10, 22, 37], [22, 37, 48]), tmp_path / "g")
    result = pagerank(tmp_path / "g")
    assert "highest: " in repr(pagerank(tmp_path / "g"))
    append_edges(tmp_path / "g", ([48], [59]))
    assert "of 4 vertices" in repr(result)
    assert "highest" not in repr(result)
    assert ">vertices<" in result._repr_html_()
    assert "highest" not in result._repr_html_()
