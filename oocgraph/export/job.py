"""What every form of an export works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from oocgraph.export.ordered_rows import InputRows, StoreRows
from oocgraph.external_sort.workers import Workers
from oocgraph.memory import Budget
from oocgraph.store.graph import CSRStore
from oocgraph.types import Progress

Order = Literal["input", "store"]


@dataclass(frozen=True, slots=True)
class Job:
    """One export: where from, how, and with what; `form` is the extension of the file."""

    store: CSRStore
    form: str
    order: Order
    budget: Budget
    workers: Workers
    scratch: Path
    progress: Progress

    def rows(self, group: str, column: str | None = None) -> StoreRows | InputRows:
        """Rows of a group in the chosen order."""
        if self.order == "store":
            return StoreRows(self.store, group, column)
        return InputRows(self.store, group, column, budget=self.budget, workers=self.workers, scratch=self.scratch)

    def counter(self, num_groups: int = 1) -> Callable[[int], None]:
        """Return a function that adds up entries, of so many groups, and reports them."""
        seen, total = 0, num_groups * self.store.attributes.num_stored_edges

        def done(num_entries: int) -> None:
            nonlocal seen
            seen += num_entries
            self.progress("export", seen, total)

        return done
