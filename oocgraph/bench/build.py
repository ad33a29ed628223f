"""Builds beside those of other programs: DuckDB doing the same steps, pyarrow only reading, GAPBS building what it has generated.

In: edge lists, and peers. Out: a `Report`. In each round every subject builds from the source, in a process of its own and under the same
limit of memory; ``ratio`` is ours by theirs in the same round. Times begin when the libraries are loaded.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from oocgraph.bench.build_process import SUBJECTS, TEXT_DELIMITERS
from oocgraph.bench.child import Child
from oocgraph.bench.harness import Report, in_turn, medians, paired_ratios, scratch_folder
from oocgraph.compiled.load import load_kernels
from oocgraph.config import settings
from oocgraph.errors import OocGraphError
from oocgraph.ingest.build import load_build
from oocgraph.ingest.edges import EdgeSource
from oocgraph.ingest.sources import open_source
from oocgraph.kernels.join import hash_join_calls
from oocgraph.kernels.strings import string_calls
from oocgraph.memory import effective_budget_bytes
from oocgraph.types import Progress

OURS = "oocgraph"
PEERS = [name for name in SUBJECTS if name != OURS]
GAPBS = "gapbs:"

_BUILD_TIME = re.compile(r"^Build Time:\s+([0-9.eE+-]+)", re.MULTILINE)

QUANTITIES = ("seconds", "cpu_seconds", "read_bytes", "written_bytes")


def bench_build(
    sources: Sequence[str], *, peers: Sequence[str], num_rounds: int, progress: Progress, in_memory: bool = False,
    memory_budget: str | int | None = None, threads: int | None = None, scratch: str | None = None,
) -> Report:  # fmt: skip
    """Measure builds.

    Parameters
    ----------
    sources
        Paths of edge lists: Parquet, or text of two columns without a header.
    peers
        Names in `PEERS`, or ``gapbs:PATH``, the path of a program of GAPBS: it builds a Kronecker graph as large as the source, in memory.
    num_rounds
        Builds of each.
    progress
        Called with builds done.
    in_memory
        Keep the graph in memory, as peers do then.
    memory_budget, threads
        Of each build.
    scratch
        Folder for what is built.

    Raises
    ------
    OocGraphError
        A peer is unknown or is not installed, or a build fails.
    """
    threads, memory = threads or settings().threads, effective_budget_bytes(memory_budget or settings().memory_budget)
    opened = {path: _opened(path) for path in sources}
    gapbs = {peer: {path: _gapbs_arguments(peer, edges) for path, edges in opened.items()} for peer in peers if peer.startswith(GAPBS)}
    unknown = next((peer for peer in peers if peer not in PEERS and peer not in gapbs), None)
    if unknown is not None:
        raise OocGraphError(f"--peer {unknown}: unknown; choose {', '.join(PEERS)} or {GAPBS}PATH (the path of GAPBS's bfs program)")
    load_build("none")
    load_kernels([*string_calls(), *hash_join_calls()])
    builds: list[dict[str, Any]] = []
    invalid: list[str] = []
    for path, edges in opened.items():
        build = partial(_build, path, edges, in_memory=in_memory, memory=memory, threads=threads, scratch=scratch)
        subjects: dict[str, Callable[[int], Any]] = {name: partial(build, name) for name in (OURS, *peers) if name not in gapbs}
        subjects |= {peer: partial(_run_gapbs, peer, arguments[path], threads) for peer, arguments in gapbs.items()}
        rows = in_turn(subjects, range(num_rounds), progress, phase=f"building {path}", alternate=True)
        ours = rows[OURS]
        for name, found in rows.items():
            builds.append({"source": path, "subject": name, **_summary(found, ours)})
            counted = {row["num_ids"] for row in [*found, *ours] if row["num_ids"] is not None}
            if len(counted) > 1:
                invalid.append(f"{path}: {name} and {OURS} found {sorted(counted)} distinct ids")
    metrics = {"memory_budget": memory, "in_memory": in_memory, "threads": threads, "num_rounds": num_rounds, "builds": builds}
    return Report(title=f"builds, medians of {num_rounds}", metrics=metrics, invalid=tuple(invalid))


def _summary(found: list[dict[str, Any]], ours: list[dict[str, Any]]) -> dict[str, Any]:
    known = [name for name in QUANTITIES if found[0][name] is not None]
    peaks = [row["peak_bytes"] for row in found]
    return {
        **medians(found, *known),
        "worst_peak_bytes": max(peaks) if peaks[0] is not None else None,
        **paired_ratios("ratio", [row["seconds"] for row in ours], [row["seconds"] for row in found]),
    }


def _opened(path: str) -> EdgeSource:
    """Open a source that peers can read, too."""
    suffixes = (".parquet", *TEXT_DELIMITERS)
    if Path(path).suffix not in suffixes:
        raise OocGraphError(f"{path}: peers read files that end in {', '.join(suffixes)} only; convert it")
    return open_source(path)


def _build(
    path: str, edges: EdgeSource, name: str, _round: int, *, in_memory: bool, memory: int, threads: int, scratch: str | None
) -> dict[str, Any]:  # fmt: skip
    """Build in a process of its own; what it has written is removed."""
    with scratch_folder(scratch) as folder:
        options = {"folder": None if in_memory else str(folder / "built"), "memory": memory, "threads": threads}
        options_text = json.dumps({**options, "is_text": edges.id_kind == "string"})
        with Child("oocgraph.bench.build_process", name, str(Path(path).resolve()), options_text, who=name) as child:
            return child.ask("build")


def _gapbs_arguments(peer: str, edges: EdgeSource) -> list[str]:
    """Return how GAPBS generates a graph as large as a source."""
    path = Path(peer.removeprefix(GAPBS))
    if not os.access(path, os.X_OK) or path.is_dir():
        raise OocGraphError(f"--peer {peer}: {path} is not a program; give the path of GAPBS's bfs (make bfs in its repository)")
    num_vertices, num_rows = edges.num_vertices, edges.num_rows
    if num_vertices is None or num_rows is None or num_vertices & (num_vertices - 1):
        raise OocGraphError(
            f"{edges.description}: GAPBS builds what it generates, so the source must be a Kronecker graph whose file declares 2**scale "
            f"vertices (oocgraph generate --out-edges); leave out --peer {peer}"
        )
    return [str(path), "-g", str(num_vertices.bit_length() - 1), "-k", str(num_rows // num_vertices), "-n", "1"]


def _run_gapbs(peer: str, command: list[str], threads: int, _round: int) -> dict[str, Any]:
    """Return the time of a build that GAPBS reports, without its generation."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    times = _BUILD_TIME.findall(done.stdout)
    if done.returncode or not times:
        raise OocGraphError(f"--peer {peer}: it ended with code {done.returncode} without a build time; it may need more memory")
    return {**dict.fromkeys((*QUANTITIES, "peak_bytes", "num_ids")), "seconds": float(times[0])}
