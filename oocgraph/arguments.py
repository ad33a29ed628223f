"""Arguments of public functions: an unknown keyword, or an argument of the wrong type, is an error that says what to write instead.

In: a public function. Out: one that checks, by its name, each argument whose name means the same everywhere (`_CHECKS`), turns NumPy's
booleans and integers into Python's, and lets go of its arrays when it ends with an error. Functions check the range of a number by
`check_whole` and `check_number`.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from errno import ENAMETOOLONG
from functools import wraps
from traceback import walk_tb
from typing import Any, ParamSpec, TypeVar

import numpy as np

from oocgraph.errors import ArgumentError, ArgumentTypeError

_P = ParamSpec("_P")
_R = TypeVar("_R")

RENAMED = {
    "alpha": ("damping", "it is called damping"),
    "check_pages": ("graph", "open the graph by open_graph(path, check_pages=True)"),
    "checkpoint_every": ("checkpoint", "it is the setting oocgraph.checkpoint-every (dask.config.set)"),
    "codec": ("overwrite", "it is the setting oocgraph.codec (dask.config.set)"),
    "columns": ("edge_columns", "it is called edge_columns"),
    "compiled": ("policy", "give a Policy with compiled=False"),
    "device": ("resources", "pass resources=oocgraph.Resources(device=...)"),
    "device_memory_budget": ("resources", "pass resources=oocgraph.Resources(device_memory_budget=...)"),
    "edge_attr": ("columns", "name the columns of source and target and those to keep in columns="),
    "edge_columns": ("columns", "name the columns of source and target and those to keep in columns="),
    "graph_or_matrix": ("graph", "it is called graph"),
    "memory": ("memory_budget", "it is called memory_budget"),
    "num_partitions": ("resources", "pass resources=oocgraph.Resources(num_partitions=...)"),
    "out": ("path", "it is called path"),
    "precision": ("damping", "it is the setting oocgraph.precision (dask.config.set)"),
    "source_column": ("columns", "name the columns of source and target in columns="),
    "store": ("path", "it is called path"),
    "target_column": ("columns", "name the columns of source and target in columns="),
    "threads": ("resources", "pass resources=oocgraph.Resources(threads=...)"),
    "url": ("path", "it is called path"),
    "vertex_order": ("columns", "it is the setting oocgraph.vertex-order (dask.config.set)"),
    "weight_column": ("weight", "it is called weight"),
    "weights": ("weight", "it is called weight"),
}
"""Keywords of version 0.1 and of similar libraries: a parameter of the functions that it can be meant for, and what to write instead."""

MOST_SHOWN = 80
"""Characters of a value in a message."""

_WRITTEN = "its result is returned: write it by result.write(path)"


def is_whole(value: Any, least: int, most: float = np.inf) -> bool:
    """Whether a value is a whole number from `least` to `most`, of Python or NumPy; a bool is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= most)


def is_number(value: Any) -> bool:
    """Whether a value is a number, of Python or NumPy; a bool is none."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def check_whole(name: str, value: Any, *, least: int, of: str = "") -> int:
    """Return a whole number that was given, as Python's; `of` names what it counts.

    Raises
    ------
    ArgumentError
        It is none, or less than `least`.
    """
    if not is_whole(value, least):
        raise ArgumentError(f"{name} is {value!r}; it must be a whole number{of and f' of {of}'}, {least} or more")
    return int(value)


def check_number(name: str, value: Any, *, low: float = -np.inf, high: float = np.inf, is_open: bool = False) -> None:
    """Refuse what is no number from `low` to `high`, or between them if `is_open`.

    Raises
    ------
    ArgumentError
        It is none.
    """
    if not is_number(value) or not (low < value < high if is_open else low <= value <= high) or not np.isfinite(value):
        bounds = f"above {low:g} and below {high:g}" if is_open else f"{low:g} or more" if high == np.inf else f"from {low:g} to {high:g}"
        raise ArgumentError(f"{name} is {value!r}; it must be a number{'' if low == -np.inf else ', ' + bounds}")


def _shown(value: Any) -> str:
    """Return a value as an error shows it: a table or an array by its type alone."""
    text = repr(value)
    return text if len(text) <= MOST_SHOWN and "\n" not in text else f"of type {type(value).__name__}"


def _flag(name: str, value: Any) -> Any:
    if isinstance(value, np.bool_):
        return bool(value)
    if not isinstance(value, bool):
        raise ArgumentTypeError(f"{name} is {_shown(value)}; give True or False")
    return value


def _path(name: str, value: Any) -> Any:
    if not isinstance(value, str | os.PathLike):
        raise ArgumentTypeError(f"{name} is {_shown(value)}; give a path")
    return value


def _or_none(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Return the check of a parameter that is None where it is not given."""
    return lambda name, value: None if value is None else check(name, value)


