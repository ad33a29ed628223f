"""What a command says on stderr where kernels are not cached."""

from __future__ import annotations

from oocgraph.compiled.announce import COMPILING

ANNOUNCED = f"{COMPILING}\n"
