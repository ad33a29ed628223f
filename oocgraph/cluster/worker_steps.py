"""What a task does: one step of a program for one partition, or many, which exchange what they find through shared memory meanwhile.

In: `Steps` (what is computed), a `Hop` (how many of them), and what all partitions have returned in the hop before. Out: a `HopResult`,
all that Dask sees, and one event for all steps of the hop. See `oocgraph.cluster.supersteps`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from oocgraph.cluster.specs import LeftError, StateLostError
from oocgraph.cluster.worker_windows import Group
from oocgraph.errors import ClusterError
from oocgraph.exchange.encoding import decode, encode
from oocgraph.exchange.shared_memory import MemberLostError
from oocgraph.exchange.windows import Channel, WindowClosedError
from oocgraph.types import Array

START_SECONDS = 1.0
"""How long partitions wait for each other to begin a hop; then each takes one step, and its message goes through Dask."""


class Taken(NamedTuple):
    """What a partition has done in a step.

    Attributes
    ----------
    message
        What all others receive: a NamedTuple, see `oocgraph.exchange.encoding`; None: the computation ends here, as the report says.
    report
        What the client is told; numbers, texts and bytes.
    own
        What one receiver alone gets, (n,) uint8 each.
    """

    message: Any
    report: dict[str, Any]
    own: Mapping[int, Array] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One task of each partition.

    Attributes
    ----------
    name, epoch, lease
        Of the program, in events; its epoch; whose memory it uses.
    number
        Of the hop in its epoch.
    after
        The step before the first one, in the first hop of an epoch; None: the hop before says it.
    last
        The last step that there may be; None: no limit.
    most_steps, seconds
        It ends after so many steps, or with the one after so long.
    every
        It ends after steps whose number, from 1, is a multiple of this; None: after any.
    group
        Whose windows messages go through; None: through Dask, a step a hop.
    """

    name: str
    epoch: int
    lease: str
    number: int
    after: int | None
    last: int | None
    most_steps: int
    seconds: float
    every: int | None
    group: Group | None

    @property
    def run(self) -> str:
        """Name of what is kept for its epoch on workers."""
        return f"{self.name}-{self.epoch}"


class Steps(ABC):
    """A program's part on the workers; a frozen dataclass, which goes with each task.

    Attributes
    ----------
    message : type
        Of what partitions say to each other.
    """

    __slots__ = ()

    message: ClassVar[type[Any]]

    @abstractmethod
    def take(
        self, plugin: Any, hop: Hop, p: int, number: int, before: Sequence[Any], own: Mapping[int, Array], *, is_first: bool
    ) -> Taken:  # fmt: skip
        """Take a step.

        Parameters
        ----------
        plugin
            Of the worker.
        hop
            To which the step belongs.
        p
            The partition.
        number
            Of the step.
        before
            What all partitions have said in the step before; in the first one of an epoch what `Program.begin` has given.
        own
            What came for this partition alone, by sender.
        is_first
            Whether it is the first of an epoch.

        Raises
        ------
        LeftError
            The program has ended.
        StateLostError
            What the step needs is not here: the worker was started again.
        """

    def offer(self, plugin: Any, hop: Hop, p: int, channel: Channel | None) -> None:  # noqa: B027 - most programs offer nothing
        """Offer work of the next step to others; None: none of them waits for it in this hop."""

    def may_take_over(self, plugin: Any, p: int) -> bool:
        """Whether a partition may take over work of others in this hop."""
        return False

    def take_over(self, plugin: Any, hop: Hop, p: int, other: int, channel: Channel) -> bool:
        """Take over a piece of the step of another partition, for which this one waits; returns whether there was one."""
        return False

    @abstractmethod
    def is_over(self, messages: Sequence[Any]) -> bool:
        """Whether a step that all partitions have taken was the last, by what they have said."""


class HopResult(NamedTuple):
    """What a partition returns.

    Attributes
    ----------
    number
        Of the last step that it has taken.
    message
        Of that step.
    address, receivers
        Its worker, and for which partitions there is something there (`oocgraph.exchange.dask`).
    """

    number: int
    message: Any
    address: str
    receivers: tuple[int, ...]


