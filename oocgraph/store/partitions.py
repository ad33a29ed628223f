"""Partitions of a graph on disk, as CuSP makes them: one graph store for each, and an index.

In: a path or URL. Out: `Partitions`, which hands out `Part`; opening reads metadata only. One Zarr v3 group::

    parts.zarr/     attributes["oocgraph_partitions"]: format, complete, num_partitions, what was partitioned and how
      masters             (num_vertices,) int16 or int32: the partition of each vertex's master, by store number of the graph
      part-00000/ ...     a graph store (format 1) of the partition's edges, in vertex order "partition"
        out/              the local CSR, of local ids (``in/`` where the in-lists were read; both where it was transposed too)
        vertices/id       (num_local,) int64: store number in the graph of each local vertex (`Part.global_id`)
        vertices/isolated_id    masters without an edge in the partition: they have no local row
        vertices/mirror_owner   (num_mirrors,) int32: partition of the master of each mirror

Local ids: masters first, then mirrors, each ascending by their number in the graph. Only vertices with an edge in the partition have one.

Hoang, Dathathri, Gill, Pingali, "CuSP: A Customizable Streaming Edge Partitioner for Distributed Graph Analytics", IPDPS 2019.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oocgraph.arguments import known_keywords
from oocgraph.errors import ArgumentTypeError, CorruptStoreError, StoreError, StoreNotFoundError
from oocgraph.listing import html_listing, html_records
from oocgraph.store.arrays import PlainArray
from oocgraph.store.fields import between, first_wrong, one_of
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.store.layout import ATTRIBUTES_KEY, ISOLATED_ID, MIRROR_OWNER, PARTITIONS_KEY, VERTEX_ID
from oocgraph.store.metadata import group_has, read_json
from oocgraph.store.opening import open_plain
from oocgraph.store.remains import restore
from oocgraph.store.schema import ArraySpec
from oocgraph.store.values import Ascending, Below, Rule
from oocgraph.types import Array

SHOWN_PARTS = 20
"""Parts that a notebook shows one by one."""

PARTITIONS_FORMAT = 1
MASTERS = "masters"


_RULES = {
    **dict.fromkeys(("num_partitions", "num_vertices", "num_stored_edges"), between(1, 2**62)),
    "read": one_of("out", "in"),
}


def part_name(p: int) -> str:
    """Name of a partition's folder."""
    return f"part-{p:05d}"


