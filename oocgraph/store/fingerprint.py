"""Fingerprints: short texts that tell graphs and edge columns apart, made of what is stored anyway.

In: an open graph. Out: 32 hexadecimal digits. Nothing of the edges is read, only attributes and checksums.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from oocgraph.store.graph_arrays import GraphArrays
from oocgraph.store.layout import CHECKSUMS


def graph_fingerprint(store: GraphArrays) -> str:
    """Return a short text that tells one graph from another: the same for copies of a store, wherever they are.

    Made of the counts, the kind and the order of the graph, and of stored checksums: up to 4,096 at either end of ids and neighbours.
    Edge columns do not count.

    Raises
    ------
    CorruptStoreError
        The store has no checksums.
    """
    attributes = store.attributes
    names = "num_vertices num_edges num_stored_edges num_input_vertices num_self_loops directed vertex_order index_dtype codec"
    digest = hashlib.sha256(json.dumps({name: getattr(attributes, name) for name in names.split()}).encode())
    columns = ["vertices/id" if attributes.id_kind == "int64" else "vertices/id/bytes", "out/indices"]
    for column in columns:
        _add_checksums(store, column, digest)
    return digest.hexdigest()[:32]


def store_fingerprint(store: GraphArrays, names: Iterable[str]) -> str:
    """Return a short text that tells one store from another, made of the checksums of all its arrays likewise: of edge columns, too.

    Raises
    ------
    CorruptStoreError
        The store has no checksums.
    """
    attributes = store.attributes
    digest = hashlib.sha256(json.dumps([graph_fingerprint(store), attributes.implied_ids, attributes.weight_name]).encode())
    for name in sorted(names):
        digest.update(name.encode())
        _add_checksums(store, name, digest)
    return digest.hexdigest()[:32]


def column_fingerprint(store: GraphArrays, column: str) -> str:
    """Return a short text that tells one edge column of a graph from another, made of stored checksums likewise."""
    digest = hashlib.sha256()
    _add_checksums(store, column, digest)
    return digest.hexdigest()[:32]


def _add_checksums(store: GraphArrays, column: str, digest: Any) -> None:
    checksums = store.array(f"{CHECKSUMS}/{column}")
    ends = (0, min(4096, checksums.length)), (max(0, checksums.length - 4096), checksums.length)
    for start, stop in ends:
        digest.update(np.ascontiguousarray(checksums.read(start, stop), "<u4").tobytes())
