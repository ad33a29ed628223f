"""What pyproject.toml asks for can be installed: each lower bound names a release, and those of the package fit each other."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_oldest_versions_are_those_of_the_bounds():
    """The script's output, line by line, is every requirement with its lower bound as the version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = project["dependencies"] + project["optional-dependencies"]["test"]
    printed = subprocess.run([sys.executable, ROOT / ".ci/oldest", "test"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(printed) == len(asked)
    for requirement, line in zip(asked, printed, strict=True):
        assert line.replace("==", ">=", 1) == requirement
        assert "<" not in line


def test_every_dependency_has_a_lower_bound():
    """Otherwise nothing says what the oldest version is that works."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert all(re.fullmatch(r"[a-z0-9-]+>=[0-9.]+", requirement) for requirement in project["dependencies"])
