"""Results as mappings from vertex ids to values: nothing is held, whatever is done with them.

In: a result, and one of its columns. Out: `VertexMapping`, a `collections.abc.Mapping` whose ids and values are streamed in blocks
(`items`, `values`, iteration, `==`) or looked up one at a time (`mapping[vertex]`). A result is the mapping of its first column; a
`ColumnMapping` has another column, or only the vertices that a search reached.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from oocgraph.errors import ArgumentTypeError, VertexNotFoundError
from oocgraph.store.columns import Ids, as_numpy, taken
from oocgraph.types import Array

if TYPE_CHECKING:
    from oocgraph.results.base import VertexResult

BLOCK_VERTICES = 1 << 16
"""Vertices whose ids and values are read at once."""

PIECE_VERTICES = 1 << 15
"""Vertices that are Python objects at once: about 2.5 MiB of ids and values."""

_ABSENT = object()


class Walk:
    """Values for lookups in the order of the ids, as ``dict(mapping)`` makes them after it has asked for the ids.

    A lookup alone takes 0.3 ms and more. One of the id with which an iteration began starts a stream, from which the next ones come; it is
    dropped with the mapping, and not copied with it. Who looks something else up meanwhile leaves the stream where it is. Each thread has
    its own.
    """

    __slots__ = ("_own",)

    def __init__(self) -> None:
        self._own = threading.local()

    @property
    def _next(self) -> list[tuple[Any, Any, Iterator[tuple[Any, Any]] | None]]:
        """Key, its value, and what follows; empty while these are looked for."""
        found: list[tuple[Any, Any, Iterator[tuple[Any, Any]] | None]] = self._own.__dict__.setdefault("next", [])
        return found

    def __reduce__(self) -> tuple[type[Walk], tuple[()]]:
        return Walk, ()

    def begin(self, key: Any) -> None:
        """Note with which id an iteration began."""
        self._next[:] = [(key, _ABSENT, None)]

    def value(self, mapping: VertexMapping, key: Any) -> Any:
        """Return the value of an id if it is the next one, else `_ABSENT`."""
        try:
            expected, value, stream = self._next.pop()
        except IndexError:
            return _ABSENT
        if type(key) is not type(expected) or key != expected:
            self._next.append((expected, value, stream))
            return _ABSENT
        if stream is None:
            stream = iter(mapping.items())
            value = next(stream)[1]
        if (following := next(stream, None)) is not None:
            self._next.append((*following, stream))
        return value


class VertexMapping(Mapping[Any, Any]):
    """A mapping from vertex ids, ascending, to values; ids and values are Python's integers, floats and strings.

    Notes
    -----
    Holds nothing. `items`, `values` and iteration read ids and values in blocks, once; a lookup reads a few pages of the ids, but lookups
    of all ids in turn read blocks, too. Like a dict it has no hash, because it equals any mapping of the same ids to the same values.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def _walk(self) -> Walk:
        """Where lookups in the order of the ids have come to."""

    @abstractmethod
    def _value_of_key(self, vertex: Any) -> Any:
        """Return the value of any vertex."""

    @abstractmethod
    def _parts(self) -> Iterator[tuple[Ids, Ids]]:
        """Iterate over ids and values, in blocks."""

    @abstractmethod
    def _key_parts(self) -> Iterator[Ids]:
        """Iterate over ids, in blocks."""

    @property
    @abstractmethod
    def _value_dtype(self) -> np.dtype[Any]:
        """Dtype of the values as an array."""

    def __getitem__(self, vertex: Any) -> Any:
        value = self._walk.value(self, vertex)
        return self._value_of_key(vertex) if value is _ABSENT else value

    def __iter__(self) -> Iterator[Any]:
        keys = chain.from_iterable(map(_objects, self._key_parts()))
        if (first := next(keys, _ABSENT)) is not _ABSENT:
            self._walk.begin(first)
            yield first
            yield from keys

    def values(self) -> ValuesView[Any]:
        """Return the values as a view that streams them."""
        return _Values(self)

    def items(self) -> ItemsView[Any, Any]:
        """Return pairs of id and value as a view that streams them."""
        return _Items(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the values, in the order of the ids."""
        if copy is False:
            raise ValueError(f"{self!r} is no array: it cannot become one without a copy")
        out, start = np.empty(len(self), self._value_dtype), 0
        for _, values in self._parts():
            out[start : start + len(values)] = as_numpy(values)
            start += len(values)
        return out if dtype is None else out.astype(dtype, copy=False)

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is a mapping of the same ids to the same values."""
        if self is other:
            return True
        if not isinstance(other, Mapping):
            return NotImplemented
        if len(self) != len(other):
            return False
        if isinstance(other, VertexMapping):
            return _same(self._parts(), other._parts())
        return all(other.get(vertex, _ABSENT) == value for vertex, value in self.items())

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ColumnMapping(VertexMapping):
    """A column of a result, of all vertices or of those that were reached.

    Parameters
    ----------
    result
        The result.
    name
        The column.
    only
        A column, and the value of it that vertices have which are left out; None: none is left out.
    size
        Vertices that are not left out.
    """

    result: VertexResult
    name: str
    only: tuple[str, Any] | None
    size: int
    _walk: Walk = field(default_factory=Walk, init=False)

    def __repr__(self) -> str:
        which = "vertices" if self.only is None else "reached vertices"
        return f"<{self.name} of {self.size:,} {which}, by id, of {type(self.result).__name__}>"

    def __len__(self) -> int:
        return self.size

    def _value_of_key(self, vertex: Any) -> Any:
        values = self.result._values_of_key(self._columns, vertex)
        if self.only is not None and values[self.only[0]] == self.only[1]:
            raise VertexNotFoundError(f"{vertex!r} was not reached; the result itself has {self.only[1]!r} as its {self.only[0]}")
        return values[self.name]

    @property
    def _columns(self) -> tuple[str, ...]:
        return (self.name,) if self.only is None else tuple({self.name, self.only[0]})

    @property
    def _value_dtype(self) -> np.dtype[Any]:
        return self.result.dtype_of(self.name)

    def _parts(self) -> Iterator[tuple[Ids, Ids]]:
        for block in self.result.blocks(self.result.block_vertices(BLOCK_VERTICES), columns=self._columns):
            values = getattr(block, self.name)
            if self.only is None:
                yield block.vertices, values
            else:
                (kept,) = np.nonzero(getattr(block, self.only[0]) != self.only[1])
                yield taken(block.vertices, kept), taken(values, kept)

    def _key_parts(self) -> Iterator[Ids]:
        for ids, _ in self._parts():
            yield ids


def one_key(vertex: Any, kind: str) -> Any:
    """Return a key of a mapping whose ids are of a kind, ``int64`` or ``string``.

    Raises
    ------
    VertexNotFoundError
        It is a text or a tuple among integers, and thus no key.
    ArgumentTypeError
        It is a list or an array: several vertices.
    """
    if isinstance(vertex, list | dict | set) or getattr(vertex, "ndim", 0) != 0:
        raise ArgumentTypeError(f"{vertex!r} is not one vertex; index the result with one id, or use its method that takes several")
    if isinstance(vertex, tuple) or (kind == "int64" and isinstance(vertex, str | bytes)):
        raise VertexNotFoundError(f"{vertex!r} is no vertex: ids are {'integers' if kind == 'int64' else 'strings'}; give one of them")
    return vertex


class _Values(ValuesView[Any]):
    """Values, streamed."""

    _mapping: VertexMapping

    def __iter__(self) -> Iterator[Any]:
        for _, values in self._mapping._parts():
            yield from _objects(values)

    def __contains__(self, value: object) -> bool:
        return any(one is value or one == value for one in self)


class _Items(ItemsView[Any, Any]):
    """Ids and values, streamed."""

    _mapping: VertexMapping

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for ids, values in self._mapping._parts():
            yield from zip(_objects(ids), _objects(values), strict=True)


def _objects(values: Ids) -> Iterator[Any]:
    """Iterate over a block as Python objects, a piece at a time."""
    for start in range(0, len(values), PIECE_VERTICES):
        yield from as_numpy(values[start : start + PIECE_VERTICES]).tolist()


def _same(one: Iterator[tuple[Ids, Ids]], other: Iterator[tuple[Ids, Ids]]) -> bool:
    """Return whether two streams of equal length have the same ids and values, however they are cut into blocks."""
    ours: list[Array] = []
    theirs: list[Array] = []
    while True:
        for held, stream in ((ours, one), (theirs, other)):
            while not held or not held[0].size:
                if (block := next(stream, None)) is None:
                    return True
                held[:] = map(as_numpy, block)
        count = min(ours[0].size, theirs[0].size)
        if not all(np.array_equal(left[:count], right[:count]) for left, right in zip(ours, theirs, strict=True)):
            return False
        for held in (ours, theirs):
            held[:] = [values[count:] for values in held]
