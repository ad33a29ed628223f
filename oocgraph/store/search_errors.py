"""What a search says that cannot write to its result store: whether what was found is lost, and how to go on.

In: an error of the operating system and the file or folder, on a worker or in the process that drives the search. Out: one error. What the
remedy is depends on the result store: one that the user has named is there to go on with, a temporary one is gone with its search.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oocgraph.errors import OutputError, StoreError
from oocgraph.store.search_fields import read_fields

_LOST = "what was found is lost, because the result store is temporary"


def search_write_error(error: OSError, path: Path) -> OutputError:
    """Return the message for an operating-system error while a search writes to its result store; `path` is the file or folder."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputError(f"{path}: no permission to write ({error.strerror}); choose another result_store")
    store, fields = _store_of(path)
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    reason = f"the disk is full ({error.strerror})" if is_full else f"the search cannot write here ({error.strerror or error})"
    mend = "free some space there" if is_full else "mend that"
    if fields.get("temporary", False):
        remedy = f"{_LOST}; {mend}, or name a folder with room by result_store or oocgraph.result-folder, and search again"
    else:
        remedy = f"{mend} and {way_on(store, fields)}"
    return OutputError(f"{path}: {reason}; {remedy}")


def way_on(store: Path | str, fields: Mapping[str, Any]) -> str:
    """Return how to go on with a search that has failed, by what its result store says."""
    if fields.get("temporary", False):
        return f"{_LOST}; name one by result_store to be able to go on"
    if fields.get("partition") is not None:  # it keeps no logs
        return f"begin again with resume={store}"
    return f"go on with resume={store}, nothing that was found is lost"


def _store_of(path: Path) -> tuple[Path | str, Mapping[str, Any]]:
    """Return the result store that a file or folder belongs to, and what it says; of what belongs to none, a word for one."""
    for folder in path.parents:
        try:
            return folder, read_fields(folder)
        except StoreError:
            continue
    return "DIR", {}
