"""Operators of a user: a function that hands values on along edges, compiled into the loop that shortest paths have.

1. Values begin at some vertices.
2. Along an edge from u to v, ``relax(value_u, weight, value_v)`` says what the edge makes of the value of v; if that is better, v has it.
3. When no value gets better, it is done. What is worked on first, ``priority(value)`` says: it decides how much is done in vain, not what
   comes out.

For any order of the edges to give the same values, no edge may make a value better than the one that it comes from; this is checked. What
may and may not be computed in this way is in DESIGN.md.

Nguyen, Lenharth, Pingali, "A Lightweight Infrastructure for Graph Analytics" (Galois), SOSP 2013: operators with soft priorities. Differs
in: what is scheduled is a block of edges on disk, not a vertex.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np

from oocgraph.algorithms.relaxing import Relaxing, checked_schedule, widths
from oocgraph.algorithms.runtimes import Runtime, checked_in_process, opened_of
from oocgraph.allocator import returned_memory
from oocgraph.arguments import known_keywords
from oocgraph.engine.blocks import EdgeError, load_loop
from oocgraph.engine.opened import Unopened
from oocgraph.errors import ArgumentError, ArgumentTypeError, OperatorError
from oocgraph.memory import PeakSampler
from oocgraph.partition.policy_code import identity_of, where_refused
from oocgraph.progress import watched
from oocgraph.resources import Resources, resources_of
from oocgraph.results.paths import OperatorResult
from oocgraph.store.given import as_collection
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.libraries import load_libraries
from oocgraph.store.scipy import weight_column
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, ProgressOption

MOST_KNOWN = 16
"""Operators whose loops are kept compiled in a process."""


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """How values are handed on along edges.

    Parameters
    ----------
    name
        Said in messages and results.
    relax
        ``relax(value_u, weight, value_v)``: what the edge from u to v makes of the value of v. A plain function of numbers, compiled with
        numba; it may call others. What it returns is never better than `value_u`.
    priority
        ``priority(value)``, an integer: what is worked on first, the smallest, or the largest if `order` is ``max``. Without it, the value
        itself, in steps that the weights choose.
    order
        ``min``: smaller values are better; ``max``: larger ones are.

    Raises
    ------
    OperatorError
        A function takes another number of arguments, or `order` is neither.

    Examples
    --------
    The widest path: of the narrowest edges of all paths, the widest.

    >>> widest = Operator("widest path", lambda value, weight, old: min(value, weight), lambda value: int(value), order="max")
    """

    name: str
    relax: Callable[[Any, Any, Any], Any]
    priority: Callable[[Any], Any] | None = None
    order: Literal["min", "max"] = "min"

    def __post_init__(self) -> None:
        if self.order not in ("min", "max"):
            raise OperatorError(f"operator {self.name!r}: order is {self.order!r}; it must be 'min' or 'max'")
        _check_arguments(self.name, "relax", self.relax, ("value_u", "weight", "value_v"))
        if self.priority is not None:
            _check_arguments(self.name, "priority", self.priority, ("value",))


@known_keywords
def run(
    graph: CSRStore | str | os.PathLike[str],
    operator: Operator,
    initial: Any,
    *,
    weight: str | bool | None = None,
    schedule: str = "auto",
    runtime: Runtime | None = None,
    resources: Resources | None = None,
    memory_budget: str | int | None = None,
    progress: ProgressOption = None,
) -> OperatorResult:
    """Hand values on along the edges of a graph until none gets better.

    Parameters
    ----------
    graph
        A graph store or its path. Of a directed graph, values follow the edges.
    operator
        An `Operator`.
    initial
        Values of the vertices that they begin at: a mapping of user ids to numbers, or a pair (ids, values) of arrays. If all are integers
        and `relax` returns integers, values are int64, otherwise float64.
    weight
        Edge column that `relax` is given the values of; by default the graph's weight, or 1 where it has none; False: 1.
    schedule
        ``auto`` and ``async``: by priority, block by block. ``buckets``: in sweeps over the earliest priority. ``rounds``: in sweeps over
        all that is pending. The values are the same.
    runtime
        The graph opened before (`oocgraph.open_runtime`), in this process; it has its own resources.
    resources
        Threads and memory; see `oocgraph.Resources`.
    memory_budget
        Bytes that the process may hold (text such as ``"640M"``); the same as in `resources`.
    progress
        Called with ("edges followed", how many, 0); True draws a bar.

    Returns
    -------
    OperatorResult

    Raises
    ------
    OperatorError
        The operator cannot be compiled, its priority is no integer, or it makes a value better than the one it comes from.
    ArgumentError
        Another argument is invalid.
    VertexNotFoundError
        An id in `initial` does not occur in the graph's input.
    BudgetError
        The budget is too small; the message names the smallest that works.
    StoreError, CorruptStoreError
        The store cannot be opened or read.

    Notes
    -----
    Host memory: 14.3 bytes a vertex, and as many blocks of 64 KiB of neighbours and their weights as the budget has room for. An operator
    is compiled once in a process, a few seconds, which leaves about 100 MiB in it; an exception of its own code passes as it is.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from oocgraph import build_csr
    >>> pipes = pd.DataFrame({"source": [1, 1, 2], "target": [2, 3, 3], "width": [9, 2, 5]})
    >>> widest = Operator("widest path", lambda value, weight, old: min(value, weight), lambda value: int(value), order="max")
    >>> with TemporaryDirectory() as folder:
    ...     result = run(build_csr(pipes, f"{folder}/g.zarr", weight="width"), widest, {1: 1000})
    ...     result.value.tolist(), result.path(3).tolist()
    ([1000, 9, 5], [1, 2, 3])
    """
    asked = resources_of("run", resources, memory_budget=memory_budget, runtime=runtime)
    if runtime is not None:
        runtime = checked_in_process(runtime, graph, "operators run")
        graph, asked = runtime.store, runtime.resources
    if not isinstance(operator, Operator):
        raise ArgumentTypeError(f"operator is {operator!r}; give an oocgraph.Operator")
    started, store, order = perf_counter(), open_graph(graph), checked_schedule(schedule)
    column = _column(store, weight)
    begins = _begins(store, initial)
    opened = Unopened(asked.limit_bytes) if runtime is None else opened_of(runtime, store, asked)
    load_libraries(store)
    with watched(progress) as shown, PeakSampler() as sampler, returned_memory():
        loop, buckets_of, kind = _loop_of(operator, begins.values.dtype, store, column)
        load_loop(loop, kind, store, column)
        width, slack = widths(store, column)
        relaxing = Relaxing(opened, store, column, order, slack, 1.0 if operator.priority else 1 / width, asked.num_threads, shown)
        unreached = _worst(kind, operator.order)
        values = begins.values.astype(kind)
        buckets = buckets_of(values, relaxing.scale)
        try:
            found = opened.within(lambda budget: relaxing.within(budget, loop, unreached, begins.numbers, values, buckets))
        except EdgeError as error:
            source, target = VertexIds(store).ids_of([error.source, error.target]).tolist()
            raise OperatorError(
                f"operator {operator.name!r}: of the edge from {source!r} to {target!r} relax makes a value that is better "
                f"({'smaller' if operator.order == 'min' else 'larger'}) than that of {source!r}, or no number; values must not get better "
                "along an edge: correct relax, or the weights"
            ) from None
        fields = relaxing.fields_of(found, unreached, started, sampler, asked)
    isolated = {name: value for name, value in begins.isolated.items() if value != unreached}
    return OperatorResult(**fields, ids=VertexIds(store), operator=operator.name, isolated=isolated)


class _Begins(NamedTuple):
    """Where values begin: vertices with edges, their values, and ids of others with theirs."""

    numbers: Array
    values: Array
    isolated: Mapping[Any, Any]


def _begins(store: CSRStore, initial: Any) -> _Begins:
    if isinstance(initial, Mapping):
        initial = list(initial), list(initial.values())
    if not (isinstance(initial, tuple) and len(initial) == 2):
        raise ArgumentTypeError(f"initial is {initial!r}; give a mapping of ids to values, or a pair (ids, values)")
    ids, values = VertexIds(store), np.asarray(as_collection(initial[1]))
    names = ids.parse(as_collection(initial[0]))
    if values.ndim != 1 or values.dtype.kind not in "iufb" or names.shape != values.shape:
        raise ArgumentError(
            f"initial has ids of shape {names.shape} and values of shape {values.shape} and dtype {values.dtype}; give a number each"
        )
    if values.dtype == np.uint64 and values.size and values.max() >= 2**63:
        raise ArgumentError(f"initial has the value {values.max()}, which is no int64; give floats, or smaller integers")
    values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    if np.isnan(values).any():
        raise ArgumentError("initial has a value that is NaN; give numbers")
    numbers = ids.vertices_of(names) if names.size else np.empty(0, np.int64)
    linked = numbers >= 0
    isolated = dict(zip(names[~linked].tolist(), values[~linked].tolist(), strict=True))
    if np.unique(numbers[linked]).size + len(isolated) != numbers.size:
        raise ArgumentError("initial names a vertex twice; give each one value")
    return _Begins(numbers[linked], values[linked], isolated)


def _column(store: CSRStore, weight: str | bool | None) -> str | None:
    if weight is True:
        raise ArgumentTypeError("weight is True; give the name of one edge column, or False")
    column = None if weight is False else weight_column(store, weight)
    if column is not None and store.array(f"out/{column}").dtype == np.uint64:
        named = store.attributes.input_column(column)
        raise ArgumentError(f"{named!r} is uint64, and values are int64; build the graph with weights of another dtype")
    return column


def _worst(kind: np.dtype[Any], order: str) -> Any:
    """Return the value of vertices that none has come to."""
    if kind.kind == "f":
        return np.float64(np.inf if order == "min" else -np.inf)
    return kind.type(np.iinfo(kind).max if order == "min" else np.iinfo(kind).min)


_known: dict[Any, tuple[Any, Any, np.dtype[Any]]] = {}
"""Loops of the last operators: a second run in a process need not wait for the compiler again."""


def _loop_of(operator: Operator, kind: np.dtype[Any], store: CSRStore, column: str | None) -> tuple[Any, Any, np.dtype[Any]]:
    """Return the loop of an operator, what makes buckets of values, and the dtype of values."""
    from oocgraph.kernels.relax import compile_operator

    weight = np.dtype(np.uint8) if column is None else store.array(f"out/{column}").dtype.newbyteorder("=")
    identities = [None if one is None else (identity_of(one),) for one in (operator.relax, operator.priority)]
    key = None if (None,) in identities else (*identities, operator.order, kind, weight)
    if key in _known:
        return _known[key]
    found = compile_operator(operator.relax, operator.priority, kind, weight, maximise=operator.order == "max")
    if found.error is not None:
        function = getattr(operator, found.function)
        line, reason = where_refused(function, found.error)
        raise OperatorError(f"operator {operator.name!r}: {found.function} cannot be compiled: {reason}\n{line}\nChange that line")
    if key is not None:
        while len(_known) >= MOST_KNOWN:
            _known.pop(next(iter(_known)))
        _known[key] = found.loop, found.buckets_of, found.kind
    return found.loop, found.buckets_of, found.kind


def _check_arguments(operator: str, what: str, function: Any, names: tuple[str, ...]) -> None:
    if not callable(function):
        raise OperatorError(f"operator {operator!r}: {what} is {function!r}, not a function")
    signature = inspect.signature(getattr(function, "py_func", function))
    kinds = {one.kind for one in signature.parameters.values()}
    if len(signature.parameters) != len(names) or not kinds <= {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}:
        raise OperatorError(f"operator {operator!r}: {what} takes {signature}; it must take ({', '.join(names)})")
