"""One stored array, read by ranges; plain chunk files by ``preadv``.

In: a range of elements. Out: a NumPy array, of which every value keeps to the rule of the array (`oocgraph.store.values`), and every page,
where that is asked for, to its checksum. `PlainArray` knows where each element's bytes are, so that compiled
readers may read them too (`chunk_path`, `chunk_length`); what serves compressed and remote stores is in `oocgraph.store.fetched`.
No memory mapping: its read-ahead read 140 times what was touched (DESIGN.md section 4).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from oocgraph.errors import CorruptStoreError, StoreError
from oocgraph.store.files import is_cached, read_into
from oocgraph.store.values import Below, Rule
from oocgraph.types import PAGE_BYTES, Array, Codec

if TYPE_CHECKING:
    from oocgraph.kernels.rows import Repair
    from oocgraph.store.pages import Pages

REMEDY = "run `oocgraph check`, then restore the store or build it again"


class Mask(Protocol):
    """Which elements of an array are replaced in whatever is read of it (`oocgraph.store.edge_masks`)."""

    @property
    def repair(self) -> Repair:
        """What kernels that read pages themselves take, as long as this mask is held; there is none of planes."""
        ...

    def live_in(self, start: int, stop: int) -> Array:
        """Return a bit of each element: whether it is left as it is, true of a range at least; (num_elements // 64 + 1,) uint64.

        There is none of planes.
        """
        ...

    def applied(self, start: int, values: Array) -> Array:
        """Replace some of the elements from `start` on, in `values` or, where these may not be changed, in a copy; returns them."""
        ...


class StoredArray:
    """A one-dimensional array of a store.

    Of an array with a `Mask` some elements are replaced after what was read has been checked.

    Parameters
    ----------
    name
        Path within the store, such as ``out/indices``.
    dtype, length, chunk_length
        What its metadata says.
    rule
        What its values must keep to; None where nothing is indexed by them.
    checksums
        Checksum of each page (of a compressed array: chunk). Where it is given, everything that is read is compared with it.

    Attributes
    ----------
    codec
        How chunks are compressed.
    """

    codec: Codec = "none"
    mask: Mask | None = None
    """Which elements are replaced; None: none."""

    def __init__(
        self,
        name: str,
        dtype: np.dtype[Any],
        length: int,
        chunk_length: int,
        *,
        rule: Rule | None = None,
        checksums: StoredArray | None = None,
    ) -> None:
        self.name, self.dtype, self.length, self.chunk_length = name, dtype, length, chunk_length
        self.rule, self.checksums = rule, checksums
        self._last = (-1, 0)  # the last element that was read, and its value: a stream does not read it again

    @property
    def num_chunks(self) -> int:
        """Number of chunks."""
        return -(-self.length // self.chunk_length)

    @property
    def held(self) -> Array:
        """Elements that are in memory already, from the first on: they are used where they are, and nobody changes them. None on disk."""
        return np.empty(0, self.dtype)

    @property
    def is_held(self) -> bool:
        """Whether all elements are in memory already."""
        return self.held.size == self.length

    def read(self, start: int, stop: int) -> Array:
        """Return elements ``start .. stop - 1``: a new array, in host memory.

        Raises
        ------
        CorruptStoreError
            They cannot be read or decoded, differ from their checksums, or are no values that this array may hold.
        """
        if start >= stop:
            return np.empty(0, self.dtype)
        lead = int(self._follows_unread(start))  # what an ordered value is compared with comes with it, in one read
        values = self._fetch(start - lead, stop)
        self._check_values(start, values[lead:], int(values[0]) if lead else None)
        return values[lead:] if self.mask is None else self.mask.applied(start, values[lead:])

    def read_into(self, start: int, out: Array, *, direct: bool = False) -> None:
        """Fill `out` with elements ``start .. start + out.size - 1``; `direct` as in `PlainArray.read_into`."""
        out[:] = self.read(start, start + out.size)

    def is_cached(self, start: int, stop: int) -> bool:
        """Whether elements can be had from the system's page cache, as far as that is known; True where they are not plain files."""
        return True

    @property
    def unit(self) -> int:
        """Elements that are fetched at once best, because fewer take as long."""
        return self.chunk_length

    def blocks(self, size: int) -> Iterator[tuple[int, Array]]:
        """Read all elements, up to `size` at once: position of the first of a block, and the block."""
        for start in range(0, self.length, size):
            yield start, self.read(start, min(self.length, start + size))

    def without_rule(self) -> Self:
        """Return a reader of the same array that reads any values: for what compares bytes, or has its own say on values."""
        return self._with(rule=None)

    def masked(self, mask: Mask | None) -> Self:
        """Return a reader of the same array that replaces elements, or none."""
        return self._with(mask=mask)

    def _with(self, **changes: Any) -> Self:
        other = copy(self)
        vars(other).update(changes)
        return other

    def chunk_ranges(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Cut elements ``start .. stop - 1`` where chunks end: the number of each chunk, and the range of elements in it."""
        while start < stop:
            chunk = start // self.chunk_length
            end = min(stop, (chunk + 1) * self.chunk_length)
            yield chunk, start, end
            start = end

    def place_of(self, element: int) -> str:
        """Return what messages call the chunk that holds an element."""
        return f"{self.name}/c/{element // self.chunk_length}"

    def _fetch(self, start: int, stop: int) -> Array:
        """Return elements as they are stored; there is at least one."""
        raise NotImplementedError

    def _follows_unread(self, start: int) -> bool:
        """Whether an element is compared with the one before it, and that is not the one that was read last."""
        return self.rule is not None and self.rule.ordered and start > 0 and self._last[0] != start - 1

    def _check_values(self, start: int, values: Array, before: int | None = None) -> None:
        """Refuse values that break the rule of the array; `before` is the element before them, where it has just been read."""
        if self.rule is None or not values.size:
            return
        if self.rule.ordered and start and before is None:
            position, value = self._last
            before = value if position == start - 1 else int(self._fetch(start - 1, start)[0])
        broken = self.rule.broken(values, start, self.length, before)
        if broken is not None:
            at, reason = broken
            raise CorruptStoreError(
                f"{self.place_of(start + at)}: element {start + at} of {self.name} is {values[at]}, but {reason}; {REMEDY}"
            )
        if self.rule.ordered:
            self._last = start + values.size - 1, int(values[-1])

    def _check_bytes(self, first_byte: int, raw: Array, checksums: Array | None = None) -> None:
        """Compare pages with their checksums, which are read unless given: `raw` begins at a page and ends at one, or with the array."""
        from oocgraph.compiled.crc32c import page_checksums  # with numba, which takes half a second: at first use

        assert self.checksums is not None
        page = first_byte // PAGE_BYTES
        found = page_checksums(raw, PAGE_BYTES)
        wrong = np.flatnonzero(found != (self.checksums.read(page, page + found.size) if checksums is None else checksums))
        if wrong.size:
            byte = (page + int(wrong[0])) * PAGE_BYTES
            element = byte // self.dtype.itemsize
            offset = byte - element // self.chunk_length * self.chunk_length * self.dtype.itemsize
            raise CorruptStoreError(f"{self.place_of(element)}: page at byte {offset} of {self.name} differs from its checksum; {REMEDY}")

    def _pages_around(self, start: int, stop: int) -> tuple[int, int]:
        """Widen a range of elements to whole pages."""
        per_page = PAGE_BYTES // self.dtype.itemsize
        return start // per_page * per_page, min(self.length, -(-stop // per_page) * per_page)


class PlainArray(StoredArray):
    """An uncompressed array on a local file system: chunk ``i`` is the file ``c/i``.

    Parameters
    ----------
    confirm
        Called when a chunk has been opened, and before an error is raised: refuses a store that was replaced.
    pages
        Where pages that hold few elements are kept, as they have been read and checked.

    Attributes
    ----------
    bytes_asked : int
        What `read` has asked of files so far.

    Raises
    ------
    CorruptStoreError
        When reading: a chunk is missing or shorter than it must be, or see `StoredArray.read`.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        dtype: np.dtype[Any],
        length: int,
        chunk_length: int,
        *,
        rule: Rule | None = None,
        checksums: StoredArray | None = None,
        confirm: Callable[[], None] | None = None,
        pages: Pages | None = None,
    ) -> None:
        super().__init__(name, dtype, length, chunk_length, rule=rule, checksums=checksums)
        self.folder, self._confirm, self._pages, self.bytes_asked = folder, confirm, pages, 0

    @property
    def page_room_bytes(self) -> int:
        """What pages will take that are kept from now on."""
        return 0 if self._pages is None else self._pages.room_bytes

    def read(self, start: int, stop: int) -> Array:
        """Return elements as `StoredArray.read` does; few of them from pages that are kept."""
        per_page = PAGE_BYTES // self.dtype.itemsize
        if self._pages is None or not 0 <= start < stop <= self.length or stop - start > per_page:
            return super().read(start, stop)
        first, last = start // per_page, (stop - 1) // per_page
        head = self._page(first, per_page)[start - first * per_page : stop - first * per_page]
        return head.copy() if first == last else np.concatenate([head, self._page(last, per_page)[: stop - last * per_page]])

    def _page(self, number: int, per_page: int) -> Array:
        assert self._pages is not None
        found = self._pages.get((self.name, number))
        if found is None:
            found = self._read_page(number * per_page, min(self.length, (number + 1) * per_page))
            self._pages.put((self.name, number), found)
        return found

    def _read_page(self, start: int, stop: int) -> Array:
        """Read a page as `StoredArray.read` does; in half of the time where it is in one file, as is what it is compared with."""
        chunk, first = divmod(start, self.chunk_length)
        lead, itemsize = int(self.rule is not None and self.rule.ordered and start > 0), self.dtype.itemsize
        if self.checksums is not None or first < lead or first + stop - start > self.chunk_length:
            return super().read(start, stop)
        fd = self.open_chunk(chunk)
        try:
            values = np.frombuffer(os.pread(fd, (stop - start + lead) * itemsize, (first - lead) * itemsize), self.dtype)
        except (OSError, ValueError):  # it ends within an element
            values = np.empty(0, self.dtype)
        finally:
            os.close(fd)
        if values.size < stop - start + lead:
            return super().read(start, stop)  # which says why
        self.bytes_asked += values.nbytes
        self._check_values(start, values[lead:], int(values[0]) if lead else None)
        return values[lead:]

    def _with(self, **changes: Any) -> Self:
        return super()._with(**changes, _pages=None)  # others have other values

    def chunk_path(self, chunk: int) -> Path:
        """Return the file of a chunk."""
        return self.folder / self.name / "c" / str(chunk)

    def open_chunk(self, chunk: int, flags: int = 0) -> int:
        """Open a chunk for scattered reads, with more flags of ``os.open`` if given; check that it is whole.

        Raises
        ------
        CorruptStoreError
            The file is missing or has the wrong size.
        """
        if self._confirm is None:
            return self._open_chunk(chunk, flags)
        try:
            fd = self._open_chunk(chunk, flags)
        except StoreError:
            self._confirm()
            raise
        try:
            self._confirm()
        except StoreError:
            os.close(fd)
            raise
        return fd

    def _open_chunk(self, chunk: int, flags: int) -> int:
        path = f"{self.folder}/{self.name}/c/{chunk}"  # as `chunk_path`, which takes 25 us
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)  # a pipe has no writer to wait for
        except FileNotFoundError as error:
            raise CorruptStoreError(f"{path}: this chunk of {self.name} is missing; restore the store or build it again") from error
        except OSError as error:
            if flags and error.errno == errno.EINVAL:
                raise  # these flags cannot be had here
            raise StoreError(f"{path}: this chunk of {self.name} cannot be opened ({error.strerror or error})") from error
        size, wanted = os.fstat(fd).st_size, self.chunk_length * self.dtype.itemsize
        if size != wanted:
            os.close(fd)
            raise CorruptStoreError(
                f"{path}: this chunk of {self.name} has {size} bytes instead of {wanted}; restore the store or build it again"
            )
        return fd

    def place_of(self, element: int) -> str:
        """Return the file of an element."""
        return str(self.chunk_path(element // self.chunk_length))

    def check_chunks(self) -> None:
        """Refuse an array whose files are not there or not as large as they must be: what metadata say is not allocated before that.

        Raises
        ------
        CorruptStoreError
            A chunk is missing or has the wrong size.
        """
        for chunk in range(self.num_chunks):
            os.close(self.open_chunk(chunk))

    def is_cached(self, start: int, stop: int) -> bool:
        """Whether most pages of some elements, up to the end of a chunk, are in the page cache."""
        chunk, first = divmod(start, self.chunk_length)
        num_elements = min(stop - start, self.chunk_length - first)
        fd = self.open_chunk(chunk)
        try:
            return is_cached(fd, first * self.dtype.itemsize, num_elements * self.dtype.itemsize)
        finally:
            os.close(fd)

    @property
    def unit(self) -> int:
        """One: they are where they are."""
        return 1

    def read_into(self, start: int, out: Array, *, direct: bool = False) -> None:
        """Fill `out` with elements ``start .. start + out.size - 1``, and check them as `read` does.

        `direct` leaves them out of the page cache, where that can be done: if `out` is of `aligned`, pages are whole and in one chunk, and
        the file system can. What is read once in a long cycle only drives other pages out, and costs a copy.
        """
        self._read_checked(start, out, direct=direct)
        if self.mask is not None:
            self.mask.applied(start, out)

    def _read_checked(self, start: int, out: Array, *, direct: bool) -> None:
        if self._read_sound(start, out, direct=direct):
            return
        if not (direct and self._read_directly(start, out)):
            self._read_files(start, out)
        if self.checksums is not None and out.size:
            self._check_pages(start, out)
        self._check_values(start, out)

    def _read_sound(self, start: int, out: Array, *, direct: bool) -> bool:
        """Read whole pages of one chunk of an array that has a bound and checksums, and check them as they come; return whether that did.

        (Three passes over 4 MiB, through caches that do not hold them, take a third longer than reading does.)
        """
        itemsize, stop = self.dtype.itemsize, start + out.size
        chunk, first = divmod(start, self.chunk_length)
        if self.checksums is None or not isinstance(self.rule, Below) or not out.size or stop > self.length or itemsize not in (4, 8):
            return False
        if first * itemsize % PAGE_BYTES or (out.nbytes % PAGE_BYTES and stop != self.length) or first + out.size > self.chunk_length:
            return False
        from oocgraph.compiled.sound import load_read_sound, read_sound  # with numba, which takes half a second: at first use

        load_read_sound()
        page = start * itemsize // PAGE_BYTES
        checksums = self.checksums.read(page, page + -(-out.nbytes // PAGE_BYTES)).astype(np.uint32, copy=False)
        fd = self._open_directly(chunk, first * itemsize, out) if direct else None
        if fd is None:
            fd = self.open_chunk(chunk)
        try:
            return bool(read_sound(fd, first * itemsize, out.view(np.uint8), checksums, np.uint64(self.rule.stop), itemsize))
        finally:
            os.close(fd)

    def _fetch(self, start: int, stop: int) -> Array:
        if stop - start > self.chunk_length:
            self.check_chunks()
        out = np.empty(stop - start, self.dtype)
        self._read_files(start, out)
        if self.checksums is not None:
            self._check_pages(start, out)
        return out

    def _read_files(self, start: int, out: Array) -> None:
        stop = start + out.size
        if not 0 <= start <= stop <= self.length:
            raise CorruptStoreError(f"{self.folder}: {self.name} has no elements {start} to {stop}, only {self.length}; {REMEDY}")
        self.bytes_asked += out.nbytes
        for chunk, first, end in self.chunk_ranges(start, stop):
            fd = self.open_chunk(chunk)
            try:
                wanted = out[first - start : end - start]
                offset = (first - chunk * self.chunk_length) * self.dtype.itemsize
                ends = read_into(fd, [wanted], offset)
            except OSError as error:
                raise StoreError(f"{self.chunk_path(chunk)}: cannot be read ({error.strerror or error})") from error
            finally:
                os.close(fd)
            if ends < offset + wanted.nbytes:
                raise CorruptStoreError(f"{self.chunk_path(chunk)}: ends at byte {ends}; restore the store or build it again")

    def _check_pages(self, start: int, out: Array) -> None:
        """Compare the pages of elements just read; of a page that is read in part, what completes it is read too."""
        first, last = self._pages_around(start, start + out.size)
        per_page = PAGE_BYTES // self.dtype.itemsize
        whole_first, whole_last = -(-start // per_page) * per_page, (start + out.size) // per_page * per_page
        if start + out.size == self.length:
            whole_last = self.length
        if whole_first < whole_last:
            self._check_bytes(whole_first * self.dtype.itemsize, out[whole_first - start : whole_last - start].view(np.uint8))
        for a, z in {(first, min(last, first + per_page)), (max(first, (last - 1) // per_page * per_page), last)}:
            if a < start or z > start + out.size:
                page = np.empty(z - a, self.dtype)
                self._read_files(a, page)
                self._check_bytes(a * self.dtype.itemsize, page.view(np.uint8))
                low, high = max(a, start), min(z, start + out.size)
                out[low - start : high - start] = page[low - a : high - a]

    def _read_directly(self, start: int, out: Array) -> bool:
        """Read whole pages of one chunk without the page cache; return whether that could be done."""
        chunk, first = divmod(start, self.chunk_length)
        offset = first * self.dtype.itemsize
        fd = self._open_directly(chunk, offset, out)
        if fd is None:
            return False
        try:
            return read_into(fd, [out], offset) == offset + out.nbytes
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return False  # a disk whose sectors are larger than a page
        finally:
            os.close(fd)

    def _open_directly(self, chunk: int, offset: int, out: Array) -> int | None:
        """Open a chunk so that whole pages from `offset` on come to `out` past the page cache; None where that cannot be done."""
        chunk_bytes = self.chunk_length * self.dtype.itemsize
        if any(n % PAGE_BYTES for n in (out.ctypes.data, offset, out.nbytes)) or offset + out.nbytes > chunk_bytes:
            return None
        try:
            return self.open_chunk(chunk, os.O_DIRECT)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return None  # a file system without it, such as one in memory


def aligned(length: int, dtype: np.dtype[Any]) -> Array:
    """Return an array that begins at a page, of one page more than it shows."""
    raw = np.empty(length * dtype.itemsize + PAGE_BYTES, np.uint8)
    start = -raw.ctypes.data % PAGE_BYTES
    return raw[start : start + length * dtype.itemsize].view(dtype)


DECODED_COPIES = 3
"""Times a chunk is held while it is decoded: as stored, decoded, and what is taken of it. Ranges of an object store are no more."""

BLOSC_BLOCKS = 2
"""Blocks, each of a chunk at the most, that Blosc makes for itself while it decodes one; zstd makes none to speak of."""


def decoded_bytes(array: StoredArray, num_elements: int = 0) -> int:
    """Bytes that one read of up to a unit, or of `num_elements`, holds beside its result where arrays are no plain local files."""
    if array.unit == 1:
        return 0
    blocks = BLOSC_BLOCKS * array.unit if array.codec == "blosc" else 0
    return (DECODED_COPIES * max(num_elements, array.unit) + blocks) * array.dtype.itemsize
