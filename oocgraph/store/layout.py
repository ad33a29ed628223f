"""The names, sizes and attributes of a graph store, format 1 (DESIGN.md section 4).

Everything that a reader and a writer must agree on stands here and nowhere else.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np

from oocgraph.errors import StoreError
from oocgraph.store.attributes import attribute_problem
from oocgraph.types import Array, Codec, Duplicates, VertexOrder, index_dtype

FORMAT = 1
ATTRIBUTES_KEY = "oocgraph"
PARTITIONS_KEY = "oocgraph_partitions"
RESULT_KEY = "oocgraph_result"

CHUNK_BYTES = 64 << 20
"""Chunk of an uncompressed array: a file of this size, or of the array's when that is smaller."""

COMPRESSED_CHUNK_BYTES = 1 << 20
"""Chunk of a compressed array: the least that a read decodes."""

PLANE_SHARE = 0.15
"""Planes are stored until they hold this share of the edges (BASELINES: K = 8 holds 10 % of kron22)."""

MAX_PLANES = 64

CHECKSUMS = "checksums"
"""Folder of the checksum arrays: ``checksums/out/indices`` belongs to ``out/indices``."""

SORTED_ID = "vertices/sorted_id"
ORDER = "vertices/order"
VERTEX_ID = "vertices/id"
ISOLATED_ID = "vertices/isolated_id"
MIRROR_OWNER = "vertices/mirror_owner"
"""Of a partition: the partition of each mirror's master."""

SELF_LOOPS = "vertices/self_loops"
"""Vertex of each stored self-loop, ascending, once per loop; absent where there is none, and in a partition, which is always directed."""


WEIGHT = "weight"
"""Name of the weight in the store, whatever its column was called."""

ENDS = ("source", "target")
"""Names of the columns of ids where edges are a table."""

_GROUP_MEMBERS = ("indptr", "indices", "degrees", "planes")
_ZARR_FILES = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
_MAX_NAME_BYTES = 255


def column_name_fault(name: Any) -> str | None:
    """Say why `name` cannot be the name of an edge column; None when it can.

    The name becomes one component of a path, beside the arrays of ``out`` and ``in``, and a Zarr node, which Zarr readers reach by path.

    Examples
    --------
    >>> column_name_fault("days late"), column_name_fault("../evil"), column_name_fault("indptr")
    (None, 'contains a slash', 'is a name that the store uses')
    """
    if not isinstance(name, str):
        return f"is no text but {type(name).__name__}"
    if not name.strip("."):
        return "is empty" if not name else "consists of dots"
    if "/" in name or "\\" in name:
        return "contains a slash" if "/" in name else "contains a backslash"
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        return "contains a control character"
    if name in _GROUP_MEMBERS or name in _ZARR_FILES or name.startswith("__"):
        return "begins with two underscores, which Zarr reserves" if name.startswith("__") else "is a name that the store uses"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "is not valid Unicode"
    return f"has {size} bytes, of at most {_MAX_NAME_BYTES}" if size > _MAX_NAME_BYTES else None


def string_arrays(name: str) -> tuple[str, str]:
    """Names of the two arrays that hold strings (Arrow's layout): uint8 bytes, int64 offsets."""
    return f"{name}/bytes", f"{name}/offsets"


def plane_group(directed: bool) -> str:
    """Group whose lists a pull walks, and which therefore carries degrees and planes."""
    return "in" if directed else "out"


