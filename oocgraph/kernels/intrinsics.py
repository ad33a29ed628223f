"""What numba lacks: count of trailing zeros and of set bits, steps of CRC-32C, atomic steps, a prefetch, and three calls of libc.

`pread`, `memcpy` and `clock_gettime` are declared as external symbols, not through ctypes, so that the compiled
kernels that call them can be cached on disk.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

pread = types.ExternalFunction("pread", types.int64(types.int32, types.voidptr, types.uint64, types.int64))
"""libc's ``pread(fd, buffer, num_bytes, offset)``; -1 on error."""

memcpy = types.ExternalFunction("memcpy", types.voidptr(types.voidptr, types.voidptr, types.uint64))
"""libc's ``memcpy(target, source, num_bytes)``: a loop over int64 positions is not vectorised (3 GB/s instead of 17)."""

_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))

AHEAD = 128
"""Entries between the one that is used and the one whose element is asked for (`prefetch`): so many lines fill a quarter of a first-level
cache of 32 KiB. With 16, 32 and 64 less was won."""


@intrinsic
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Count the zero bits below the lowest set bit of a uint64 that is not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = builder.module.declare_intrinsic(
            "llvm.cttz", [ir.IntType(64)], ir.FunctionType(ir.IntType(64), [ir.IntType(64), ir.IntType(1)])
        )
        return builder.call(function, [args[0], ir.Constant(ir.IntType(1), 1)])

    return types.uint64(types.uint64), codegen


@intrinsic
def count_ones(typing_context: Any, word: Any) -> Any:
    """Count the set bits of a uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)], ir.FunctionType(ir.IntType(64), [ir.IntType(64)]))
        return builder.call(function, [args[0]])

    return types.uint64(types.uint64), codegen


@intrinsic
def atomic_or(typing_context: Any, words: Any, index: Any, bits: Any) -> Any:
    """``words[index] |= bits`` in one step; returns the old word. `words` is a contiguous uint64 array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.atomic_rmw("or", builder.gep(array.data, [args[1]]), args[2], "monotonic")

    return types.uint64(words, types.int64, types.uint64), codegen


@intrinsic
def atomic_add(typing_context: Any, numbers: Any, index: Any, number: Any) -> Any:
    """``numbers[index] += number`` in one step; returns the old number. `numbers` is a contiguous int64 array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.atomic_rmw("add", builder.gep(array.data, [args[1]]), args[2], "monotonic")

    return types.int64(numbers, types.int64, types.int64), codegen


@intrinsic
def compare_and_swap(typing_context: Any, numbers: Any, index: Any, expected: Any, wanted: Any) -> Any:
    """Set ``numbers[index]`` to `wanted` if it is `expected`, in one step; returns what it was. `numbers` is contiguous, of integers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.gep(array.data, [args[1]])
        return builder.extract_value(builder.cmpxchg(place, args[2], args[3], "monotonic", "monotonic"), 0)

    return numbers.dtype(numbers, types.int64, numbers.dtype, numbers.dtype), codegen


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask the caches for ``array[index]``, which is going to be read; `index` is a uint64, and any number will do."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        how = [ir.Constant(ir.IntType(32), number) for number in (0, 3, 1)]  # to be read, into all levels, data
        kinds = [place.type, *(number.type for number in how)]
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], ir.FunctionType(ir.VoidType(), kinds))
        builder.call(function, [place, *how])
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


def _require_bytes(data: Any) -> None:
    if data.layout != "C" or data.dtype != types.uint8:
        raise TypingError(f"CRC-32C needs a contiguous array of uint8, got {data}")


def _crc32_step(builder: Any, crc: Any, pointer: Any, name: str) -> Any:
    """Call one of SSE4.2's instructions, for as many bits as its name ends with."""
    wide = ir.IntType(64 if name.endswith("64") else 32)
    value = builder.load(pointer, align=1)
    function = builder.module.declare_intrinsic(name, [], ir.FunctionType(wide, [wide, value.type]))
    return builder.trunc(builder.call(function, [builder.zext(crc, wide), value]), ir.IntType(32))


@intrinsic
def crc32_word(typing_context: Any, crc: Any, data: Any, index: Any) -> Any:
    """Remainder (CRC-32C, uint32) of `crc` and the 8 bytes from ``data[index]`` on, at any address. x86-64 only.

    `data` is contiguous uint8, otherwise TypingError.
    """
    _require_bytes(data)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = builder.gep(context.make_array(signature.args[1])(context, builder, args[1]).data, [args[2]])
        return _crc32_step(builder, args[0], builder.bitcast(start, ir.IntType(64).as_pointer()), "llvm.x86.sse42.crc32.64.64")

    return types.uint32(types.uint32, data, types.int64), codegen


@intrinsic
def crc32_byte(typing_context: Any, crc: Any, data: Any, index: Any) -> Any:
    """Remainder (CRC-32C, uint32) of `crc` and ``data[index]``. x86 only.

    `data` is contiguous uint8, otherwise TypingError.
    """
    _require_bytes(data)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = builder.gep(context.make_array(signature.args[1])(context, builder, args[1]).data, [args[2]])
        return _crc32_step(builder, args[0], start, "llvm.x86.sse42.crc32.32.8")

    return types.uint32(types.uint32, data, types.int64), codegen


@nb.njit(nogil=True, cache=True)
def nanoseconds(buffer: Any) -> Any:
    """Monotonic clock; `buffer` is (2,) int64 scratch."""
    _clock_gettime(np.int32(1), buffer.ctypes)
    return buffer[0] * 1_000_000_000 + buffer[1]
