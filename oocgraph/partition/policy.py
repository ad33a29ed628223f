"""A partitioning policy: two functions of the user that say who masters a vertex and who owns an edge.

In: two plain Python functions, and the states that they keep. Out: `Policy`, a value that travels to workers, and from it `CompiledPolicy`,
the two loops of the partitioner around them (`oocgraph.kernels.policy`), compiled or, when asked to, as plain Python::

    get_master(prop, vertex_id, m_state, masters) -> partition          # trailing arguments may be left out
    get_edge_owner(prop, src, dst, src_master, dst_master, e_state) -> partition    # e_state may be left out

Vertices are store numbers, 0 .. num_vertices - 1. ``prop`` is a `oocgraph.kernels.prop.Prop`. ``masters[u]`` is the partition of another
vertex, -1 while it is not known; it cannot be written to. A state is a NumPy array (structured, if several numbers belong together) that
the functions change as they go; a worker starts each pass from the initial value and states are put together by `merge_states`.

What a policy asks of the graph decides which arrays its run needs. It is read from the code of its functions and of those that they
call (`oocgraph.partition.policy_code`); where something cannot be followed, everything is taken to be asked.

References
----------
Hoang, Dathathri, Gill, Pingali: CuSP: A Customizable Streaming Edge Partitioner for Distributed Graph Analytics. IPDPS 2019, section III.
Differs from it in: states are arrays of the user's dtype instead of C++ types.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from oocgraph.errors import PolicyError
from oocgraph.partition.policy_code import digest_of, identity_of, uses_of, where_refused
from oocgraph.store.partitions import master_dtype
from oocgraph.types import Array

StateSource = Array | Callable[[Any], Array] | None
"""An initial state: an array, or what makes one of ``prop``, or nothing."""

_NO_STATE = np.empty(0, np.int8)
"""What a function gets that takes a state where there is none."""

_MASTER_ARGUMENTS = ("prop", "vertex_id", "m_state", "masters")
_OWNER_ARGUMENTS = ("prop", "src", "dst", "src_master", "dst_master", "e_state")


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """How a graph is partitioned: who masters a vertex, who owns an edge.

    Parameters
    ----------
    name
        Said in messages and written into the partition store.
    get_master, get_edge_owner
        See the module's text. Plain functions; they may call further ones, which are compiled with them.
    master_state, edge_state
        Initial states: a NumPy array of numbers (or of a structured dtype of numbers), or a function of ``prop`` that returns one.
    merge
        How the states of several workers become one: ``sum`` of what each has added, or the ``min`` or ``max`` of each element.
    compiled
        Whether the functions are compiled with numba. Plain Python runs the same loops, hundreds of times slower.

    Raises
    ------
    PolicyError
        A function takes another number of arguments, or a state that it has not got a place for.

    Examples
    --------
    Vertices assigned in turn, edges to their source's master:

    >>> policy = Policy("turn", lambda prop, v: v % prop.num_partitions, lambda prop, src, dst, src_master, dst_master: src_master)
    >>> policy.num_master_arguments, policy.num_owner_arguments
    (2, 5)
    """

    name: str
    get_master: Callable[..., int]
    get_edge_owner: Callable[..., int]
    _: KW_ONLY
    master_state: StateSource = None
    edge_state: StateSource = None
    merge: Literal["sum", "min", "max"] = "sum"
    compiled: bool = True

    def __post_init__(self) -> None:
        if self.merge not in {"sum", "min", "max"}:
            raise PolicyError(f"policy {self.name!r}: merge is {self.merge!r}; it must be 'sum', 'min' or 'max'")
        for taken, place, state, what in (
            (self.num_master_arguments, 3, self.master_state, "master_state"),
            (self.num_owner_arguments, 6, self.edge_state, "edge_state"),
        ):
            if state is not None and taken < place:
                name = "get_master has no argument m_state" if place == 3 else "get_edge_owner has no argument e_state"
                raise PolicyError(f"policy {self.name!r} has a {what}, but {name} to receive it; add the argument or leave {what} out")

    @property
    def num_master_arguments(self) -> int:
        """How many arguments `get_master` takes: 2 to 4."""
        return _num_arguments(self.name, "get_master", self.get_master, _MASTER_ARGUMENTS, 2)

    @property
    def num_owner_arguments(self) -> int:
        """How many arguments `get_edge_owner` takes: 5 or 6."""
        return _num_arguments(self.name, "get_edge_owner", self.get_edge_owner, _OWNER_ARGUMENTS, 5)

    def initial_master_state(self, prop: Any) -> Array:
        """Return a fresh copy of the initial master state: what a pass starts from. Empty if there is none."""
        return _fresh(self.name, "master_state", self.master_state, prop)

    def initial_edge_state(self, prop: Any) -> Array:
        """Return a fresh copy of the initial edge state. Empty if there is none."""
        return _fresh(self.name, "edge_state", self.edge_state, prop)

    def merge_states(self, old: Array, theirs: Sequence[Array]) -> Array:
        """Return one state out of those of several workers that all began with `old`; the order of `theirs` does not matter for integers.

        Examples
        --------
        >>> policy = Policy("p", lambda prop, v, m_state: 0, lambda prop, s, d, sm, dm: sm, master_state=np.zeros(2, np.int64))
        >>> policy.merge_states(np.array([5, 5]), [np.array([6, 5]), np.array([8, 9])])
        array([9, 9])
        """
        if old.dtype.names is None:
            return _merge(self.merge, old, list(theirs))
        merged = old.copy()
        for field in old.dtype.names:
            merged[field] = self.merge_states(old[field], [state[field] for state in theirs])
        return merged


class CompiledPolicy:
    """The loops of a partitioner around one policy's functions; made by `compile_policy`, once in each process.

    Both raise `PolicyError` if the policy cannot be compiled; an exception of its own code passes, with `at` saying where. Several threads
    may call them at once (the GIL is released where the policy is compiled), each with states and `at` of its own.

    Attributes
    ----------
    policy : Policy
    has_master_state, has_edge_state : bool
        Whether there is a state to merge and to reset.
    reads_neighbours : bool
        Whether `get_master` looks at neighbours or at other vertices' masters: masters cannot be assigned without reading edges.
    uses_masters, uses_out_degree, uses_in_degree : bool
        Whether `get_master` takes ``masters``; whether any function asks for out-degrees or positions, for in-degrees.
    uses : Uses
        The same, for each function.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.has_master_state, self.has_edge_state = policy.master_state is not None, policy.edge_state is not None
        self.uses_masters = policy.num_master_arguments == 4
        self.uses = {"get_master": uses_of(policy.get_master), "get_edge_owner": uses_of(policy.get_edge_owner)}
        master, owner = self.uses["get_master"], self.uses["get_edge_owner"]
        self.reads_neighbours = self.uses_masters or master.neighbours
        self.uses_out_degree, self.uses_in_degree = master.out_degree or owner.out_degree, master.in_degree or owner.in_degree
        self._assign, self._own = _loops_of(policy)

    def assign_masters(self, prop: Any, first: int, stop: int, m_state: Array | None, masters: Array, at: Array) -> int:
        """Write the partition of vertices ``first .. stop - 1`` into `masters`.

        Parameters
        ----------
        prop : Prop
            With the rows of these vertices at hand, if `reads_neighbours`.
        m_state
            As `Policy.initial_master_state` makes it; changed. None if there is none.
        masters : (num_vertices,) int16 or int32
            -1 where not known; changed.
        at : (3,) int64
            Receives the vertex at work and, with a status of 1, the partition that does not exist.

        Returns
        -------
        status : int
            0, or 1 if a partition is out of range.
        """
        at[:] = -1
        return self._run("get_master", self._assign, prop, int(first), int(stop), _NO_STATE if m_state is None else m_state, masters, at)

    def edge_owners(
        self,
        prop: Any,
        first_row: int,
        row_indptr: Array,
        indices: Array,
        begin: int,
        rows_are_dst: bool,
        masters: Array,
        e_state: Array | None,
        owners: Array,
        at: Array,
    ) -> int:
        """Write the partition of each entry of a block into `owners`.

        Parameters
        ----------
        prop : Prop
            Its own rows at hand do not matter: here they are those of the block, of which only the lengths are at hand.
        first_row, row_indptr : int, (num_rows + 1,) int64
            Rows of the block, and the entries of the store at which they begin; the first may begin before the block, the last may end
        after it.
        indices, begin : (num_entries,) index dtype, int
            The block, and the entry of the store that its first one is.
        rows_are_dst
            Whether the lists are in-lists (``read="in"``).
        masters : (num_vertices,) int16 or int32
        e_state
            As `Policy.initial_edge_state` makes it; changed. None if there is none.
        owners : (num_entries,) dtype of `masters`
            Overwritten.
        at : (3,) int64
            Receives source and destination at work and, with a status of 1, the partition that does not exist.

        Returns
        -------
        status : int
            0, or 1 if a partition is out of range.
        """
        at[:] = -1
        block = int(first_row), row_indptr, indices, int(begin), bool(rows_are_dst)
        state = _NO_STATE if e_state is None else e_state
        return self._run("get_edge_owner", self._own, prop, *block, masters, state, owners, at)

    def _run(self, name: str, loop: Callable[..., int], *arguments: Any) -> int:
        """Call a loop; an error of the compiler names the user's line."""
        from oocgraph.kernels.policy import is_compile_error, load_cached

        try:
            load_cached(loop, arguments)
            return int(loop(*arguments))
        except Exception as error:
            if not is_compile_error(error):
                raise
            line, reason = where_refused(getattr(self.policy, name), str(error))
            raise PolicyError(
                f"policy {self.policy.name!r}: {name} cannot be compiled: {reason}\n{line}\nChange that line, or run the policy slowly, "
                "as plain Python, with Policy(..., compiled=False)"
            ) from error


