"""Peers on the same graph: a library in a process of its own, or a program of GAPBS on an exported graph.

In: an algorithm, a store, and for each run a number: a row of the exported graph to search from, iterations to make, parts to cut into.
Out: seconds of the peer's own run, without its loading.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from oocgraph.bench.child import Child
from oocgraph.bench.harness import paired_ratios
from oocgraph.bench.libraries import LIBRARIES
from oocgraph.errors import OocGraphError
from oocgraph.resources import Resources
from oocgraph.store.graph import CSRStore


@dataclass(frozen=True, slots=True)
class PeerRun:
    """One run of a peer.

    Attributes
    ----------
    seconds
        By the peer's own clock.
    count
        Number of vertices reached, of components, or of iterations made, or what else is compared; None where the peer does not say.
    """

    seconds: float
    count: float | None


class Peer(Protocol):
    """Another program that computes on the same graph.

    Attributes
    ----------
    name
        As given to ``--peer``, and on which graph where there are two.
    peak_bytes
        Peak of the resident memory of its process so far (mapped files included).
    """

    name: str
    peak_bytes: int

    def run(self, number: int) -> PeerRun:
        """Run once; see the module for the number."""
        ...


class LibraryPeer(Child):
    """A Python library in a process of its own, which loads the graph once. A context manager."""

    def __init__(self, algorithm: str, name: str, store: CSRStore, threads: int) -> None:
        super().__init__("oocgraph.bench.peer_process", algorithm, name, store.url, str(threads), who=f"--peer {name}")
        self.name, self.peak_bytes = name, 0

    def run(self, number: int) -> PeerRun:
        """Run once; see the module for the number."""
        reply = self.ask(number)
        self.peak_bytes = int(reply["peak_bytes"])
        return PeerRun(float(reply["seconds"]), reply["count"])


@dataclass(frozen=True, slots=True)
class GapbsProgram:
    """How a program of GAPBS is called, and what it prints.

    Attributes
    ----------
    name
        Name of the program.
    arguments
        Behind the graph's file; ``{}`` stands for the number of the run.
    counted
        Matches the number of vertices reached, or of components, as its group; without a group, each iteration.
    choices
        Further arguments, of which each makes a peer of its own.
    suffix
        Of the graph's file.
    """

    name: str
    arguments: str
    counted: re.Pattern[str]
    choices: tuple[str, ...] = ("",)
    suffix: str = ".sg"

    def count(self, output: str) -> int | None:
        """Return what a run counts; None if it says nothing of it."""
        matches = self.counted.findall(output)
        if not matches:
            return None
        return int(matches[0]) if self.counted.groups else len(matches)


GAPBS_PROGRAMS = {
    "bfs": GapbsProgram("bfs", "-r {} -n 3 -a", re.compile(r"^BFS Tree has ([0-9]+) nodes", re.MULTILINE)),
    "components": GapbsProgram("cc", "-n 3 -a", re.compile(r"^There are ([0-9]+) components", re.MULTILINE)),
    "sssp": GapbsProgram(
        "sssp",
        "-r {} -n 3 -a",
        re.compile(r"^SSSP Tree reaches ([0-9]+) nodes", re.MULTILINE),
        tuple(f"-d {delta}" for delta in (1, 2, 8, 32, 128)),
        ".wsg",
    ),
    "triangles": GapbsProgram("tc", "-n 3 -a", re.compile(r"^([0-9]+) triangles", re.MULTILINE)),
    "betweenness": GapbsProgram("bc", "-n 1 -i {} -a", re.compile(r"^[0-9]+:[0-9.eE+-]+$", re.MULTILINE)),
    "pagerank": GapbsProgram("pr", "-n 1 -i {} -t 0 -l", re.compile(r"^\s*[0-9]+\s+[0-9.eE+-]+\s*$", re.MULTILINE)),
}
"""Programs by algorithm. What has no iterations is made three times, and the median counts; of iterations each one's number and change are
logged."""

_TRIAL = re.compile(r"^Trial Time:\s+([0-9.eE+-]+)", re.MULTILINE)


class GapbsPeer:
    """A program of GAPBS, started for each run on a ``.sg`` file; its time is the median of the trials that it reports."""

    def __init__(self, algorithm: str, path: Path, graph_file: Path, threads: int, *, name: str | None = None, more: str = "") -> None:
        self.name, self.peak_bytes = name or f"gapbs:{path}", 0
        self._program, self._start = GAPBS_PROGRAMS[algorithm], [str(path), "-f", str(graph_file), *more.split()]
        self._environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}

    def run(self, number: int) -> PeerRun:
        """Run once; see the module for the number.

        Raises
        ------
        OocGraphError
            The program fails, or its output lacks the metrics.
        """
        command = [*self._start, *self._program.arguments.format(number).split()]
        with subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        trials, count = [float(text) for text in _TRIAL.findall(output)], self._program.count(output)
        if process.returncode or not trials or count is None:
            last = output.strip().splitlines()[-1:] or ["no output"]
            raise OocGraphError(f"--peer {self.name}: it ended with code {process.returncode} without its metrics ({last[0]})")
        self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * 1024)
        return PeerRun(statistics.median(trials), count)


def peer_metrics(
    number: int, peer: Peer, theirs: Sequence[float], ours: Sequence[float], resident: Sequence[float] = (), *, timed: str = "seconds"
) -> dict[str, Any]:
    """Return the metrics of a peer, of which the first is number 1: its seconds, and by these ours, from the store and resident."""
    metrics = {
        f"peer_{number}": peer.name,
        f"peer_{number}_peak_bytes": peer.peak_bytes,
        f"peer_{number}_median_{timed}": statistics.median(theirs),
        **paired_ratios(f"ratio_to_peer_{number}", ours, theirs),
    }
    return metrics | (paired_ratios(f"resident_ratio_to_peer_{number}", resident, theirs) if resident else {})


@contextmanager
def open_peers(
    algorithm: str, spec: str | None, store: CSRStore, *, threads: int, folder: Path, optional: bool = False
) -> Iterator[list[Peer]]:
    """Yield the peers that `spec` names, with the graph loaded; of GAPBS a second one on the degree-ordered graph, if the store is that.

    Parameters
    ----------
    algorithm
        A key of `LIBRARIES`.
    spec
        A name in `LIBRARIES`, ``gapbs:PATH``, or None.
    threads
        Threads that the peer may use, if it uses several.
    folder
        Where exported graphs go; the caller removes it.
    optional
        Whether there is no peer where it does not have this algorithm.

    Raises
    ------
    OocGraphError
        No such peer, or it cannot load the graph.
    """
    program = GAPBS_PROGRAMS.get(algorithm)
    has_it = spec in LIBRARIES[algorithm] or (program is not None and str(spec).startswith("gapbs:"))
    if spec is None or (optional and not has_it and (spec.startswith("gapbs:") or any(spec in known for known in LIBRARIES.values()))):
        yield []
    elif spec in LIBRARIES[algorithm]:
        with LibraryPeer(algorithm, spec, store, threads) as peer:
            yield [peer]
    elif program is not None and spec.startswith("gapbs:"):
        path = Path(spec.removeprefix("gapbs:"))
        if not os.access(path, os.X_OK) or path.is_dir():
            name = program.name
            raise OocGraphError(f"--peer {spec}: {path} is not a program; give the path of GAPBS's {name} (make {name} in its repository)")
        yield _gapbs_peers(algorithm, path, store, threads, folder)
    else:
        names = ", ".join(LIBRARIES[algorithm])
        more = "" if program is None else f" or gapbs:PATH (the path of GAPBS's {program.name} program)"
        raise OocGraphError(f"--peer {spec}: unknown; choose {names}{more}")


def _gapbs_peers(algorithm: str, path: Path, store: CSRStore, threads: int, folder: Path) -> list[Peer]:
    """Export the graph, in input order and in degree order if it has one; return a peer on each."""
    from oocgraph.export.files import export_graph

    suffix, choices = GAPBS_PROGRAMS[algorithm].suffix, GAPBS_PROGRAMS[algorithm].choices
    if choices[1:]:  # on the faster of both orders alone
        order: Literal["input", "store"] = "store" if store.attributes.vertex_order == "degree" else "input"
        file = folder / f"{order}{suffix}"
        export_graph(store, file, order=order, resources=Resources(threads=threads))
        return [GapbsPeer(algorithm, path, file, threads, name=f"gapbs:{path} {choice}", more=choice) for choice in choices]
    export_graph(store, folder / "input.sg", resources=Resources(threads=threads))
    peers: list[Peer] = [GapbsPeer(algorithm, path, folder / "input.sg", threads)]
    if store.attributes.vertex_order == "degree":
        export_graph(store, folder / "degree.sg", order="store", resources=Resources(threads=threads))
        peers.append(GapbsPeer(algorithm, path, folder / "degree.sg", threads, name=f"gapbs:{path} in degree order"))
    return peers
