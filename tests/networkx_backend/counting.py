"""A pytest plugin for NetworkX's own tests: counts the calls of the backend's functions, and the conversions of graphs.

Writes them, as JSON, to the file that the environment variable ``OOCGRAPH_COUNTS`` names.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from functools import wraps
from pathlib import Path

from oocgraph.networkx_backend.interface import BackendInterface
from oocgraph.networkx_backend.registry import ALGORITHMS

COUNTS: Counter[str] = Counter()


def _counted(name, function):
    @wraps(function)
    def call(*args, **kwargs):
        COUNTS[name] += 1
        return function(*args, **kwargs)

    return staticmethod(call)


def pytest_configure(config):
    for name in ("convert_from_nx", *ALGORITHMS):
        setattr(BackendInterface, name, _counted(name, getattr(BackendInterface, name)))


def pytest_sessionfinish(session, exitstatus):
    Path(os.environ["OOCGRAPH_COUNTS"]).write_text(json.dumps(COUNTS))
