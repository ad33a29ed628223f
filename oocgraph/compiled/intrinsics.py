"""What numba lacks: addresses, bits, CRC-32C, atomic steps, words at any address, a prefetch, sums of lanes, calls by address and of libc.

`pread`, `memcpy`, `sched_yield`, `usleep` and `clock_gettime` are declared as external symbols, not through ctypes, so that the compiled
kernels that call them can be cached on disk.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

pread = types.ExternalFunction("pread", types.int64(types.int32, types.int64, types.uint64, types.int64))
"""libc's ``pread(fd, address, num_bytes, offset)``; -1 on error."""

memcpy = types.ExternalFunction("memcpy", types.int64(types.int64, types.int64, types.uint64))
"""libc's ``memcpy(target, source, num_bytes)``, of addresses: a loop over int64 positions is not vectorised (3 GB/s instead of 17)."""

sched_yield = types.ExternalFunction("sched_yield", types.int32())
"""libc's ``sched_yield()``: another thread may run."""

usleep = types.ExternalFunction("usleep", types.int32(types.uint32))
"""libc's ``usleep(microseconds)``."""

_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.int64))

AHEAD = 128
"""Entries between the one that is used and the one whose element is asked for (`prefetch`): so many lines fill a quarter of a first-level
cache of 32 KiB. With 16, 32 and 64 less was won."""


@intrinsic
def address_of(typing_context: Any, array: Any, index: Any) -> Any:
    """Return the address of ``array[index]``, int64, of a contiguous array. ``array[index:].ctypes`` takes longer to compile."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(builder.gep(data, [args[1]]), ir.IntType(64))

    return types.int64(array, types.int64), codegen


@intrinsic
def largest_of(typing_context: Any, values: Any) -> Any:
    """Return the largest number of the dtype of an array of integers, as int64 or uint64.

    A process that loads a kernel with ``np.iinfo`` in it imports ``numba.np.arraymath``, which takes 0.5 s and 22 MB; so it is with
    ``np.searchsorted``, sums, and all else that is there.
    """
    most = values.dtype.maxval
    wide = types.int64 if most <= types.int64.maxval else types.uint64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.get_constant(wide, most)

    return wide(values), codegen


@intrinsic
def pointer_to(typing_context: Any, address: Any) -> Any:
    """Return an address as a pointer, for ``numba.carray``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), codegen


@intrinsic
def call(typing_context: Any, function: Any, data: Any, first: Any, values: Any, num_values: Any) -> Any:
    """Call the function at an address with four int64, as C does; it returns nothing."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * 4)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), codegen


@intrinsic
def opaque(typing_context: Any, number: Any) -> Any:
    """Return a number as it is; what an integer was computed from is hidden from the compiler, which takes sums never to overflow."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not isinstance(number, types.Integer):
            return args[0]
        kind = args[0].type
        return builder.asm(ir.FunctionType(kind, [kind]), "", "=r,0", [args[0]], True)

    return number(number), codegen


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


