"""Sixteen numbers at a time: what a vector unit does to sort rows, in compiled code for any processor.

Numbers are behind pointers (`pointer_of`), which compiled functions hand on without counting references and index as they are. They are
compared as unsigned ones. A vector is 16 numbers next to each other, wherever they begin. Every comparison of a sort moves the smaller
number down, so that all ones (`pad`) stay at the end (Batcher, "Sorting networks and their applications", 1968).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 16
"""Numbers of a vector: a register of AVX-512 holds as many of 32 bits."""

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)

_SORT = (1, 3, 1, 7, 2, 1, 15, 4, 2, 1)
"""Layers that sort any vector: lane ``i`` is compared with lane ``i ^ layer``."""

_MERGE = (8, 4, 2, 1)
"""Layers that sort a vector of which each half is below or above the other, lane by lane (a bitonic one)."""


def _vector(item: Any) -> Any:
    return ir.VectorType(item, LANES)


def _ones(item: Any) -> Any:
    return ir.Constant(_vector(item), [(1 << item.width) - 1] * LANES)


def _place(builder: Any, data: Any, index: Any) -> tuple[Any, int]:
    item = data.type.pointee
    return builder.bitcast(builder.gep(data, [index]), _vector(item).as_pointer()), item.width // 8


def _load(builder: Any, data: Any, index: Any) -> Any:
    place, align = _place(builder, data, index)
    return builder.load(place, align=align)


def _store(builder: Any, vector: Any, data: Any, index: Any) -> None:
    place, align = _place(builder, data, index)
    builder.store(vector, place, align=align)


def _chosen(builder: Any, first: Any, second: Any, lanes: Iterable[int]) -> Any:
    """Return a vector of lanes of two, counted through both."""
    return builder.shuffle_vector(first, second, ir.Constant(_vector(_INT32), list(lanes)))


def _reversed(builder: Any, vector: Any) -> Any:
    return _chosen(builder, vector, vector, range(LANES - 1, -1, -1))


def _everywhere(builder: Any, value: Any) -> Any:
    none = ir.Constant(_vector(value.type), ir.Undefined)
    return _chosen(builder, builder.insert_element(none, value, ir.Constant(_INT32, 0)), none, [0] * LANES)


def _ordered(builder: Any, first: Any, second: Any) -> tuple[Any, Any]:
    """Return the smaller and the larger numbers, lane by lane."""
    smaller = builder.icmp_unsigned("<", first, second)
    return builder.select(smaller, first, second), builder.select(smaller, second, first)


def _sorted(builder: Any, vector: Any, layers: Iterable[int]) -> Any:
    for layer in layers:
        low, high = _ordered(builder, vector, _chosen(builder, vector, vector, [lane ^ layer for lane in range(LANES)]))
        vector = _chosen(builder, low, high, [lane if lane < lane ^ layer else LANES + lane for lane in range(LANES)])
    return vector


def _merged(builder: Any, data: Any, index: Any, *, reverse: bool) -> None:
    """Order two vectors next to each other against each other, and each in itself."""
    after = builder.add(index, ir.Constant(_INT64, LANES))
    second = _load(builder, data, after)
    both = _ordered(builder, _load(builder, data, index), _reversed(builder, second) if reverse else second)
    for vector, place in zip(both, (index, after), strict=True):
        _store(builder, _sorted(builder, vector, _MERGE), data, place)


@intrinsic
def pointer_of(typing_context: Any, array: Any) -> Any:
    """Return where the numbers of a contiguous array are; the array must be kept meanwhile."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), codegen


@intrinsic
def key_of(typing_context: Any, keys: Any, number: Any, place: Any) -> Any:
    """Return the key of a uint32: where keys are behind `keys` of 64 bits, ``number << 32 | place``, and else the number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        item = args[0].type.pointee
        if item.width == args[1].type.width:
            return args[1]
        return builder.or_(builder.shl(builder.zext(args[1], item), ir.Constant(item, 32)), args[2])

    return keys.dtype(keys, number, types.int64), codegen


@intrinsic
def sort_keys(typing_context: Any, numbers: Any, begin: Any, count: Any, keys: Any, at: Any, place: Any) -> Any:
    """Write the keys of a vector's first `count` numbers to the vector ``keys[at]``, ascending, and all ones behind.

    Of numbers and keys of one type the keys are the numbers; else that of lane i is ``number << 32 | place + i``, as of `key_of`.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, item = _load(builder, args[0], args[1]), args[3].type.pointee
        lanes = ir.Constant(_vector(_INT64), list(range(LANES)))
        if vector.type.element != item:
            high = builder.shl(builder.zext(vector, _vector(item)), ir.Constant(_vector(item), [32] * LANES))
            vector = builder.or_(high, builder.add(_everywhere(builder, args[5]), lanes))
        is_there = builder.icmp_signed("<", lanes, _everywhere(builder, args[2]))
        vector = builder.select(is_there, vector, _ones(item))
        _store(builder, _sorted(builder, vector, _SORT), args[3], args[4])
        return context.get_dummy_value()

    return types.void(numbers, types.int64, types.int64, keys, types.int64, types.int64), codegen


