"""Loading the kernels of a partitioned traversal before a search."""

from __future__ import annotations

from oocgraph.kernels import traverse, warm_traverse


def test_every_kernel_is_loaded():
    """A kernel that is not would be compiled within a search, on its time and its budget."""
    kernels = {
        name
        for name, one in vars(traverse).items()
        if getattr(one, "__module__", None) == traverse.__name__ and hasattr(one, "py_func") and not name.startswith("_")
    }
    assert kernels == {kernel.__name__ for kernel, _ in warm_traverse.traverse_calls("uint32", "uint32")} & set(vars(traverse))
    warm_traverse.load_traverse_kernels("uint32", "uint32")
    assert all(getattr(traverse, name).signatures for name in kernels)
