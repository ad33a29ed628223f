"""Messages for people at a shell: they name options where the message of a function names parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS = {
    "build it with keep_self_loops=False": "build it without --keep-self-loops",
    "check_pages=True": "--check-pages",
    "overwrite=True": "--overwrite",
    "id_kind='string'": "--id-kind string",
    "id_kind='int64'": "--id-kind int64",
    "resume=": "--resume ",
    "checkpoint=": "--checkpoint",
    **{name: "--" + name.replace("_", "-") for name in (
        "depth_limit", "distance_limit", "edge_factor", "keep_self_loops", "max_iter", "num_vertices", "result_store", "source_column",
        "target_column", "weight_column",
    )},
    "directed=False": "--undirected",
    "directed=True": "--directed",
    "duplicates='drop'": "--duplicates drop",
    "with client=False": "without --cluster and --scheduler",
    "pass resources=Resources(client=False) to search here": "leave out --cluster and --scheduler",
    "device_memory_budget": "--device-memory",
    "edge_columns": "--edge-column",
    "(dtypes)": "(--dtype)",
    "dtypes names": "--dtype names",
    "name it in columns, or as weight": "name it by --edge-column, or --weight-column",
    "dtypes=": "--dtype ",
    "dtypes has": "--dtype has",
    "memory_budget": "--memory",
    "num_partitions": "--partitions",
    "give None for both in columns": "leave out --source-column and --target-column",
    "Name those of source and target in columns": "Give --source-column and --target-column",
    "set duplicates": "set --duplicates",
    "set oocgraph.precision to double": "choose --precision double",
    "weight=False": "--unweighted",
    "weight=": "--weight",
    "give weight,": "give --weight,",
    "device='cpu'": "--device cpu",
    "rows and columns must": "--rows and --columns must",
    "tol": "--tol",
    "k is": "--samples is",
    "resolution is": "--resolution is",
    "threshold is": "--threshold is",
}  # fmt: skip
"""Words of messages, and what is said instead."""

_AT_THE_START = ("alpha", "beta", "damping", "delta", "device", "direction", "scale", "schedule", "seed", "source", "target", "threads")
"""Parameters whose names are words of the language: options where a message begins with them."""

_PATTERN = "|".join(rf"(?<![\w-]){re.escape(word)}(?!\w)" for word in sorted(_WORDS, key=len, reverse=True))

_QUOTED = r"""(?<![\w=])(?:'[^'\n]*'|"[^"\n]*")"""
"""What the user has named stands between quotation marks: an id, a column. Those of a value, as in ``duplicates='drop'``, do not count."""


def in_options(message: str, arguments: Iterable[str] = ()) -> str:
    """Return the message of an error with options in place of parameters; what `arguments` of the command say stays as it is.

    Examples
    --------
    >>> in_options("ranks need 3 GiB; set memory_budget to at least 4G, or pass overwrite=True")
    'ranks need 3 GiB; set --memory to at least 4G, or pass --overwrite'
    >>> in_options("scale is -1; it must be 0 to 40")
    '--scale is -1; it must be 0 to 40'
    >>> in_options("max_iter/g.zarr: no column 'tol'; set memory_budget", ["bfs", "max_iter/g.zarr"])
    "max_iter/g.zarr: no column 'tol'; set --memory"
    """
    for name in _AT_THE_START:
        if message.startswith(f"{name} is "):
            message = f"--{message}"
    values = {part for one in arguments for part in (one, one.partition("=")[2] if one.startswith("--") else "")}
    own = [re.escape(one) for one in sorted(values, key=len, reverse=True) if re.search(r"\W", one.lstrip("-"))]
    pattern = "|".join([*own, _QUOTED, f"(?P<word>{_PATTERN})"])
    return re.sub(pattern, lambda found: _WORDS[found[0]] if found["word"] else found[0], message)
