"""All public functions are called alike: few parameters, one name for one thing, keywords after the second, all of it documented."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict

import pytest

import oocgraph
from oocgraph.arguments import RENAMED

FUNCTIONS = {name: getattr(oocgraph, name) for name in oocgraph.__all__ if inspect.isfunction(getattr(oocgraph, name))}

MOST_PARAMETERS = 12

WITH_RESOURCES = sorted(set(FUNCTIONS) - {"open_graph", "open_partitions", "balanced_partition"})
"""Those that compute."""

ON_CLUSTERS = {"bfs", "connected_components", "open_runtime", "pagerank", "partition_graph", "spmv"}

ANY_TYPE = {"graph", "source", "path", "weight", "edge_columns"}
"""Names of one meaning that some functions take in more forms: a matrix beside a graph, True and False beside a column of weights."""


def parameters(name):
    return inspect.signature(FUNCTIONS[name]).parameters


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_few_and_keywords_after_the_second(name):
    found = list(parameters(name).values())
    assert len(found) <= MOST_PARAMETERS
    assert {one.kind for one in found} <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    assert all(one.kind == inspect.Parameter.KEYWORD_ONLY for one in found[2:])


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
    for keyword, remedy in RENAMED.items():
        if keyword in parameters(name) or name == "balanced_partition":
            continue
        with pytest.raises(TypeError, match=re.escape(f"{name}() has no parameter '{keyword}'; {remedy}")):
            FUNCTIONS[name](**{keyword: 1})


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
