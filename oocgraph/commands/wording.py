"""Messages for people at a shell: they name options where the message of a function names parameters."""

from __future__ import annotations

import re

_WORDS = {
    "check_pages=True": "--check-pages",
    "overwrite=True": "--overwrite",
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
    "device_memory_budget": "--device-memory",
    "edge_columns": "--edge-column",
    "memory_budget": "--memory",
    "num_partitions": "--partitions",
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

_PATTERN = re.compile("|".join(rf"(?<![\w-]){re.escape(word)}(?!\w)" for word in sorted(_WORDS, key=len, reverse=True)))


def in_options(message: str) -> str:
    """Return the message of an error with options in place of parameters.

    Examples
    --------
    >>> in_options("ranks need 3 GiB; set memory_budget to at least 4G, or pass overwrite=True")
    'ranks need 3 GiB; set --memory to at least 4G, or pass --overwrite'
    >>> in_options("scale is -1; it must be 0 to 40")
    '--scale is -1; it must be 0 to 40'
    """
    for name in _AT_THE_START:
        if message.startswith(f"{name} is "):
            message = f"--{message}"
    return _PATTERN.sub(lambda found: _WORDS[found[0]], message)
