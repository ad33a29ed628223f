"""Rules for the fields of a JSON object that was read from a file, which may hold any value at all.

In: fields by name, and a rule for each. Out: the first field that breaks its rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

FieldRule: TypeAlias = Callable[[Any], bool]
"""Whether a value is one that the field may have."""


def is_count(value: Any) -> bool:
    """Whether a value is an integer, 0 or more."""
    return type(value) is int and value >= 0


def is_flag(value: Any) -> bool:
    """Whether a value is true or false."""
    return isinstance(value, bool)


def is_text(value: Any) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


def is_list(value: Any) -> bool:
    """Whether a value is a list."""
    return isinstance(value, list)


def between(low: int, high: int) -> FieldRule:
    """Make the rule of integers from `low` to `high`."""
    return lambda value: type(value) is int and low <= value <= high


def one_of(*names: str) -> FieldRule:
    """Make the rule of some texts."""
    return lambda value: isinstance(value, str) and value in names


def first_wrong(fields: Mapping[str, Any], rules: Mapping[str, FieldRule]) -> str | None:
    """Return the name of the first field that breaks its rule; None where all that are there keep to theirs.

    Examples
    --------
    >>> first_wrong({"depth": 3, "graph": None}, {"depth": is_count, "graph": is_text, "seconds": is_count})
    'graph'
    """
    return next((name for name, is_sound in rules.items() if name in fields and not is_sound(fields[name])), None)
