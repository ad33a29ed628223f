"""Run the fuzzer: for some minutes, or one seed again."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from pathlib import Path


def main() -> int:
    """Parse arguments, run cases, tell what was found; 1 when something was."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, help="Run this case only, and show all that came of it.")
    parser.add_argument("--first-seed", type=int, default=1, help="Seeds begin here.")
    parser.add_argument("--minutes", type=float, default=1, help="Stop after so long, without the time for making sound stores.")
    parser.add_argument("--cases", type=int, help="Stop after so many cases.")
    parser.add_argument("--jobs", type=int, default=2, help="Cases at a time.")
    parser.add_argument(
        "--bounds", action="store_true", help="Compile kernels that check every index: finds what does not crash yet; slow."
    )
    options = parser.parse_args()
    if options.bounds and os.environ.get("NUMBA_BOUNDSCHECK") != "1":
        cache = Path(tempfile.gettempdir()) / f"oocgraph-fuzz-bounds-{os.getuid()}"
        os.environ.update(NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(cache))
        os.execv(sys.executable, [sys.executable, "-m", "tests.fuzz", *sys.argv[1:]])
    with tempfile.TemporaryDirectory(prefix="oocgraph-fuzz-", ignore_cleanup_errors=True) as folder:
        return _fuzz(Path(folder), options)


def _fuzz(folder: Path, options: argparse.Namespace) -> int:
    from tests.fuzz.fuzzer import Fuzzer

    began = time.monotonic()
    fuzzer = Fuzzer(folder)
    fuzzer.prepare(None if options.seed is None else [fuzzer.case(options.seed).base.name])
    print(f"sound stores made and kernels loaded in {time.monotonic() - began:.0f} s", flush=True)
    end = time.monotonic() + 60 * options.minutes
    seeds = iter([options.seed]) if options.seed is not None else itertools.count(options.first_seed)
    if options.cases is not None:
        seeds = itertools.islice(seeds, options.cases)
    if options.seed is not None:
        print(fuzzer.case(options.seed))
    is_bounded = options.seed is None and options.cases is None
    report = fuzzer.run(
        seeds, jobs=options.jobs, until=lambda: is_bounded and time.monotonic() > end, tell=lambda text: print(text, flush=True)
    )
    if options.seed is not None:
        for failure in report.failures:
            print(failure.text)
    print(f"{report.num_cases} cases: " + ", ".join(f"{count} {name}" for name, count in sorted(report.statuses.items())))
    print("  " + ", ".join(f"{count} {name} ({report.cpu_seconds[name]:.1f} s)" for name, count in sorted(report.operations.items())))
    for (kind, heading), failures in sorted(report.causes.items(), key=lambda one: (one[0][0], -len(one[1]))):
        print(f"{len(failures):5} {kind}: {heading} (seeds {' '.join(str(one.case.seed) for one in failures[:5])})")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
