"""The text of a ``zarr.json``: the same bytes as in stores that were written before."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from oocgraph.store.metadata import metadata_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_text_is_that_of_the_json_module(metadata):
    assert metadata_text(metadata) == json.dumps(metadata, indent=1)
