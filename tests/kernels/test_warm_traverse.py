"""Loading the kernels of a partitioned traversal before a search."""

from __future__ import annotations

import pytest

from oocgraph.kernels import pieces, traverse, warm_traverse


@pytest.mark.parametrize(("module", "names"), [(traverse, warm_traverse.KERNELS), (pieces, warm_traverse.PIECES_KERNELS)])
def test_every_kernel_is_named_and_called(module, names):
    """A kernel that is not called would be compiled within a search, on its time and its budget."""
    compiled = {
        name
        for name, one in vars(module).items()
        if getattr(one, "__module__", None) == module.__name__ and hasattr(one, "py_func") and not name.startswith("_")
    }
    assert compiled == set(names)
    warm_traverse.call_traverse_kernels("uint32", "uint32")
    assert all(getattr(module, name).signatures for name in compiled)
