"""What notebooks show of results, partitions and reports: small tables, the answer first, everything escaped."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import oocgraph
from oocgraph.listing import html_listing, html_records


class Cells(HTMLParser):
    """Texts of the cells of all tables; refuses tags that are not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.attributes = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def shown(value):
    """All texts, in order; no colours that a dark theme would hide."""
    cells = Cells(value._repr_html_())
    assert {style for _, style in cells.attributes} <= {"text-align:left"}
    return cells.texts


@pytest.fixture
def store(tmp_path):
    return oocgraph.generate_kronecker(6, tmp_path / "<b>g&amp;.zarr")


def test_results_begin_with_the_answer(store):
    """Metrics of the run are folded up below."""
    first = int(store.ids_of(0)[0])
    result = oocgraph.bfs(store, first)
    texts = shown(result)
    answer = {"vertices": 64, "source": first, "reached": result.num_reached, "depth": result.depth}
    assert texts[:9] == ["BFSResult", *(str(text) for pair in answer.items() for text in pair)]
    assert texts[9] == "details of the run"
    assert "memory budget" in texts
    ranks = oocgraph.pagerank(store)
    assert shown(ranks)[:4] == ["PageRankResult", "vertices", "64", "highest"]
    assert shown(ranks)[4].startswith(f"{ranks.top(1)[0][0]} (")
    assert shown(oocgraph.connected_components(store))[3:5] == ["components", str(oocgraph.connected_components(store).num_components)]
    assert shown(oocgraph.core_numbers(store))[3] == "degeneracy"
    assert {"triangles", "transitivity"} < set(shown(oocgraph.triangles(store)))
    assert "ends" in shown(oocgraph.diameter(oocgraph.generate_grid((3, 4), store.url + ".grid")))


def test_reports_are_listed(store):
    result = oocgraph.bfs(store, int(store.ids_of(0)[0]))
    assert shown(oocgraph.verify_bfs(store, result))[:3] == ["Validation", "reached", str(result.num_reached)]
    assert "checksums" in shown(oocgraph.check_store(store))
    assert "file bytes" in shown(oocgraph.export_graph(store, store.url + ".sg"))


def test_partitions_list_their_parts(store, monkeypatch):
    from oocgraph.store import partitions

    made = oocgraph.partition_graph(store, 3, policy="CVC", path=store.url + ".parts")
    texts = shown(made)
    assert texts[:5] == ["Partitions", "partitions", "3", "policy", made.policy]
    at = texts.index("part")
    assert texts[at : at + 5] == ["part", "edges", "masters", "isolated", "mirrors"]
    assert texts[at + 5 :: 5] == ["0", "1", "2"]
    assert sum(int(text.replace(",", "")) for text in texts[at + 6 :: 5]) == made.num_stored_edges
    monkeypatch.setattr(partitions, "SHOWN_PARTS", 2)
    assert shown(made)[-1] == "... and 1 more parts"


def test_everything_is_escaped():
    hostile = "<script>alert('x')</script>&"
    text = html_listing(hostile, {hostile: hostile}, {hostile: hostile}) + html_records([{hostile: hostile}])
    assert "<script" not in text
    assert Cells(text).texts.count(hostile.replace("_", " ")) == 7


def test_lists_and_arrays_are_left_out(store):
    """A line has one value."""
    found = oocgraph.multi_source_bfs(store, store.ids_of(np.arange(3)))
    assert "reached" not in shown(found)
