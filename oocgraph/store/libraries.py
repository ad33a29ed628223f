"""Libraries that reading a store needs, loaded before anybody counts memory: then they are part of what the process holds before a run."""

from __future__ import annotations

from oocgraph.arrow import load_arrow
from oocgraph.store.graph import CSRStore
from oocgraph.store.layout import ORDER, SORTED_ID


def load_libraries(store: CSRStore) -> None:
    """Import Arrow for ids or columns that are strings, and Zarr or its codecs for arrays that are not plain local files.

    Raises
    ------
    CorruptStoreError
        The store cannot be read.
    """
    if "string" in (store.attributes.id_kind, *store.attributes.columns.values()):
        load_arrow()
    _expect_search(store)
    if not store.is_plain:
        order = store.array(ORDER)
        order.read(0, min(1, order.length))


def _expect_search(store: CSRStore) -> None:
    """Ask an object store for the small arrays that almost every computation reads: numbers of ids, ids of numbers, and degrees."""
    store.expect({ORDER: None, SORTED_ID: None})
    if store.attributes.vertex_order == "degree":
        store.checked().expect(dict.fromkeys(f"{store.pull_group}/degrees/{name}" for name in ("value", "first_vertex")))
