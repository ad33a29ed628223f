"""The list of long tests, and how pytest splits the suite by it: each test is in exactly one of the two runs."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from tests import conftest
from tests.long import ROOT, long_tests, measured

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_long" name="test_a[1]" time="0.5" /><testcase classname="tests.test_long" name="test_a[2]" time="{}" />
<testcase classname="tests.test_long.TestSome" name="test_b" time="0.1" />
<testcase classname="oocgraph.algorithms.bfs" name="oocgraph.algorithms.bfs.bfs" time="1.5" />
<testcase classname="tests.gone.test_gone" name="test_c" time="9" />
</testsuite></testsuites>"""


def test_the_list_names_what_there_is():
    defined = {
        found for path in (ROOT / "tests").rglob("*.py") for found in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }
    names = sorted(long_tests())
    assert len(names) > 100
    for name in names:
        path, *_, function = name.split("::")
        assert (ROOT / path).exists(), name
        assert function in defined or path.startswith("oocgraph/"), name


def test_reports_are_read_by_the_names_of_pytest(tmp_path):
    for name, seconds in (("one", 7.0), ("other", 2.5)):
        (tmp_path / name).write_text(REPORT.format(seconds))
    found = measured([str(tmp_path / "one"), str(tmp_path / "other")])
    assert found == {
        "tests/test_long.py::test_a": 2.5,
        "tests/test_long.py::TestSome::test_b": 0.1,
        "oocgraph/algorithms/bfs.py::oocgraph.algorithms.bfs.bfs": 1.5,
    }


def config(source="testpaths", *, is_long=False, **chosen):
    option = SimpleNamespace(**{"keyword": "", "markexpr": "", "slow": False, **chosen})
    sources = pytest.Config.ArgsSource
    return SimpleNamespace(
        option=option, args_source=sources.ARGS if source == "args" else sources.TESTPATHS, ArgsSource=sources, getoption=lambda _: is_long
    )


def items():
    names = [*sorted(long_tests())[:3], "tests/test_long.py::test_reports_are_read_by_the_names_of_pytest"]
    return [SimpleNamespace(nodeid=name + ("[0-a::b]" if i == 0 else "")) for i, name in enumerate(names)]


def test_each_test_is_in_one_of_the_two_runs():
    others, mine = (
        conftest.of_the_other_run(config(is_long=is_long), all_items) for is_long, all_items in ((False, items()), (True, items()))
    )
    assert [len(others), len(mine)] == [3, 1]
    assert not {item.nodeid for item in others} & {item.nodeid for item in mine}


@pytest.mark.parametrize("chosen", [{"source": "args"}, {"keyword": "bfs"}, {"markexpr": "slurm"}, {"slow": True}])
def test_what_is_asked_for_is_run(chosen):
    assert conftest.of_the_other_run(config(**chosen), items()) == []
