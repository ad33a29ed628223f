"""What a graph reads while it answers."""

from __future__ import annotations

import pytest

from oocgraph.store.scattered import RangeReader


def note_reads(monkeypatch, *, fail=False):
    """Return a list to which each read of edges adds its number of entries; with `fail` none may happen."""
    found, read = [], RangeReader.read

    def noted(self, name, begin, end, **options):
        if name.endswith("indices"):
            if fail:
                pytest.fail("edges were read")
            found.append(int((end - begin).sum()))
        return read(self, name, begin, end, **options)

    monkeypatch.setattr(RangeReader, "read", noted)
    return found
