"""Messages from one Dask worker to another, past the scheduler: each stays with its sender until its receiver asks for it.

In: messages as buffers, by (hop, sender, receiver). Out: the messages for one receiver. A task that sends notes them in its worker's
`ExchangePlugin`; a task that receives depends on the tasks that sent (so the scheduler sees the order and what is lost), and asks the
workers at which they ran for its own messages alone, all at a time. (As results of tasks they would go to every receiver as a whole.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from distributed import get_worker
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.protocol import to_serialize
from distributed.utils import sync

from oocgraph.errors import ClusterError
from oocgraph.types import Array

PLUGIN = "oocgraph-exchange"
HANDLER = "oocgraph_messages"

Key: TypeAlias = tuple[str, int, int, int]
"""Search, hop, sender, receiver."""


class ExchangePlugin(WorkerPlugin):  # type: ignore[misc]
    """Keeps what a worker's tasks have sent, and hands it out.

    Attributes
    ----------
    worker
        Dask's.
    outbox : dict of (n,) uint8
        Messages that nobody has asked for yet.
    held
        What whoever uses the messages keeps on this worker.
    """

    name = PLUGIN
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Begin with nothing."""
        self.worker, self.outbox, self.held = worker, dict[Key, Array](), dict[str, Any]()
        worker.handlers[HANDLER] = self.serve

    def teardown(self, worker: Any) -> None:
        """Give up everything."""
        worker.handlers.pop(HANDLER, None)
        self.outbox.clear()
        for one in self.held.values():
            one.close()
        self.held.clear()

    def put(self, search: str, hop: int, sender: int, messages: Mapping[int, Array]) -> None:
        """Keep the messages of a sender, by receiver."""
        for receiver, message in messages.items():
            self.outbox[search, hop, sender, receiver] = message

    def get(self, search: str, hop: int, receiver: int, senders: Mapping[str, Iterable[int]]) -> dict[int, Array]:
        """Return the messages for a receiver, by sender; called by a task.

        Parameters
        ----------
        senders
            Who has sent something, by address of the worker at which it did.

        Raises
        ------
        ClusterError
            A worker is gone, or does not have the message any more.
        """
        if not senders:
            return {}
        mine = list(senders.get(self.worker.address, ()))
        elsewhere = {address: list(numbers) for address, numbers in senders.items() if address != self.worker.address}
        found = {p: self.outbox.pop((search, hop, p, receiver), None) for p in mine}
        if elsewhere:
            found |= sync(self.worker.loop, self._ask_all, search, hop, receiver, elsewhere)
        if missing := sorted(p for p, message in found.items() if message is None):
            raise ClusterError(f"a message of part {missing[0]} to part {receiver} is gone: the worker that had it was started again")
        return {p: message for p, message in found.items() if message is not None}

    def forget(self, search: str) -> None:
        """Drop the messages of a search."""
        for key in [key for key in self.outbox if key[0] == search]:
            self.outbox.pop(key, None)

    async def serve(self, search: str, hop: int, receiver: int, senders: list[int]) -> dict[str, Any]:
        """Answer a peer: the messages asked for, in order; None for one that is not here."""
        found = [self.outbox.pop((search, hop, p, receiver), None) for p in senders]
        return {"messages": [None if message is None else to_serialize(message) for message in found]}

    async def _ask_all(self, search: str, hop: int, receiver: int, senders: Mapping[str, list[int]]) -> dict[int, Array | None]:
        told = await asyncio.gather(*(self._ask(address, search, hop, receiver, numbers) for address, numbers in senders.items()))
        return {p: message for one in told for p, message in one.items()}

    async def _ask(self, address: str, search: str, hop: int, receiver: int, senders: list[int]) -> dict[int, Array | None]:
        try:
            reply = await getattr(self.worker.rpc(address), HANDLER)(search=search, hop=hop, receiver=receiver, senders=senders)
        except OSError as error:  # of Dask too: a connection that is refused or closed
            raise ClusterError(f"worker {address} was lost: it did not answer part {receiver} ({error})") from error
        return dict(zip(senders, reply["messages"], strict=True))


def with_exchange(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with the plugin of the running task's worker, and what else it takes: a task."""
    plugin = get_worker().plugins.get(PLUGIN)
    if plugin is None:
        raise ClusterError(f"worker {get_worker().address} has come since the partitions were placed")
    return function(plugin, *arguments)


def names_held(dask_worker: Any = None) -> list[str]:
    """Say for whom a worker keeps something: for ``client.run``."""
    return list(dask_worker.plugins[PLUGIN].held) if PLUGIN in dask_worker.plugins else []


async def tell(function: Callable[..., Any], name: str, dask_worker: Any = None) -> None:
    """Call a function with the plugin of a worker and a name, apart from tasks, in a thread: for ``client.run``."""
    if PLUGIN in dask_worker.plugins:
        await asyncio.to_thread(function, dask_worker.plugins[PLUGIN], name)
