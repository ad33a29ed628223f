"""Kill a worker in each phase of each iteration, and judge what the search finds then: `python -m tests.cluster.kill_fifty`."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import oocgraph
from oocgraph.cluster.searches import ClusterRuntime
from oocgraph.engine.levels import search
from oocgraph.engine.local import LocalRuntime
from oocgraph.store.vertices import VertexIds
from tests.cluster.clusters import PATIENCE, Cluster, Trap, cramp, in_background, note_phases, noted_phases

SCALE, SOURCE, RESIDENT = 18, 1, 0.05
DIRECTIONS = ("alpha-beta", "push")


@dataclass(frozen=True)
class Place:
    """Where a worker is to be killed; the step is None where any will do."""

    direction: str
    phase: str
    step: int | None


@dataclass(frozen=True)
class Row:
    """What one kill has led to."""

    place: Place
    partition: int
    nanny: bool
    seconds: float
    moved: int


def expected_levels(store):
    """Levels of an undisturbed search in this process."""
    with LocalRuntime.open(store) as runtime:
        return search(runtime, VertexIds(store).vertices_of([SOURCE])).level


def judge(store, result, levels):
    """Raise unless the result is right."""
    oocgraph.verify_bfs(store, result)
    assert (np.asarray(result.search.level) == levels).all()


def places(cluster, store):
    """Every place of an undisturbed search at which a phase begins; a phase that a direction has already is not repeated."""
    found = {}
    with ClusterRuntime.open(store, client=cluster.client) as runtime:
        for direction in DIRECTIONS:
            cluster.client.run(note_phases)
            result = oocgraph.bfs(store, SOURCE, runtime=runtime, direction=direction)
            noted = {tuple(at) for worker in cluster.client.run(noted_phases).values() for at in worker}
            last = max(step for phase, step, _ in noted if phase == "kernel")
            for phase, step, _ in sorted(noted):
                if phase == "finish":
                    found.setdefault((phase, None), Place(direction, phase, None))
                elif step <= last:
                    found.setdefault((phase, step), Place(direction, phase, step))
            assert result.depth + 1 >= last
    return sorted(found.values(), key=lambda place: (place.step is None, place.step, place.phase))


def killed_run(cluster, store, levels, place, partition):
    """Search, kill the worker that holds `partition` at `place`, and judge the result."""
    cluster.refill()
    cluster.client.run(cramp, RESIDENT)
    with (
        ClusterRuntime.open(store, client=cluster.client) as runtime,
        Trap(cluster.client, place.phase, place.step, partition) as trap,
    ):
        victim = runtime.addresses[partition]
        began = time.perf_counter()
        found = trap.watch(in_background(oocgraph.bfs, store, SOURCE, runtime=runtime, direction=place.direction))
        caught = trap.kill()
        assert (caught["worker"], caught["at"][0], caught["at"][2]) == (victim, place.phase, partition)
        assert place.step in (None, caught["at"][1])
        result = found.result(timeout=PATIENCE)
        seconds = time.perf_counter() - began
        judge(store, result, levels)
        assert victim not in runtime.addresses
        return Row(place, partition, cluster.nanny, seconds, runtime.num_moves)


def main():
    """Kill as often as asked (50), half of it with nannies; print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with tempfile.TemporaryDirectory() as folder:
        store = oocgraph.generate_kronecker(SCALE, Path(folder) / "graph.zarr", seed=3)
        levels = expected_levels(store)
        rows, wrong = [], 0
        print(" run  nanny  direction   phase     step  partition  seconds  moved")
        for nanny in (False, True):
            where = Path(folder) / f"nanny-{nanny}"
            where.mkdir()
            with Cluster(where, nanny=nanny) as cluster:
                cluster.client.run(cramp, RESIDENT)
                found = places(cluster, store)
                for i in range(count // 2 if nanny else count - count // 2):
                    place, partition = found[i % len(found)], (i + i // len(found)) % cluster.num_workers
                    said = (
                        f"{i + nanny * (count - count // 2) + 1:4}  {'yes' if nanny else 'no':5}  {place.direction:10}  {place.phase:8}  "
                    )
                    said += f"{'last' if place.step is None else place.step:>4}  {partition:9}"
                    try:
                        row = killed_run(cluster, store, levels, place, partition)
                    except Exception as error:
                        wrong += 1
                        print(f"{said}  WRONG: {error!r}", flush=True)
                    else:
                        rows.append(row)
                        print(f"{said}  {row.seconds:7.2f}  {row.moved:5}", flush=True)
        seconds = [row.seconds for row in rows]
        print(f"{len(rows)} right answers of {count}; {statistics.median(seconds):.2f} s median, {max(seconds):.2f} s at most")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
