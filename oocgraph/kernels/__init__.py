"""Arrays in, arrays out: compiled kernels. What they must equal, in plain NumPy, is in tests/oracles.

Compiled kernels are cached beside their source, or in the user's cache folder. Where neither can be written (a service user, a
read-only container) they are cached in a folder of the temporary directory that only this user can use.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def _ensure_cache_folder() -> None:
    home = Path(os.path.expanduser("~"))
    if "NUMBA_CACHE_DIR" in os.environ or "numba" in sys.modules:
        return
    if os.access(Path(__file__).parent, os.W_OK) or os.access(home, os.W_OK):
        return
    os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="oocgraph-kernels-")


_ensure_cache_folder()
