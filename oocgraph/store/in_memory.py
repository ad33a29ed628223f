"""A graph that is held in memory: the attributes and arrays of a store, without one.

In: edges as arrays of ids. Out: `MemoryGraph`, a `CSRStore` whose arrays are NumPy arrays (`oocgraph.store.memory_build` makes them). Every
function takes it as it takes a graph on disk, in this process: readers of its arrays have their elements in memory already
(`StoredArray.held`), and use them where they are.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

import oocgraph
from oocgraph.arguments import known_keywords
from oocgraph.arrow import to_numbers
from oocgraph.config import settings
from oocgraph.store import layout
from oocgraph.store.arrays import StoredArray
from oocgraph.store.graph import IN_MEMORY, CSRStore, open_graph
from oocgraph.store.layout import CHECKSUMS, GraphAttributes, string_arrays
from oocgraph.store.memory_build import Built, Edges, build_arrays
from oocgraph.store.memory_ids import NumberedIds, number_ids
from oocgraph.store.metadata import ArrayShape
from oocgraph.store.records import CODE, DuplicateRows, Payload, canonical, key_bits, meant_duplicates
from oocgraph.store.schema import ArraySpec
from oocgraph.store.strings import string_buffers
from oocgraph.store.writer import StoreWriter
from oocgraph.types import PAGE_BYTES, Array, AskedOrder, Duplicates, index_dtype

EDGE_BYTES = 150
"""What a build holds for an edge at the most, beside its ids and columns as they were given; measured 40 to 140, with few ids or many."""

COLUMN_COPIES = 12
"""Copies of an edge column alive at once: as stored, distributed to both ends, and sorted; and what sorting them takes."""

TEXT_COPIES = 6
"""Copies of strings alive at once: of both ends, distinct, sorted, and of the graph's arrays."""

_numbers = itertools.count(1)


class MemoryArray(StoredArray):
    """An array of a graph in memory.

    Parameters
    ----------
    name
        Path within the graph, such as ``out/indices``.
    values
        Its elements, which nobody changes.
    """

    def __init__(self, name: str, values: Array) -> None:
        super().__init__(name, values.dtype, values.size, max(1, values.size))
        self._values = values

    @property
    def held(self) -> Array:
        """All elements; none where some are replaced as they are read."""
        return self._values if self.mask is None else super().held

    @property
    def unit(self) -> int:
        """One: they are where they are."""
        return 1

    def _fetch(self, start: int, stop: int) -> Array:
        return self._values[start:stop].copy()


class MemoryGraph(CSRStore):
    """A graph in memory. `oocgraph.build_csr` without a path makes one.

    Parameters
    ----------
    attributes
        As of a store.
    arrays
        By name, checksums apart.

    Attributes
    ----------
    held : dict of array
        What it holds, by name.
    url : str
        ``memory://`` and a number that no other graph of this process has; `oocgraph.open_graph` takes it as long as the graph is there.
    """

    is_shared = False

    def __init__(self, attributes: GraphAttributes, arrays: Mapping[str, Array]) -> None:
        super().__init__(f"memory://{next(_numbers)}", attributes, folder=None)
        self.held = dict(arrays)
        IN_MEMORY[self.url] = self

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return MemoryGraph, (self.attributes, self.held)

    def checked(self, check_pages: bool = True) -> MemoryGraph:
        """Return the same graph: what is in memory is compared with nothing."""
        return self

    @property
    def num_bytes(self) -> int:
        """Bytes of its arrays."""
        return held_bytes(self)

    def has_array(self, name: str) -> bool:
        """Return whether the graph has the array `name`, such as ``out/planes/offsets``."""
        return name in self.held

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes | None:
        """Return None: there are no files."""
        return None

    @known_keywords
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> CSRStore:
        """Write the graph to a folder, as a build there would have, and open it.

        Parameters
        ----------
        path
            Folder to create, on a local file system.
        overwrite
            Replace a store that exists, once the new one is complete.

        Returns
        -------
        CSRStore
            The graph on disk.

        Raises
        ------
        OutputError
            `path` exists already or cannot be written, or the disk is full. Nothing is left behind.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from oocgraph import build_csr
        >>> with TemporaryDirectory() as folder:
        ...     build_csr(([0, 1], [1, 2])).save(f"{folder}/graph.zarr").num_edges
        2
        """
        with StoreWriter(path, codec=settings().codec, overwrite=overwrite) as writer:
            for name, values in self.held.items():
                writer.write(name, values)
            writer.publish(self.attributes)
        return open_graph(path)

    def _open(self, name: str, spec: ArraySpec, checksums: StoredArray | None) -> StoredArray:
        return MemoryArray(name, self._values(name))

    def _shape(self, name: str) -> ArrayShape:
        values = self._values(name)
        return ArrayShape(values.dtype, values.size, max(1, values.size))

    def _values(self, name: str) -> Array:
        if not name.startswith(f"{CHECKSUMS}/"):
            return self.held[name]
        from oocgraph.compiled.crc32c import page_checksums

        return page_checksums(self.held[name.removeprefix(f"{CHECKSUMS}/")].view(np.uint8), PAGE_BYTES)


