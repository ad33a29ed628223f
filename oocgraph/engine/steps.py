"""What an iteration asks of a runtime, wherever the arrays are: `oocgraph.engine.levels.iterate` is written against this alone.

`oocgraph.engine.cpu_engine.Engine` takes the steps with the processor's threads, `oocgraph.engine.device_engine.DeviceEngine` on a GPU.
"""

from __future__ import annotations

from typing import Any, Protocol

from oocgraph.config import Settings
from oocgraph.plan.direction import Choice, Facts


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
