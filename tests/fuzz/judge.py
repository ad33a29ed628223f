"""Says what of a case's outcome breaks a promise, and under which heading: the same fault has the same heading."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tests.fuzz.processes import Outcome

SLACK_BYTES = 48 << 20
"""Growth beyond what is promised: allocator, thread stacks, a traceback's modules."""


def verdict(outcome: Outcome, *, allowed_bytes: int, expected: Any) -> tuple[str, str] | None:
    """Return what is wrong (crash, hang, memory, bounds, wrong answer, traceback) and the heading; None when all is well.

    Parameters
    ----------
    allowed_bytes
        Growth that is promised.
    expected
        The answer without damage; None where a wrong one is nobody's fault.
    """
    if outcome.status in ("crash", "hang"):
        return outcome.status, _place(outcome.text)
    if outcome.is_out_of_memory:
        return "memory", _place(outcome.text)
    if outcome.growth_bytes > allowed_bytes + SLACK_BYTES:
        return "memory", f"grew by {outcome.growth_bytes >> 20} MiB instead of {allowed_bytes >> 20}"
    if outcome.status == "traceback":
        kind = "bounds" if "IndexError: index is out of bounds" in outcome.text else "traceback"
        return kind, f"{_last_line(outcome.text)} | {_place(outcome.text)}"
    if outcome.status == "done" and expected is not None and (name := difference(outcome.answer, expected)) is not None:
        return "wrong answer", f"{name} differs"
    return None


def difference(answer: Any, expected: Any) -> str | None:
    """Name what differs between two answers."""
    for name in sorted({*answer, *expected}):
        if name not in answer or name not in expected or not same(answer[name], expected[name]):
            return name
    return None


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal; floats nearly, because they are summed in any order."""
    if not isinstance(one, np.ndarray):
        return bool(one == other)
    if one.shape != other.shape:
        return False
    if one.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=1e-6, atol=1e-9, equal_nan=True))
    return bool(np.array_equal(one, other))


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line and not line.startswith((" ", "The above", "During", "Traceback"))]
    return re.sub(r"/[^ :']*/|[0-9]+", "*", lines[-1])[:110] if lines else ""


def _place(text: str) -> str:
    """Return the innermost line of oocgraph in a stack."""
    current = text[text.find("Current thread") :] if "Current thread" in text else None
    found = re.findall(r'oocgraph/([a-z_/0-9]+\.py)", line (\d+),? in (\w+)', current or text)
    if not found:
        return (text.splitlines() or [""])[0][:80]
    path, line, function = found[0] if current else found[-1]
    return f"{text.split(maxsplit=1)[0] + ' ' if current and text.startswith('SIG') else ''}{path}:{line} {function}"
