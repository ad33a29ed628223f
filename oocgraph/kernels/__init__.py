"""Arrays in, arrays out: compiled kernels. What they must equal, in plain NumPy, is in tests/oracles.

Compiled kernels are kept from one process to the next (`oocgraph.cache_folder`), and compiling them is announced
(`oocgraph.kernels.announce`); both begin with the first import of a kernel.
"""

from __future__ import annotations

from oocgraph.cache_folder import ensure_cache_folder

ensure_cache_folder()

from oocgraph.kernels import announce as announce  # noqa: E402 - imports numba, which looks for the folder
