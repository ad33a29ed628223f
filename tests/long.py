"""Long tests: `tests/long.txt` names them, and a run of all tests leaves them out.

To update the list, run both parts of the suite on two cores and give it their reports::

    python -m pytest -n auto --dist worksteal --junitxml short.xml
    python -m pytest -n auto --dist worksteal --junitxml long.xml --long
    python -m tests.long short.xml long.xml
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent

NAMES = ROOT / "tests" / "long.txt"
"""One node id per line, without parameters."""

LONG_SECONDS = 0.5
"""Seconds from which on one case makes a test long."""


def long_tests() -> frozenset[str]:
    """Return the node ids of the long tests."""
    return frozenset(NAMES.read_text(encoding="utf-8").splitlines())


def measured(reports: list[str]) -> dict[str, float]:
    """Return the seconds of each test's longest case; the least of several reports, as any test may be the one that compiles kernels."""
    found = defaultdict[str, list[float]](list)
    for report in reports:
        longest = defaultdict[str, float](float)
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            if name := node_id(case.attrib["classname"], case.attrib["name"].partition("[")[0]):
                longest[name] = max(longest[name], float(case.attrib["time"]))
        for name, seconds in longest.items():
            found[name].append(seconds)
    return {name: min(seconds) for name, seconds in found.items()}


def node_id(class_name: str, name: str) -> str:
    """Return the node id of a test, whose file and class a report joins by dots; "" if the file is gone."""
    parts = class_name.split(".")
    for i in range(len(parts), 0, -1):
        if (ROOT / (path := "/".join(parts[:i]) + ".py")).exists():
            return "::".join([path, *parts[i:], name])
    return ""


def main(reports: list[str]) -> None:
    """Write the list."""
    names = sorted(name for name, seconds in measured(reports).items() if seconds >= LONG_SECONDS)
    NAMES.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    print(f"{len(names)} tests take {LONG_SECONDS:g} seconds or more")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit("give the reports of both parts of the suite: " + __doc__.partition("::")[2])
    main(sys.argv[1:])
