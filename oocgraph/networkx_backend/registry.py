"""What the backend offers: each function with what it refuses, and the way a call of NetworkX becomes one of oocgraph.

`algorithm` registers a function under its own name, which is NetworkX's. The function receives the graph as `Nodes`, and its other
arguments as NetworkX documents them. What it costs is said in ``_oocgraph_nx.COSTS``, without which it is not registered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

import networkx as nx

from _oocgraph_nx import COSTS
from oocgraph.errors import CorruptStoreError
from oocgraph.networkx_backend.converted_nodes import ConvertedNodes
from oocgraph.networkx_backend.errors import TRANSLATED, error_of_networkx
from oocgraph.networkx_backend.graph import ConvertedGraph
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.store_nodes import StoreNodes
from oocgraph.store.graph import CSRStore

Refusal = Callable[[Mapping[str, Any]], str | None]
"""Returns why a call cannot run, by its arguments, or None."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A function of NetworkX that the backend has.

    Attributes
    ----------
    run
        Called by NetworkX.
    parameters
        Of the function, as NetworkX has them.
    positional
        Names of those that may be given by position.
    defaults
        Of those that have one.
    unsupported
        Parameters that must be left at their defaults.
    refuse
        What else is refused.
    takes_parallel_edges
        Whether it does of a store with parallel edges what NetworkX does of a multigraph.
    """

    run: Callable[..., Any]
    parameters: Signature
    positional: Sequence[str]
    defaults: Mapping[str, Any]
    unsupported: Sequence[str]
    refuse: Refusal | None
    takes_parallel_edges: bool

    def given(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a call by name, with defaults: ten times as fast as `Signature.bind` where all is well.

        Raises
        ------
        TypeError
            The function cannot be called with them.
        """
        named = dict(zip(self.positional, args, strict=False))
        given = {**self.defaults, **named, **kwargs}
        if len(named) != len(args) or not kwargs.keys().isdisjoint(named) or given.keys() != self.parameters.parameters.keys():
            bound = self.parameters.bind(*args, **kwargs)
            bound.apply_defaults()
            return bound.arguments
        return given

    def refusal(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """Return why a call cannot run, or None."""
        try:
            given = self.given(args, kwargs)
        except TypeError as error:
            return f"arguments: {error}"
        if given["G"].is_multigraph() and not (self.takes_parallel_edges and isinstance(given["G"], CSRStore)):
            return "multigraphs are not supported"
        for name in self.unsupported:
            if given[name] is not self.defaults[name]:
                return f"{name}={given[name]!r} is not supported"
        if callable(given.get("weight")):
            return "weights that are computed by a function are not supported"
        return self.refuse(given) if self.refuse else None


ALGORITHMS: dict[str, Algorithm] = {}
"""All functions, by name."""


def algorithm(
    *, unsupported: Sequence[str] = (), refuse: Refusal | None = None, takes_parallel_edges: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of the backend.

    Parameters
    ----------
    unsupported
        Parameters that must be left at their defaults.
    refuse
        Returns why a call cannot run, by its arguments.
    takes_parallel_edges
        Whether it does of a store with parallel edges what NetworkX does of a multigraph.

    Raises
    ------
    KeyError
        It is not described in ``_oocgraph_nx.COSTS``.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        COSTS[name]

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            given = dict(found.given(args, kwargs))
            nodes = nodes_of(given.pop("G"), given.pop("memory_budget"))
            try:
                return function(nodes, **given)
            except TRANSLATED as error:
                is_final = isinstance(nodes, StoreNodes) and not nx.config.fallback_to_nx
                raise error_of_networkx(error, given.get("max_iter", 0), is_final=is_final) from error
            except CorruptStoreError as error:
                if isinstance(nodes, StoreNodes):
                    raise
                raise NotImplementedError(f"numbers beyond those of float64 come of the weights: {error}") from error

        first, *others = signature(function).parameters.values()
        budget = Parameter("memory_budget", Parameter.KEYWORD_ONLY, default=None)
        parameters = Signature([first.replace(name="G"), *others, budget])
        positional = tuple(one.name for one in parameters.parameters.values() if one.kind is not Parameter.KEYWORD_ONLY)
        defaults = {one.name: one.default for one in parameters.parameters.values() if one.default is not Parameter.empty}
        found = Algorithm(run, parameters, positional, defaults, tuple(unsupported), refuse, takes_parallel_edges)
        ALGORITHMS[name] = found
        return function

    return register


def undirected_only(what: str) -> Refusal:
    """Return what refuses directed graphs."""

    def refuse(given: Mapping[str, Any]) -> str | None:
        return f"{what} of directed graphs are not supported" if given["G"].is_directed() else None

    return refuse


def nodes_of(graph: Any, memory_budget: str | int | None = None) -> Nodes:
    """Return the vertices of a graph of this backend, with the resources that NetworkX' configuration allows."""
    config = nx.config.backends["oocgraph"]
    budget = config.memory_budget if memory_budget is None else memory_budget
    return (ConvertedNodes if isinstance(graph, ConvertedGraph) else StoreNodes)(graph, budget, config.threads)
