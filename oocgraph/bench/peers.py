"""Peers on the same graph: a library in a process of its own, or GAPBS's ``bfs`` program on an exported graph.

In: a store, a source as a row of the exported graph. Out: seconds of the peer's own search, without its loading.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from oocgraph.bench.child import Child
from oocgraph.bench.engines import ENGINES
from oocgraph.errors import OocGraphError
from oocgraph.store.graph import CSRStore

GAPBS_TRIALS = 3
"""Searches that GAPBS makes from each source; the median counts."""

_TRIAL = re.compile(r"^Trial Time:\s+([0-9.eE+-]+)", re.MULTILINE)
_REACHED = re.compile(r"^BFS Tree has ([0-9]+) nodes", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PeerSearch:
    """What a peer says of one search: its own time, and how many vertices it reached."""

    seconds: float
    num_reached: int


class Peer(Protocol):
    """Another program that searches the same graph.

    Attributes
    ----------
    name
        As given to ``--peer``.
    peak_bytes
        Resident memory of its process at most so far (mapped files included).
    """

    name: str
    peak_bytes: int

    def search(self, row: int) -> PeerSearch:
        """Search from a row of the exported graph."""
        ...


class ProcessPeer:
    """A Python library in a process of its own, which loads the graph once."""

    def __init__(self, name: str, store: CSRStore, threads: int) -> None:
        self.name, self.peak_bytes = name, 0
        self._child = Child("oocgraph.bench.peer_process", name, store.url, str(threads), who=f"--peer {name}")
        try:
            self.load_seconds = float(self._child.answer()["load_seconds"])
        except BaseException:
            self.close()
            raise

    def search(self, row: int) -> PeerSearch:
        """Search from a row of the exported graph."""
        answer = self._child.ask(row)
        self.peak_bytes = int(answer["peak_bytes"])
        return PeerSearch(float(answer["seconds"]), int(answer["num_reached"]))

    def close(self) -> None:
        """End the process."""
        self._child.close()


class GapbsPeer:
    """GAPBS's ``bfs`` program, started for each source on a ``.sg`` file; it reports the time of each of its trials."""

    def __init__(self, program: Path, graph_file: Path, threads: int) -> None:
        self.name, self.peak_bytes = f"gapbs:{program}", 0
        self._program, self._graph_file = program, graph_file
        self._environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}

    def search(self, row: int) -> PeerSearch:
        """Search from a row of the exported graph; the time is the median of GAPBS's trials."""
        command = [str(self._program), "-f", str(self._graph_file), "-r", str(row), "-n", str(GAPBS_TRIALS), "-a"]
        output, peak_bytes = run_gapbs(command, self._environment, self.name, _REACHED)
        self.peak_bytes = max(self.peak_bytes, peak_bytes)
        reached = _REACHED.search(output)
        assert reached is not None
        return PeerSearch(statistics.median(trial_seconds(output)), int(reached[1]))


def run_gapbs(command: list[str], environment: dict[str, str], name: str, wanted: re.Pattern[str]) -> tuple[str, int]:
    """Run a program of GAPBS; return its output, which has trial times and what is wanted, and the peak of its resident memory.

    Raises
    ------
    OocGraphError
        It fails, or its output lacks the figures.
    """
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not trial_seconds(output) or wanted.search(output) is None:
        last = output.strip().splitlines()[-1:] or ["no output"]
        raise OocGraphError(f"--peer {name}: it ended with code {process.returncode} without its figures ({last[0]})")
    return output, usage.ru_maxrss * 1024


def trial_seconds(output: str) -> list[float]:
    """Seconds of each trial that GAPBS tells of."""
    return [float(text) for text in _TRIAL.findall(output)]


class Peers:
    """The peer that was asked for, and for GAPBS a second one on the degree-ordered graph. A context manager.

    Parameters
    ----------
    spec
        ``scipy``, ``networkit``, ``igraph``, ``graphblas``, ``gapbs:PATH``, or None.
    store
        The graph.
    threads
        Threads that the peer may use.
    scratch
        Folder for exported graphs; they are removed at the end.

    Raises
    ------
    OocGraphError
        No such peer, or it cannot load the graph.
    """

    def __init__(self, spec: str | None, store: CSRStore, *, threads: int, scratch: Path) -> None:
        self.peer: Peer | None = None
        self.degree_ordered: Peer | None = None
        if spec is None:
            return
        if spec.startswith("gapbs:"):
            program = Path(spec.removeprefix("gapbs:"))
            if not os.access(program, os.X_OK) or program.is_dir():
                raise OocGraphError(f"--peer {spec}: {program} is not a program; give the path of GAPBS's bfs (make bfs in its repository)")
            self._open_gapbs(program, store, threads, scratch)
        elif spec in ENGINES:
            self.peer = ProcessPeer(spec, store, threads)
        else:
            raise OocGraphError(f"--peer {spec}: unknown; choose {', '.join(ENGINES)} or gapbs:PATH (the path of GAPBS's bfs program)")

    def _open_gapbs(self, program: Path, store: CSRStore, threads: int, scratch: Path) -> None:
        from oocgraph.export.files import export_graph

        export_graph(store, scratch / "input.sg", threads=threads)
        self.peer = GapbsPeer(program, scratch / "input.sg", threads)
        if store.attributes.vertex_order == "degree":
            export_graph(store, scratch / "degree.sg", order="store", threads=threads)
            self.degree_ordered = GapbsPeer(program, scratch / "degree.sg", threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(self.peer, ProcessPeer):
            self.peer.close()
