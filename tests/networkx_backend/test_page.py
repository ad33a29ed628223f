"""The page on NetworkX names the functions of the backend, each with what it costs."""

from __future__ import annotations

import re
from pathlib import Path

from _oocgraph_nx import COSTS

PAGE = (Path(__file__).parents[2] / "docs" / "networkx.md").read_text()


def test_page_names_every_function_with_its_cost():
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", PAGE, re.MULTILINE)
    assert {name: cost for names, cost in rows for name in re.findall(r"`(\w+)`", names)} == COSTS