def master_dtype(num_partitions: int) -> np.dtype[Any]:
    """Dtype of partition numbers; -1 means none."""
    return np.dtype(np.int16 if num_partitions <= np.iinfo(np.int16).max else np.int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsAttributes:
    """What the index says.

    Attributes
    ----------
    num_partitions, num_vertices, num_stored_edges : int
        Of the whole graph; isolated vertices have no partition.
    policy : str
        Its name.
    graph, graph_fingerprint : str
        Where the graph was, and what tells it from others.
    read : str
        ``out`` or ``in``: the lists that were partitioned.
    transposed : bool
        Whether each part holds the other lists too.
    directed : bool
        Of the graph.
    """

    num_partitions: int
    num_vertices: int
    num_stored_edges: int
    policy: str
    graph: str
    graph_fingerprint: str
    read: Literal["out", "in"]
    transposed: bool
    directed: bool
    library_version: str = ""
    format: int = PARTITIONS_FORMAT
    complete: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary, as stored."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Part:
    """One partition.

    Attributes
    ----------
    index : int
        Its number.
    store : CSRStore
        Its edges; ids are numbers of the graph.
    read : str
        Group of the local CSR that was partitioned: ``out`` or ``in``.
    num_partitions, num_graph_vertices : int
        Partitions there are, and vertices of the graph that have an edge.
    """

    index: int
    store: CSRStore
    read: str
    num_partitions: int
    num_graph_vertices: int

    @property
    def num_masters(self) -> int:
        """Masters that have an edge here: local ids below this."""
        num_masters = self.store.attributes.num_masters
        assert num_masters is not None
        return num_masters

    @property
    def num_mirrors(self) -> int:
        """Mirrors: local ids from `num_masters`."""
        return self.store.num_rows - self.num_masters

    @property
    def num_isolated(self) -> int:
        """Masters that have no edge here, and therefore no local id."""
        return self.store.attributes.num_isolated

    @property
    def num_vertices(self) -> int:
        """Vertices with a local id."""
        return self.store.num_rows

    @property
    def num_edges(self) -> int:
        """Stored entries."""
        return self.store.attributes.num_stored_edges

    def global_id(self) -> Array:
        """Return the number in the graph of each local vertex: (num_vertices,) int64, masters ascending, then mirrors ascending.

        Raises
        ------
        CorruptStoreError
            They are not numbers of the graph in this order.
        """
        found = self.store.read(VERTEX_ID)
        for start, stop in ((0, self.num_masters), (self.num_masters, found.size)):
            self._check(VERTEX_ID, found[start:stop], start, Ascending(0, self.num_graph_vertices))
        return found

    def isolated_masters(self) -> Array:
        """Return the masters without a local id: (num_isolated,) int64, ascending.

        Raises
        ------
        CorruptStoreError
            They are not numbers of the graph in this order.
        """
        found = self.store.read(ISOLATED_ID)
        self._check(ISOLATED_ID, found, 0, Ascending(0, self.num_graph_vertices))
        return found

    def mirror_owner(self) -> Array:
        """Return the partition of each mirror's master: (num_mirrors,) int32.

        Raises
        ------
        CorruptStoreError
            One is not the number of a partition, or is that of this one, in which it would be no mirror.
        """
        found = self.store.read(MIRROR_OWNER)
        self._check(MIRROR_OWNER, found, 0, Below(self.num_partitions))
        if own := np.flatnonzero(found == self.index)[:1].tolist():
            raise CorruptStoreError(
                f"{self.store.url}: element {own[0]} of {MIRROR_OWNER} is {self.index}, the partition itself, which mirrors no master of "
                "its own; partition the graph again"
            )
        return found

    def _check(self, name: str, values: Array, start: int, rule: Rule) -> None:
        broken = rule.broken(values, 0, values.size, None) if values.size else None
        if broken is not None:
            at, reason = broken
            raise CorruptStoreError(
                f"{self.store.url}: element {start + at} of {name} is {values[at]}, but {reason}; partition the graph again"
            )


class Partitions:
    """Partitions of a graph. Use `open_partitions` to get them.

    Attributes
    ----------
    url : str
        Where they are, as it was given.
    place : str
        The same as an absolute path: the working folder may become another.
    attributes : PartitionsAttributes
    check_pages : bool
        Whether everything that is read of the parts is compared with its checksum.
    """

    def __init__(self, url: str, attributes: PartitionsAttributes, *, check_pages: bool = False) -> None:
        self.url, self.attributes, self.check_pages = url, attributes, check_pages
        self.place = os.path.abspath(url)

    def __repr__(self) -> str:
        a = self.attributes
        return (
            f"<Partitions {self.url!r}: {a.num_partitions} by {a.policy}, of {a.num_vertices:,} vertices and {a.num_stored_edges:,} stored "
            f"edges of {a.graph!r}>"
        )

    def _repr_html_(self) -> str:
        """Return what `repr` says, and the size of each part, as their metadata give it."""
        a = self.attributes
        values = {"num_partitions": a.num_partitions, "policy": a.policy, "num_vertices": a.num_vertices,
                  "num_stored_edges": a.num_stored_edges, "graph": a.graph, "url": self.url}  # fmt: skip
        names = ("num_edges", "num_masters", "num_isolated", "num_mirrors")
        parts = ({"part": part.index, **{name: getattr(part, name) for name in names}} for part in islice(self, SHOWN_PARTS))
        rest = self.num_partitions - SHOWN_PARTS
        return html_listing("Partitions", values) + html_records(parts) + (f"<p>... and {rest:,} more parts</p>" if rest > 0 else "")

    def __reduce__(self) -> tuple[Any, tuple[str, bool]]:
        return _reopen, (self.place, self.check_pages)

    def checked(self, check_pages: bool = True) -> Partitions:
        """Return the same partitions, of which everything that is read is compared with its checksum (or nothing is)."""
        other = Partitions(self.url, self.attributes, check_pages=check_pages)
        other.place = self.place
        return other

    @property
    def num_partitions(self) -> int:
        """Number of parts."""
        return self.attributes.num_partitions

    @property
    def num_vertices(self) -> int:
        """Vertices of the graph that have an edge."""
        return self.attributes.num_vertices

    @property
    def num_stored_edges(self) -> int:
        """Stored entries of the graph."""
        return self.attributes.num_stored_edges

    @property
    def policy(self) -> str:
        """Name of the policy."""
        return self.attributes.policy

    @property
    def masters(self) -> PlainArray:
        """Partition of the master of each vertex, by number in the graph: (num_vertices,), unread."""
        dtype = master_dtype(self.num_partitions).name
        spec = ArraySpec((dtype,), self.num_vertices, Below(self.num_partitions))
        return open_plain(Path(self.place), MASTERS, spec, "partition the graph again")

    def __len__(self) -> int:
        return self.num_partitions

    def __getitem__(self, p: int) -> Part:
        """Return a part.

        Raises
        ------
        ArgumentTypeError, IndexError
            There is no such number.
        StoreError
            It is missing or incomplete.
        """
        if not isinstance(p, int | np.integer) or isinstance(p, bool):
            raise ArgumentTypeError(f"part {p!r} of {self.url}: parts go by number, 0 to {self.num_partitions - 1}")
        if not 0 <= p < self.num_partitions:
            raise IndexError(f"part {p} of {self.url}: it has parts 0 to {self.num_partitions - 1}")
        try:
            store = open_graph(Path(self.place) / part_name(p), check_pages=self.check_pages)
        except StoreError as error:
            raise StoreError(
                f"{self.url}: part {p} of {self.num_partitions} is missing or damaged ({error}); partition the graph again"
            ) from error
        if store.attributes.num_masters is None:
            raise StoreError(f"{self.url}: part {p} of {self.num_partitions} is another graph store; partition the graph again")
        if self.attributes.read not in store.attributes.stored_groups or store.attributes.num_input_vertices > self.num_vertices:
            raise CorruptStoreError(f"{self.url}: part {p} of {self.num_partitions} is not one of this graph; partition the graph again")
        return Part(p, store, self.attributes.read, self.num_partitions, self.num_vertices)

    def __iter__(self) -> Iterator[Part]:
        return (self[p] for p in range(self.num_partitions))


def _reopen(url: str, check_pages: bool) -> Partitions:
    return open_partitions(url).checked(check_pages)


@known_keywords
def open_partitions(path: str | os.PathLike[str]) -> Partitions:
    """Open the partitions of a graph.

    Parameters
    ----------
    path
        Folder that `oocgraph.partition_graph` wrote.

    Returns
    -------
    Partitions

    Raises
    ------
    ArgumentTypeError
        It is no path.
    StoreNotFoundError
        There is nothing at the path.
    StoreError
        There are none, they are incomplete or of a newer format, or a part is missing.
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(f"path is {path!r}; give the folder that partition_graph wrote")
    text = os.fspath(path).removeprefix("file://")
    if not Path(text).exists() and not restore(Path(text)):
        raise StoreNotFoundError(f"{text}: no such file or folder; make partitions with `oocgraph partition GRAPH {text}`")
    try:
        attributes = read_json(Path(text) / "zarr.json")["attributes"]
        stored = dict(attributes[PARTITIONS_KEY])
    except PermissionError as error:
        raise StoreError(f"{text}: no permission to read it") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        graph = f" (it is a graph store: `oocgraph partition {text} OUT`)" if group_has(Path(text), ATTRIBUTES_KEY) else ""
        raise StoreError(f"{text}: not partitions of a graph{graph}; give the folder that `oocgraph partition` wrote") from error
    found = Partitions(text, _attributes(stored, text))
    for p in range(found.num_partitions):
        if not (Path(text) / part_name(p) / "zarr.json").is_file():
            raise StoreError(f"{text}: part {p} of {found.num_partitions} is missing; restore {part_name(p)}, or partition the graph again")
    return found


def is_partitions(url: str | os.PathLike[str]) -> bool:
    """Whether there are partitions at a path, whole or not."""
    return group_has(Path(os.fspath(url).removeprefix("file://")), PARTITIONS_KEY)


def _attributes(stored: dict[str, Any], where: str) -> PartitionsAttributes:
    version = stored.get("format")
    if not isinstance(version, int) or stored.get("complete") is not True:
        raise StoreError(f"{where}: these partitions are incomplete; remove the folder and partition the graph again")
    if version > PARTITIONS_FORMAT:
        raise StoreError(
            f"{where}: partitions of format {version} are newer than format {PARTITIONS_FORMAT} of this oocgraph; upgrade oocgraph"
        )
    known = {field.name for field in fields(PartitionsAttributes)}
    try:
        found = PartitionsAttributes(**{key: value for key, value in stored.items() if key in known})
        if wrong := first_wrong(asdict(found), _RULES):
            raise ValueError(f"{wrong} is {getattr(found, wrong)!r}")
        return found
    except (TypeError, ValueError) as error:
        raise StoreError(f"{where}: the attributes of these partitions are damaged ({error}); partition the graph again") from error
