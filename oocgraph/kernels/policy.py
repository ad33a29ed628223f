"""The two loops of a streaming partitioner around a policy's two functions, compiled with them or as plain Python.

In: `get_master` and `get_edge_owner`, either Python functions or compiled ones. Out: `assign_masters` over a range of vertices and
`edge_owners` over a block of rows. The loops are written once: plain Python runs the same lines that are compiled.

Functions of a user are compiled again in every process, so the loops hold nothing but the loop. Those that come with oocgraph are kept in
numba's cache folder, under a key that says what they are: numba's own knows the code of a loop, not of what it calls. Which trailing
arguments a function takes is a constant of the closure, and the calls that do not apply are removed before compilation.

`at` (3 int64) says where a loop is, so that an exception of the user's code is reported with its vertex or edge; a status of 1 means that
``at`` ends with a partition that does not exist.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from types import CellType, CodeType, FunctionType
from typing import Any

import numba as nb
import numpy as np
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError, TypingError, UnsupportedBytecodeError
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from oocgraph.compiled.borrowed import borrowed, borrowed_to_read
from oocgraph.compiled.kept import KeyedCache, named, stamps
from oocgraph.compiled.load import is_kept, load_if_kept
from oocgraph.kernels.prop import Prop


def make_loops(
    get_master: Any,
    num_master_arguments: int,
    get_edge_owner: Any,
    num_owner_arguments: int,
    *,
    compiled: bool,
    keys: tuple[str | None, str | None] = (None, None),
) -> tuple[Callable[..., int], Callable[..., int]]:
    """Return `assign_masters` and `edge_owners` of a policy.

    Parameters
    ----------
    get_master, get_edge_owner
        Compiled by `compile_function` if `compiled`, else plain.
    num_master_arguments, num_owner_arguments
        2 to 4, and 5 or 6: how many arguments each takes.
    keys
        What each function is, for the cache on disk; None: its loop is not kept there.
    """

    def assign_masters(prop: Any, first: Any, stop: Any, m_state: Any, masters: Any, at: Any) -> Any:
        if compiled:
            here, state, known = borrowed(prop), borrowed(m_state), borrowed_to_read(masters)
        else:
            here, state, known = prop, m_state, masters.view()
            known.flags.writeable = False
        for v in range(np.int64(first), np.int64(stop)):
            at[0] = v
            if num_master_arguments == 2:
                p = get_master(here, v)
            elif num_master_arguments == 3:
                p = get_master(here, v, state)
            else:
                p = get_master(here, v, state, known)
            p = whole_number(p) if compiled else operator.index(p)
            if p < 0 or p >= prop.num_partitions:
                at[1] = p
                return 1
            masters[v] = p
        return 0

    def edge_owners(
        prop: Any, first_row: Any, row_indptr: Any, indices: Any, begin: Any, rows_are_dst: Any,
        masters: Any, e_state: Any, owners: Any, at: Any,
    ) -> Any:  # fmt: skip
        here = Prop(
            prop.num_vertices, prop.num_edges, prop.num_partitions, prop.directed,
            prop.out_rows, prop.in_rows, rows_are_dst, first_row, -1, row_indptr, indices[:0],
        )  # fmt: skip
        state = e_state
        if compiled:
            here, state = borrowed(here), borrowed(e_state)
        for r in range(row_indptr.size - 1):
            row = np.int64(first_row + r)
            row_master = np.int64(masters[row])
            for k in range(max(row_indptr[r] - begin, 0), min(row_indptr[r + 1] - begin, indices.size)):
                neighbour = np.int64(indices[k])
                neighbour_master = np.int64(masters[neighbour])
                if rows_are_dst:
                    src, dst, src_master, dst_master = neighbour, row, neighbour_master, row_master
                else:
                    src, dst, src_master, dst_master = row, neighbour, row_master, neighbour_master
                at[0] = src
                at[1] = dst
                if num_owner_arguments == 5:
                    p = get_edge_owner(here, src, dst, src_master, dst_master)
                else:
                    p = get_edge_owner(here, src, dst, src_master, dst_master, state)
                p = whole_number(p) if compiled else operator.index(p)
                if p < 0 or p >= prop.num_partitions:
                    at[2] = p
                    return 1
                owners[k] = p
        return 0

    if not compiled:
        return assign_masters, edge_owners
    loops = []
    for function, key, number in zip((assign_masters, edge_owners), keys, (num_master_arguments, num_owner_arguments), strict=True):
        loop = nb.njit(nogil=True)(named(function, __name__, key and f"{function.__name__}_{key[:16]}_{number}"))
        if key is not None:
            loop._cache = KeyedCache(loop.py_func, f"{key} {number} {_stamps()}")
        loops.append(loop)
    return loops[0], loops[1]


@cache
def _stamps() -> str:
    """Return what tells the modules that are compiled into the loops from other versions of them."""
    from oocgraph.compiled import borrowed
    from oocgraph.kernels import prop, rows

    return stamps(str(module.__file__) for module in (borrowed, prop, rows))


def compile_function(function: Any, *, _inside: tuple[Any, ...] = ()) -> Any:
    """Return a policy's function compiled, with the plain Python functions that it calls by name; an index out of bounds raises.

    A function that is compiled already is returned as it is. Where two functions call each other, the inner call is left to numba, which
    refuses it.
    """
    if not isinstance(function, FunctionType):
        return function
    inside = (*_inside, function)

    def compiled(value: Any) -> Any:
        return compile_function(value, _inside=inside) if value not in inside and _is_unknown(value) else value

    called = {name: function.__globals__[name] for name in code_names(function.__code__) if name in function.__globals__}
    helpers = {name: compiled(value) for name, value in called.items() if isinstance(value, FunctionType)}
    cells = tuple(
        CellType(compiled(cell.cell_contents)) if isinstance(cell.cell_contents, FunctionType) else cell
        for cell in function.__closure__ or ()
    )
    whole = FunctionType(function.__code__, {**function.__globals__, **helpers}, function.__name__, function.__defaults__, cells)
    whole.__qualname__, whole.__module__ = function.__qualname__, function.__module__
    return nb.njit(nogil=True, boundscheck=True)(whole)


def code_names(code: CodeType) -> set[str]:
    """Names of globals and attributes in a function's code and in that of functions inside it."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(code_names, inner))


def is_compile_error(error: BaseException) -> bool:
    """Whether numba refused to compile, as against an exception of the compiled code."""
    return isinstance(error, NumbaError | UnsupportedBytecodeError)


def load_cached(loop: Any, arguments: tuple[Any, ...]) -> None:
    """Bring a compiled loop into memory if it is in the cache: where it looks itself, numba makes itself ready to compile before."""
    if isinstance(loop, Dispatcher) and not loop.overloads and is_kept(loop):
        load_if_kept([(loop, arguments)])


def _is_unknown(function: Any) -> bool:
    """Whether numba has no compiled form of a Python function (it has for many of NumPy's; of this package's it is not asked: 0.5 s)."""
    if str(function.__module__).partition(".")[0] == "oocgraph":
        return True
    context = cpu_target.typing_context
    context.refresh()
    try:
        context.resolve_value_type(function)
    except ValueError:
        return True
    return False


@intrinsic
def whole_number(typing_context: Any, value: Any) -> Any:
    """Return an integer as int64; of anything else compilation fails."""
    if not isinstance(value, types.Integer | types.Boolean):
        raise TypingError(f"a partition is an integer, not {value}")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[0], value, types.int64)

    return types.int64(value), codegen
