"""Small stores for tests: variants of a reference build with other ids, columns, codecs or damage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np

from oocgraph import types
from oocgraph.store import layout
from oocgraph.store.graph import open_graph
from oocgraph.store.writer import StoreWriter
from tests.reference_build import reference_build


def rewrite(old, path, *, arrays=None, without=(), codec="none", **attributes):
    """Copy the store at `old` to `path` with some arrays replaced, checksums written anew."""
    store = open_graph(old)
    values = {name: store.read(name) for name in store.array_names()}
    values.update(arrays or {})
    with StoreWriter(Path(path), codec=codec, overwrite=True) as writer:
        for name, value in values.items():
            if not name.startswith(tuple(without) or ("\0",)):
                writer.write(name, np.asarray(value))
        writer.publish(replace(store.attributes, **attributes))
    return open_graph(path)


def wide_indices():
    """Have graphs that are built within this context store neighbours as int64, however few vertices they have."""
    return mock.patch.object(types, "_MOST_UINT32_VERTICES", -1)


def strings(name, values):
    """Arrow's two arrays of some strings."""
    raw = [value.encode() for value in values]
    data, offsets = layout.string_arrays(name)
    return {data: np.frombuffer(b"".join(raw), np.uint8), offsets: np.cumsum([0, *map(len, raw)])}


def string_store(path, src, dst, *, others=(), codec="none", **options):
    """Build a graph whose ids are strings; `others` are isolated."""
    names = np.array(sorted({*src, *dst, *others}, key=str.encode), object)
    number = {name: i for i, name in enumerate(names)}
    scratch = Path(path).parent / "scratch-store"
    reference_build([number[s] for s in src], [number[d] for d in dst], scratch, implied=(0, len(names)), **options)
    store = open_graph(scratch)
    ids, ascending = store.read(layout.VERTEX_ID), store.read(layout.SORTED_ID)
    isolated = np.setdiff1d(np.arange(len(names)), ascending)
    arrays = {
        **strings(layout.VERTEX_ID, names[ids]),
        **strings(layout.SORTED_ID, names[ascending]),
        **strings(layout.ISOLATED_ID, names[isolated]),
    }
    old = (layout.VERTEX_ID, layout.SORTED_ID)
    dropped = {name for name in old if name not in arrays}
    values = {name: store.read(name) for name in store.array_names() if name not in dropped}
    with StoreWriter(Path(path), codec=codec, overwrite=True) as writer:
        for name, value in {**values, **arrays}.items():
            writer.write(name, np.asarray(value))
        writer.publish(replace(store.attributes, id_kind="string", implied_ids=None, num_input_vertices=len(names)))
    return open_graph(path)


def random_edges(seed, num_ids=200, num_edges=400):
    """Two arrays with self-loops and duplicates."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, num_ids, num_edges), rng.integers(0, num_ids, num_edges)
