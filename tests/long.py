"""Which tests take long: `tests/long.txt` names them, and pytest leaves them out where all tests are run.

Written anew from what two runs on two cores have noted, one of each part::

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
"""A line for each test: its name as pytest has it, without parameters."""

LONG_SECONDS = 0.5
"""Of one case."""


def long_tests() -> frozenset[str]:
    """Return the names of the tests that take long."""
    return frozenset(NAMES.read_text(encoding="utf-8").splitlines())


def measured(reports: list[str]) -> dict[str, float]:
    """Return the seconds of the longest case of each test: of several reports, the least, as kernels to compile are met by any test."""
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
    """Return the name that pytest has for a file, perhaps a class, and a function, which a report names by dots; "" without the file."""
    parts = class_name.split(".")
    for i in range(len(parts), 0, -1):
        if (ROOT / (path := "/".join(parts[:i]) + ".py")).exists():
            return "::".join([path, *parts[i:], name])
    return ""


def main(reports: list[str]) -> None:
    """Write which tests take long."""
    names = sorted(name for name, seconds in measured(reports).items() if seconds >= LONG_SECONDS)
    NAMES.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    print(f"{len(names)} tests take {LONG_SECONDS:g} seconds and more")


if __name__ == "__main__":
    main(sys.argv[1:])
