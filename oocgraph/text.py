"""Numbers as people read them: a few significant digits, thousands apart, no exponents but of the very small."""

from __future__ import annotations

import math

SMALL = 1e-4
"""Below this a number is shown with an exponent."""


def format_number(value: float, digits: int = 4) -> str:
    """Text of a number with `digits` significant digits, or as many as stand before its decimal point.

    Examples
    --------
    >>> format_number(0.08312, 2), format_number(200.0, 2), format_number(123456.7), format_number(0.25), format_number(99.96, 3)
    ('0.083', '200', '123,457', '0.25', '100')
    """
    if not math.isfinite(value) or abs(value) < SMALL:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
