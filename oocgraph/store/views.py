"""Views of a graph: without the edges that do not meet a condition, or with every edge turned round. Nothing is built for them.

In: an open graph. Out: `GraphView`, a `CSRStore` whose arrays are those of the graph, read otherwise, so that whatever reads a graph sees
the view without knowing of it:

- ``where``: an edge that does not count leads to the vertex that it comes from (`oocgraph.store.edge_masks`).
- ``reverse``: of a directed graph ``out`` and ``in`` are exchanged. The lists that a pull walks are then not in the order of their lengths
  and have no planes, as in a store of ``vertex_order="original"``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from oocgraph.store.arrays import StoredArray
from oocgraph.store.edge_conditions import edge_condition
from oocgraph.store.edge_masks import EdgeMasks
from oocgraph.store.graph import CSRStore
from oocgraph.types import Array

_OTHER_WAY = {"out": "in", "in": "out"}


class GraphView(CSRStore):
    """A graph without some of its edges, or turned round. Use `view_of` to get one.

    Attributes
    ----------
    where : str or None
        The condition that edges meet.
    reverse : bool
        Whether edges are turned round.
    """

    def __init__(self, base: CSRStore, *, masks: EdgeMasks | None, reverse: bool) -> None:
        attributes = base.attributes
        if reverse and attributes.vertex_order == "degree":
            attributes = replace(attributes, vertex_order="original", num_planes=0)
        super().__init__(base.url, attributes, folder=base._folder, files=base._files, check_pages=base.check_pages, stamp=base._stamp)
        self.base, self.masks, self.reverse = base, masks, reverse
        self.where = None if masks is None else masks.condition.text

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.base, self.where, self.reverse)

    @property
    def stored(self) -> CSRStore:
        """The graph as it is stored."""
        return self.base

    def checked(self, check_pages: bool = True) -> CSRStore:
        """Return the same view of the graph with its pages compared with their checksums, or not."""
        if check_pages == self.check_pages:
            return self
        return GraphView(self.base.checked(check_pages), masks=self.masks, reverse=self.reverse)

    def has_array(self, name: str) -> bool:
        """Return whether the graph has an array."""
        return self.base.has_array(self._stored_name(name))

    def array(self, name: str) -> StoredArray:
        """Reader of an array as the view has it."""
        name = self._stored_name(name)
        array = self.base.array(name)
        mask = None if self.masks is None else self.masks.of(name, array.dtype.itemsize)
        return array if mask is None else array.masked(mask)

    def count_self_loops(self, chosen: Callable[[Array], Array]) -> int:
        """Count the self-loops of chosen vertices that count."""
        return super().count_self_loops(chosen) if self.masks is None else int(chosen(self.masks.live_loops).astype(bool).sum())

    def count_dead_edges(self, chosen: Callable[[Array], Array]) -> int:
        """Count the edges in the out-lists of chosen vertices that do not count."""
        return 0 if self.masks is None else self.masks.count_dead(self._stored_name("out"), chosen)

    def mask_charges(self, groups: Iterable[str]) -> dict[str, int]:
        """Return what is held once lists of some groups are read, by name."""
        held = self.base.mask_charges(groups)
        if self.masks is None:
            return held
        return held | {"edges that count": self.masks.held_bytes(self._stored_name(group) for group in groups)}

    def _stored_name(self, name: str) -> str:
        group, slash, rest = name.partition("/")
        return f"{_OTHER_WAY.get(group, group)}{slash}{rest}" if self.reverse else name


def view_of(graph: CSRStore, *, where: str | None = None, reverse: bool = False) -> CSRStore:
    """Return a view of a graph; the graph itself where that would be the same.

    Parameters
    ----------
    where
        Condition on edge columns that edges must meet; None: all count.
    reverse
        Turn edges round; those of an undirected graph lead both ways.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        `where` is no condition on the graph's columns.
    """
    reverse = reverse and graph.attributes.directed
    if where is None and not reverse:
        return graph
    return GraphView(graph, masks=None if where is None else EdgeMasks(graph, edge_condition(where, graph)), reverse=reverse)


def _again(base: CSRStore, where: str | None, reverse: bool) -> CSRStore:
    return view_of(base, where=where, reverse=reverse)
