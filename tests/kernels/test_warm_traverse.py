"""Loading the kernels of a partitioned traversal before a search."""

from __future__ import annotations

import pytest

from oocgraph.kernels import pieces, traverse, warm_traverse


@pytest.mark.parametrize("module", [traverse, pieces])
def test_every_kernel_is_loaded(module):
    """A kernel that is not would be compiled within a search, on its time and its budget."""
    kernels = {
        name
        for name, one in vars(module).items()
        if getattr(one, "__module__", None) == module.__name__ and hasattr(one, "py_func") and not name.startswith("_")
    }
    assert kernels == {kernel.__name__ for kernel, _ in warm_traverse.traverse_calls("uint32", "uint32")} & set(vars(module))
    warm_traverse.load_traverse_kernels("uint32", "uint32")
    assert all(getattr(module, name).signatures for name in kernels)
