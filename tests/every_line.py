"""Stops a function at every line of some modules, in a child for each: by a kill, or by an interrupt.

``python -m tests.every_line SCRIPT HOW FOLDER``: SCRIPT defines ``FILES`` (endings of the modules' paths), ``prepare(folder)``,
``work(folder)`` and ``check(folder, how)``, which runs in the parent after the child has been stopped and raises what it finds wrong.
"""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[1]


def stop_at_every_line(script, how, folder):
    """Run in a process of its own, which has one thread and may fork; return its lines: one for each stop that went wrong, and a count."""
    command = [sys.executable, "-m", "tests.every_line", str(script), how, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    *wrong, count = done.stdout.splitlines()
    return wrong, int(count)


def _child(work, files, folder, how, stop):
    """Run `work` and stop it at a line; exit code 3: it ended before."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if not frame.f_code.co_filename.endswith(files):
            return None
        if event == "line":
            seen += 1
            if seen == stop:
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                signal.raise_signal(signal.SIGINT)
        return trace

    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.settrace(trace)
    try:
        work(folder)
    except KeyboardInterrupt:
        pass
    except BaseException:
        traceback.print_exc()
        os._exit(4)
    finally:
        sys.settrace(None)
    os._exit(3 if seen < stop else 0)


def main(script, how, folder):
    """Stop at the first line, the second, ... until nothing is left to stop."""
    told = runpy.run_path(script)
    stop = 0
    while True:
        stop += 1
        here = Path(folder) / str(stop)
        here.mkdir(parents=True)
        told["prepare"](here)
        child = os.fork()
        if child == 0:
            _child(told["work"], tuple(told["FILES"]), here, how, stop)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        try:
            assert code in (-signal.SIGKILL, 0, 3), f"exit code {code}"
            told["check"](here, how)
        except AssertionError as error:
            print(f"stop {stop}: {error}")
        shutil.rmtree(here)
        if code == 3:
            break
    print(stop - 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
