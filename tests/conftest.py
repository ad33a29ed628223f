"""What all tests share: a GPU where there is one, and that skipped tests fail where they are required."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from oocgraph import memory
from oocgraph.arrays import device_choice
from oocgraph.compiled.load import keep_compilers
from oocgraph.store import publish
from tests.long import long_tests

sys.dont_write_bytecode = False  # hundreds of processes import the same modules
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

TESTS = Path(__file__).parent

os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS / "children"), str(TESTS.parent), *filter(None, [os.environ.get("PYTHONPATH")])])

for name, value in {"WORKER__PROFILE__ENABLED": "False", "ADMIN__TICK__INTERVAL": "1s", "ADMIN__SYSTEM_MONITOR__INTERVAL": "5s"}.items():
    os.environ.setdefault(f"DASK_DISTRIBUTED__{name}", value)  # clusters that wait for the next test take a fifth of a processor otherwise

os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # as the command line has it: 2,000 processes import NumPy

WAITING = ("cluster", "exchange", "schedulers", "slurm")
"""Folders of tests that wait for daemons and for time more than they compute: one process begins with them, while others compute."""

FRESH_BYTES = 300 << 20
"""What a process of tests holds when it begins."""

MEMORY, MEMORY_BYTES = Path("/dev/shm"), 6 << 30
"""A file system in memory, used if it has this much free: creating and deleting files on a disk took half of the time of tests."""

ROOT = "PYTEST_DEBUG_TEMPROOT"
"""The environment variable that tells pytest where to put temporary folders."""

SAMPLE = "OOCGRAPH_TEST_SAMPLE"
"""The environment variable that tells which cases of tests marked ``one_in`` are run: by default others with each commit."""

ON_DISK = ("capped", "disk")
"""Markers of tests whose files must be on a disk: a memory cap is to count the pages that they read."""


LEAVES_OUT_LONG = "leaves_out_long"
"""Key under which worker processes find whether the tests of `tests.long` are left out."""


def pytest_configure(config):
    """Put the folders of `tmp_path` in memory, if there is room and nobody has named another place."""
    free = shutil.disk_usage(MEMORY).free if os.access(MEMORY, os.W_OK) else 0
    if free >= MEMORY_BYTES and not config.option.basetemp and not hasattr(config, "workerinput"):
        os.environ.setdefault(ROOT, str(MEMORY))
    os.environ.setdefault(SAMPLE, commit())


def commit():
    """Return the commit that is tested; nothing where there is no checkout, or no git."""
    with suppress(OSError):
        asked = ["git", "-C", str(TESTS.parent), "rev-parse", "--short=10", "HEAD"]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return ""


def pytest_report_header(config):
    """Say how to run the same cases again."""
    return [] if config.getoption("--slow") else f"{SAMPLE}={os.environ[SAMPLE]}"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tell a worker process whether long tests are left out: its own command line always names the folders."""
    node.workerinput[LEAVES_OUT_LONG] = leaves_out_long(node.config)


def leaves_out_long(config):
    """Whether long tests are left out: yes, unless the command line selects tests by path, keyword or marker."""
    if hasattr(config, "workerinput"):
        return config.workerinput[LEAVES_OUT_LONG]
    option, are_chosen = config.option, config.args_source is config.ArgsSource.ARGS
    return not (are_chosen or option.keyword or option.markexpr or option.slow)


@pytest.fixture(scope="session")
def disk_path_factory(tmp_path_factory):
    """Make folders as `tmp_path_factory` does, on a disk."""
    if not tmp_path_factory.getbasetemp().is_relative_to(MEMORY):
        yield tmp_path_factory
        return
    with tempfile.TemporaryDirectory(prefix="oocgraph-tests-", ignore_cleanup_errors=True) as folder:
        yield SimpleNamespace(mktemp=lambda name: Path(tempfile.mkdtemp(prefix=name, dir=folder)))


@pytest.fixture
def tmp_path(request, tmp_path):
    """Make a folder for a test, on a disk if it says so."""
    if not (any(map(request.node.get_closest_marker, ON_DISK)) and tmp_path.is_relative_to(MEMORY)):
        yield tmp_path
        return
    folder = request.getfixturevalue("disk_path_factory").mktemp(request.node.name.partition("[")[0])
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """OOCGRAPH_REQUIRE names markers, such as ``capped,slurm``: a skipped test that carries one of them is a failure."""
    report = yield
    required = set(os.environ.get("OOCGRAPH_REQUIRE", "").split(",")) & {marker.name for marker in item.iter_markers()}
    if report.skipped and required:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped although OOCGRAPH_REQUIRE names {', '.join(sorted(required))}: {reason}"
    return report


