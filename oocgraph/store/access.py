"""What a graph answers about its vertices and edges, by the pages that hold the answer: the methods that every graph has.

A module beside this one computes each answer, and is imported with what it needs (numba, pyarrow) when the graph is asked.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from oocgraph.arguments import known_keywords
from oocgraph.errors import ArgumentTypeError, VertexNotFoundError
from oocgraph.store.columns import as_numpy
from oocgraph.store.given import is_single
from oocgraph.store.vertices import VertexIds
from oocgraph.types import Array

if TYPE_CHECKING:
    from oocgraph.store.in_memory import MemoryGraph
    from oocgraph.store.sampling import SampledEdges

ITERATED = 1 << 16
"""Ids read at once by who iterates over a graph."""


class GraphAccess:
    """Questions that a graph answers itself; `oocgraph.store.graph.CSRStore` is one."""

    def __contains__(self, vertex: Any) -> bool:
        """Return whether `vertex` is an id of the input, isolated ones included; a text is none among integers."""
        if not is_single(vertex) or (isinstance(vertex, str | bytes) and self.attributes.id_kind == "int64"):  # type: ignore[attr-defined]
            return False
        try:
            VertexIds(self).vertices_of([vertex])  # type: ignore[arg-type]
        except VertexNotFoundError:
            return False
        return True

    def __len__(self) -> int:
        """Return the number of vertices, isolated ones included."""
        return int(self.num_vertices)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        """Iterate over all ids, ascending, isolated ones included: integers or strings, a block of which is in memory."""
        for ids, _ in VertexIds(self).stored_blocks(ITERATED):  # type: ignore[arg-type]
            yield from as_numpy(ids).tolist()

    @known_keywords
    def neighbors(
        self, ids: Any, *, direction: str = "out", columns: Sequence[str] = (), memory_budget: str | int | None = None
    ) -> Any:  # fmt: skip
        """Return the neighbours of one vertex, or of several.

        Parameters
        ----------
        ids
            An id, or a collection of ids.
        direction
            ``out``: where edges lead to; ``in``: where they come from. Both are the same in an undirected graph.
        columns
            Edge columns to return beside the ends of each edge, such as ``["weight"]``.
        memory_budget
            Bytes that the process may hold; by default most of what the machine leaves.

        Returns
        -------
        (degree,) int64, or object array of str
            Of one id.
        pyarrow.LargeListArray
            Of several: a list for each, in their order. ``.to_pylist()`` makes Python lists of it.
        pyarrow.Table
            With `columns`: an edge a row, under ``source``, ``target`` and the names of the columns.

        Raises
        ------
        VertexNotFoundError
            An id is not in the graph. (An isolated vertex has no neighbours.)
        ArgumentError
            The graph has no such column or direction.
        BudgetError
            All of them do not fit; nothing was read.

        Notes
        -----
        Neighbours come as they are stored: those of large degree first; a self-loop once, parallel edges that the build kept as often as it
        did. Reads the pages that hold the rows, each once. Peak host bytes: 24 an edge and 1 to 3 times its id, and 96 a given vertex.

        Examples
        --------
        >>> from oocgraph import build_csr
        >>> graph = build_csr(([0, 0, 1], [1, 2, 2]), num_vertices=4)
        >>> graph.neighbors(0).tolist(), graph.neighbors([3, 1]).to_pylist()
        ([1, 2], [[], [0, 2]])
        """
        return _module("neighbours").neighbors(self, ids, direction=direction, columns=columns, memory_budget=memory_budget)

    @known_keywords
    def degree(self, ids: Any = None, *, direction: str = "both", memory_budget: str | int | None = None) -> Any:
        """Return the degree of one vertex, of several, or of all.

        Parameters
        ----------
        ids
            An id, or a collection of ids; None: all vertices, in the order in which the graph iterates over them.
        direction
            Of a directed graph: ``out`` counts edges from a vertex, ``in`` those to it, ``both`` counts both.
        memory_budget
            Bytes that the process may hold; by default most of what the machine leaves.

        Returns
        -------
        int, or (num_ids,) int64

        Raises
        ------
        VertexNotFoundError
            An id is not in the graph.
        ArgumentError
            `direction` is invalid.
        BudgetError
            The degrees do not fit.

        Notes
        -----
        A self-loop of an undirected graph counts twice, as in NetworkX. No edge is read. Peak host bytes: 96 a given vertex; of
        all, 16 a vertex and 20 MiB.

        Examples
        --------
        >>> from oocgraph import build_csr
        >>> graph = build_csr(([0, 0, 1], [1, 2, 2]), num_vertices=4, directed=True)
        >>> graph.degree(2), graph.degree([0, 3], direction="out").tolist(), graph.degree().tolist()
        (2, [2, 0], [2, 2, 2, 0])
        """
        return _module("vertex_degrees").degree(self, ids, direction=direction, memory_budget=memory_budget)

    @known_keywords
    def has_edge(self, source: Any, target: Any, *, memory_budget: str | int | None = None) -> Any:
        """Return whether there is an edge from one vertex to another, or of each of many pairs.

        Parameters
        ----------
        source, target
            An id each, or as many sources as targets.
        memory_budget
            Bytes that the process may hold; by default most of what the machine leaves.

        Returns
        -------
        bool, or (num_pairs,) bool

        Raises
        ------
        VertexNotFoundError
            An id is not in the graph.
        ArgumentError
            There are more of one than of the other.

        Notes
        -----
        Binary search by pages: ten of a row of a million neighbours, one of a short row. In an undirected graph the shorter of both rows.

        Examples
        --------
        >>> from oocgraph import build_csr
        >>> graph = build_csr(([0, 0, 1], [1, 2, 2]), directed=True)
        >>> graph.has_edge(0, 1), graph.has_edge([1, 1], [0, 2]).tolist()
        (True, [False, True])
        """
        return _module("edge_lookup").has_edge(self, source, target, memory_budget=memory_budget)

    @known_keywords
    def similarity(self, source: Any, target: Any, *, kind: str = "jaccard", memory_budget: str | int | None = None) -> Any:
        """Return how similar two vertices are, or each of many pairs, by the neighbours that they have in common.

        Parameters
        ----------
        source, target
            An id each, or as many sources as targets.
        kind
            ``jaccard``: the number of common neighbours divided by that of all neighbours of either; ``common``: their number;
            ``adamic-adar``: the sum of 1 / log(degree) over them; ``resource-allocation``: the sum of 1 / degree. Degrees are those of
            `degree`. As in NetworkX, a neighbour counts once, and neither vertex of a pair is a common neighbour.
        memory_budget
            Bytes that the process may hold; by default most of what the machine leaves.

        Returns
        -------
        float, or (num_pairs,) float64; with ``common`` int, or (num_pairs,) int64
            0 where nothing is in common; infinite for ``adamic-adar`` of a vertex and itself, if one of its neighbours has no other.

        Raises
        ------
        VertexNotFoundError
            An id is not in the graph.
        ArgumentError
            There are more of one than of the other, the graph is directed or a view, or there is no such kind.
        BudgetError
            The rows of a pair do not fit.

        Notes
        -----
        Reads the rows of both, and looks up the entries of the shorter row in the longer. The row of a vertex of several pairs is read once
        for as many of them as fit together. Peak host bytes: 312 a pair, and 64 MiB of rows, or what those of a pair take: 8 to 32 an entry
        and 64 a common neighbour.

        Examples
        --------
        >>> from oocgraph import build_csr
        >>> graph = build_csr(([0, 0, 1, 2], [1, 2, 3, 3]))
        >>> graph.similarity(0, 3), graph.similarity([0, 1], [1, 2], kind="common").tolist()
        (1.0, [0, 2])
        """
        return _module("similarity").similarity(self, source, target, kind=kind, memory_budget=memory_budget)

    @known_keywords
    def edges(
        self, *, columns: Sequence[str] | None = None, batch_size: int = 1 << 16, memory_budget: str | int | None = None
    ) -> Any:  # fmt: skip
        """Return all edges as a stream of Arrow batches, an undirected edge once.

        Parameters
        ----------
        columns
            Edge columns to read; None: all. ``[]``: none.
        batch_size
            Most edges of a batch.
        memory_budget
            Bytes that the process may hold; by default most of what the machine leaves.

        Returns
        -------
        pyarrow.RecordBatchReader
            Columns ``source`` and ``target``, under the user's ids, and those asked for. Iterate over it, or give it to whatever takes
            Arrow streams: ``pyarrow.dataset.write_dataset``, ``polars.from_arrow``, DuckDB.

        Raises
        ------
        ArgumentError
            The graph has no such column, or `batch_size` is invalid.
        BudgetError
            Ids of all vertices (8 bytes each, or the strings) and two batches do not fit.

        Examples
        --------
        >>> from oocgraph import build_csr
        >>> graph = build_csr(([0, 0, 1], [1, 2, 2]))
        >>> [batch.to_pydict() for batch in graph.edges()]
        [{'source': [0, 0, 1], 'target': [1, 2, 2]}]
        """
        return _module("edge_batches").edges(self, columns=columns, batch_size=batch_size, memory_budget=memory_budget)

    @known_keywords
    def subgraph(self, ids: Any, *, memory_budget: str | int | None = None) -> MemoryGraph:
        """Return some vertices and all edges between them as a graph in memory.

        Parameters
        ----------
        ids
            A collection of ids; an id may occur twice.
        memory_budget
            Bytes that the process may hold; by default most of what the machine leaves.

        Returns
        -------
        MemoryGraph
            With the edge columns; vertices without edges are part of it. ``save(path)`` writes it.

        Raises
        ------
        VertexNotFoundError
            An id is not in the graph.
        BudgetError
            Edges between the vertices do not fit.

        Notes
        -----
        Peak host bytes: up to 48 MiB, 96 a given vertex and about 350 an edge of the subgraph, its columns apart.

        Examples
        --------
        >>> from oocgraph import build_csr
        >>> graph = build_csr((["a", "a", "b"], ["b", "c", "c"]))
        >>> part = graph.subgraph(["a", "b"])
        >>> part.num_edges, list(part)
        (1, ['a', 'b'])
        """
        if is_single(ids):
            raise ArgumentTypeError(f"ids is {ids!r}; give a list of ids")
        part: MemoryGraph = _module("induced").subgraph(self, ids, memory_budget=memory_budget)
        return part

    @known_keywords
    def to_networkx(self, *, memory_budget: str | int | None = None) -> Any:
        """Return the graph as one of NetworkX, in memory, with the edge columns as attributes.

        Parameters
        ----------
        memory_budget
            Bytes that the process may hold; by default most of what the machine leaves.

        Returns
        -------
        networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
            A graph whose build has kept duplicates has several edges between two nodes. Isolated vertices are nodes.

        Raises
        ------
        BudgetError
            It does not fit: a node takes up to 500 bytes and its id, an edge 350 (500 in a multigraph) and a dictionary of its
            attributes, which has 220 bytes with one number.
        MissingDependencyError
            NetworkX is not installed.

        Notes
        -----
        Functions of NetworkX take the graph itself, too, of any size. This is for the others, and for parts, such as those of `subgraph`.

        Examples
        --------
        >>> from oocgraph import build_csr
        >>> graph = build_csr((["a", "a", "b"], ["b", "c", "c"]))
        >>> graph.ego("a").to_networkx().edges
        EdgeView([('a', 'b'), ('a', 'c'), ('b', 'c')])
        """
        return _module("to_networkx").to_networkx(self, memory_budget=memory_budget)

    @known_keywords
    def ego(self, vertex: Any, k: int = 1, *, direction: str = "out", memory_budget: str | int | None = None) -> MemoryGraph:
        """Return a vertex, all within `k` edges of it, and all edges between them, as a graph in memory.

        Parameters
        ----------
        vertex
            Its id.
        k
            Number of edges from `vertex`.
        direction
            Of a directed graph: follow edges (``out``), or follow them backwards (``in``).
        memory_budget
            Bytes that the process may hold; by default most of what the machine leaves.

        Returns
        -------
        MemoryGraph

        Raises
        ------
        VertexNotFoundError
            `vertex` is not in the graph.
        ArgumentError
            `k` or `direction` is invalid.
        BudgetError
            Vertices within reach, or edges between them, do not fit.

        Examples
        --------
        >>> from oocgraph import build_csr
        >>> graph = build_csr(([0, 1, 2, 3], [1, 2, 3, 4]))
        >>> list(graph.ego(0, 2)), graph.ego(2).num_edges
        ([0, 1, 2], 2)
        """
        part: MemoryGraph = _module("induced").ego(self, vertex, k, direction=direction, memory_budget=memory_budget)
        return part

    @known_keywords
    def random_walk(
        self, starts: Any, length: int, *, seed: int = 0, direction: str = "out", memory_budget: str | int | None = None
    ) -> Array:  # fmt: skip
        """Return the vertices that random walks visit.

        Parameters
        ----------
        starts
            Ids, one for each walk; an id may occur several times.
        length
            Number of steps.
        seed
            The same seed gives the same walks; the i-th walk of a call depends on its start and on i.
        direction
            Of a directed graph: follow edges (``out``), or follow them backwards (``in``).
        memory_budget
            Bytes that the process may hold; by default most of what the machine leaves.

        Returns
        -------
        (num_starts, length + 1) int64, or object array of str
            The first column is `starts`. A walk that comes to a vertex without edges to follow stays there.

        Raises
        ------
        VertexNotFoundError
            A start is not in the graph.
        ArgumentError
            `length` or `direction` is invalid.
        BudgetError
            The walks do not fit.

        Notes
        -----
        Each step takes one of the vertex's edges, all equally likely, and reads the pages of those that were drawn. Peak
        host bytes: 24 a visit, and the ids.

        Examples
        --------
        >>> from oocgraph import build_csr
        >>> graph = build_csr(([0, 1], [1, 2]), directed=True)
        >>> graph.random_walk([0, 2], 3).tolist()
        [[0, 1, 2, 2], [2, 2, 2, 2]]
        """
        walks: Array = _module("sampling").random_walk(self, starts, length, seed, direction=direction, memory_budget=memory_budget)
        return walks

    @known_keywords
    def sample_neighbors(
        self, ids: Any, fanout: int | Sequence[int], *, seed: int = 0, replace: bool = False, direction: str = "out",
        memory_budget: str | int | None = None,
    ) -> SampledEdges:  # fmt: skip
        """Draw neighbours of some vertices, of these neighbours, and so on.

        Parameters
        ----------
        ids
            Ids to begin with; one that occurs twice counts once.
        fanout
            Neighbours drawn of each vertex, all of them where it has no more; a list, such as ``[15, 10]``, has a number for each hop.
        seed
            The same seed draws the same neighbours of a vertex, whatever else is drawn.
        replace
            Whether an edge may be drawn more than once: `fanout` are then drawn of each vertex that has a neighbour.
        direction
            ``out``: where edges lead to; ``in``: where they come from. Both are the same in an undirected graph.
        memory_budget
            Bytes that the process may hold; by default most of what the machine leaves.

        Returns
        -------
        SampledEdges
            Arrays ``source``, ``target`` and ``hop`` of one length. Vertices of a hop come in the graph's own order.

        Raises
        ------
        VertexNotFoundError
            An id is not in the graph.
        ArgumentError
            `fanout` is negative or no whole number, or `direction` is invalid.
        BudgetError
            The drawn edges of a hop do not fit; they are counted before they are read.

        Notes
        -----
        Every set of `fanout` edges of a vertex is equally likely. Each vertex is drawn from once, in the first hop that comes to it.
        Only the pages of the drawn positions are read: of a vertex of a million neighbours, at most `fanout`. Peak host bytes: 96 a
        drawn edge and twice to six times its ids.

        Examples
        --------
        >>> from oocgraph import build_csr
        >>> graph = build_csr(([0, 0, 0, 3], [1, 2, 3, 4]))
        >>> source, target, hop = graph.sample_neighbors([1], [2, 2], seed=1)
        >>> source.tolist()[0], target.tolist()[0], hop.tolist()
        (1, 0, [0, 1, 1])
        """
        drawn: SampledEdges = _module("sampling").sample_neighbors(
            self, ids, fanout, seed, replace=replace, direction=direction, memory_budget=memory_budget,
        )  # fmt: skip
        return drawn


def _module(name: str) -> Any:
    """Return the module that computes an answer, by its name: no part of what opens and verifies a graph, nor of what it imports."""
    return importlib.import_module(f"oocgraph.store.{name}")