def _changed(operation: str) -> Any:
    """Return the function ``(numbers, index, number)`` that changes ``numbers[index]`` by an operation of LLVM; it returns what it was."""

    @intrinsic
    def change(typing_context: Any, numbers: Any, index: Any, number: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            return builder.atomic_rmw(operation, builder.gep(array.data, [args[1]]), args[2], "seq_cst")

        return numbers.dtype(numbers, types.int64, numbers.dtype), codegen

    return change


atomic_or = _changed("or")
"""``words[index] |= bits`` in one step; returns the old word. `words` is a contiguous uint64 array."""

atomic_and = _changed("and")
"""``words[index] &= bits`` in one step; returns the old word. `words` is a contiguous uint64 array."""

atomic_add = _changed("add")
"""``numbers[index] += number`` in one step; returns the old number. `numbers` is a contiguous array of integers."""

atomic_min = _changed("min")
"""Lower ``numbers[index]`` to `number`, if it is above it, in one step; returns the old number. `numbers` is contiguous, signed."""

exchange = _changed("xchg")
"""Set ``numbers[index]`` in one step; returns the old number. `numbers` is a contiguous array of integers."""


@intrinsic
def compare_and_swap(typing_context: Any, numbers: Any, index: Any, expected: Any, wanted: Any) -> Any:
    """Set ``numbers[index]`` to `wanted` if it is `expected`, in one step; returns what it was. `numbers` is contiguous, of integers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.gep(array.data, [args[1]])
        return builder.extract_value(builder.cmpxchg(place, args[2], args[3], "seq_cst", "seq_cst"), 0)

    return numbers.dtype(numbers, types.int64, numbers.dtype, numbers.dtype), codegen


@intrinsic
def load_acquire(typing_context: Any, numbers: Any, index: Any) -> Any:
    """Return ``numbers[index]``, and all that was written before it was stored by `store_release`. `numbers` is contiguous, of numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place, word = _as_word(builder, builder.gep(array.data, [args[1]]), numbers.dtype.bitwidth)
        value = builder.load_atomic(place, "acquire", numbers.dtype.bitwidth // 8)
        return builder.bitcast(value, array.data.type.pointee) if word else value

    return numbers.dtype(numbers, types.int64), codegen


@intrinsic
def store_release(typing_context: Any, numbers: Any, index: Any, number: Any) -> Any:
    """Set ``numbers[index]`` behind all that was written before. `numbers` is a contiguous array of numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place, word = _as_word(builder, builder.gep(array.data, [args[1]]), numbers.dtype.bitwidth)
        value = builder.bitcast(args[2], word) if word else args[2]
        builder.store_atomic(value, place, "release", numbers.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(numbers, types.int64, numbers.dtype), codegen


def _word(builder: Any, args: Any) -> Any:
    """Return the place of an int64, counted from an address."""
    return builder.gep(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), [args[1]])


@intrinsic
def word_at(typing_context: Any, address: Any, index: Any) -> Any:
    """Return the int64 that is so many words behind an address.

    Numbers are passed to functions for nothing, while numba counts references to each array that is.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_word(builder, args))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def set_word(typing_context: Any, address: Any, index: Any, number: Any) -> Any:
    """Set the int64 that is so many words behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _word(builder, args))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def acquire_word(typing_context: Any, address: Any, index: Any) -> Any:
    """As `load_acquire`, of the int64 that is so many words behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_word(builder, args), "acquire", 8)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def release_word(typing_context: Any, address: Any, index: Any, number: Any) -> Any:
    """As `store_release`, of the int64 that is so many words behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _word(builder, args), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def swap_word(typing_context: Any, address: Any, index: Any, expected: Any, wanted: Any) -> Any:
    """As `compare_and_swap`, of the int64 that is so many words behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_value(builder.cmpxchg(_word(builder, args), args[2], args[3], "seq_cst", "seq_cst"), 0)

    return types.int64(types.int64, types.int64, types.int64, types.int64), codegen


def _as_word(builder: Any, place: Any, bits: int) -> tuple[Any, Any]:
    """Return a place as one of an integer, where it is of a floating-point number, and the integer's type."""
    if isinstance(place.type.pointee, ir.IntType):
        return place, None
    word = ir.IntType(bits)
    return builder.bitcast(place, word.as_pointer()), word


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
        raise TypingError(f"bytes must be a contiguous array of uint8, not {data}")


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


def _bits_at(context: Any, builder: Any, kind: Any, data: Any, index: Any, num_bits: int) -> Any:
    """Return the place of an integer in an array of bytes, at any address."""
    start = builder.gep(context.make_array(kind)(context, builder, data).data, [index])
    return builder.bitcast(start, ir.IntType(num_bits).as_pointer())


SPARE_BYTES = 4
"""Behind bytes of numbers, and between some: those of fewer than four bytes are stored and loaded by four."""


@intrinsic
def load_four(typing_context: Any, data: Any, index: Any) -> Any:
    """Return the uint32 at ``data[index : index + 4]``, little-endian; `data` is contiguous uint8."""
    _require_bytes(data)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_bits_at(context, builder, signature.args[0], args[0], args[1], 32), align=1)

    return types.uint32(data, types.int64), codegen


@intrinsic
def store_four(typing_context: Any, data: Any, index: Any, value: Any) -> Any:
    """Set ``data[index : index + 4]`` to a uint32, little-endian; `data` is contiguous uint8."""
    _require_bytes(data)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _bits_at(context, builder, signature.args[0], args[0], args[1], 32), align=1)
        return context.get_dummy_value()

    return types.void(data, types.int64, types.uint32), codegen


@intrinsic
def load_number(typing_context: Any, data: Any, index: Any, numbers: Any) -> Any:
    """Return the number from ``data[index]`` on, little-endian; `data` is contiguous uint8, `numbers` an array of integers as it is one."""
    _require_bytes(data)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_bits_at(context, builder, signature.args[0], args[0], args[1], numbers.dtype.bitwidth), align=1)

    return numbers.dtype(data, types.int64, numbers), codegen


@intrinsic
def store_number(typing_context: Any, data: Any, index: Any, number: Any) -> Any:
    """Write an integer to the bytes from ``data[index]`` on, little-endian; `data` is contiguous uint8."""
    _require_bytes(data)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _bits_at(context, builder, signature.args[0], args[0], args[1], number.bitwidth), align=1)
        return context.get_dummy_value()

    return types.void(data, types.int64, number), codegen


@nb.njit(nogil=True, cache=True)
def nanoseconds(buffer: Any) -> Any:
    """Monotonic clock; `buffer` is (2,) int64 scratch."""
    _clock_gettime(np.int32(1), address_of(buffer, 0))
    return buffer[0] * 1_000_000_000 + buffer[1]


