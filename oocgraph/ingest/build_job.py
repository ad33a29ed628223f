"""What every step of one build shares: the choices, the writer, the threads, the sizes, the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from oocgraph.ingest.build_plan import Sizes
from oocgraph.ingest.payload import Payload
from oocgraph.ingest.temporary import Folder
from oocgraph.ingest.workers import Scratch, Workers
from oocgraph.memory import Budget
from oocgraph.store.writer import StoreWriter
from oocgraph.types import Duplicates, Progress, VertexOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One build. Nothing here grows with the graph.

    Attributes
    ----------
    directed, keep_self_loops, vertex_order, payload
        The user's choices, defaults filled in.
    writer, temporary, workers, budget, sizes, progress
        What the steps work with.
    phases
        Seconds of each step, in order.
    """

    directed: bool
    keep_self_loops: bool
    vertex_order: VertexOrder
    payload: Payload
    writer: StoreWriter
    temporary: Folder
    workers: Workers
    budget: Budget
    sizes: Sizes
    progress: Progress
    phases: dict[str, float] = field(default_factory=dict)

    @property
    def duplicates(self) -> Duplicates:
        """What becomes of edges that occur more than once."""
        return self.payload.duplicates

    @property
    def undirected(self) -> bool:
        """Whether each edge is stored from both of its ends."""
        return not self.directed

    @property
    def scratch(self) -> Scratch:
        """Buffers of the calling thread."""
        return self.workers.scratch

    def folder(self, name: str) -> Folder:
        """Return a folder for temporary files, on the disk of the output."""
        return self.temporary.child(name)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a step; the threads forget their buffers after it."""
        began = time.perf_counter()
        yield
        self.workers.scratch.forget()
        self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - began
