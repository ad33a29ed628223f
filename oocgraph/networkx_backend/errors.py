"""The one place where errors of oocgraph become those of NetworkX.

Errors that are not about the graph or the call (a budget that is too small, a damaged store) stay what they are: NetworkX has none for
them. What oocgraph does not take, a negative weight for instance, is refused where NetworkX can compute: it may take it, or has an error of
its own.
"""

from __future__ import annotations

import networkx as nx

from oocgraph.errors import ArgumentError, ConvergenceError, VertexNotFoundError

TRANSLATED = (VertexNotFoundError, ConvergenceError, ArgumentError)
"""Errors that become those of NetworkX."""


def error_of_networkx(error: Exception, max_iter: int, *, is_final: bool) -> Exception:
    """Return what NetworkX raises instead of one of the errors in `TRANSLATED`.

    Parameters
    ----------
    error
    max_iter
        Iterations that there were, where they did not converge.
    is_final
        Whether NetworkX does not compute by itself what is refused.

    Returns
    -------
    networkx.NodeNotFound
        Instead of `VertexNotFoundError`.
    networkx.PowerIterationFailedConvergence
        Instead of `ConvergenceError`.
    networkx.NetworkXError, NotImplementedError
        Instead of `ArgumentError`, if it is final or not.
    """
    translated: Exception
    if isinstance(error, VertexNotFoundError):
        translated = nx.NodeNotFound(str(error.args[0]))
    elif isinstance(error, ConvergenceError):
        translated = nx.PowerIterationFailedConvergence(max_iter)
    else:
        translated = nx.NetworkXError(str(error)) if is_final else NotImplementedError(str(error))
    return translated
