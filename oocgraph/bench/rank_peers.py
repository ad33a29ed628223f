"""Peers that rank the same graph: GAPBS's ``pr`` on an exported graph, SciPy's product or NetworkX in a process of their own.

In: a store and a number of iterations. Out: seconds of one iteration of the peer's, without its loading.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from oocgraph.bench.child import Child
from oocgraph.bench.peers import run_gapbs, trial_seconds
from oocgraph.errors import OocGraphError
from oocgraph.store.graph import CSRStore

PROCESSES = ("scipy", "networkx")
"""Peers that `oocgraph.bench.rank_process` runs."""

_ITERATION_LINE = re.compile(r"^\s*([0-9]+)\s+[0-9.eE+-]+\s*$", re.MULTILINE)
"""What GAPBS logs of each iteration: its number and change."""


class RankPeer(Protocol):
    """Another program that ranks the same graph.

    Attributes
    ----------
    name
        What it is, and on which graph.
    peak_bytes
        Resident memory of its process at most so far.
    """

    name: str
    peak_bytes: int

    def iteration_seconds(self, num_iterations: int) -> float:
        """Run so many iterations; return the seconds of one."""
        ...


class GapbsRanks:
    """GAPBS's ``pr`` program on a ``.sg`` file; it reports the time of its trial."""

    def __init__(self, name: str, program: Path, graph_file: Path, threads: int) -> None:
        self.name, self.peak_bytes = name, 0
        self._program, self._graph_file = program, graph_file
        self._environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}

    def iteration_seconds(self, num_iterations: int) -> float:
        """Run so many iterations; return the seconds of one."""
        command = [str(self._program), "-f", str(self._graph_file), "-n", "1", "-i", str(num_iterations), "-t", "0", "-l"]
        output, peak_bytes = run_gapbs(command, self._environment, self.name, _ITERATION_LINE)
        self.peak_bytes = max(self.peak_bytes, peak_bytes)
        return trial_seconds(output)[0] / len(_ITERATION_LINE.findall(output))


class ProcessRanks:
    """A Python library in a process of its own, which loads the graph once."""

    def __init__(self, name: str, store: CSRStore) -> None:
        self.name, self.peak_bytes = name, 0
        self._child = Child("oocgraph.bench.rank_process", name, store.url, who=f"--peer {name}")
        try:
            self._child.answer()
        except BaseException:
            self.close()
            raise

    def iteration_seconds(self, num_iterations: int) -> float:
        """Run so many iterations; return the seconds of one."""
        answer = self._child.ask(num_iterations)
        self.peak_bytes = int(answer["peak_bytes"])
        return float(answer["seconds"]) / num_iterations

    def close(self) -> None:
        """End the process."""
        self._child.close()


class RankPeers:
    """The peers that were asked for; of GAPBS one on the graph in input order and one in degree order. A context manager.

    Parameters
    ----------
    spec
        ``scipy``, ``networkx``, ``gapbs:PATH``, or None.
    store
        The graph.
    threads
        Threads that GAPBS may use; the others have one.
    scratch
        Folder for exported graphs; they are removed by whoever made it.

    Raises
    ------
    OocGraphError
        No such peer, or it cannot load the graph.
    """

    def __init__(self, spec: str | None, store: CSRStore, *, threads: int, scratch: Path) -> None:
        self.peers: list[RankPeer] = []
        if spec is None:
            return
        if spec.startswith("gapbs:"):
            self._open_gapbs(spec, store, threads, scratch)
        elif spec in PROCESSES:
            self.peers.append(ProcessRanks(spec, store))
        else:
            raise OocGraphError(f"--peer {spec}: unknown; choose {', '.join(PROCESSES)} or gapbs:PATH (the path of GAPBS's pr program)")

    def _open_gapbs(self, spec: str, store: CSRStore, threads: int, scratch: Path) -> None:
        from oocgraph.export.files import export_graph

        program = Path(spec.removeprefix("gapbs:"))
        if not os.access(program, os.X_OK) or program.is_dir():
            raise OocGraphError(f"--peer {spec}: {program} is not a program; give the path of GAPBS's pr (make pr in its repository)")
        export_graph(store, scratch / "input.sg", threads=threads)
        self.peers.append(GapbsRanks(spec, program, scratch / "input.sg", threads))
        if store.attributes.vertex_order == "degree":
            export_graph(store, scratch / "degree.sg", order="store", threads=threads)
            self.peers.append(GapbsRanks(f"{spec} in degree order", program, scratch / "degree.sg", threads))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for peer in self.peers:
            if isinstance(peer, ProcessRanks):
                peer.close()
