"""Keywords of public functions: one that a function does not have, or no longer has, is an error that names the right one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from oocgraph.errors import ArgumentTypeError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_RESOURCE = "pass resources=oocgraph.Resources({}=...)"
_SETTING = "it is the setting oocgraph.{} (dask.config.set)"

RENAMED = {
    "alpha": "it is called damping",
    "check_pages": "open the graph by open_graph(path, check_pages=True)",
    "checkpoint_every": _SETTING.format("checkpoint-every"),
    "codec": _SETTING.format("codec"),
    "compiled": "give a Policy with compiled=False",
    "device": _RESOURCE.format("device"),
    "device_memory_budget": _RESOURCE.format("device_memory_budget"),
    "edge_columns": "name the columns of source and target and those to keep in columns=",
    "graph_or_matrix": "it is called graph",
    "memory": "it is called memory_budget",
    "num_partitions": _RESOURCE.format("num_partitions"),
    "out": "it is called path",
    "precision": _SETTING.format("precision"),
    "source_column": "name the columns of source and target in columns=",
    "store": "it is called path where it is written, and graph where it is read",
    "target_column": "name the columns of source and target in columns=",
    "threads": _RESOURCE.format("threads"),
    "url": "it is called path",
    "vertex_order": _SETTING.format("vertex-order"),
    "weight_column": "it is called weight",
    "weights": "it is called weight",
}
"""Keywords of version 0.1 and of similar libraries, and what to write instead."""


def known_keywords(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Have a public function refuse a keyword that it does not have, with the one to use instead.

    Raises
    ------
    ArgumentTypeError
        When the function is called with such a keyword.
    """
    names = frozenset(inspect.signature(function).parameters)

    @wraps(function)
    def call(*args: _P.args, **keywords: _P.kwargs) -> _R:
        if not names.issuperset(keywords):
            (unknown, *_) = (name for name in keywords if name not in names)
            taken = ", ".join(one for one in inspect.signature(function).parameters if one != "self")
            remedy = RENAMED.get(unknown) if function.__name__ != "__init__" else None
            name = function.__qualname__.removesuffix(".__init__")
            raise ArgumentTypeError(f"{name}() has no parameter {unknown!r}; {remedy or f'it takes {taken}'}")
        return function(*args, **keywords)

    return call
