"""Runs one thing in a forked process, which may crash, hang or eat memory, and tells what became of it.

The kernels are in memory already when a process is forked, so that a case costs hundredths of a second. Growth is that of RssAnon +
RssShmem while the thing ran, sampled from outside every few milliseconds.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oocgraph.errors import OocGraphError
from oocgraph.memory import host_bytes

CPU_SECONDS = 30
"""Processor time after which something never ends; a sound case takes less than a tenth."""

WALL_SECONDS = 180
"""The same where it waits instead, on a machine that others use too."""

ADDRESS_BYTES = 6 << 30
"""Address space beyond what the process has when it is forked: more is an allocation that nobody can mean."""

SAMPLE_SECONDS = 0.003


@dataclass(slots=True)
class Outcome:
    """What became of a process.

    Attributes
    ----------
    status
        ``done``, ``refused`` (an OocGraphError), ``traceback``, ``crash`` or ``hang``.
    text
        The message, or the stack.
    answer
        What was returned.
    growth_bytes
        Host memory beyond what was held when it began.
    is_out_of_memory
        It asked for more memory than there is.
    cpu_seconds
        Processor time that it took.
    """

    status: str
    text: str = ""
    answer: Any = None
    growth_bytes: int = 0
    is_out_of_memory: bool = False
    cpu_seconds: float = 0.0


class Process:
    """A forked process that prepares something, then does it."""

    def __init__(self, folder: Path, prepare: Callable[[], Callable[[], Any]]) -> None:
        self.folder = folder
        self._began = time.monotonic()
        self._peak = self._held = 0
        sys.stdout.flush(), sys.stderr.flush()
        gc.freeze()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _run(folder, prepare)
            except BaseException:
                (folder / "stack").write_text(traceback.format_exc())
            finally:
                os._exit(99)

    def poll(self) -> Outcome | None:
        """Sample its memory; return what became of it when it has ended."""
        self._peak = max(self._peak, host_bytes(self.pid))
        self._held = self._held or _held_at_first(self.folder)
        pid, status, used = os.wait4(self.pid, os.WNOHANG)
        if pid:
            outcome = self._outcome(status)
            outcome.cpu_seconds = used.ru_utime + used.ru_stime
            return outcome
        if time.monotonic() - self._began > WALL_SECONDS:
            os.kill(self.pid, signal.SIGXCPU)  # writes its stack
            time.sleep(0.5)
            os.killpg(self.pid, signal.SIGKILL)
            _, status, _ = os.wait4(self.pid, 0)
            return self._outcome(status, is_late=True)
        return None

    def wait(self) -> Outcome:
        """Wait until it has ended."""
        while (outcome := self.poll()) is None:
            time.sleep(SAMPLE_SECONDS)
        return outcome

    def _outcome(self, status: int, *, is_late: bool = False) -> Outcome:
        held = self._held or _held_at_first(self.folder)
        growth = max(0, self._peak - held) if held else 0
        stack = (self.folder / "stack").read_text(errors="replace")
        if is_late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
            return Outcome("hang", stack, growth_bytes=growth)
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            return Outcome("crash", f"{name}\n{stack}\n{(self.folder / 'stderr').read_text(errors='replace')[-500:]}", growth_bytes=growth)
        try:
            outcome = pickle.loads((self.folder / "outcome").read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return Outcome(
                "crash",
                f"exit code {os.waitstatus_to_exitcode(status)}\n{(self.folder / 'stack').read_text(errors='replace')}",
                growth_bytes=growth,
            )
        outcome.growth_bytes = growth
        return outcome


def _held_at_first(folder: Path) -> int:
    try:
        return int((folder / "held").read_text() or 0)
    except FileNotFoundError:
        return 0


def _run(folder: Path, prepare: Callable[[], Callable[[], Any]]) -> None:
    """Do it, in the child."""
    os.setpgid(0, 0)
    os.chdir(folder)
    with (folder / "stderr").open("w") as errors, open(os.devnull) as nothing:
        os.dup2(errors.fileno(), 2)
        os.dup2(errors.fileno(), 1)
        os.dup2(nothing.fileno(), 0)
    stack = (folder / "stack").open("w")
    faulthandler.enable(stack)
    faulthandler.register(signal.SIGXCPU, stack, all_threads=True)
    work = prepare()
    own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (own + ADDRESS_BYTES, own + ADDRESS_BYTES))
    used = int(sum(os.times()[:2])) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (used + CPU_SECONDS, used + CPU_SECONDS + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    outcome = _outcome_of(work, folder)
    (folder / "outcome.new").write_bytes(pickle.dumps(outcome))
    (folder / "outcome.new").rename(folder / "outcome")
    os._exit(0)


def _outcome_of(work: Callable[[], Any], folder: Path) -> Outcome:
    (folder / "held").write_text(str(host_bytes()))
    try:
        return Outcome("done", answer=work())
    except OocGraphError as error:
        return Outcome("refused", f"{type(error).__name__}: {error}", is_out_of_memory="out of memory" in str(error))
    except BaseException as error:
        text = "".join(traceback.format_exception(error))
        return Outcome(
            "traceback", text[:2000] + " ... " * (len(text) > 8000) + text[2000:][-6000:], is_out_of_memory="MemoryError" in text
        )
