"""Loading the kernels of a partitioned traversal before a search."""

from __future__ import annotations

from oocgraph.kernels import traverse, warm_traverse


def test_every_kernel_is_named_and_called():
    """A kernel that is not called would be compiled within a search, on its time and its budget."""
    compiled = {name for name, one in vars(traverse).items() if hasattr(one, "py_func") and not name.startswith("_")}
    assert compiled == set(warm_traverse.KERNELS)
    warm_traverse.call_traverse_kernels("uint32", "uint32")
    before = {name: len(getattr(traverse, name).signatures) for name in compiled}
    assert all(before.values())
