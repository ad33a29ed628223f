"""Cases by seed: a base, a mutation, an operation; run in processes, judged, and told so that each can be run again.

Random damage must not crash, hang, take more memory than promised, raise anything but one of our errors, or give a wrong answer
where checksums are compared. Of content that was made up with right checksums the answer may be wrong, and nothing else.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.errors import OocGraphError
from oocgraph.memory import host_bytes
from tests.fuzz import judge, mutations
from tests.fuzz.bases import Base, bases_in
from tests.fuzz.operations import OPERATIONS, Call, Operation, draw
from tests.fuzz.processes import SAMPLE_SECONDS, Outcome, Process

ROOMS = tuple(mib << 20 for mib in (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512))
"""Budgets that are tried until a sound store is not refused."""

AMPLE_BYTES = 64 << 20
"""Room beyond the smallest budget."""

UNPROMISED_BYTES = 64 << 20
"""Growth of an operation that promises nothing: what one run of it takes is seen only from time to time."""


BASE_SHARES = {"graph": 40, "partitions": 30, "checkpoint": 10, "search": 1}
"""How often a base of a kind is drawn: a search on a cluster takes as long as a hundred others."""


PRELOADED = ("columns-directed", "undirected", "parts-transposed")
"""Bases that are read before processes are forked: most kernels are in memory then."""


@dataclass(slots=True)
class Case:
    """What a seed stands for."""

    seed: int
    base: Base
    random: bool
    operation: Operation
    options: dict[str, Any]

    def __str__(self) -> str:
        options = " ".join(f"{name}={value}" for name, value in self.options.items())
        return f"seed {self.seed}: {'damaged' if self.random else 'crafted'} {self.base.name}, {self.operation.name} {options}"


@dataclass(slots=True)
class Failure:
    """A case that broke a promise."""

    case: Case
    kind: str
    heading: str
    mutation: str
    text: str

    def __str__(self) -> str:
        replay = f"python -m tests.fuzz --seed {self.case.seed}"
        return f"{self.kind.upper()}: {self.heading}\n  {self.case}\n  {self.mutation}\n  replay: {replay}\n"


@dataclass(slots=True)
class Report:
    """What has been tried and what was found."""

    num_cases: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    cpu_seconds: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    @property
    def causes(self) -> dict[tuple[str, str], list[Failure]]:
        """Failures by kind and heading."""
        found: dict[tuple[str, str], list[Failure]] = {}
        for one in self.failures:
            found.setdefault((one.kind, one.heading), []).append(one)
        return found


class Fuzzer:
    """Sound stores, what they answer, and the cases that damage copies of them.

    Parameters
    ----------
    folder
        For the sound stores and the copies; an empty one.
    """

    def __init__(self, folder: Path) -> None:
        warnings.simplefilter("ignore")
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self.folder = folder
        self.bases = bases_in(folder / "bases")
        self._rooms: dict[Any, int] = {}
        self._growths: dict[Any, int] = {}
        self._answers: dict[Any, Any] = {}

    def case(self, seed: int) -> Case:
        """Draw the case of a seed."""
        rng = np.random.default_rng([seed, 1])
        shares = np.cumsum([BASE_SHARES.get(base.kind, 1) for base in self.bases.values()])
        base = list(self.bases.values())[int(np.searchsorted(shares, rng.integers(shares[-1]), side="right"))]
        operation, options = draw(base, rng)
        return Case(seed, base, bool(rng.random() < 0.4), operation, options)

    def prepare(self, names: Iterable[str] | None = None) -> None:
        """Make the sound stores of some bases, or of all; then bring kernels into the memory of this process."""
        chosen = list(names or self.bases)
        subprocess.run([sys.executable, "-m", "tests.fuzz.bases", str(self.folder / "bases"), *chosen], check=True)
        place = self.folder / "preload"
        for name in PRELOADED:
            for operation in [one for one in OPERATIONS.values() if name in chosen and self.bases[name].kind in one.kinds]:
                if not operation.needs_threads:
                    self._preload(self.bases[name], operation, place / f"{name}-{operation.name}")
        shutil.rmtree(place, ignore_errors=True)

    def _preload(self, base: Base, operation: Operation, place: Path) -> None:
        rng = np.random.default_rng(0)
        for turn in range(operation.num_preloaded):
            (place / str(turn)).mkdir(parents=True)
            with suppress(OocGraphError):  # topological generations of a graph with cycles
                operation.run(Call(base, base.folder, place / str(turn), host_bytes() + (1 << 30), operation.draw(rng, base)))

    def run(self, seeds: Iterator[int], *, jobs: int, until: Callable[[], bool], tell: Callable[[str], None]) -> Report:
        """Run cases, several at a time, until there are no more seeds or it is enough."""
        report, running = Report(), []
        while True:
            while len(running) < jobs and not until() and (seed := next(seeds, None)) is not None:
                case = self.case(seed)
                self._know(case)
                running.append((case, self._start(case)))
            if not running:
                return report
            for case, process in list(running):
                outcome = process.poll()
                if outcome is not None:
                    running.remove((case, process))
                    self._note(report, case, process, outcome, tell)
            time.sleep(SAMPLE_SECONDS)

    def _note(self, report: Report, case: Case, process: Process, outcome: Outcome, tell: Callable[[str], None]) -> None:
        report.num_cases += 1
        report.statuses[outcome.status] += 1
        report.operations[case.operation.name] += 1
        report.cpu_seconds[case.operation.name] += outcome.cpu_seconds
        found = self._judge(case, process, outcome)
        if found is not None:
            told = process.folder / "mutation"
            failure = Failure(case, *found, told.read_text() if told.exists() else "not mutated yet", outcome.text)
            report.failures.append(failure)
            tell(str(failure))
        shutil.rmtree(process.folder, ignore_errors=True)

    def _judge(self, case: Case, process: Process, outcome: Outcome) -> tuple[str, str] | None:
        strangers = sorted(path.name for path in process.folder.iterdir() if path.name not in _OWN)
        if strangers:
            return "outside", f"wrote {strangers[0]}"
        is_promised = outcome.status == "done" and case.random and case.operation.checks(case.options)
        expected = self._expected(case) if is_promised else None
        allowed_bytes = self._room(case) if _takes_budget(case) else self._growths[_kind_key(case)]
        return judge.verdict(outcome, allowed_bytes=allowed_bytes, expected=expected)

    def _room(self, case: Case) -> int:
        return self._rooms[_kind_key(case)] + (AMPLE_BYTES if case.options.get("_ample") else 0)

    def _start(self, case: Case, *, is_sound: bool = False, room: int | None = None) -> Process:
        folder = self.folder / f"case-{case.seed}{'-sound' * is_sound}"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "out").mkdir(parents=True)
        room_bytes = self._room(case) if room is None else room

        def prepare() -> Callable[[], Any]:
            shutil.copytree(case.base.folder, folder / "store")
            if not is_sound:
                rng = np.random.default_rng([case.seed, 2])
                damaged = folder / "store" / case.base.damaged
                told = (mutations.damage if case.random else mutations.craft)(damaged, rng)
                (folder / "mutation").write_text(told)
            return lambda: case.operation.run(Call(case.base, folder / "store", folder / "out", host_bytes() + room_bytes, case.options))

        return Process(folder, prepare)

    def _know(self, case: Case) -> None:
        """Find out, once for each kind of call, which budget it needs, or what it takes where it has none."""
        key = _kind_key(case)
        for room in ROOMS if key not in self._rooms else ():
            outcome = self._sound(case, room)
            self._rooms[key], self._growths[key] = room, max(UNPROMISED_BYTES, outcome.growth_bytes)
            if outcome.status != "refused" or "set memory_budget" not in outcome.text:
                break

    def _expected(self, case: Case) -> Any:
        """Return the answer of the sound store; what cannot be asked of it is to be refused in any state."""
        key = _answer_key(case)
        if key not in self._answers:
            outcome = self._sound(case, ROOMS[-1])
            self._answers[key] = {"refused": outcome.text} if outcome.status == "refused" else outcome.answer
        return self._answers[key]

    def _sound(self, case: Case, room: int) -> Outcome:
        process = self._start(case, is_sound=True, room=room)
        outcome = process.wait()
        shutil.rmtree(process.folder, ignore_errors=True)
        if outcome.status not in ("done", "refused"):
            raise RuntimeError(f"{case} fails on the sound store: {outcome.status}\n{outcome.text}")
        return outcome


_OWN = {"store", "out", "stderr", "stack", "held", "mutation", "outcome", "outcome.new"}
"""What there may be in the folder of a case."""


def _takes_budget(case: Case) -> bool:
    name, options = case.operation.name, case.options
    return "{memory}" in options["command"] if name == "command" else name not in ("to_scipy", "check", "plan", "verify")


def _answer_key(case: Case) -> Any:
    told = {name: value for name, value in case.options.items() if not name.startswith("_") or name in ("_grid", "_format")}
    return case.base.name, case.operation.name, repr(told)


def _kind_key(case: Case) -> Any:
    options = case.options
    return case.operation.name, options.get("suffix"), options.get("policy"), repr(options.get("command"))
