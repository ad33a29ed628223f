"""What goes wrong in the two functions of a policy, told with the vertex or the edge that they were called for.

In: an exception of the user's code, or a partition that does not exist, and where a loop was. Out: `PolicyError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from oocgraph.errors import PolicyError
from oocgraph.partition.stage import Rows, Stage
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array


class OutOfRangeError(Exception):
    """A policy named a partition that does not exist."""


@contextmanager
def told_of(stage: Stage, function: str, numbers: Array) -> Iterator[None]:
    """Tell what goes wrong in the user's functions with the vertex, or the ends of the edge, that a loop has left in `numbers`."""
    try:
        yield
    except PolicyError:
        raise
    except Exception as error:
        ids = VertexIds(stage.store).ids_of(numbers).tolist() if numbers.min() >= 0 else numbers.tolist()
        ends = [f"vertex {v} (id {one!r})" for v, one in zip(numbers.tolist(), ids, strict=True)]
        where = f"policy {stage.spec.policy.name!r}: {function}", ends[0] if len(ends) == 1 else f"the edge from {ends[0]} to {ends[1]}"
        if isinstance(error, OutOfRangeError):
            raise PolicyError(
                f"{where[0]} returned {error} for {where[1]}, but partitions are 0 to {stage.spec.num_partitions - 1}; correct the policy"
            ) from None
        raise PolicyError(f"{where[0]} raised {type(error).__name__} for {where[1]}: {error}; correct the policy") from error


def not_deterministic(stage: Stage, rows: Rows) -> PolicyError:
    """Return the error of a policy that has decided otherwise in the second pass than in the first, for a block of rows."""
    return PolicyError(
        f"policy {stage.spec.policy.name!r}: get_edge_owner is not deterministic: for edges of vertices {rows.first_row} to "
        f"{rows.stop_row - 1} it decided otherwise when they were inserted than when they were counted; it may depend on its "
        "arguments and its state alone"
    )