def _whole(name: str, value: Any) -> Any:
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(f"{name} is {_shown(value)}; give a whole number")
    return value


def _column(name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, str | bool):
        raise ArgumentTypeError(f"{name} is {_shown(value)}; give the name of one edge column")
    return value


def _progress(name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, bool) and not callable(value):
        raise ArgumentTypeError(f"{name} is {_shown(value)}; give True, or a function of (step, done, all)")
    return value


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "directed": _or_none(_flag),
    "distances": _flag,
    "edge_factor": _whole,
    "keep_self_loops": _flag,
    "num_vertices": _or_none(_whole),
    "overwrite": _flag,
    "path": _path,
    "progress": _progress,
    "reverse": _flag,
    "scale": _whole,
    "seed": _whole,
    "shuffle": _flag,
    "transpose": _flag,
    "weight": _column,
    "wf_improved": _flag,
}
"""How an argument is checked, by its name."""


def known_keywords(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Have a public function refuse a keyword that it does not have, with the one to use instead, and arguments of the wrong type.

    An error that it ends with loses the local variables of this package's frames (`_drop_locals`).

    Raises
    ------
    ArgumentTypeError
        When the function is called with such a keyword, too many arguments, too few, or one of the wrong type.
    """
    signature = inspect.signature(function)
    parameters = signature.parameters
    positional = [name for name, one in parameters.items() if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [name for name, one in parameters.items() if one.default is one.empty]
    given = {name for name, one in parameters.items() if "CSRStore" not in str(one.annotation)}
    checks = {
        name: check if parameters[name].default is not None else _or_none(check) for name, check in _CHECKS.items() if name in given
    }  # fmt: skip
    has_self = "self" in parameters
    called = function.__qualname__.removesuffix(".__init__").replace("GraphAccess.", "graph.")
    taken = ", ".join(name for name in parameters if name != "self")

    def check_names(args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        if len(args) > len(positional):
            raise ArgumentTypeError(
                f"{called}() is given {len(args) - has_self} arguments by position, and takes {len(positional) - has_self}; "
                f"give the others by name: it takes {taken}"
            )
        for name in keywords:
            if name not in parameters:
                raise ArgumentTypeError(f"{called}() has no parameter {name!r}; {_remedy(name)}")
            if name in positional[: len(args)]:
                raise ArgumentTypeError(f"{called}() is given {name} twice; give it once")
        if missing := [name for name in needed if name not in positional[: len(args)] and name not in keywords]:
            raise ArgumentTypeError(f"{called}() needs {' and '.join(missing)}; it takes {taken}")

    def _remedy(name: str) -> str:
        if name in RENAMED and RENAMED[name][0] in parameters:
            return RENAMED[name][1]
        if name in ("out", "path") and "path" not in parameters and "resources" in parameters:
            return _WRITTEN
        return f"it takes {taken}"

    @wraps(function)
    def call(*args: _P.args, **keywords: _P.kwargs) -> _R:
        check_names(args, keywords)
        checked: Sequence[Any] = args
        named: Mapping[str, Any] = keywords
        if checks:
            checked = [checks[name](name, value) if name in checks else value for name, value in zip(positional, args, strict=False)]
            named = {name: checks[name](name, value) if name in checks else value for name, value in keywords.items()}
        try:
            return function(*checked, **named)
        except BaseException as error:
            _drop_locals(error)
            if isinstance(error, OSError) and error.errno == ENAMETOOLONG:
                raise ArgumentError(f"{error.filename}: this name is too long for the file system; choose a shorter one") from error
            raise

    return call


def _drop_locals(error: BaseException) -> None:
    """Clear the frames of this package that an error has passed: an error that is kept, as notebooks do, would keep arrays of all vertices.

    Python's development mode (``python -X dev``) leaves them for a debugger.
    """
    errors, seen = [error], set[int]()
    while errors and not sys.flags.dev_mode:
        one = errors.pop()
        seen.add(id(one))
        errors += [other for other in (one.__cause__, one.__context__) if other is not None and id(other) not in seen]
        for frame, _ in walk_tb(one.__traceback__):
            if frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
                with suppress(RuntimeError):  # it is still running
                    frame.clear()