def take_hop(plugin: Any, p: int, steps: Steps, hop: Hop, *before: Any) -> HopResult | None:
    """Take the steps of a hop; None: the program has ended, and nobody hears of this.

    Raises
    ------
    StateLostError
        What it needs is not here, or another worker is gone.
    """
    if any(one is None for one in before):
        return None  # a partition has found that the program has ended
    is_first = hop.after is not None
    number: int = hop.after if hop.after is not None else before[0].number
    messages = list(before) if is_first else [one.message for one in before]
    if number == hop.last or (not is_first and steps.is_over(messages)):
        return HopResult(number, messages[p] if not is_first else None, plugin.worker.address, ())  # submitted ahead
    own = {} if is_first else _fetched(plugin, p, hop, before)
    channel = None if hop.group is None else plugin.windows.channel(hop.lease, hop.name, hop.group, p, hop.number)
    try:
        with nullcontext() if channel is None else channel.windows[p].busy:
            reports, taken, number = _take(plugin, p, steps, hop, channel, number, messages, own)
    except WindowClosedError as error:
        raise LeftError(str(error)) from error
    except MemberLostError as error:
        raise StateLostError(str(error)) from error
    except BaseException:
        if channel is not None:
            channel.abort()
        raise
    finally:
        if channel is not None:
            steps.offer(plugin, hop, p, None)
    plugin.exchange.put(hop.run, number, p, taken.own)
    plugin.tell({
        "search": hop.name, "epoch": hop.epoch, "hop": hop.number, "step": number, "partition": p, "worker": plugin.worker.address,
        "reports": reports, "counters": [] if channel is None else list(channel.counters),
    }, is_awaited=channel is None)  # fmt: skip
    return HopResult(number, taken.message, plugin.worker.address, tuple(taken.own))


def _take(
    plugin: Any, p: int, steps: Steps, hop: Hop, channel: Channel | None, number: int, messages: list[Any], own: Mapping[int, Array]
) -> tuple[list[dict[str, Any]], Taken, int]:  # fmt: skip
    """Take steps, together with the others if all have begun; returns reports, the last step, and its number."""
    together, began = False, time.perf_counter()
    if channel is not None:
        channel.windows[p].reset()
        plugin.check_program(hop.name, hop.lease)
        together = channel.start(START_SECONDS)
    reports: list[dict[str, Any]] = []
    is_first, is_last = hop.after is not None, _is_last(hop, number + 1, 1)
    while True:
        step_began, number = time.perf_counter(), number + 1
        steps.offer(plugin, hop, p, channel if together and not is_last and number != hop.last else None)
        taken = steps.take(plugin, hop, p, number, messages, own, is_first=is_first)
        is_first = False
        reports.append({**taken.report, "seconds_alone": time.perf_counter() - step_began})
        if channel is None or not together or is_last or number == hop.last:
            return reports, taken, number
        messages, own, seconds = _exchanged(plugin, hop, channel, p, steps, taken, time.perf_counter() - began)
        reports[-1]["seconds"] = time.perf_counter() - step_began
        if steps.is_over(messages):
            return reports, taken._replace(own={}), number
        is_last = seconds >= hop.seconds or _is_last(hop, number + 1, len(reports) + 1)


def _is_last(hop: Hop, number: int, num_steps: int) -> bool:
    """Whether a hop ends after a step because of its number, or because of their number."""
    return num_steps >= hop.most_steps or (hop.every is not None and (number + 1) % hop.every == 0)


def _exchanged(
    plugin: Any, hop: Hop, channel: Channel, p: int, steps: Steps, taken: Taken, seconds: float
) -> tuple[list[Any], dict[int, Array], float]:
    """Say what was found, and return what all have, what was for this partition alone, and the most seconds that any has spent."""
    idle = (lambda other: steps.take_over(plugin, hop, p, other, channel)) if steps.may_take_over(plugin, p) else None
    raw = channel.exchange(encode(taken.message, seconds), taken.own, idle=idle)
    messages, own = [taken.message] * len(raw), dict[int, Array]()
    for s, one in enumerate(raw):
        if s != p:
            messages[s], mine, theirs = decode(one, steps.message)
            seconds = max(seconds, theirs)
            if mine.size:
                own[s] = mine
    return messages, own, seconds


def _fetched(plugin: Any, p: int, hop: Hop, before: Sequence[HopResult]) -> dict[int, Array]:
    """Fetch what the partitions have for this one alone, from the workers at which they ran."""
    senders: dict[str, list[int]] = {}
    for s, one in enumerate(before):
        if p in one.receivers:
            senders.setdefault(one.address, []).append(s)
    try:
        found: dict[int, Array] = plugin.exchange.get(hop.run, before[0].number, p, senders)
    except ClusterError as error:
        raise StateLostError(str(error)) from error
    return found
