"""Functions of NetworkX take a store as it is, and return what they return of NetworkX's own graph."""

from __future__ import annotations

import inspect

import networkx as nx
import pytest

from _oocgraph_nx import COSTS
from oocgraph.networkx_backend import BackendInterface
from tests.networkx_backend.calls import CALLS, GRAPHS, arguments, store_of

UNDIRECTED_ONLY = {"clustering", "average_clustering", "transitivity"}
"""Functions that are refused for directed graphs, though NetworkX has them."""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Graphs of NetworkX and their stores, by kind."""
    folder = tmp_path_factory.mktemp("stores")
    graphs = {kind: make() for kind, make in GRAPHS.items()}
    return {kind: (graph, store_of(graph, folder / f"{kind}.zarr")) for kind, graph in graphs.items()}


@pytest.fixture
def no_conversion(monkeypatch):
    """Fail where a graph is converted."""

    def refuse(*_, **__):
        raise AssertionError("a graph was converted")

    monkeypatch.setattr(BackendInterface, "convert_from_nx", staticmethod(refuse))


def outcome(function, *args):
    """Return what a call returns, generators as lists, or the class of what it raises."""
    try:
        found = function(*args)
        return list(found) if inspect.isgenerator(found) or hasattr(found, "__next__") else found
    except (nx.NetworkXException, KeyError) as error:
        return type(error)


def test_every_advertised_function_is_called_here():
    """None is left out."""
    assert set(CALLS) == set(COSTS)


@pytest.mark.usefixtures("no_conversion")
@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_store_gives_what_networkx_gives(pairs, name):
    """Of five kinds of graphs, and one without cycles; without a conversion."""
    *calls, is_same = CALLS[name]
    for kind, (graph, store) in pairs.items():
        for given in calls:
            args = arguments(graph, given)
            if name in UNDIRECTED_ONLY and graph.is_directed():
                with pytest.raises(NotImplementedError):
                    getattr(nx, name)(store, *args)
                continue
            expected, found = (outcome(getattr(nx, name), one, *args) for one in (graph, store))
            same = found == expected if isinstance(expected, type) else not isinstance(found, type) and is_same(found, expected, graph)
            assert same, f"{kind}{tuple(args)}: {found!r} instead of {expected!r}"
