"""NetworkX's own tests with this backend, in a process of their own: ``python -m tests.networkx_backend.suite`` runs all of them.

Used by `tests.networkx_backend.test_suite` for five modules; the whole suite takes minutes (``.ci/slow``).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from _oocgraph_nx import COSTS
from oocgraph.networkx_backend.nx_tests import EXPECTED_FAILURES

ROOT = Path(__file__).parents[2]

MOST_EXPECTED_FAILURES = 15

MOST_TIMES_NETWORKX = 2.0


class Run(NamedTuple):
    """What a run of tests came to.

    Attributes
    ----------
    outcomes : dict
        How many passed, failed, xfailed and so on.
    calls : dict
        How often the backend's functions were called, and graphs converted.
    seconds
        From start to end.
    output
        What pytest said.
    """

    outcomes: dict[str, int]
    calls: dict[str, int]
    seconds: float
    output: str


def run_suite(*modules, backend=True):
    """Run tests of NetworkX, by the names of modules, with the backend or without."""
    with TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.json"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OOCGRAPH_COUNTS": str(counts)}
        if backend:
            environment |= {"NETWORKX_TEST_BACKEND": "oocgraph", "NETWORKX_FALLBACK_TO_NX": "True"}
        options = ["-q", "-p", "no:cacheprovider", "--no-header", "--tb=short", "-r", "fEX"]
        plugin = ["-p", "tests.networkx_backend.counting"] if backend else []
        began = perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *plugin, "--pyargs", *modules],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        seconds = perf_counter() - began
        calls = json.loads(counts.read_text()) if counts.exists() else {}
    outcomes = {name: int(number) for number, name in re.findall(r"(\d+) (passed|failed|errors?|xfailed|xpassed)", done.stdout[-2000:])}
    return Run(outcomes, calls, seconds, done.stdout + done.stderr)


def main():
    """Run the whole suite, alone and with the backend; exit with what is wrong."""
    import networkx as nx

    alone, ours = run_suite("networkx", backend=False), run_suite("networkx")
    never = sorted(name for name in COSTS if name in nx.utils.backends._registered_algorithms and name not in ours.calls)
    print(ours.output[-4000:])
    print(f"NetworkX {nx.__version__}: {alone.seconds:.0f} s alone {alone.outcomes}, {ours.seconds:.0f} s with oocgraph {ours.outcomes}")
    print(f"{ours.calls['convert_from_nx']:,} conversions, {sum(ours.calls.values()) - ours.calls['convert_from_nx']:,} calls")
    faults = [f"{ours.outcomes[name]} {name}" for name in ("failed", "error", "errors", "xpassed") if ours.outcomes.get(name)]
    faults += [f"{len(EXPECTED_FAILURES)} expected failures"] * (len(EXPECTED_FAILURES) > MOST_EXPECTED_FAILURES)
    faults += [f"never called: {', '.join(never)}"] * bool(never)
    faults += ["more than twice the time of NetworkX alone"] * (ours.seconds > MOST_TIMES_NETWORKX * alone.seconds)
    sys.exit("; ".join(faults) or None)


if __name__ == "__main__":
    main()
