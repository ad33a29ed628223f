"""All public functions are called alike: few parameters, one name for one thing, keywords after the second, all of it documented."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict

import numpy as np
import pytest

import oocgraph
from oocgraph.arguments import RENAMED

FUNCTIONS = {name: getattr(oocgraph, name) for name in oocgraph.__all__ if inspect.isfunction(getattr(oocgraph, name))}

MOST_PARAMETERS = 15

WITH_RESOURCES = sorted(set(FUNCTIONS) - {"open_graph", "open_partitions", "balanced_partition"})
"""Those that compute."""

ON_CLUSTERS = {
    "core_numbers", "sssp", "bfs", "connected_components", "open_runtime", "pagerank", "partition_graph", "spmv", "hits", "katz_centrality",
    "eigenvector_centrality", "multi_source_bfs", "closeness_centrality", "harmonic_centrality", "eccentricity", "diameter",
    "personalized_pagerank", "build_csr", "append_edges",
}  # fmt: skip

ANY_TYPE = {"graph", "source", "path", "weight", "edge_columns", "runtime"}
"""Names of one meaning that some functions take in more forms: a matrix, and its runtime, beside a graph, True and False beside a column of
weights."""


def parameters(name):
    return inspect.signature(FUNCTIONS[name]).parameters


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_few_and_keywords_after_the_second(name):
    found = list(parameters(name).values())
    assert len(found) <= MOST_PARAMETERS
    assert {one.kind for one in found} <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    required = (
        3 if name in ("run", "shortest_path", "merge_graphs") else 2
    )  # a graph, an operator and where it begins; or both ends of a path
    assert all(one.kind == inspect.Parameter.KEYWORD_ONLY for one in found[required:])


def test_the_same_name_means_the_same_everywhere():
    """One annotation and one default for each name."""
    kinds = defaultdict(set)
    for name in FUNCTIONS:
        for parameter in parameters(name).values():
            if parameter.name not in ANY_TYPE and parameter.default is not inspect.Parameter.empty:
                kinds[parameter.name].add((str(parameter.annotation), repr(parameter.default)))
    assert {name: found for name, found in kinds.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", WITH_RESOURCES)
def test_whatever_computes_takes_resources(name):
    found = parameters(name)
    assert {"resources", "memory_budget"} <= set(found)
    assert ("client" in found) == (name in ON_CLUSTERS)
    assert not {"threads", "device", "device_memory_budget", "memory", "check_pages"} & set(found)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_documented_under_their_names(name):
    text = inspect.getdoc(FUNCTIONS[name])
    assert "Returns\n-------" in text or inspect.signature(FUNCTIONS[name]).return_annotation in ("None", None)
    section = re.search(r"Parameters\n-{10}\n(.*?)(\n\n[A-Z]\w+\n-+\n|\Z)", text, re.DOTALL)[1]
    named = {
        one.strip() for line in section.split("\n") if line and not line.startswith(" ") for one in line.partition(" : ")[0].split(",")
    }
    assert named == set(parameters(name))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_old_keywords_are_told_by_their_new_names(name):
    for keyword, (parameter, remedy) in RENAMED.items():
        if keyword in parameters(name):
            continue
        said = remedy if parameter in parameters(name) else "it"
        with pytest.raises(TypeError, match=re.escape(f"{name}() has no parameter '{keyword}'; {said}")) as caught:
            FUNCTIONS[name](**{keyword: 1})
        for meant in re.findall(r"it is called (\w+)", str(caught.value)):
            assert meant in parameters(name)  # never one that the function does not have


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_of_the_wrong_type_are_refused_before_anything_is_done(name, tmp_path):
    needed = {
        "graph": str(tmp_path / "g"), "path": str(tmp_path / "p"), "source": 0, "x": [1.0], "num_partitions": 2, "result": None,
        "other": "o",
        "edges": ([0], [1]), "scale": 4, "shape": (2, 2), "workers": 2, "policy": "CVC",
        "operator": None, "initial": {}, "target": 1,
        "seeds": [0],
        "sources": [0],
    }  # fmt: skip
    values = {
        "overwrite": "no", "transpose": 1, "keep_self_loops": "no", "directed": "yes", "seed": "a", "progress": "yes", "weight": ["w"],
        "num_vertices": 1.5,
    }  # fmt: skip
    given = {one: needed[one] for one in parameters(name) if one in needed}
    for keyword in set(values) & set(parameters(name)):
        with pytest.raises(TypeError, match=rf"^{keyword} is .*; give "):
            FUNCTIONS[name](**{**given, keyword: values[keyword]})
    with pytest.raises(TypeError, match=rf"^{name}\(\) is given 9 arguments by position, and takes [123]; give the others by name"):
        FUNCTIONS[name](*range(9))
    with pytest.raises(TypeError, match=rf"^{name}\(\) needs "):
        FUNCTIONS[name]()
    assert list(tmp_path.iterdir()) == []


def test_numpys_numbers_and_truths_are_pythons(tmp_path):
    graph = oocgraph.build_csr(([0, 1], [1, 2]), tmp_path / "g", num_vertices=np.int64(5), directed=np.True_, overwrite=np.False_)
    assert (graph.attributes.num_input_vertices, graph.attributes.directed) == (5, True)
    assert oocgraph.generate_kronecker(np.int32(4), tmp_path / "k", seed=np.uint8(3), edge_factor=np.int64(2)).num_vertices > 0


def test_what_is_returned_is_exported():
    """Classes of oocgraph in the annotations of what public functions return."""
    for name, function in FUNCTIONS.items():
        returned = set(re.findall(r"[A-Z]\w+", str(inspect.signature(function).return_annotation))) - {"Array", "None", "Any"}
        assert returned <= set(oocgraph.__all__), name
    assert issubclass(oocgraph.DaskBFSResult, oocgraph.BFSResult)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (oocgraph.ArgumentError, ValueError),
        (oocgraph.ArgumentTypeError, TypeError),
        (oocgraph.BudgetError, MemoryError),
        (oocgraph.StoreNotFoundError, FileNotFoundError),
        (oocgraph.OutputExistsError, FileExistsError),
        (oocgraph.VertexNotFoundError, KeyError),
    ],
)
def test_errors_are_those_that_users_catch(error, builtin):
    assert issubclass(error, builtin)
    assert issubclass(error, oocgraph.OocGraphError)
    assert str(error("what to do")) == "what to do"