@intrinsic
def add_rows(typing_context: Any, sums: Any, table: Any, rows: Any, count: Any, words: Any, wanted: Any) -> Any:
    """``sums[b] += table[rows[i], b]`` for ``i`` below `count`, in this order, and the bits b of ``words[rows[i]] & wanted``.

    Returns all these bits. Arrays are contiguous, and words unsigned; a row of `table` is as long as a word has bits, and is added as one
    vector.
    """
    num_bits = words.dtype.bitwidth

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sums, table, rows, words = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 1, 2, 4))
        index, word = ir.IntType(64), ir.IntType(num_bits)
        vector, mask = ir.VectorType(sums.type.pointee, num_bits), ir.VectorType(ir.IntType(1), num_bits)
        sums = builder.bitcast(sums, vector.as_pointer())
        total, every = cgutils.alloca_once(builder, vector), cgutils.alloca_once_value(builder, ir.Constant(word, 0))
        builder.store(builder.load(sums, align=8), total)
        with cgutils.for_range(builder, args[3], intp=index) as loop:
            row = context.cast(builder, builder.load(builder.gep(rows, [loop.index])), signature.args[2].dtype, types.int64)
            bits = builder.and_(builder.load(builder.gep(words, [row])), args[5])
            line = builder.gep(table, [builder.mul(row, ir.Constant(index, num_bits))])
            values = builder.load(builder.bitcast(line, vector.as_pointer()), align=8)
            chosen = builder.select(builder.bitcast(bits, mask), values, ir.Constant(vector, [0.0] * num_bits))
            builder.store(builder.fadd(builder.load(total), chosen), total)
            builder.store(builder.or_(builder.load(every), bits), every)
        builder.store(builder.load(total), sums, align=8)
        return builder.load(every)

    return words.dtype(sums, table, rows, types.int64, words, words.dtype), codegen


@intrinsic
def set_chosen(typing_context: Any, values: Any, first: Any, chosen: Any, value: Any) -> Any:
    """``values[first + b] = value`` for the set bits b of a uint64, all in a few steps. There are 64 values, all written by this thread."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        item, mask = data.type.pointee, ir.VectorType(ir.IntType(1), 64)
        vector = ir.VectorType(item, 64)
        place = builder.bitcast(builder.gep(data, [args[1]]), vector.as_pointer())
        none = ir.Constant(vector, ir.Undefined)
        value = builder.insert_element(none, args[3], ir.Constant(ir.IntType(32), 0))
        values = builder.shuffle_vector(value, none, ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64))
        align = signature.args[0].dtype.bitwidth // 8
        old = builder.load(place, align=align)
        builder.store(builder.select(builder.bitcast(args[2], mask), values, old), place, align=align)
        return context.get_dummy_value()

    return types.void(values, types.int64, types.uint64, values.dtype), codegen


@intrinsic
def copy_chosen(typing_context: Any, values: Any, first: Any, chosen: Any, source: Any, begin: Any) -> Any:
    """``values[first + b] = source[begin + b]`` for the set bits b of a uint64; as `set_chosen`, of two arrays of a dtype."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 3))
        lanes, index, align = 16, ir.IntType(64), signature.args[0].dtype.bitwidth // 8
        vector, mask = ir.VectorType(target.type.pointee, lanes), ir.VectorType(ir.IntType(1), lanes)
        for lane in range(0, 64, lanes):
            at = ir.Constant(index, lane)
            to = builder.bitcast(builder.gep(target, [builder.add(args[1], at)]), vector.as_pointer())
            of = builder.bitcast(builder.gep(source, [builder.add(args[4], at)]), vector.as_pointer())
            bits = builder.bitcast(builder.trunc(builder.lshr(args[2], at), ir.IntType(lanes)), mask)
            new, old = builder.load(of, align=align), builder.load(to, align=align)
            builder.store(builder.select(bits, new, old), to, align=align)
        return context.get_dummy_value()

    return types.void(values, types.int64, types.uint64, source, types.int64), codegen


@intrinsic
def bytes_at(typing_context: Any, address: Any) -> Any:
    """Return the eight bytes at any address as a uint64, the first one lowest."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)

    return types.uint64(types.int64), codegen


@intrinsic
def byte_at(typing_context: Any, address: Any) -> Any:
    """Return the byte at any address as a uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.load(builder.inttoptr(args[0], ir.IntType(8).as_pointer())), ir.IntType(64))

    return types.uint64(types.int64), codegen


@intrinsic
def reversed_bytes(typing_context: Any, word: Any) -> Any:
    """Return a uint64 with its bytes in the other order."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bswap(args[0])

    return types.uint64(types.uint64), codegen
