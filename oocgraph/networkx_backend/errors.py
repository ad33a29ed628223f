"""The one place where errors of oocgraph become those of NetworkX.

Errors that are not about the graph or the call (a budget that is too small, a damaged store) stay what they are: NetworkX has none for
them.
"""

from __future__ import annotations

import networkx as nx

from oocgraph.errors import ArgumentError, ConvergenceError, VertexNotFoundError

TRANSLATED = (VertexNotFoundError, ConvergenceError, ArgumentError)
"""Errors that become those of NetworkX."""


def error_of_networkx(error: Exception, max_iter: int) -> nx.NetworkXException:
    """Return what NetworkX raises instead of one of the errors in `TRANSLATED`.

    Returns
    -------
    networkx.NodeNotFound
        Instead of `VertexNotFoundError`.
    networkx.PowerIterationFailedConvergence
        Instead of `ConvergenceError`, after `max_iter` iterations.
    networkx.NetworkXError
        Instead of `ArgumentError`.
    """
    if isinstance(error, VertexNotFoundError):
        return nx.NodeNotFound(str(error.args[0]))
    return nx.PowerIterationFailedConvergence(max_iter) if isinstance(error, ConvergenceError) else nx.NetworkXError(str(error))
