"""Arrays that compiled code reads without counting references to them.

Numba counts each array of a tuple whenever the tuple is passed to a function that may raise. For a `oocgraph.kernels.prop.Prop` of ten
arrays that took 250 ns a call (60 ns even where there is nothing to count); without, a call takes 2 ns.

In: an array or a tuple with arrays, while it is held elsewhere. Out of `borrowed`: an array without an owner, or the same tuple with a
`Borrowed` in place of each array: a pointer and a size, of which elements can be read and slices taken (arrays without an owner).
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, make_attribute_wrapper, models, register_model


class Borrowed(types.Type):  # type: ignore[misc]
    """A contiguous one-dimensional array of scalars that is held elsewhere, for compiled code."""

    def __init__(self, array: Any) -> None:
        self.array = array
        super().__init__(f"Borrowed({array.dtype})")


@register_model(Borrowed)
class _BorrowedModel(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("data", types.CPointer(kind.array.dtype)), ("size", types.intp)])


def _replaced(kind: Any) -> Any:
    """Return the type that `borrowed` makes of one."""
    if isinstance(kind, types.BaseNamedTuple):
        if any(isinstance(t, types.Array) and (t.layout, t.ndim) != ("C", 1) for t in kind.types):
            raise TypingError(f"arrays of a {kind.instance_class.__name__} must be contiguous and one-dimensional")
        members = [Borrowed(t) if isinstance(t, types.Array) else _replaced(t) for t in kind.types]
        return types.NamedTuple(members, kind.instance_class)
    return kind


@intrinsic
def borrowed(typing_context: Any, value: Any) -> Any:
    """Return an array without an owner, or a named tuple with a `Borrowed` in place of each array."""
    result = _replaced(value)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if isinstance(value, types.Array):
            return _without_owner(context, builder, value, args[0])
        return _tuple_of_borrowed(context, builder, value, result, args[0])

    return result(value), codegen


@intrinsic
def borrowed_to_read(typing_context: Any, value: Any) -> Any:
    """Return an array without an owner that must not be written to: code that does is not compiled."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _without_owner(context, builder, value, args[0])

    return value.copy(readonly=True)(value), codegen


def _tuple_of_borrowed(context: Any, builder: Any, old: Any, new: Any, value: Any) -> Any:
    """Return a named tuple, and those in it, with a `Borrowed` in place of each array."""
    members = []
    for i, (old_member, new_member) in enumerate(zip(old.types, new.types, strict=True)):
        member = builder.extract_value(value, i)
        if isinstance(old_member, types.BaseNamedTuple):
            member = _tuple_of_borrowed(context, builder, old_member, new_member, member)
        elif isinstance(old_member, types.Array):
            array = context.make_array(old_member)(context, builder, member)
            view = cgutils.create_struct_proxy(new_member)(context, builder)
            view.data, view.size = array.data, array.nitems
            member = view._getvalue()
        members.append(member)
    return context.make_tuple(builder, new, members)


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    array = context.make_array(kind)(context, builder, value)
    array.meminfo, array.parent = ir.Constant(array.meminfo.type, None), ir.Constant(array.parent.type, None)
    return array._getvalue()


make_attribute_wrapper(Borrowed, "size", "size")


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):  # type: ignore[misc]
    """An element by its position, elements by a slice of both ends: positions that exist, counted from the front."""

    def generic(self, args: Any, kws: Any) -> Any:
        view, at = args
        if isinstance(view, Borrowed) and isinstance(at, types.Integer):
            return signature(view.array.dtype, view, types.intp)
        if isinstance(view, Borrowed) and isinstance(at, types.SliceType):
            return signature(types.Array(view.array.dtype, 1, "C", readonly=True), view, at)
        return None


@lower_builtin(operator.getitem, Borrowed, types.Integer)
def _element(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
    return builder.load(builder.gep(data, [args[1]]))


@lower_builtin(operator.getitem, Borrowed, types.SliceType)
def _elements(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    view = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0])
    between = context.make_helper(builder, signature.args[1], args[1])
    array = context.make_array(signature.return_type)(context, builder)
    size = builder.sub(between.stop, between.start)
    item_bytes = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(signature.return_type.dtype)))
    array.data, array.nitems, array.itemsize = builder.gep(view.data, [between.start]), size, item_bytes
    array.shape, array.strides = cgutils.pack_array(builder, [size]), cgutils.pack_array(builder, [item_bytes])
    array.meminfo, array.parent = ir.Constant(array.meminfo.type, None), ir.Constant(array.parent.type, None)
    return array._getvalue()