_known: dict[Any, tuple[Callable[..., int], Callable[..., int]]] = {}
"""Loops that are compiled already, the last `MOST_KNOWN` policies: a second run in a process need not wait for the compiler again."""

MOST_KNOWN = 16


def _loops_of(policy: Policy) -> tuple[Callable[..., int], Callable[..., int]]:
    """Return the loops around a policy's functions: those of an earlier run, if nothing that the functions name has changed since."""
    from oocgraph.kernels.policy import compile_function, make_loops

    functions: tuple[Any, Any] = policy.get_master, policy.get_edge_owner
    arguments = policy.num_master_arguments, policy.num_owner_arguments
    identities = tuple(identity_of(function) for function in functions)
    key = None if None in identities or not policy.compiled else (identities, arguments)
    if key in _known:
        return _known[key]
    if policy.compiled:
        functions = compile_function(functions[0]), compile_function(functions[1])
    digests = (None, None) if key is None else (digest_of(identities[0]), digest_of(identities[1]))
    loops = make_loops(functions[0], arguments[0], functions[1], arguments[1], compiled=policy.compiled, keys=digests)
    if key is not None:
        while len(_known) >= MOST_KNOWN:
            _known.pop(next(iter(_known)))
        _known[key] = loops
    return loops


def compile_policy(policy: Policy, prop: Any = None) -> CompiledPolicy:
    """Return a policy's loops.

    Parameters
    ----------
    prop : Prop, optional
        Where given, both loops are compiled now, for its dtypes and those of the states, about a second; else at their first calls.

    Raises
    ------
    PolicyError
        It cannot be compiled; the message shows the line.

    Notes
    -----
    Compiling takes 0.8 s (Fennel's masters 1.4 s) and leaves 85 to 95 MiB in the process, numba itself included. Policies that come with
    oocgraph are kept in numba's cache folder.
    """
    loops = CompiledPolicy(policy)
    if prop is not None:
        masters, at = np.empty(0, master_dtype(prop.num_partitions)), np.empty(3, np.int64)
        loops.assign_masters(prop, 0, 0, policy.initial_master_state(prop), masters, at)
        rows = np.zeros(1, np.int64), np.empty(0, prop.indices.dtype)
        loops.edge_owners(prop, 0, *rows, 0, prop.rows_are_in, masters, policy.initial_edge_state(prop), masters, at)
    return loops


