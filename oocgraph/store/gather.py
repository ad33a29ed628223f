"""Host threads that gather edges from disk: pieces of work in, summed counts out.

Each piece is one nogil kernel call that reads the pages it needs with ``pread`` into a staging buffer of its own and consumes
them there. There are more threads than cores, because what they wait for is the disk (BASELINES: 4, 16, 32 threads read
32, 56, 82 thousand scattered pages a second).
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
import queue
import resource
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oocgraph.errors import CorruptStoreError
from oocgraph.kernels.rows import CHECKSUM_FAILED, NO_REPAIR, RANGE_FAILED, ChunkFiles, file_extent
from oocgraph.pool import Pool, wait_for
from oocgraph.store.arrays import REMEDY, PlainArray, StoredArray
from oocgraph.store.values import Below
from oocgraph.types import PAGE_BYTES, Array

logger = logging.getLogger(__name__)


def checksum_bytes(array: StoredArray) -> int:
    """Bytes of the checksums that `EdgeFiles` of an array holds."""
    return 4 * array.checksums.length if isinstance(array, PlainArray) and array.checksums is not None else 0


class EdgeFiles:
    """The open chunk files of one ``indices`` array, in the form that kernels take.

    Parameters
    ----------
    array
        An uncompressed local array, of numbers below a bound, which every page that is read is compared with, or of any; and with its
        checksums, if it has them. Those are held then (`checksum_bytes`).
    stream_direct
        Whether reads of most of the file bypass the page cache (O_DIRECT), because it could not hold what they read:
        336 MB of a uniform graph under a 400 MiB cap took 350 ms through it and 225 ms past it.
    """

    def __init__(self, array: PlainArray, *, stream_direct: bool) -> None:
        if not isinstance(array.rule, Below | None):
            raise TypeError(f"{array.name}: kernels read only numbers whose bound is known, or any")
        self.array, stop = array, 0 if array.rule is None else array.rule.stop
        self.checksums = np.empty(0, np.uint32) if array.checksums is None else array.checksums.read(0, array.checksums.length)
        self._repair = NO_REPAIR if array.mask is None else array.mask.repair
        self._raise_limit(2 * array.num_chunks)
        self.fds = self._open(0)
        for fd in self.fds:
            os.posix_fadvise(int(fd), 0, 0, os.POSIX_FADV_RANDOM)
        self._stream_fds = self.fds
        if stream_direct:
            try:
                self._stream_fds = self._open(os.O_DIRECT)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    self.close()
                    raise
                logger.info("%s: this file system has no O_DIRECT; streams go through the page cache", array.folder)
        itemsize = array.dtype.itemsize
        self.num_bytes = array.length * itemsize
        self._extent = file_extent(self.num_bytes, stop, 0 if array.rule is None else itemsize)
        self.page_shift = (PAGE_BYTES // itemsize).bit_length() - 1
        self.chunk_pages = max(1, -(-array.chunk_length * itemsize // PAGE_BYTES))

    def _open(self, flags: int) -> Array:
        fds: list[int] = []
        try:
            for chunk in range(self.array.num_chunks):
                fds.append(self.array.open_chunk(chunk, flags))
        except BaseException:
            for fd in fds:
                os.close(fd)
            raise
        return np.array(fds, np.int32)

    @staticmethod
    def _raise_limit(wanted: int) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < wanted + 256:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, wanted + 256), hard))

    @property
    def arguments(self) -> ChunkFiles:
        """What kernels take."""
        return ChunkFiles(self.fds, self.chunk_pages, self._extent, self.checksums, self.page_shift, self._repair)

    @property
    def stream_arguments(self) -> ChunkFiles:
        """`arguments` for reads of most of the file."""
        return self.arguments._replace(fds=self._stream_fds)

    def error(self, code: int) -> CorruptStoreError:
        """Return the message for what `read_pages` returned."""
        if code <= RANGE_FAILED:
            stop = int(self._extent[1])
            return CorruptStoreError(
                f"{self._place(RANGE_FAILED - code)} or one of the pages after it holds a number that is not below {stop:,}; {REMEDY}"
            )
        if code <= CHECKSUM_FAILED:
            return CorruptStoreError(f"{self._place(CHECKSUM_FAILED - code)} differs from its checksum; {REMEDY}")
        return CorruptStoreError(
            f"{self.array.folder}: a chunk of {self.array.name} cannot be read to its end; run `oocgraph check`, "
            "then restore the store or build it again"
        )

    def _place(self, page: int) -> str:
        chunk = page // self.chunk_pages
        return f"{self.array.chunk_path(chunk)}: page at byte {(page - chunk * self.chunk_pages) * PAGE_BYTES} of {self.array.name}"

    def close(self) -> None:
        """Close the files."""
        for fd in {*self.fds.tolist(), *self._stream_fds.tolist()}:
            os.close(fd)
        self.fds = self._stream_fds = np.empty(0, np.int32)


class Gatherer:
    """A pool of reading threads, each call with a staging buffer.

    Parameters
    ----------
    num_threads, buffer_bytes
        Their product is charged to the budget as staging.
    """

    def __init__(self, num_threads: int, buffer_bytes: int) -> None:
        self.num_threads = num_threads
        self._pool = Pool(num_threads, "oocgraph-read")
        self._submitting = threading.Lock()
        self._buffers: queue.SimpleQueue[Array] = queue.SimpleQueue()
        for _ in range(num_threads):
            self._buffers.put(np.frombuffer(mmap.mmap(-1, buffer_bytes), np.uint8))  # at a page boundary, as O_DIRECT wants

    def run(
        self, call: Callable[[Any, Array], tuple[int, int, int]], pieces: Sequence[Any], files: EdgeFiles | None
    ) -> list[tuple[int, int, int]]:  # fmt: skip
        """Return what ``call(piece, buffer) -> (found, bytes, error)`` makes of each piece, in order.

        `files` says what an error means; None where none can be returned. Threads that call this at a time take turns, so that the first
        one's pieces are not held up by the next one's.

        Raises
        ------
        CorruptStoreError
            A read failed or a page differs from its checksum; the other pieces have ended by then.
        """

        def work(piece: Any) -> tuple[int, int, int]:
            buffer = self._buffers.get()
            try:
                return call(piece, buffer)
            finally:
                self._buffers.put(buffer)

        if len(pieces) == 1:
            results = [work(pieces[0])]
        else:
            with self._submitting:
                calls = [self._pool.submit(work, piece) for piece in pieces]
            wait_for(calls)
            results = [call.result() for call in calls]
        for _, _, code in results:
            if code < 0 and files is not None:
                raise files.error(code)
        return results

    def close(self) -> None:
        """End the threads."""
        self._pool.close()
