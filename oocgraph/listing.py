"""Figures with names and units, as people read them: in the lines of a terminal, and in the small tables that notebooks show.

In: names such as ``edge_bytes``, from which units follow, and values. Out: text, or HTML without colours, so that any theme fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from html import escape
from typing import Any

from oocgraph.memory import format_bytes
from oocgraph.text import format_number


def human(name: str, value: Any) -> str:
    """Text of a value; the unit is in its name.

    Examples
    --------
    >>> human("edge_bytes", 4096), human("load_seconds", 0.25), human("num_reached", 8022), human("read_fraction", 0.007)
    ('4.0 KiB', '0.25 s', '8,022', '0.70 %')
    """
    if value is None:
        return "-"
    if isinstance(value, bool | str):
        return str(value)
    if name.endswith(("_bytes", "bytes_read", "bytes_requested", "memory_budget")):
        return format_bytes(value)
    if name.endswith(("seconds", "seconds_from_disk")):
        return f"{format_number(value)} s"
    if name.endswith("teps") and name != "num_steps":
        return f"{value / 1e6:,.1f} M"
    if "fraction" in name:
        return f"{100 * value:,.2f} %"
    return f"{value:,}" if isinstance(value, int) else format_number(value) if isinstance(value, float) else str(value)


def label(name: str) -> str:
    """Name of a figure as people read it.

    Examples
    --------
    >>> label("num_reached"), label("edge_bytes")
    ('reached', 'edge bytes')
    """
    return name.removeprefix("num_").replace("_", " ")


def html_listing(title: str, values: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> str:
    """Return names and values as a small table of HTML; `more` of them are folded up below.

    Examples
    --------
    >>> html_listing("Graph", {"num_edges": 1200, "url": "<x>"})  # doctest: +ELLIPSIS
    '<div><strong>Graph</strong><table><tbody><tr><th ...>edges</th><td ...>1,200</td></tr>...&lt;x&gt;...</table></div>'
    """
    folded = f"<details><summary>details of the run</summary>{_html_pairs(more)}</details>" if more else ""
    return f"<div><strong>{escape(title)}</strong>{_html_pairs(values)}{folded}</div>"


def html_records(records: Iterable[Mapping[str, Any]]) -> str:
    """Return records with the same names as a table of HTML, a row each.

    Examples
    --------
    >>> html_records([{"part": 0, "num_edges": 1200}]).count("<td")
    2
    """
    rows = list(records)
    heads = "".join(f"<th>{escape(label(name))}</th>" for name in rows[0]) if rows else ""
    cells = ("".join(f"<td>{escape(human(name, value))}</td>" for name, value in row.items()) for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in cells)}</tbody></table>"


class Listed:
    """A dataclass that notebooks show as a small table of its fields; those that are no single values are left out."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        values = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return html_listing(type(self).__name__, {name: value for name, value in values.items() if is_single(value)})


def is_single(value: Any) -> bool:
    """Whether a value is shown in one line: no list, mapping, array or dataclass."""
    return not isinstance(value, list | dict) and not getattr(value, "ndim", 0) and not hasattr(value, "__dataclass_fields__")


def _html_pairs(values: Mapping[str, Any]) -> str:
    left = 'style="text-align:left"'
    rows = (f"<tr><th {left}>{escape(label(name))}</th><td {left}>{escape(human(name, value))}</td></tr>" for name, value in values.items())
    return f"<table><tbody>{''.join(rows)}</tbody></table>"
