"""The partitioner as one page of plain Python, all in memory: the oracle for partitions and for searches over them.

A policy's two functions are called as they stand, with `PlainProp`, once for each vertex and once for each entry, by one reader.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np


class PlainProp:
    """What a policy may ask, of arrays in memory. `rows` are the lists that are read: ``(indptr, indices)``."""

    def __init__(self, out, into, num_partitions, read):
        self._out, self._in, self._rows = out[0], into[0], (out, into)[read == "in"]
        self.num_vertices, self.num_edges, self.num_partitions = len(out[0]) - 1, len(out[1]), num_partitions

    def out_degree(self, v):
        return int(self._out[v + 1] - self._out[v])

    def in_degree(self, v):
        return int(self._in[v + 1] - self._in[v])

    def first_out_edge(self, v):
        return int(self._out[v])

    def neighbours(self, v):
        indptr, indices = self._rows
        return indices[indptr[v] : indptr[v + 1]]


@dataclass
class ReferencePart:
    """One partition: local vertices are masters ascending, then mirrors ascending; rows and neighbours are local ids, ascending.

    Attributes
    ----------
    global_id : (num_vertices,) int64
        Store number of each local vertex.
    num_masters : int
        Masters that have a local edge: the first ones.
    isolated_masters : (k,) int64
        Those without, by store number.
    mirror_owner : (num_mirrors,) int32
        Partition of each mirror's master.
    indptr, indices : int64
        The local CSR (of in-lists, where those are read).
    entries : (num_edges,) int64
        The entry of the read lists that each local entry is: to carry columns along.
    """

    index: int
    global_id: np.ndarray
    num_masters: int
    isolated_masters: np.ndarray
    mirror_owner: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    entries: np.ndarray

    @property
    def num_mirrors(self):
        return self.global_id.size - self.num_masters

    @property
    def num_edges(self):
        return self.indices.size

    @property
    def mirrors(self):
        return self.global_id[self.num_masters :]


@dataclass
class ReferencePartitions:
    """A partitioned graph: `masters` (num_vertices,), `owners` of each read entry, and what follows from both."""

    indptr: np.ndarray
    indices: np.ndarray
    masters: np.ndarray
    owners: np.ndarray
    num_partitions: int
    states: dict = field(default_factory=dict)

    @cached_property
    def parts(self):
        return [self._part(p) for p in range(self.num_partitions)]

    @property
    def num_vertices(self):
        return len(self.masters)

    @property
    def replication_factor(self):
        """Proxies for each vertex: its master, with or without local edges, and its mirrors."""
        return 1 + sum(part.num_mirrors for part in self.parts) / self.num_vertices

    @property
    def edge_balance(self):
        return _largest_over_mean(np.bincount(self.owners, minlength=self.num_partitions))

    @property
    def vertex_balance(self):
        return _largest_over_mean(np.bincount(self.masters, minlength=self.num_partitions))

    def _part(self, p):
        entries = np.flatnonzero(self.owners == p)
        rows = np.searchsorted(self.indptr, entries, side="right") - 1
        columns = self.indices[entries].astype(np.int64)
        present = np.union1d(rows, columns)
        mine = self.masters[present] == p
        global_id = np.concatenate([present[mine], present[~mine]])
        local = np.full(self.num_vertices, -1, np.int64)
        local[global_id] = np.arange(global_id.size)
        order = np.lexsort((local[columns], local[rows]))
        indptr = np.zeros(global_id.size + 1, np.int64)
        np.cumsum(np.bincount(local[rows], minlength=global_id.size), out=indptr[1:])
        return ReferencePart(
            index=p,
            global_id=global_id,
            num_masters=int(mine.sum()),
            isolated_masters=np.setdiff1d(np.flatnonzero(self.masters == p), present),
            mirror_owner=self.masters[present[~mine]].astype(np.int32),
            indptr=indptr,
            indices=local[columns][order],
            entries=entries[order],
        )


def reference_partition(indptr, indices, num_partitions, policy, *, read="out"):
    """Partition a graph given by its out-lists.

    Parameters
    ----------
    indptr, indices
        Out-lists; neighbours ascending in each.
    policy
        Of type `Policy`.
    read
        The lists that are read; with ``in``, entries are those of the transpose.
    """
    out = np.asarray(indptr, np.int64), np.asarray(indices)
    into = transpose(*out)
    rows = into if read == "in" else out
    prop = PlainProp(out, into, num_partitions, read)
    masters, m_state = assign_masters(prop, policy)
    owners, e_state = edge_owners(prop, policy, rows, masters, read)
    return ReferencePartitions(*rows, masters, owners, num_partitions, {"master": m_state, "edge": e_state})


def assign_masters(prop, policy):
    """Return the partition of each vertex, and the state afterwards."""
    masters = np.full(prop.num_vertices, -1, np.int64)
    state = policy.initial_master_state(prop)
    for v in range(prop.num_vertices):
        masters[v] = policy.get_master(*(prop, v, state, masters)[: policy.num_master_arguments])
        assert 0 <= masters[v] < prop.num_partitions
    return masters, state


def edge_owners(prop, policy, rows, masters, read):
    """Return the partition of each entry that is read, and the state afterwards."""
    indptr, indices = rows
    owners = np.full(len(indices), -1, np.int64)
    state = policy.initial_edge_state(prop)
    for row in range(prop.num_vertices):
        for k in range(indptr[row], indptr[row + 1]):
            src, dst = (int(indices[k]), row) if read == "in" else (row, int(indices[k]))
            arguments = prop, src, dst, int(masters[src]), int(masters[dst]), state
            owners[k] = policy.get_edge_owner(*arguments[: policy.num_owner_arguments])
            assert 0 <= owners[k] < prop.num_partitions
    return owners, state


def transpose(indptr, indices):
    """Return the in-lists of a graph given by its out-lists; neighbours ascending in each."""
    n = len(indptr) - 1
    src = np.repeat(np.arange(n), np.diff(indptr))
    order = np.argsort(indices, kind="stable")
    into = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(np.asarray(indices, np.int64), minlength=n), out=into[1:])
    return into, src[order].astype(indices.dtype)


def _largest_over_mean(counts):
    return float(counts.max() / counts.mean())