def held_bytes(graph: CSRStore) -> int:
    """Return the bytes of the arrays of a graph in memory; 0 of a store."""
    return sum(values.nbytes for values in graph.held.values()) if isinstance(graph, MemoryGraph) else 0


def build_bytes(num_edges: int, *, column_bytes: int = 0, text_bytes: int = 0) -> int:
    """Return what `build_in_memory` holds at the most, beside its arguments, of which columns and strings have so many bytes."""
    return EDGE_BYTES * num_edges + COLUMN_COPIES * column_bytes + TEXT_COPIES * text_bytes


def build_in_memory(
    source: Any,
    target: Any,
    *,
    directed: bool,
    columns: Mapping[str, Any] | None = None,
    weight: str | None = None,
    vertices: Any = None,
    num_vertices: int | None = None,
    duplicates: Duplicates = "drop",
    keep_self_loops: bool = False,
    vertex_order: AskedOrder = "degree",
    rows: Array | None = None,
    description: str = "arrays in memory",
    threads: int = 1,
) -> MemoryGraph:
    """Build a graph in memory: the attributes and arrays that `oocgraph.build_csr` writes for the same edges.

    Parameters
    ----------
    source, target : (num_edges,) int64, or pyarrow.LargeStringArray
        Ids of the ends.
    directed
        Whether edges lead from `source` to `target` only.
    columns
        Edge columns by name, in order: numbers, or pyarrow.LargeStringArray.
    weight
        Name of the weight among `columns`.
    vertices : as `source`, or None
        Ids of vertices besides those of the edges.
    num_vertices
        Declares that the vertices are ``0 .. num_vertices - 1``; ids are below it.
    duplicates, keep_self_loops, vertex_order
        As of a build on disk.
    rows : (num_edges,) uint64, or None
        Where each edge was read; None: one after the other.
    description
        Name for messages and for the attributes.
    threads
        Threads that number strings and sort edges.

    Returns
    -------
    MemoryGraph

    Raises
    ------
    DuplicateEdgeError
        An edge occurs twice and ``duplicates="error"``.
    InputError
        A sum of integer weights does not fit their dtype, or there are too many vertices.

    Notes
    -----
    Peak host bytes: `build_bytes`, the arguments apart.
    """
    payload, stored, arrays = _columns(columns or {}, weight, duplicates)
    if payload.needs_rows:
        stored.insert(len(payload.extra), np.arange(len(source), dtype=np.uint64) if rows is None else rows)
    ids = number_ids(source, target, vertices, num_vertices, threads=threads)
    edges = Edges(source=ids.source, target=ids.target, columns=tuple(stored), num_ids=ids.num_ids, present=ids.present)
    try:
        built = build_arrays(edges, payload, directed=directed, vertex_order=vertex_order, keep_self_loops=keep_self_loops, threads=threads)
    except DuplicateRows as found:
        raise found.named(ids.name, key_bits(ids.num_ids), description) from None
    num_vertices, num_loops = built.used.size, built.arrays.get(layout.SELF_LOOPS, built.used[:0]).size
    num_input = num_vertices + built.isolated.size if ids.implied is None else ids.implied[1]
    arrays |= built.arrays | _vertex_arrays(built, ids)
    attributes = GraphAttributes(
        num_vertices=num_vertices, num_edges=built.num_edges, num_stored_edges=arrays["out/indices"].size, num_input_vertices=num_input,
        num_isolated=num_input - num_vertices, num_self_loops=num_loops, directed=directed, weighted=payload.weight is not None,
        duplicates=payload.duplicates, parallel_edges=built.has_parallel, vertex_order=built.vertex_order,
        index_dtype=index_dtype(num_vertices).name, id_kind=ids.id_kind, implied_ids=ids.implied, num_planes=built.num_planes,
        columns=payload.attributes,
        weight_name=payload.weight_name, source=description,
        library_version=oocgraph.__version__, complete=True,
    )  # fmt: skip
    return MemoryGraph(attributes, arrays)


