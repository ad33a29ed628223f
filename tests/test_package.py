"""What describes the package says the same everywhere: its version, its extras, its formats, what is public."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml

import oocgraph
from oocgraph.store.layout import ATTRIBUTES_KEY, FORMAT
from oocgraph.store.partitions import PARTITIONS_FORMAT, PARTITIONS_KEY
from oocgraph.store.search_fields import SEARCH_FORMAT, SEARCH_KEY

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]

MODULES = {"cupy-cuda12x": "cupy", "cupy-cuda13x": "cupy", "pytest-xdist": "xdist"}
"""Distribution: the module that it is imported as, where that is not its name with underscores."""

NOT_IMPORTED = {
    "flask": "moto's server needs it",
    "flask-cors": "moto's server needs it",
    "ipykernel": "runs the notebooks",
    "jupyterlab": "opens the notebooks",
    "mypy": "a command of CI",
    "nvidia-cuda-nvrtc": "a library that tests load",
    "nvidia-cuda-nvrtc-cu12": "a library that tests load",
    "pytest-timeout": "a plug-in of pytest, by its setting",
    "pytest-xdist": "a plug-in of pytest, by its option",
    "ruff": "a command of CI",
    "s3fs": "fsspec imports it for s3:// URLs",
}
"""Packages that an extra needs although nothing here imports them."""


def name_of(requirement):
    """Return the name of the distribution, and the extras of it that are asked for."""
    name, extras = re.match(r"([\w-]+)(?:\[([\w,-]+)\])?", requirement).groups()
    return name, extras.split(",") if extras else []


@cache
def imported(folder):
    """Names of the top modules that Python files and notebooks of a folder, and the blocks of READMEs there, import."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "importorskip":
                found.add(node.args[0].value.partition(".")[0])
    for path in [*(ROOT / folder).glob("*.md"), *(ROOT / folder).glob("*.ipynb")]:
        found |= set(re.findall(r'^\s*"?(?:import|from) (\w+)', path.read_text(), re.MULTILINE))
    return found


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_package_of_an_extra_is_used(extra):
    """By the package, its settings or its notebooks; what the tests alone need is in the extra `test`."""
    used = set().union(*map(imported, ["oocgraph", "configs", "notebooks", *(["tests"] if extra == "test" else [])]))
    for requirement in EXTRAS[extra]:
        name, extras = name_of(requirement)
        if name == PROJECT["name"]:
            assert set(extras) <= set(EXTRAS)
        else:
            assert MODULES.get(name, name.replace("-", "_")) in used or name in NOT_IMPORTED, f"nothing imports {name}"


def test_all_is_every_extra_but_those_of_drivers_and_tests():
    """The extras for GPUs exclude each other."""
    ((name, extras),) = map(name_of, EXTRAS["all"])
    assert name == PROJECT["name"]
    assert set(extras) == set(EXTRAS) - {"all", "cuda12", "cuda13", "test"}


@pytest.mark.parametrize("folder", ["oocgraph", "configs", "notebooks", "."])
def test_extras_that_messages_and_documents_name_exist(folder):
    """``pip install oocgraph[plot]`` must work wherever a message recommends it."""
    texts = [
        path for kind in ("*.py", "*.md", "*.yaml", "*.ipynb") for path in (ROOT / folder).glob(kind if folder == "." else f"**/{kind}")
    ]
    named = {
        extra
        for path in texts
        for extras in re.findall(r"(?:oocgraph|'\.|\"\.)\[(\w[\w,]*)\]", path.read_text())
        for extra in extras.split(",")
    }
    assert named <= set(EXTRAS)
    assert named or folder == "notebooks"


def test_version_is_the_same_everywhere():
    """In the package, its metadata and its citation; the changes begin with this version, or with the next one."""
    assert oocgraph.__version__ == PROJECT["version"] == yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    version, unreleased = re.search(r"^## ([\d.]+)( \(not released\))?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE).groups()
    changes = [int(number) for number in version.split(".")]
    current = [int(number) for number in PROJECT["version"].split(".")][: len(changes)]
    assert changes > current if unreleased else changes == current


def test_citation_says_what_the_metadata_say():
    """Version 1.2.0 of the Citation File Format needs the first four."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert (cited["cff-version"], cited["title"], cited["license"]) == ("1.2.0", PROJECT["name"], PROJECT["license"])
    assert [author["name"] for author in cited["authors"]] == [author["name"] for author in PROJECT["authors"]]


def test_python_versions_are_those_that_are_tested():
    """A classifier for each Python of ``.ci/slow``, from the oldest that is allowed on."""
    named = [line.rpartition(" :: ")[2] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)]
    (tested,) = re.findall(r"^for version in ([\d. ]+); do$", (ROOT / ".ci/slow").read_text(), re.MULTILINE)
    assert named == tested.split()
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in named


def test_stability_rule_names_the_formats_that_are_written():
    """The table has each number once."""
    table = dict(re.findall(r"\| `(\w+)\.format` \| (\d+) \|", (ROOT / "STABILITY.md").read_text()))
    assert table == {ATTRIBUTES_KEY: str(FORMAT), PARTITIONS_KEY: str(PARTITIONS_FORMAT), SEARCH_KEY: str(SEARCH_FORMAT)}


def test_changes_are_listed_by_version():
    """A heading for each version, newest first, with a table of what to write instead."""
    versions = re.findall(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions == sorted(versions, key=lambda version: [int(number) for number in version.split(".")], reverse=True)
    assert "| before | now |" in (ROOT / "CHANGELOG.md").read_text()


def test_documents_link_to_files_that_exist():
    """Relative links, and files in backquotes that have a folder."""
    for name in ("README.md", "CONTRIBUTING.md", "STABILITY.md"):
        text = (ROOT / name).read_text()
        for path in re.findall(r"`((?:oocgraph|tests|configs|notebooks|\.ci)/[\w./-]+)`", text) + re.findall(r"\]\(([\w./-]+)\)", text):
            if "NAME" not in path:
                assert (ROOT / path).exists(), f"{name} names {path}"
