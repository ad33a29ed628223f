"""Messages from one Dask worker to another, past the scheduler: each stays with its sender until its receiver asks for it.

In: messages as buffers, by (hop, sender, receiver). Out: the messages for one receiver. A task that sends notes them in its worker's
`Exchange`; a task that receives depends on the tasks that sent (so the scheduler sees the order and what is lost), and asks the
workers at which they ran for its own messages alone, all at a time. (As results of tasks they would go to every receiver as a whole.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from distributed.protocol import to_serialize
from distributed.utils import sync

from oocgraph.errors import ClusterError
from oocgraph.types import Array

HANDLER = "oocgraph_messages"

Key: TypeAlias = tuple[str, int, int, int]
"""Search, hop, sender, receiver."""


class Exchange:
    """Keeps what a worker's tasks have sent, and hands it out.

    Attributes
    ----------
    outbox : dict of (n,) uint8
        Messages that have not been requested yet.
    """

    def __init__(self, worker: Any) -> None:
        self._worker, self.outbox = worker, dict[Key, Array]()
        worker.handlers[HANDLER] = self.serve

    def close(self) -> None:
        """Drop all messages, and serve none any more."""
        self._worker.handlers.pop(HANDLER, None)
        self.outbox.clear()

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
        mine = list(senders.get(self._worker.address, ()))
        elsewhere = {address: list(numbers) for address, numbers in senders.items() if address != self._worker.address}
        found = {p: self.outbox.pop((search, hop, p, receiver), None) for p in mine}
        if elsewhere:
            found |= sync(self._worker.loop, self._ask_all, search, hop, receiver, elsewhere)
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
        replies = await asyncio.gather(*(self._ask(address, search, hop, receiver, numbers) for address, numbers in senders.items()))
        return {p: message for one in replies for p, message in one.items()}

    async def _ask(self, address: str, search: str, hop: int, receiver: int, senders: list[int]) -> dict[int, Array | None]:
        try:
            reply = await getattr(self._worker.rpc(address), HANDLER)(search=search, hop=hop, receiver=receiver, senders=senders)
        except OSError as error:  # of Dask too: a connection that is refused or closed
            raise ClusterError(f"worker {address} was lost: it did not answer part {receiver} ({error})") from error
        return dict(zip(senders, reply["messages"], strict=True))