def _num_arguments(policy: str, what: str, function: Any, names: tuple[str, ...], least: int) -> int:
    """Count a function's arguments; all are given by position."""
    if not callable(function):
        raise PolicyError(f"policy {policy!r}: {what} is {function!r}, not a function")
    signature = inspect.signature(getattr(function, "py_func", function))
    parameters = signature.parameters.values()
    positional = [p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    if len(positional) != len(parameters) or not least <= len(positional) <= len(names):
        raise PolicyError(
            f"policy {policy!r}: {what} takes {signature}; it must take {least} to {len(names)} arguments by "
            f"position: ({', '.join(names)}), of which those after {names[least - 1]} may be left out"
        )
    return len(positional)


def _fresh(policy: str, what: str, source: StateSource, prop: Any) -> Array:
    """Return a copy of an initial state, after a check of its dtype."""
    if source is None:
        return _NO_STATE.copy()
    state = np.array(source(prop) if callable(source) else source, order="C")
    fields = [state.dtype[name] for name in state.dtype.names] if state.dtype.names else [state.dtype]
    if any(field.base.kind not in "iuf" for field in fields):
        raise PolicyError(f"policy {policy!r}: {what} has dtype {state.dtype}; use numbers, or a structured dtype of numbers")
    return state


def _merge(how: str, old: Array, theirs: list[Array]) -> Array:
    if how == "sum":
        return np.asarray(old + sum((state - old for state in theirs), np.zeros_like(old)))
    function = np.minimum if how == "min" else np.maximum
    return np.asarray(function.reduce([old, *theirs]))
