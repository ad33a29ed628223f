"""What an iteration asks of a runtime, wherever the arrays are: `oocgraph.engine.levels` is written against this alone.

`oocgraph.engine.cpu_engine.Engine` takes the steps with the processor's threads, `oocgraph.engine.device_engine.DeviceEngine` on a GPU.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol

from oocgraph.config import Settings
from oocgraph.engine.lifetime import Lifetime
from oocgraph.plan.direction import Choice, Facts
from oocgraph.store.graph import CSRStore
from oocgraph.team import Counts
from oocgraph.types import Array


class Steps(Protocol):
    """The steps of an iteration, in the order in which it takes them. A state is what the runtime's own ``start`` returned."""

    knobs: Settings

    @property
    def outside_byte_cost(self) -> float:
        """What a byte from outside of the fastest memory costs in bytes of its traffic."""
        ...

    @property
    def outside_page_bytes(self) -> int:
        """What is moved at least from outside."""
        ...

    def begin_iteration(self, state: Any) -> None:
        """Make room for the next level."""
        ...

    def facts(self, state: Any, *, with_costs: bool) -> Facts:
        """Return what the direction rules compare; pages and samples only on demand, else 0."""
        ...

    def pull_heads(self, state: Any) -> int:
        """Pull over what is in the fastest memory; returns how many vertices that leaves undecided."""
        ...

    def undecided_pages(self, state: Any) -> int:
        """Count the first pages that the undecided vertices need."""
        ...

    def frontier_pages(self, state: Any) -> int:
        """Count the pages that the frontier's rows need."""
        ...

    def pull_tails(self, state: Any) -> int:
        """Pull the undecided vertices' tails; returns bytes requested from the store."""
        ...

    def push(self, state: Any) -> int:
        """Push the frontier's rows; returns bytes requested from the store."""
        ...

    def advance(self, state: Any, choice: Choice, *, frontier: int, undecided: int, began: float, num_bytes: int) -> None:
        """End the iteration and record its metrics."""
        ...


class InProcess(Steps, Protocol):
    """A whole graph ready for searches in this process; a context manager."""

    store: CSRStore
    lifetime: Lifetime

    @property
    def memory_budget(self) -> int:
        """Bytes of host memory that the process may hold."""
        ...

    @property
    def planes_resident(self) -> int:
        """Planes in the fastest memory."""
        ...

    @property
    def load_seconds(self) -> float:
        """What loading took."""
        ...

    @property
    def thread_counts(self) -> Counts | None:
        """What its threads have done so far; None: they share no work."""
        ...

    @property
    def device_metrics(self) -> dict[str, Any]:
        """``device``, and what of its memory is used; empty without a GPU."""
        ...

    def __enter__(self) -> InProcess: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def start(self, sources: Array) -> Any:
        """Return the state in which `sources` (store numbers, distinct) are the frontier, at level 0."""
        ...

    def little_levels(self, state: Any, last_level: int, *, may_pull: bool) -> bool:
        """Find levels that are little work, many in one call; returns whether one is left that is more."""
        ...

    def load_large_levels(self) -> None:
        """Bring into memory what iterations need that are not tiny, where opening has left that out."""
        ...

    def has_found_targets(self, state: Any) -> bool:
        """Whether all vertices at which a search stops are visited; a search on a GPU stops at none."""
        ...

    def finish(self, state: Any) -> None:
        """Set parent and level of what was not reached; both exist in store order where the search ran, when it returns."""
        ...

    def results(self, state: Any) -> tuple[Array, Array]:
        """Return parent and level on the host."""
        ...

    def reached_edges(self, state: Any) -> int:
        """Edges of the reached part."""
        ...
