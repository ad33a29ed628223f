"""What a batch job has left: its result, and what it printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq


def assert_right(folder, levels):
    """Compare with the levels found in process; each parent must be one level nearer to the source."""
    table = pq.read_table(folder / "levels.parquet")
    vertex, level, parent = (table.column(name).to_numpy() for name in ("vertex", "level", "parent"))
    assert np.array_equal(vertex, np.arange(levels.size))
    assert np.array_equal(level, levels)
    assert (parent[level < 0] == -1).all()
    assert (level[parent[level > 0]] == level[level > 0] - 1).all()


def output(folder, job):
    """Return what the job printed, and the end of its logs."""
    files = [Path(folder, f"{job}.txt"), *sorted(Path(folder).glob(f"oocgraph-{job}.*/*.log"))]
    return "\n".join(f"--- {path.name}: {path.read_text()[-3000:]}" for path in files if path.exists())
