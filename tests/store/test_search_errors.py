"""What a search says that cannot write: what is lost, and how to go on, which depend on its result store."""

from __future__ import annotations

import errno
import os

import pytest

from oocgraph.commands.wording import in_options
from oocgraph.store.search_errors import search_write_error
from oocgraph.store.search_store import SearchStore


@pytest.fixture(params=["log/0/0.log", "parts/0", "zarr.json", "unfinished/0-a"])
def place(request):
    """Where a search writes, within its store."""
    return request.param


def message(store, place, number):
    """Return what is said at a shell of an error there."""
    return in_options(str(search_write_error(OSError(number, os.strerror(number)), store.path / place)))


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "the disk is full (No space left on device); free some space there and go on with --resume {0}, nothing that"),
        (errno.EIO, "the search cannot write here (Input/output error); mend that and go on with --resume {0}, nothing that"),
        (errno.EACCES, "no permission to write (Permission denied); choose another --result-store"),
    ],
)
def test_named_store_is_there_to_go_on_with(tmp_path, place, number, remedy):
    """The message has its path, wherever in it the search was writing."""
    store = SearchStore.create(tmp_path / "r.zarr", {"num_partitions": 1, "temporary": False})
    assert message(store, place, number).startswith(f"{store.path / place}: {remedy.format(store.path)}")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_temporary_store_is_lost(tmp_path, place, number):
    """Nothing can be gone on with: the message names the settings for a place with room, and no option without its value."""
    store = SearchStore.create(tmp_path / "r.zarr", {"num_partitions": 1, "temporary": True})
    said = message(store, place, number)
    assert "what was found is lost, because the result store is temporary" in said
    assert "by --result-store or oocgraph.result-folder" in said
    assert "--resume" not in said


def test_way_on(tmp_path):
    """What is added to the error of a cluster that was lost."""
    fields = {"num_partitions": 1}
    named = SearchStore.create(tmp_path / "r.zarr", {**fields, "temporary": False})
    temporary = SearchStore.create(tmp_path / "t.zarr", {**fields, "temporary": True})
    parted = SearchStore.create(tmp_path / "p.zarr", {**fields, "partition": "2d", "temporary": False})
    assert in_options(parted.way_on) == f"begin again with --resume {parted.path}"  # it keeps no logs
    assert message(parted, "parts/0", errno.ENOSPC).endswith(f"; free some space there and begin again with --resume {parted.path}")
    assert in_options(named.way_on) == f"go on with --resume {named.path}, nothing that was found is lost"
    assert in_options(temporary.way_on) == (
        "what was found is lost, because the result store is temporary; name one by --result-store to be able to go on"
    )