def num_planes_for(plane_lengths: Array, num_stored_edges: int) -> int:
    """Smallest K whose planes hold `PLANE_SHARE` of the edges, at most `MAX_PLANES`.

    Parameters
    ----------
    plane_lengths : (k,) int64
        Number of vertices with degree above 0, 1, 2, ...; descending.
    num_stored_edges
        Length of ``indices``.

    Examples
    --------
    >>> import numpy as np
    >>> num_planes_for(np.array([5, 2, 1, 1, 1]), 10)
    1
    """
    held = 0
    for k, length in enumerate(plane_lengths[:MAX_PLANES]):
        if held >= PLANE_SHARE * num_stored_edges:
            return k
        held += int(length)
    return min(len(plane_lengths), MAX_PLANES)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphAttributes:
    """What the root group says of the graph, under the key ``oocgraph``.

    ``implied_ids`` is ``[first, stop]`` when the input's ids are exactly that range, so that isolated ids need not be
    stored; None when ``vertices/isolated_id`` lists them. ``columns`` maps each edge column to its dtype. ``weight_name`` is what the
    column of the weights is called in the input, where that is not ``weight``.

    A partition's store (`oocgraph.store.partitions`) has ``vertex_order="partition"``: masters ascending by id, then mirrors likewise;
    ``num_masters`` of them; and ``groups``, those of ``out`` and ``in`` that it holds (None: as ``directed`` says).

    ``parallel_edges`` says whether several edges have the same ends, where duplicates or edge columns leave that open. None: unknown, as in
    a store of an earlier version, and in a partition; where neither leaves it open, there are none.
    """

    num_vertices: int
    num_edges: int
    num_stored_edges: int
    num_input_vertices: int
    num_isolated: int
    num_self_loops: int = 0
    directed: bool
    weighted: bool = False
    duplicates: Duplicates = "drop"
    parallel_edges: bool | None = None
    vertex_order: VertexOrder | Literal["partition"] = "degree"
    num_masters: int | None = None
    groups: tuple[str, ...] | None = None
    index_dtype: str = ""
    id_kind: str = "int64"
    implied_ids: tuple[int, int] | None = None
    num_planes: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    weight_name: str | None = None
    codec: Codec = "none"
    source: str = ""
    library_version: str = ""
    format: int = FORMAT
    complete: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return a plain dictionary, as stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Any, where: str) -> GraphAttributes:
        """Read attributes back, refusing newer formats and incomplete stores.

        Raises
        ------
        StoreError
            The format is newer than this library's, the store is incomplete, a field is missing, or the fields cannot be those of a graph.
        """
        if not isinstance(stored, dict):
            raise StoreError(f"{where}: the attributes are no object; it is not a graph store, build it again with `oocgraph build`")
        version = stored.get("format")
        if not isinstance(version, int) or version < 1:
            raise StoreError(f"{where}: the attributes name no format; it is not a graph store, build it again with `oocgraph build`")
        if version > FORMAT:
            raise StoreError(f"{where}: store format {version} is newer than format {FORMAT} of this oocgraph; upgrade oocgraph")
        if stored.get("complete") is not True:
            raise StoreError(f"{where}: the store is marked incomplete, its build did not finish; build it again")
        known = {f.name for f in fields(cls)}
        values = {key: value for key, value in stored.items() if key in known}
        for name in ("implied_ids", "groups"):
            if isinstance(values.get(name), list):
                values[name] = tuple(values[name])
        columns = values.get("columns", {})
        for name in columns if isinstance(columns, dict) else ():
            if fault := column_name_fault(name):
                raise StoreError(f"{where}: attributes are damaged: the edge column name {name!r:.100} {fault}; build the store again")
        try:
            found = cls(**values)
            problem = attribute_problem(found, MAX_PLANES)
        except TypeError as error:
            problem = str(error)
        if problem is not None:
            raise StoreError(f"{where}: attributes are damaged ({problem}); restore the store or build it again")
        return found

    def stored_column(self, name: str) -> str:
        """Return the name in the store of an edge column; of the weight that may be given as in the input."""
        return WEIGHT if name == self.weight_name else name

    def input_column(self, name: str) -> str:
        """Return what an edge column of the store is called in the input."""
        return self.weight_name if name == WEIGHT and self.weight_name is not None else name

    @property
    def input_columns(self) -> tuple[str, ...]:
        """Edge columns, as they are called in the input."""
        return tuple(map(self.input_column, self.columns))

    def column_beside_ends(self, name: str) -> str:
        """Return what an edge column of the store is called beside columns ``source`` and ``target``: as in the input, but for these."""
        called = self.input_column(name)
        return name if called in ENDS else called

    @property
    def leaves_parallel(self) -> bool:
        """Whether a build leaves several edges with the same ends, if its input has them: all, or those that differ in a column."""
        return self.duplicates == "keep" or len(self.columns) > int(self.weighted)

    @property
    def may_be_parallel(self) -> bool:
        """Whether there may be several edges with the same ends."""
        return self.leaves_parallel and self.parallel_edges is not False

    @property
    def stored_groups(self) -> tuple[str, ...]:
        """Groups that hold a CSR."""
        return self.groups if self.groups is not None else ("out", "in") if self.directed else ("out",)

    @property
    def edge_bytes(self) -> int:
        """Uncompressed bytes of ``out/indices``, and of ``in/indices`` when directed."""
        itemsize = np.dtype(self.index_dtype or index_dtype(self.num_vertices)).itemsize
        return itemsize * self.num_stored_edges * len(self.stored_groups)
