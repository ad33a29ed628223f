"""Arrays in, arrays out: compiled kernels. What they must equal, in plain NumPy, is in tests/oracles."""

from __future__ import annotations

from oocgraph import compiled as compiled  # it names the folder of what is compiled to numba, which looks for it once
