"""An S3 server of this machine (moto), in a process of its own, with a proxy before it that counts and breaks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from oocgraph.bench.proxy import DelayingProxy

SERVE = """
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
input()
"""


class BreakingProxy(DelayingProxy):
    """A proxy that, once told to, does not answer requests of some name."""

    silent = ""
    """What the requests have in their first line that are not answered; none where it is empty."""
    cut = ""
    """Likewise, whose answers end in the middle of their bodies."""

    async def answer(self, request, head, server, client):
        if self.silent and self.silent in request.first_line:
            await asyncio.sleep(3600)
        if self.cut and self.cut in request.first_line:
            client.write(head.raw + await server.readexactly(min(8, head.length or 0)))
            await client.drain()
            raise EOFError
        await super().answer(request, head, server, client)


@contextmanager
def s3_server() -> Iterator[str]:
    """Start the server; gives its address."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def options_of(address, **more):
    """Return the storage options for a server."""
    return {"key": "a", "secret": "b", "client_kwargs": {"endpoint_url": address, "region_name": "us-east-1"}, **more}
