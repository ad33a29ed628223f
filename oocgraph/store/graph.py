"""An open graph: its attributes and its arrays by name. Opening reads metadata only.

In: a path or URL. Out: `CSRStore`, which hands out `StoredArray` readers. Nothing here keeps O(vertices) in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.errors import CorruptStoreError, StoreError, VertexNotFoundError
from oocgraph.memory import format_bytes
from oocgraph.store.arrays import PlainArray, RangeArray, StoredArray, ZarrArray
from oocgraph.store.layout import ATTRIBUTES_KEY, PARTITIONS_KEY, GraphAttributes, plane_group
from oocgraph.store.remains import restore
from oocgraph.types import Array


class CSRStore:
    """A graph on disk. Use `open_graph` to get one.

    Attributes
    ----------
    url : str
        Where it is.
    attributes : GraphAttributes
        What its root group says.
    storage_options : mapping or None
        Options of the file system of a remote URL.
    """

    def __init__(
        self,
        url: str,
        attributes: GraphAttributes,
        *,
        folder: Path | None,
        group: Any,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.url, self.attributes, self.storage_options = url, attributes, storage_options
        self._folder, self._group = folder, group

    def __repr__(self) -> str:
        a = self.attributes
        kind = "directed" if a.directed else "undirected"
        return (
            f"<CSRStore {self.url!r}: {a.num_input_vertices:,} vertices ({a.num_isolated:,} isolated), {a.num_edges:,} {kind} edges, "
            f"{format_bytes(a.edge_bytes)} of neighbours, {a.vertex_order} order, {a.num_planes} planes, ids {a.id_kind}>"
        )

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return open_graph, (self.url, self.storage_options)

    @property
    def num_vertices(self) -> int:
        """Vertices that have an edge: the length of every vertex array in store order."""
        return self.attributes.num_vertices

    @property
    def num_edges(self) -> int:
        """Edges as the user counts them: an undirected edge once."""
        return self.attributes.num_edges

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

    def __contains__(self, vertex: Any) -> bool:
        """Return whether `vertex` is an id of the input, isolated ones included."""
        from oocgraph.store.vertices import VertexIds

        try:
            VertexIds(self).vertices_of([vertex])
        except VertexNotFoundError:
            return False
        return True

    def has_array(self, name: str) -> bool:
        """Return whether the store has the array `name`, such as ``out/planes/offsets``."""
        if self._folder is not None:
            return (self._folder / name / "zarr.json").is_file()
        return name in self._group

    def array(self, name: str) -> StoredArray:
        """Reader of the array `name`, such as ``out/indices``.

        Raises
        ------
        CorruptStoreError
            The store has no such array, or its metadata is damaged.
        """
        if self._folder is None or self.attributes.codec != "none":
            return self._zarr_array(name)
        try:
            metadata = json.loads((self._folder / name / "zarr.json").read_text())
            length, chunk_length = metadata["shape"][0], metadata["chunk_grid"]["configuration"]["chunk_shape"][0]
            dtype = np.dtype(metadata["data_type"]).newbyteorder("<")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptStoreError(
                f"{self.url}: array {name} is missing or its zarr.json is damaged ({error}); build the store again"
            ) from error
        return PlainArray(self._folder, name, dtype, length, chunk_length)

    def _zarr_array(self, name: str) -> StoredArray:
        try:
            if self._group is None:
                import zarr

                self._group = zarr.open_group(str(self._folder), mode="r")
            array = self._group[name]
            return RangeArray(array, name) if self.attributes.codec == "none" else ZarrArray(array, name)
        except (OSError, KeyError, ValueError) as error:
            raise CorruptStoreError(f"{self.url}: array {name} is missing or damaged ({error}); build the store again") from error

    def read(self, name: str) -> Array:
        """Return a whole array (small ones: degrees, offsets)."""
        array = self.array(name)
        return array.read(0, array.length)

    @cached_property
    def degrees(self) -> tuple[Array, Array]:
        """Distinct degrees of the pull group, descending, and the first vertex of each: two (num_distinct,) int64 arrays."""
        group = self.pull_group
        return self.read(f"{group}/degrees/value"), self.read(f"{group}/degrees/first_vertex")

    def to_scipy(self, *, weight: str | None = None, dtype: Any = np.float32) -> Any:
        """Return the graph as a ``scipy.sparse.csr_array`` in memory; row i is the i-th input id ascending (isolated ones included).

        See `oocgraph.store.scipy.to_scipy`.
        """
        from oocgraph.store.scipy import to_scipy

        return to_scipy(self, weight=weight, dtype=dtype)

    def array_names(self) -> list[str]:
        """Names of all arrays except checksums, sorted."""
        if self._folder is not None:
            found = [path.parent.relative_to(self._folder).as_posix() for path in self._folder.rglob("zarr.json")]
            names = [name for name in found if json.loads((self._folder / name / "zarr.json").read_text())["node_type"] == "array"]
        else:
            names = [name for name, member in self._group.members(max_depth=None) if hasattr(member, "shape")]
        return sorted(name for name in names if not name.startswith("checksums/"))


def open_graph(url: CSRStore | str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> CSRStore:
    """Open a graph store.

    Parameters
    ----------
    url
        A local folder, or any URL that Zarr opens (``s3://...`` needs the ``s3`` extra). A store that is open is returned itself.
    storage_options
        Passed to the file system of a remote URL.

    Returns
    -------
    CSRStore

    Raises
    ------
    StoreError
        There is no store, it is not a graph store, it is incomplete, or of a newer format.
    """
    if isinstance(url, CSRStore):
        return url
    if not isinstance(url, str | os.PathLike):
        raise StoreError(f"a graph is a store or its path, not {type(url).__name__}; build one with build_csr, or open one with open_graph")
    text = os.fspath(url)
    if "://" in text and not text.startswith("file://"):
        return _open_remote(text, storage_options)
    folder = Path(text.removeprefix("file://"))
    if not folder.exists() and not restore(folder):
        raise StoreError(f"{folder}: no such file or folder; build a graph with `oocgraph build`")
    try:
        attributes = json.loads((folder / "zarr.json").read_text())["attributes"]
        if "graph" in attributes.get(PARTITIONS_KEY, {}):
            raise StoreError(
                f"{folder}: not a graph store, but partitions of one; name the graph, {attributes[PARTITIONS_KEY]['graph']}, or one part"
            )
        stored = attributes[ATTRIBUTES_KEY]
    except PermissionError as error:
        raise StoreError(f"{folder}: no permission to read it") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{folder}: not a graph store; build one with `oocgraph build {folder} OUT.zarr` if it is an edge list") from error
    return CSRStore(text, GraphAttributes.from_json(stored, text), folder=folder, group=None)


def _open_remote(url: str, storage_options: Mapping[str, Any] | None) -> CSRStore:
    import zarr

    try:
        group = zarr.open_group(url, mode="r", storage_options=dict(storage_options) if storage_options else None)
        stored: Any = group.attrs[ATTRIBUTES_KEY]
    except ImportError as error:
        raise StoreError(f"{url}: reading this URL needs another package ({error}); try `pip install oocgraph[s3]`") from error
    except (OSError, KeyError, ValueError) as error:
        raise StoreError(f"{url}: not a graph store, or out of reach ({error})") from error
    return CSRStore(url, GraphAttributes.from_json(stored, url), folder=None, group=group, storage_options=storage_options)
