"""An open graph: its attributes and its arrays by name. Opening reads metadata only.

In: a path or URL. Out: `CSRStore`, which hands out `StoredArray` readers. Nothing here keeps O(vertices) in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from oocgraph.arguments import known_keywords
from oocgraph.errors import ArgumentError, ArgumentTypeError, CorruptStoreError, StoreError, StoreNotFoundError
from oocgraph.lazy import cached_property
from oocgraph.listing import html_listing
from oocgraph.store.access import GraphAccess
from oocgraph.store.arrays import REMEDY, PlainArray, StoredArray
from oocgraph.store.degrees import degree_problem, plane_lengths
from oocgraph.store.facts import graph_facts, graph_line
from oocgraph.store.fetched import RangeArray, ZarrArray
from oocgraph.store.fingerprint import store_fingerprint
from oocgraph.store.layout import ATTRIBUTES_KEY, CHECKSUMS, PARTITIONS_KEY, SELF_LOOPS, GraphAttributes, plane_group
from oocgraph.store.metadata import ArrayShape, open_file, parse_array, read_json
from oocgraph.store.opening import REPLACED, MetadataStamp, RootStamp, check_shape, metadata_stamp, read_shape
from oocgraph.store.pages import Pages
from oocgraph.store.remains import restore
from oocgraph.store.remote import Location, location_of
from oocgraph.store.remote_files import HELD_BYTES, KEPT_FILE_BYTES, RemoteFiles
from oocgraph.store.schema import ArraySpec, array_specs, checksum_spec, max_distinct_degrees
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array, Codec

IN_MEMORY: WeakValueDictionary[str, CSRStore] = WeakValueDictionary()
"""Graphs in the memory of this process, by URL."""

BLOCK_VERTICES = 1 << 16
"""Vertices read at once where a list of them is streamed."""


_INTERNAL = frozenset(
    {
        "array", "array_names", "confirm", "count_dead_edges", "count_self_loops", "degree_classes", "expect", "get", "has_array",
        "held", "is_plain", "is_shared", "mask_charges", "place", "plane_offsets", "pull_group", "read", "reverse", "specs", "stored",
        "where",
    }
)  # fmt: skip
"""Attributes that the library itself uses, and `dir` leaves out."""


class CSRStore(GraphAccess):
    """A graph on disk. Use `open_graph` to get one.

    Attributes
    ----------
    url : str
        Where it is.
    attributes : GraphAttributes
        What its root group says.
    check_pages : bool
        Whether everything that is read is compared with its checksum; see `checked`.
    """

    where: str | None = None
    reverse = False
    """What a view leaves out, and whether it turns edges round (`oocgraph.store.views`)."""

    def __init__(
        self,
        url: str,
        attributes: GraphAttributes,
        *,
        folder: Path | None,
        files: RemoteFiles | None = None,
        check_pages: bool = False,
        stamp: RootStamp | None = None,
    ) -> None:
        self.url, self.attributes, self.check_pages = url, attributes, check_pages
        self._folder, self._files, self._stamp = folder, files, stamp

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url!r}: {graph_line(self.attributes, self.num_bytes)}>"

    def _repr_html_(self) -> str:
        return html_listing(f"{type(self).__name__} {self.url}", graph_facts(self.attributes, self.num_bytes))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _INTERNAL and (not name.startswith("_") or name.startswith("__"))]

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        if self._stamp is None:
            return _reopen, (self.place, self.check_pages)
        self.confirm()
        return _reopen, (str(self._folder), self.check_pages, self._stamp.found, self._fingerprint)

    @cached_property
    def _fingerprint(self) -> str | None:
        try:
            return store_fingerprint(self, self.array_names())
        except CorruptStoreError:  # of a part of a graph, or a damaged store
            return None

    def checked(self, check_pages: bool = True) -> CSRStore:
        """Return the same store, of which everything that is read is compared with its checksum (or nothing is)."""
        if check_pages == self.check_pages:
            return self
        return CSRStore(
            self.url,
            self.attributes,
            folder=self._folder,
            files=self._files,
            check_pages=check_pages,
            stamp=self._stamp,
        )

    @property
    def place(self) -> str:
        """Path or URL by which it is opened again, whatever the working folder has become and in other processes."""
        return self.url if self._folder is None else str(self._folder)

    @property
    def storage_options(self) -> Mapping[str, Any] | None:
        """Options of the file system of a remote URL."""
        return getattr(self.url, "storage_options", None)

    @property
    def num_vertices(self) -> int:
        """Vertices of the input, isolated ones included."""
        return self.attributes.num_input_vertices

    @property
    def num_rows(self) -> int:
        """Vertices that have an edge: rows of the CSR arrays, and the length of every vertex array in store order."""
        return self.attributes.num_vertices

    @property
    def num_edges(self) -> int:
        """Edges as the user counts them: an undirected edge once."""
        return self.attributes.num_edges

    @property
    def num_bytes(self) -> int | None:
        """Bytes of its files; None of a remote store."""
        if self._folder is None:
            return None
        return sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file())

    __networkx_backend__ = "oocgraph"

    def is_directed(self) -> bool:
        """Whether edges have a direction; as of a graph of NetworkX, of which a store is one (`oocgraph.networkx_backend`)."""
        return self.attributes.directed

    def is_multigraph(self) -> bool:
        """Whether there may be several edges between two vertices: the build has kept duplicates, or such as differ in a column.

        A store of an earlier version does not say whether there are any: if there may be, it counts as one with several.
        """
        return self.attributes.may_be_parallel

    def number_of_nodes(self) -> int:
        """Return `num_vertices`, as NetworkX calls it."""
        return self.num_vertices

    def number_of_edges(self) -> int:
        """Return `num_edges`, as NetworkX calls it."""
        return self.num_edges

    @property
    def edge_bytes(self) -> int:
        """Uncompressed bytes of ``out/indices`` (and ``in/indices`` when directed)."""
        return self.attributes.edge_bytes

    @property
    def index_dtype(self) -> np.dtype[Any]:
        """Dtype of neighbour ids."""
        return np.dtype(self.attributes.index_dtype)

    @property
    def pull_group(self) -> str:
        """Group whose lists a pull walks: ``out`` of an undirected graph, ``in`` of a directed one."""
        return plane_group(self.attributes.directed)

    @property
    def is_plain(self) -> bool:
        """Whether arrays are plain local files; otherwise Zarr reads them, chunk by chunk or range by range."""
        return self._folder is not None and self.attributes.codec == "none"

    def ids_of(self, vertices: Any) -> Array:
        """Return the user ids of store numbers, such as those that a policy and `Part.global_id` have.

        Parameters
        ----------
        vertices : (n,) integers
            From 0 to ``num_rows - 1``.

        Returns
        -------
        (n,) int64, or object array of str

        Raises
        ------
        VertexNotFoundError
            A number is not one of the store.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from oocgraph import build_csr
        >>> with TemporaryDirectory() as folder:
        ...     graph = build_csr((["b", "b"], ["a", "c"]), f"{folder}/g.zarr")
        ...     graph.ids_of([0]).tolist()  # the vertex of the largest degree
        ['b']
        """
        return VertexIds(self).ids_of(vertices)

    is_shared = True
    """Whether other processes can open the graph by its URL."""

    def has_array(self, name: str) -> bool:
        """Return whether the store has the array `name`, such as ``out/planes/offsets``."""
        if self._folder is not None:
            return (self._folder / name / "zarr.json").is_file()
        try:
            return self._remote.metadata(name) is not None
        except ValueError:  # which reading it will say
            return True

    def array(self, name: str) -> StoredArray:
        """Reader of the array `name`, such as ``out/indices``: whatever it reads keeps to what this array must be (`store.schema`).

        Raises
        ------
        ArgumentError
            A store with its attributes has no such array.
        CorruptStoreError
            The array is missing, its metadata is damaged, or it does not fit the attributes.
        """
        kept = self._readers.get(name)
        if kept is not None and kept[0] == metadata_stamp(kept[1].folder, name):
            self.confirm()
            return kept[1]
        if name.startswith(f"{CHECKSUMS}/"):
            return self._open(name, self._checksum_spec(name.removeprefix(f"{CHECKSUMS}/")), None)
        spec = self.specs.get(name)
        if spec is None:
            raise ArgumentError(f"{self.url} has no array {name!r}; it has {', '.join(sorted(self.specs))}")
        return self._open(name, spec, self.array(f"{CHECKSUMS}/{name}") if self.check_pages else None)

    @cached_property
    def specs(self) -> dict[str, ArraySpec]:
        """What each array of this store must be, checksums apart."""
        return array_specs(self.attributes, lambda name: self._shape(name).length)

    def _checksum_spec(self, name: str) -> ArraySpec:
        shape = self._shape(name)
        return checksum_spec(shape.length, shape.dtype, shape.chunk_length, compressed=self.attributes.codec != "none")

    def _open(self, name: str, spec: ArraySpec, checksums: StoredArray | None) -> StoredArray:
        codec: Codec = "none" if name.startswith(f"{CHECKSUMS}/") else self.attributes.codec
        self.confirm()
        try:
            shape = self._shape(name)
            check_shape(shape, spec, self.url, name, REMEDY)
        except CorruptStoreError:
            self.confirm()  # it may have been replaced meanwhile
            raise
        if codec != "none":
            return ZarrArray(self.get, name, shape, codec=codec, rule=spec.rule, checksums=checksums)
        if self._folder is None:
            assert checksums is None or isinstance(checksums, RangeArray)
            return RangeArray(self._remote, name, shape, rule=spec.rule, checksums=checksums)
        confirm = None if self._stamp is None else self._stamp.confirm
        reader = PlainArray(self._folder, name, *shape, rule=spec.rule, checksums=checksums, confirm=confirm, pages=self._pages)
        if name in self._readers:
            self._pages.clear()
        self._readers[name] = self._shapes[name][0], reader
        return reader

    def confirm(self) -> None:
        """Refuse a local store that was replaced since it was opened.

        Raises
        ------
        StoreError
            It was.
        """
        if self._stamp is not None:
            self._stamp.confirm()

    def _shape(self, name: str) -> ArrayShape:
        codec: Codec = "none" if name.startswith(f"{CHECKSUMS}/") else self.attributes.codec
        if self._folder is not None:
            stamp = metadata_stamp(self._folder, name)
            if stamp is None or self._shapes.get(name, (None,))[0] != stamp:
                if stamp is None:
                    self.confirm()  # a store that was removed is not damaged
                self._shapes[name] = stamp, read_shape(self._folder, name, codec, REMEDY)
            return self._shapes[name][1]
        try:
            stored = self._remote.metadata(name)
            if not isinstance(stored, dict):
                raise ValueError("it has no metadata")
            return parse_array(stored, codec)
        except ValueError as error:
            raise CorruptStoreError(f"{self.url}: array {name} is missing or damaged ({error}); {REMEDY}") from error

    @cached_property
    def _readers(self) -> dict[str, tuple[MetadataStamp | None, PlainArray]]:
        """Readers of plain local files, and the metadata that they were opened by: a question asks for ten, and each takes 60 us."""
        return {}

    @cached_property
    def _pages(self) -> Pages:
        return Pages()

    @cached_property
    def _shapes(self) -> dict[str, tuple[MetadataStamp | None, ArrayShape]]:
        """What metadata of a local store have said, and which files: a question opens three arrays, and parsing takes 0.2 ms."""
        return {}

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes | None:
        """Return bytes ``start .. stop - 1`` of a file of the store, or fewer where it ends before; None where there is no such file."""
        if self._folder is None:
            return self._remote.get(key, start, stop)
        try:
            with open_file(self._folder / key) as file:
                self.confirm()
                file.seek(start)
                return file.read(-1 if stop is None else stop - start)
        except FileNotFoundError:
            return None

    def expect(self, ranges: Mapping[str, int | None]) -> None:
        """Ask an object store for what will be read soon: so many first elements of arrays by name; None: all, where they are few."""
        for name, stop in ranges.items():
            if self._files is None or name not in self.specs:
                continue
            array = self.array(name)
            if isinstance(array, RangeArray) and (stop is not None or array.length * array.dtype.itemsize <= KEPT_FILE_BYTES):
                array.expect(0, array.length if stop is None else stop)

    @property
    def _remote(self) -> RemoteFiles:
        assert self._files is not None  # as there is no folder
        return self._files

    def read(self, name: str) -> Array:
        """Return a whole array (small ones: degrees, offsets)."""
        array = self.array(name)
        return array.read(0, array.length)

    @cached_property
    def degree_classes(self) -> tuple[Array, Array]:
        """Distinct degrees of the pull group, descending, and the first vertex of each: two (num_distinct,) int64 arrays.

        Raises
        ------
        CorruptStoreError
            They are not the degrees of a graph with this many vertices and edges.
        """
        names = [f"{self.pull_group}/degrees/{name}" for name in ("value", "first_vertex")]
        arrays = [self.array(name) for name in names]
        problem = "are more than the edges allow, or not as many as each other"
        if arrays[0].length == arrays[1].length <= max_distinct_degrees(self.attributes.num_stored_edges):
            value, first = (array.read(0, array.length).astype(np.int64, copy=False) for array in arrays)
            problem = degree_problem(value, first, self.num_rows, self.attributes.num_stored_edges)
            if not problem:
                return value, first
        raise CorruptStoreError(f"{self.url}: {' and '.join(names)} {problem}; {REMEDY}")

    @cached_property
    def plane_offsets(self) -> Array:
        """First entry of each plane in ``planes/indices``, and their end: (num_planes + 1,) int64, as the degrees make them.

        Raises
        ------
        CorruptStoreError
            Others are stored.
        """
        name, num_planes = f"{self.pull_group}/planes/offsets", self.attributes.num_planes
        lengths = plane_lengths(*self.degree_classes, self.num_rows, num_planes)
        offsets = np.concatenate([[0], np.cumsum(lengths[:-1])]).astype(np.int64)
        if num_planes and not np.array_equal(self.read(name), offsets):
            raise CorruptStoreError(f"{self.url}: {name} must be the numbers of vertices with degree above 0, 1, ..., added up; {REMEDY}")
        return offsets

    def count_self_loops(self, chosen: Callable[[Array], Array]) -> int:
        """Count the stored self-loops of chosen vertices: ``chosen(vertices)`` tells of (n,) int64 store numbers, as they are streamed."""
        if not self.attributes.num_self_loops:
            return 0
        blocks = self.array(SELF_LOOPS).blocks(BLOCK_VERTICES)
        return sum(int(np.count_nonzero(chosen(block.astype(np.int64)))) for _, block in blocks)

    def count_dead_edges(self, chosen: Callable[[Array], Array]) -> int:
        """Count the edges in the out-lists of chosen vertices that a view leaves out (`oocgraph.store.views`): here none."""
        return 0

    def mask_charges(self, groups: Iterable[str]) -> dict[str, int]:
        """Return what a view holds once lists of some groups are read, by name: here only what is kept of a remote store."""
        return {} if self._files is None else {"files of the remote store": HELD_BYTES}

    @property
    def stored(self) -> CSRStore:
        """The graph as it is stored, whatever a view of it leaves out or exchanges."""
        return self

    def to_scipy(self, *, weight: str | bool | None = None, dtype: Any = np.float32) -> Any:
        """Return the graph as a ``scipy.sparse.csr_array`` in memory; row i is the i-th input id ascending (isolated ones included).

        See `oocgraph.store.scipy.to_scipy`.
        """
        from oocgraph.store.scipy import to_scipy  # with numba, which takes half a second: at first use

        return to_scipy(self, weight=weight, dtype=dtype)

    def array_names(self) -> list[str]:
        """Names of all arrays except checksums, sorted."""
        return sorted(name for name, spec in self.specs.items() if not spec.optional or self.has_array(name))


def _reopen(url: str, check_pages: bool, found: tuple[int, ...] = (), fingerprint: str | None = None) -> CSRStore:
    store = open_graph(url, check_pages=check_pages)
    if found and store._stamp is not None and store._stamp.found != found and store._fingerprint != fingerprint:
        raise StoreError(f"{url} was replaced since this was pickled; {REPLACED}")
    return store


@known_keywords
def open_graph(
    path: CSRStore | str | os.PathLike[str] | Any, *, storage_options: Mapping[str, Any] | None = None, check_pages: bool = False
) -> CSRStore:
    """Open a graph store.

    Parameters
    ----------
    path
        A local folder, or any URL that Zarr opens (``s3://...`` needs the ``s3`` extra); a ``zarr.abc.store.Store``, ``StorePath`` or
        ``Group``, such as ``zarr.open_group(store)["graphs/web"]``. A graph that is open is returned itself.
    storage_options
        Options of the file system of a remote URL, such as credentials; by default the setting ``oocgraph.storage-options``, which all
        functions that take a path use. They go where the graph goes, also to the workers of a cluster.
    check_pages
        Compare everything that is read with its checksum, in every function. (An open store that does so continues to.)

    Returns
    -------
    CSRStore

    Raises
    ------
    StoreNotFoundError
        There is nothing at the path.
    StoreError
        It is not a graph store, it is incomplete, of a newer format, or out of reach.
    MissingDependencyError
        The package of a URL's file system is not installed.
    ArgumentTypeError
        `path` is neither a path nor a store.
    """
    if isinstance(path, CSRStore):
        return path.checked(check_pages or path.check_pages)
    location = location_of(path, storage_options)
    if not isinstance(path, str | os.PathLike) and location is None:
        is_runtime = isinstance(getattr(path, "store", None), CSRStore)
        remedy = "give its store, and it as runtime=" if is_runtime else "build one with build_csr, or open one with open_graph"
        raise ArgumentTypeError(f"a graph is a store or its path, not {type(path).__name__}; {remedy}")
    text = os.fspath(location or path)
    if text in IN_MEMORY:
        return IN_MEMORY[text]
    if isinstance(location, Location):
        return _open_remote(location).checked(check_pages)
    folder = Path(text.removeprefix("file://")).absolute()
    if not folder.exists() and not restore(folder):
        raise StoreNotFoundError(f"{folder}: no such file or folder; build a graph with `oocgraph build`")
    try:
        stamp, attributes = RootStamp(folder), read_json(folder / "zarr.json")["attributes"]
        if not stamp.is_current():  # it was replaced between the two
            stamp, attributes = RootStamp(folder), read_json(folder / "zarr.json")["attributes"]
        if "graph" in attributes.get(PARTITIONS_KEY, {}):
            raise StoreError(
                f"{folder}: not a graph store, but partitions of one; name the graph, {attributes[PARTITIONS_KEY]['graph']}, or one part"
            )
        stored = attributes[ATTRIBUTES_KEY]
    except PermissionError as error:
        raise StoreError(f"{folder}: no permission to read it") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{folder}: not a graph store; build one with `oocgraph build {folder} OUT.zarr` if it is an edge list") from error
    return CSRStore(text, GraphAttributes.from_json(stored, text), folder=folder, check_pages=check_pages, stamp=stamp)


def _open_remote(location: Location) -> CSRStore:
    group = location.open()
    stored: Any = group.attrs.get(ATTRIBUTES_KEY)
    if stored is None:
        raise StoreError(f"{location}: a Zarr group, but not a graph store; name the group of one, or build one with build_csr")
    return CSRStore(location, GraphAttributes.from_json(stored, location), folder=None, files=RemoteFiles(location, group))
