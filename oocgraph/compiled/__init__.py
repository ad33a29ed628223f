"""What kernels are made of: atomic steps, deques and lists that threads share, words at any address, and a compiler that keeps them.

Compiled kernels are kept from one process to the next (`oocgraph.cache_folder`), and compiling them is announced
(`oocgraph.compiled.announce`); both begin with the first import of a kernel.
"""

from __future__ import annotations

from oocgraph.cache_folder import ensure_cache_folder

ensure_cache_folder()

from oocgraph.compiled import announce as announce  # noqa: E402 - imports numba, which looks for the folder
