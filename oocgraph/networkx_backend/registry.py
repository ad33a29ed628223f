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
from oocgraph.networkx_backend.converted_nodes import ConvertedNodes
from oocgraph.networkx_backend.errors import errors_of_networkx
from oocgraph.networkx_backend.graph import ConvertedGraph
from oocgraph.networkx_backend.nodes import Nodes
from oocgraph.networkx_backend.store_nodes import StoreNodes
from oocgraph.resources import Resources
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
    unsupported
        Parameters that must be left at their defaults.
    refuse
        What else is refused.
    takes_parallel_edges
        Whether it does of a store with parallel edges what NetworkX does of a multigraph.
    """

    run: Callable[..., Any]
    parameters: Signature
    unsupported: Sequence[str]
    refuse: Refusal | None
    takes_parallel_edges: bool

    def refusal(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """Return why a call cannot run, or None."""
        try:
            bound = self.parameters.bind(*args, **kwargs)
        except TypeError as error:
            return f"arguments: {error}"
        bound.apply_defaults()
        given = bound.arguments
        if given["G"].is_multigraph() and not (self.takes_parallel_edges and isinstance(given["G"], CSRStore)):
            return "multigraphs are not supported"
        for name in self.unsupported:
            if given[name] is not self.parameters.parameters[name].default:
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
            bound = parameters.bind(*args, **kwargs)
            bound.apply_defaults()
            graph, budget = bound.arguments.pop("G"), bound.arguments.pop("memory_budget")
            with errors_of_networkx(bound.arguments.get("max_iter", 0)):
                return function(nodes_of(graph, budget), **bound.arguments)

        first, *others = signature(function).parameters.values()
        budget = Parameter("memory_budget", Parameter.KEYWORD_ONLY, default=None)
        parameters = Signature([first.replace(name="G"), *others, budget])
        ALGORITHMS[name] = Algorithm(run, parameters, tuple(unsupported), refuse, takes_parallel_edges)
        return function

    return register


def nodes_of(graph: Any, memory_budget: str | int | None = None) -> Nodes:
    """Return the vertices of a graph of this backend, with the resources that NetworkX' configuration allows."""
    config = nx.config.backends["oocgraph"]
    budget = config.memory_budget if memory_budget is None else memory_budget
    if isinstance(graph, ConvertedGraph):  # is in memory, and rarely large enough for a GPU
        return ConvertedNodes(graph, Resources(memory_budget=budget, threads=config.threads, device="cpu", client=False))
    return StoreNodes(graph, Resources(memory_budget=budget, threads=config.threads, client=False))