def graph_of_rows(indptr: Array, indices: Array, weights: Array, ids: Array, num_ids: int, description: str) -> MemoryGraph:
    """Return the undirected graph of some rows, as a build in memory would make it of their edges.

    Parameters
    ----------
    indptr, indices, weights : (num_rows + 1,) int64, (num_entries,) index dtype, (num_entries,) numbers
        Rows without an empty one: sorted, no neighbour twice and none itself, each edge at both of its ends.
    ids : (num_rows,) int64
        Id of each row, ascending.
    num_ids
        The vertices are ``0 .. num_ids - 1``: those that are no ids of a row are isolated.
    description
        As of `build_in_memory`.
    """
    num_vertices = ids.size
    arrays = {
        "out/indptr": indptr, "out/indices": indices, f"out/{layout.WEIGHT}": weights, layout.VERTEX_ID: ids, layout.SORTED_ID: ids,
        layout.ORDER: np.arange(num_vertices, dtype=index_dtype(num_vertices)),
    }  # fmt: skip
    attributes = GraphAttributes(
        num_vertices=num_vertices, num_edges=indices.size // 2, num_stored_edges=indices.size, num_input_vertices=num_ids,
        num_isolated=num_ids - num_vertices, directed=False, weighted=True, duplicates="sum", parallel_edges=False, vertex_order="original",
        index_dtype=index_dtype(num_vertices).name, implied_ids=(0, num_ids), columns={layout.WEIGHT: weights.dtype.name},
        source=description, library_version=oocgraph.__version__, complete=True,
    )  # fmt: skip
    return MemoryGraph(attributes, arrays)


def _columns(columns: Mapping[str, Any], weight: str | None, duplicates: Duplicates) -> tuple[Payload, list[Array], dict[str, Array]]:
    """Return the columns as records have them, the weight last, and the arrays of the distinct strings of each."""
    extra: dict[str, np.dtype[Any] | None] = {}
    records, arrays = [], dict[str, Array]()
    for name, values in columns.items():
        if name == weight:
            continue
        if isinstance(values, np.ndarray):
            extra[name] = values.dtype
            records.append(canonical(values, values.dtype))
            continue
        extra[name] = None
        codes, words = _categories(values)
        records.append(codes)
        arrays |= dict(zip(string_arrays(f"columns/{name}"), words, strict=True))
    chosen = meant_duplicates(duplicates, weighted=weight is not None)
    payload = Payload(extra, None if weight is None else (weight, columns[weight].dtype), chosen)
    if weight is not None:
        records.append(canonical(columns[weight], columns[weight].dtype))
    return payload, records, arrays


def _categories(strings: Any) -> tuple[Array, tuple[Array, Array]]:
    """Return the position of each string among the distinct ones, which ascend bytewise, and the arrays of these."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = strings.cast(pa.large_binary()).dictionary_encode()
    order = pc.array_sort_indices(coded.dictionary)
    final = np.empty(len(order), CODE)
    final[to_numbers(order)] = np.arange(len(order), dtype=CODE)
    return final[to_numbers(coded.indices)], string_buffers(coded.dictionary.take(order))


def _vertex_arrays(built: Built, ids: NumberedIds) -> dict[str, Array]:
    arrays = {layout.ORDER: built.rank.astype(index_dtype(built.used.size))}
    arrays |= ids.arrays(layout.SORTED_ID, built.used) | ids.arrays(layout.VERTEX_ID, built.ranked)
    return arrays if ids.implied else arrays | ids.arrays(layout.ISOLATED_ID, built.isolated)
