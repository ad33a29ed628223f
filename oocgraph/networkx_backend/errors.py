"""The one place where errors of oocgraph become those of NetworkX.

Errors that are not about the graph or the call (a budget that is too small, a damaged store) stay what they are: NetworkX has none for
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import networkx as nx

from oocgraph.errors import ArgumentError, ConvergenceError, VertexNotFoundError


@contextmanager
def errors_of_networkx(max_iter: int = 0) -> Iterator[None]:
    """Raise errors of NetworkX instead of those that oocgraph raises inside.

    Raises
    ------
    networkx.NodeNotFound
        Instead of `VertexNotFoundError`.
    networkx.PowerIterationFailedConvergence
        Instead of `ConvergenceError`, after `max_iter` iterations.
    networkx.NetworkXError
        Instead of `ArgumentError`.
    """
    try:
        yield
    except VertexNotFoundError as error:
        raise nx.NodeNotFound(str(error.args[0])) from error
    except ConvergenceError as error:
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    except ArgumentError as error:
        raise nx.NetworkXError(str(error)) from error
