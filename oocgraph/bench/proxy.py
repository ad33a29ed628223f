"""A proxy before an object store that delays each request, and counts requests: a store that is far away, on this machine.

In: the address of an HTTP server. Out: an address that answers as that server does, later; the requests that came, the most that waited for
an answer at once, and the bytes of the answers. It runs in a thread of its own; the machine's loopback is all the network it needs.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from oocgraph.bench.child import answer

PIECE_BYTES = 1 << 18
"""Bytes of a body that are passed on at once."""

_NO_BODY = (204, 304)

Count = Callable[[int], None]


@dataclass(slots=True)
class Traffic:
    """What a proxy has passed on.

    Attributes
    ----------
    requests : list of str
        Method and target of each, in the order in which they came.
    most_in_flight : int
        Most requests at once that had come and were not answered.
    body_bytes : int
        Bytes of the bodies of all answers.
    """

    requests: list[str] = field(default_factory=list)
    most_in_flight: int = 0
    body_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and the fields of a message of HTTP, with the bytes they came as."""

    first_line: str
    fields: dict[str, str]
    raw: bytes

    @property
    def length(self) -> int | None:
        """Bytes of the body; None where that is not said."""
        text = self.fields.get("content-length")
        return None if text is None else int(text)

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return "chunked" in self.fields.get("transfer-encoding", "").lower()


class DelayingProxy:
    """Context manager: a proxy on a free port of this machine.

    Parameters
    ----------
    server
        Address of the server, such as ``http://127.0.0.1:8333``.
    delay_seconds
        Added to each request.

    Attributes
    ----------
    address : str
        Address of the proxy.
    traffic : Traffic
        What came through since the beginning, or the last `reset`.
    """

    def __init__(self, server: str, delay_seconds: float) -> None:
        split = urlsplit(server)
        self._server = split.hostname or "127.0.0.1", split.port or 80
        self.delay_seconds, self.traffic, self.address = delay_seconds, Traffic(), ""
        self._in_flight = 0
        self._connections: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), name="oocgraph-proxy", daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def reset(self) -> Traffic:
        """Begin to count again; returns what was counted."""
        before, self.traffic = self.traffic, Traffic()
        return before

    async def answer(self, request: Head, head: Head, server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """Pass the answer of the server on; a test may do otherwise."""
        client.write(head.raw)
        if not (request.first_line.startswith("HEAD ") or int(head.first_line.split()[1]) in _NO_BODY):
            await _pass_body(head, server, client, self._count, to_end=True)
        await client.drain()

    def _count(self, num_bytes: int) -> None:
        """Count bytes that are about to be passed on: who has them all may ask at once for what was counted."""
        self.traffic.body_bytes += num_bytes

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=PIECE_BYTES)
        self.address = "http://{}:{}".format(*server.sockets[0].getsockname()[:2])
        ready.set()
        await self._end.wait()
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._pass_requests(reader, writer)
        except (OSError, EOFError, asyncio.CancelledError):  # either side has gone, or the proxy ends
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _pass_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(*self._server, limit=PIECE_BYTES)
        try:
            while True:
                request = await _read_head(reader)
                traffic = self.traffic
                traffic.requests.append(request.first_line.rsplit(" ", 1)[0])
                self._in_flight += 1
                traffic.most_in_flight = max(traffic.most_in_flight, self._in_flight)
                try:
                    await asyncio.sleep(self.delay_seconds)
                    if not await self._pass_one(request, (reader, writer), (up_reader, up_writer)):
                        return
                finally:
                    self._in_flight -= 1
        finally:
            up_writer.close()

    async def _pass_one(
        self, request: Head, near: tuple[asyncio.StreamReader, asyncio.StreamWriter], far: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> bool:
        """Pass a request on, and its answer back; return whether the connection goes on."""
        (reader, writer), (up_reader, up_writer) = near, far
        if request.fields.pop("expect", ""):  # the client sends the body after this answer
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        kept = [line for line in request.raw.split(b"\r\n") if not line.lower().startswith(b"expect:")]
        up_writer.write(b"\r\n".join(kept))
        await _pass_body(request, reader, up_writer, lambda _: None, to_end=False)
        await up_writer.drain()
        head = await _read_head(up_reader)
        await self.answer(request, head, up_reader, writer)
        ends = head.fields.get("connection", "").lower() == "close" or head.first_line.startswith("HTTP/1.0")
        return not ends


async def _read_head(reader: asyncio.StreamReader) -> Head:
    raw = await reader.readuntil(b"\r\n\r\n")
    first, *lines = raw.decode("latin-1").rstrip().split("\r\n")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Head(first, fields, raw)


async def _pass_body(head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Count, *, to_end: bool) -> None:
    """Pass a body on, counting its bytes; without a length it ends with the connection, where it may (`to_end`)."""
    if not head.is_chunked:
        await _pass_bytes(reader, writer, head.length if head.length is not None else None if to_end else 0, count)
        return
    while True:
        line = await reader.readuntil(b"\r\n")
        writer.write(line)
        size = int(line.split(b";")[0], 16)
        await _pass_bytes(reader, writer, size, count)
        writer.write(await reader.readuntil(b"\r\n"))
        if not size:
            return


async def _pass_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int | None, count: Count) -> None:
    passed = 0
    while length is None or passed < length:
        piece = await reader.read(PIECE_BYTES if length is None else min(PIECE_BYTES, length - passed))
        if not piece:
            if length is None:
                return
            raise EOFError("the server has gone in the middle of an answer")
        count(len(piece))
        writer.write(piece)
        await writer.drain()
        passed += len(piece)


def main(server: str, delay_seconds: str) -> None:
    """Serve as a child (`oocgraph.bench.child`): say the address, then, at each line, what came since the one before."""
    with DelayingProxy(server, float(delay_seconds)) as proxy:
        answer(address=proxy.address)
        for _ in sys.stdin:
            answer(**asdict(proxy.reset()))


if __name__ == "__main__":
    main(*sys.argv[1:])