def pytest_terminal_summary(terminalreporter):
    """Why tests were skipped, a line for each reason: hundreds need a GPU."""
    reports = [report for report in terminalreporter.stats.get("skipped", []) if isinstance(report.longrepr, tuple)]
    for reason, count in Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports).most_common():
        terminalreporter.write_line(f"SKIPPED [{count}] {reason}")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run all tests, including those marked slow")
    parser.addoption("--long", action="store_true", help="run only the long tests, which a run of all tests leaves out")


def pytest_collection_modifyitems(config, items):
    """Leave out what is slow, unless it is asked for, and begin with what waits: at the end it would leave processors idle."""
    if not config.getoption("--slow"):
        left_out = {id(item) for item in [*filter(is_slow, items), *not_sampled(config, items), *of_the_other_run(config, items)]}
        config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
        items[:] = [item for item in items if id(item) not in left_out]
    items.sort(key=lambda item: item.path.parent.name not in WAITING)


def of_the_other_run(config, items):
    """Return the tests that are not run: with ``--long`` all but the long ones, without it those."""
    is_long, names = config.getoption("--long"), long_tests()
    if not is_long and not leaves_out_long(config):
        return []
    return [item for item in items if (item.nodeid.partition("[")[0] in names) != is_long]


def is_slow(item):
    """Whether a test takes a minute and more."""
    return item.get_closest_marker("slow") is not None


def not_sampled(config, items):
    """Return the cases that are not run of tests whose cases are alike; all are where one is named on the command line.

    A checksum of their names and of `SAMPLE` picks those that are: every n-th case would always have the same value of some parameter.
    """
    if any("::" in name for name in config.args):
        return []
    alike = defaultdict(list)
    for item in items:
        if marker := item.get_closest_marker("one_in"):
            alike[item.nodeid.partition("[")[0]].append((zlib.crc32(f"{os.environ[SAMPLE]} {item.nodeid}".encode()), marker.args[0], item))
    ranked = (sorted(cases, key=lambda case: case[0]) for cases in alike.values())
    return [item for cases in ranked for _, _, item in cases[-(-len(cases) // cases[0][1]) :]]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Two test processes more than this process may use processors (``-n auto``): some tests wait for daemons, disks and time."""
    return len(os.sched_getaffinity(0)) + 2


@pytest.fixture(scope="module", autouse=True)
def signals_are_as_in_a_terminal():
    """Have SIGINT, SIGTERM and SIGHUP end programs: a background without job control has SIGINT ignored, nohup SIGHUP.

    Importing dask-jobqueue has SIGINT exit the interpreter, in all modules that come later.
    """
    default = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in default.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module", autouse=True)
def what_was_there_before_is_not_looked_at_again():
    """Spare the garbage collector the objects of earlier modules: later on there are a million, half a second for each pass."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def what_other_tests_have_left_is_not_counted():
    """Have budgets find what a process holds that has just begun: thousands of tests leave 1 GB, of compiled code above all."""
    status, left = memory._status, max(0, memory.host_bytes() - FRESH_BYTES) >> 10

    def without_it(pid):
        text = status(pid)
        return re.sub(r"(?<=RssAnon:)\s*\d+", lambda found: f" {max(0, int(found[0]) - left)}", text) if pid == "self" else text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_status", without_it)
        yield


_FORCED = {name: getattr(publish, name) for name in ("sync_tree", "sync_folder")}


@pytest.fixture(scope="session", autouse=True)
def outputs_are_not_forced_to_disk():
    """Spare thousands of small outputs what only a machine that crashes would miss: no test crashes one."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _FORCED:
            patch.setattr(publish, name, lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def compilers_go_on():
    """Have one process compile what hundreds of tests find missing, a kernel or two each."""
    with keep_compilers(1):
        yield


@pytest.fixture
def forced_to_disk(monkeypatch):
    """Force outputs to disk, as for users."""
    for name, function in _FORCED.items():
        monkeypatch.setattr(publish, name, function)


@pytest.fixture(scope="session")
def cuda_device():
    """Open a GPU; where there is none the test is skipped and says why."""
    device, reason = device_choice("auto")
    if device is None:
        pytest.skip(f"no GPU: {reason}")
    yield device
    device.close()


@pytest.fixture
def rounds(request):
    """How many of the rounds of a loop are run: a quarter, all of them with ``--slow``."""
    share = 1 if request.config.getoption("--slow") else 4
    return lambda number: -(-number // share)


@pytest.fixture
def steady_memory(monkeypatch):
    """Budgets take this process to hold what it holds now: with thousands of tests behind it, it gives back 10 MB at any time."""
    held = memory._status("self")
    status = memory._status
    monkeypatch.setattr(memory, "_status", lambda pid: held if pid == "self" else status(pid))
