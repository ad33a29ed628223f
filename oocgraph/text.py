"""Numbers as people read them: a few significant digits, thousands apart, no exponents but of the very small and large."""

from __future__ import annotations

import math
from typing import Any

SMALL = 1e-4
"""Below this a number is shown with an exponent."""

LARGE = 1e15
"""From this on, too."""


def format_number(value: float, digits: int = 4) -> str:
    """Text of a number with `digits` significant digits, or as many as stand before its decimal point.

    Examples
    --------
    >>> format_number(0.08312, 2), format_number(200.0, 2), format_number(123456.7), format_number(0.25), format_number(99.96, 3)
    ('0.083', '200', '123,457', '0.25', '100')
    """
    if not math.isfinite(value) or not SMALL <= abs(value) < LARGE:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def short_integer(value: int) -> str:
    """Return an integer as text, one that is too long to be read by its length: Python refuses to write thousands of digits.

    Examples
    --------
    >>> short_integer(-7), short_integer(10**5000)
    ('-7', 'of more than 128 bits')
    """
    return str(value) if abs(value) < 1 << 128 else "of more than 128 bits"


def named_sources(source: Any) -> str:
    """Text of the sources of a search, of more than a few how many they are.

    Examples
    --------
    >>> named_sources(4), named_sources(["a", "b"]), named_sources(list(range(5000)))
    ('4', "['a', 'b']", '5,000 sources')
    """
    return repr(source) if not isinstance(source, list) or len(source) < 5 else f"{len(source):,} sources"


def counted(count: int, things: str) -> str:
    """Return a number of things, given by their plural, as text.

    Examples
    --------
    >>> counted(1, "vertices"), counted(2500, "communities"), counted(1, "communities"), counted(1, "passes"), counted(1, "edges")
    ('1 vertex', '2,500 communities', '1 community', '1 pass', '1 edge')
    """
    if count == 1:
        for plural, singular in (("vertices", "vertex"), ("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("s", "")):
            if things.endswith(plural):
                return f"1 {things.removesuffix(plural)}{singular}"
    return f"{count:,} {things}"


def read_share(fraction: float) -> str:
    """Return a text of how much of the edges was read.

    Examples
    --------
    >>> read_share(0.00712), read_share(0), read_share(2.04)
    ('read 0.71 % of the edges', 'read 0 % of the edges', 'read the edges 2 times')
    """
    if fraction > 1:
        return f"read the edges {format_number(fraction, 2)} times"
    return f"read {format_number(100 * fraction, 2)} % of the edges"