@intrinsic
def pad(typing_context: Any, keys: Any, at: Any) -> Any:
    """Fill a vector with ones."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _store(builder, _ones(args[0].type.pointee), args[0], args[1])
        return context.get_dummy_value()

    return types.void(keys, types.int64), codegen


@intrinsic
def merge_two(typing_context: Any, keys: Any, at: Any) -> Any:
    """Sort two vectors next to each other, each of which ascends."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _merged(builder, *args, reverse=True)
        return context.get_dummy_value()

    return types.void(keys, types.int64), codegen


@intrinsic
def finish_two(typing_context: Any, keys: Any, at: Any) -> Any:
    """Sort two vectors next to each other that are a bitonic sequence: the last five layers of a merge."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _merged(builder, *args, reverse=False)
        return context.get_dummy_value()

    return types.void(keys, types.int64), codegen


@intrinsic
def finish_one(typing_context: Any, keys: Any, at: Any) -> Any:
    """Sort one vector that is a bitonic sequence."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _store(builder, _sorted(builder, _load(builder, *args), _MERGE), *args)
        return context.get_dummy_value()

    return types.void(keys, types.int64), codegen


@intrinsic
def order_across(typing_context: Any, keys: Any, first: Any, second: Any) -> Any:
    """Order two vectors, the first lane of one against the last of the other, and so on: the first layer of a merge."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, first, second = args
        low, high = _ordered(builder, _load(builder, data, first), _reversed(builder, _load(builder, data, second)))
        _store(builder, low, data, first)
        _store(builder, _reversed(builder, high), data, second)
        return context.get_dummy_value()

    return types.void(keys, types.int64, types.int64), codegen


@intrinsic
def order(typing_context: Any, keys: Any, first: Any, second: Any) -> Any:
    """Order two vectors, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, *places = args
        for vector, place in zip(_ordered(builder, *(_load(builder, data, one) for one in places)), places, strict=True):
            _store(builder, vector, data, place)
        return context.get_dummy_value()

    return types.void(keys, types.int64, types.int64), codegen


@intrinsic
def order_four(typing_context: Any, keys: Any, at: Any, step: Any) -> Any:
    """Order the vectors at ``at + j * step``, j = 0 to 3: 0 against 2 and 1 against 3, then 0 against 1 and 2 against 3."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, at, step = args
        places = [at]
        for _ in range(3):
            places.append(builder.add(places[-1], step))
        one = [_load(builder, data, place) for place in places]
        (one[0], one[2]), (one[1], one[3]) = _ordered(builder, one[0], one[2]), _ordered(builder, one[1], one[3])
        (one[0], one[1]), (one[2], one[3]) = _ordered(builder, one[0], one[1]), _ordered(builder, one[2], one[3])
        for vector, place in zip(one, places, strict=True):
            _store(builder, vector, data, place)
        return context.get_dummy_value()

    return types.void(keys, types.int64, types.int64), codegen


@intrinsic
def copy_below(typing_context: Any, keys: Any, begin: Any, key: Any, target: Any, at: Any) -> Any:
    """Copy a vector that ascends to another place, and return how many of its keys are below `key`: what is copied of others is waste."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, mask = _load(builder, args[0], args[1]), ir.IntType(LANES)
        _store(builder, vector, args[3], args[4])
        below = builder.bitcast(builder.icmp_unsigned("<", vector, _everywhere(builder, args[2])), mask)
        count = builder.module.declare_intrinsic("llvm.ctpop", [mask], ir.FunctionType(mask, [mask]))
        return builder.zext(builder.call(count, [below]), _INT64)

    return types.int64(keys, types.int64, keys.dtype, target, types.int64), codegen
