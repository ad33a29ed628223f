"""Policies of a user: how they are checked, compiled, followed and run; compiled and plain loops decide alike."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from dataclasses import replace
from functools import cache
from itertools import pairwise

import cloudpickle
import numba as nb
import numpy as np
import pytest

from oocgraph import Policy, PolicyError
from oocgraph.compiled.intrinsics import atomic_add
from oocgraph.kernels.prop import RowLookup, make_prop
from oocgraph.partition.policy import compile_policy
from oocgraph.partition.policy_code import uses_of
from tests.partition.reference_cusp import reference_partition, transpose

NONE = np.empty(0, np.int64)
LOAD = np.dtype([("vertices", np.int64), ("weight", np.float64)])


def random_graph(seed, n=60, num_edges=300):
    """Out-lists of a random directed graph with self-loops and duplicates."""
    rng = np.random.default_rng(seed)
    key = np.sort(rng.integers(0, n * n, num_edges))
    indptr = np.searchsorted(key, np.arange(n + 1) * n)
    return indptr.astype(np.int64), (key % n).astype(np.uint32)


compiled_once = cache(compile_policy)
"""Loops of a policy, compiled once for all graphs."""


def run(policy, indptr, indices, num_partitions, *, read="out", blocks=1):
    """Masters and owners by the loops of the partitioner, a block of rows after the other; and both states afterwards."""
    n, into = len(indptr) - 1, transpose(indptr, indices)
    lookups = {"out_rows": RowLookup(indptr, NONE, NONE, NONE), "in_rows": RowLookup(into[0], NONE, NONE, NONE)}
    prop = make_prop(n, len(indices), num_partitions, directed=True, **lookups)
    loops = compiled_once(policy)
    masters, owners, at = np.full(n, -1, np.int16), np.full(len(indices), -1, np.int16), np.empty(3, np.int64)
    rows = into if read == "in" else (indptr, indices)
    m_state, e_state = policy.initial_master_state(prop), policy.initial_edge_state(prop)
    bounds = np.linspace(0, n, blocks + 1).astype(int)
    for first, stop in pairwise(bounds):
        begin, end = rows[0][first], rows[0][stop]
        here = prop.with_rows(first, rows[0][first : stop + 1], rows[1][begin:end], begin, rows_are_in=read == "in")
        assert loops.assign_masters(here, first, stop, m_state, masters, at) == 0
    cuts = np.linspace(0, len(indices), blocks + 1).astype(int)  # anywhere in a row
    for begin, end in pairwise(cuts):
        first, last = (int(np.searchsorted(rows[0], at, side="right")) - 1 for at in (begin, max(begin, end - 1)))
        block = first, rows[0][first : last + 2], rows[1][begin:end], begin, read == "in"
        assert loops.edge_owners(prop, *block, masters, e_state, owners[begin:end], at) == 0
    return masters, owners, m_state, e_state


def near_neighbours(prop, v, m_state, masters):
    """Where most neighbours are, unless that is full."""
    count = np.zeros(prop.num_partitions)
    for u in prop.neighbours(v):
        if masters[u] >= 0:
            count[masters[u]] += 1
    for p in range(prop.num_partitions):
        count[p] -= cost(m_state["vertices"][p], m_state["weight"][p])
    best = int(np.argmax(count))
    m_state["vertices"][best] += 1
    m_state["weight"][best] += 0.5 * prop.out_degree(v) + prop.in_degree(v) / 4
    return best


def cost(vertices, weight):
    """Weigh a partition; a policy calls it, and it is compiled with it."""
    return math.sqrt(vertices + weight)


def in_turn(prop, src, dst, src_master, dst_master, e_state):
    """Change between both masters; the state counts."""
    e_state[src_master, dst_master] += 1
    return src_master if e_state[src_master, dst_master] % 2 else dst_master


STATEFUL = Policy(
    "stateful", near_neighbours, in_turn,
    master_state=lambda prop: np.zeros(prop.num_partitions, LOAD), edge_state=np.zeros((3, 3), np.int32),
)  # fmt: skip

STATELESS = Policy(
    "stateless",
    lambda prop, v: (prop.first_out_edge(v) + v) % prop.num_partitions,
    lambda prop, src, dst, src_master, dst_master: dst_master if prop.out_degree(src) > prop.in_degree(dst) else src_master,
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("read", ["out", "in"])
@pytest.mark.parametrize("policy", [STATELESS, STATEFUL], ids=lambda policy: policy.name)
def test_loops_decide_as_plain_functions_do(policy, read, compiled):
    """Masters, owners and states equal the reference's, for blocks that end anywhere in a row."""
    mine = replace(policy, compiled=compiled)
    for seed in range(3):
        indptr, indices = random_graph(seed)
        expected = reference_partition(indptr, indices, 3, policy, read=read)
        masters, owners, m_state, e_state = run(mine, indptr, indices, 3, read=read, blocks=1 + 3 * seed)
        assert masters.tolist() == expected.masters.tolist()
        assert owners.tolist() == expected.owners.tolist()
        assert m_state.tolist() == expected.states["master"].tolist()
        assert e_state.tolist() == expected.states["edge"].tolist()


def test_policy_travels_to_another_process_by_value():
    """Functions of a user's notebook go along; what arrives decides alike."""
    indptr, indices = random_graph(7)
    there = cloudpickle.loads(cloudpickle.dumps(STATEFUL))
    assert run(there, indptr, indices, 3)[0].tolist() == run(STATEFUL, indptr, indices, 3)[0].tolist()


def test_initial_states_are_fresh_copies():
    """A pass starts from the initial value however often it runs."""
    prop = make_prop(4, 4, 3, directed=False)
    STATEFUL.initial_edge_state(prop)[0, 0] = 9
    assert not STATEFUL.initial_edge_state(prop).any()
    assert STATEFUL.initial_master_state(prop).shape == (3,)
    assert STATELESS.initial_master_state(prop).size == 0


@pytest.mark.parametrize(("merge", "expected"), [("sum", [9, 1]), ("min", [5, 1]), ("max", [8, 5])])
def test_states_of_workers_are_merged(merge, expected):
    """Sums of what each has added, or smallest and largest elements; of a structured dtype field by field."""
    policy = Policy("p", lambda prop, v, m_state: 0, to_source, master_state=np.zeros(2), merge=merge)
    old, theirs = np.array([5, 5]), [np.array([6, 5]), np.array([8, 1])]
    assert policy.merge_states(old, theirs).tolist() == expected
    both = np.zeros(2, LOAD), np.zeros(2, LOAD), np.zeros(2, LOAD)
    for structured, plain in zip(both, (old, *theirs), strict=True):
        structured["vertices"], structured["weight"] = plain, plain / 2
    merged = policy.merge_states(both[0], both[1:])
    assert merged["vertices"].tolist() == expected
    assert merged["weight"].tolist() == [value / 2 for value in expected]


def test_merging_no_states_changes_nothing():
    """A round in which nobody worked."""
    assert STATEFUL.merge_states(np.array([1.5, 2]), []).tolist() == [1.5, 2]


def test_unsigned_sums_are_exact():
    """A count that one worker lowered wraps around twice, that is not at all."""
    old, theirs = np.array([5], np.uint8), [np.array([3], np.uint8), np.array([7], np.uint8)]
    assert STATEFUL.merge_states(old, theirs).tolist() == [5]


def to_source(prop, src, dst, src_master, dst_master):
    return src_master


WRONG = {
    r"get_master takes \(v\); it must take 2 to 4": lambda: Policy("p", lambda v: 0, to_source),
    r"get_master takes \(a, b, c, d, e\)": lambda: Policy("p", lambda a, b, c, d, e: 0, to_source),
    r"get_edge_owner takes \(prop, s, d\); it must take 5 to 6": lambda: Policy("p", lambda prop, v: 0, lambda prop, s, d: 0),
    r"get_master takes \(\*args\)": lambda: Policy("p", lambda *args: 0, to_source),
    r"get_master takes \(prop, v, \*, k\)": lambda: Policy("p", lambda prop, v, *, k: 0, to_source),
    "get_edge_owner is 3, not a function": lambda: Policy("p", lambda prop, v: 0, 3),
    "has no argument m_state": lambda: Policy("p", lambda prop, v: 0, to_source, master_state=np.zeros(1)),
    "has no argument e_state": lambda: Policy("p", lambda prop, v: 0, to_source, edge_state=np.zeros(1)),
    "merge is 'mean'": lambda: Policy("p", lambda prop, v: 0, to_source, merge="mean"),
    "has dtype object": lambda: Policy("p", lambda prop, v, s: 0, to_source, master_state=np.array([{}])).initial_master_state(None),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_no_policy_is_refused(message):
    """The message says what was given and what is expected."""
    with pytest.raises(PolicyError, match=message):
        WRONG[message]()


def misspelt(prop, v):
    return prop.neighbors(v)[0]


def opens_a_file(v):
    return len(open("list").read()) + v


def asks_a_file(prop, v):
    return opens_a_file(v) % prop.num_partitions


def answers_a_fraction(prop, v):
    return v / prop.num_partitions


def answers_sometimes(prop, v):
    if v > 3:
        return 1


def imports(prop, v):
    import os

    return len(os.curdir)


EMPTY = make_prop(0, 0, 3, directed=False)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (misspelt, ["Unknown attribute 'neighbors' of type Prop", "return prop.neighbors(v)[0]"]),
        (asks_a_file, ["'open'", 'return len(open("list").read()) + v']),
        (answers_a_fraction, ["it returns float64", "a partition is an integer"]),
        (answers_sometimes, ["OptionalType(int64) on some path"]),
        (imports, ["IMPORT_NAME", "import os"]),
    ],
)
def test_policy_that_cannot_be_compiled_is_shown_its_line(function, said):
    """File, number and text of the line, the reason and both remedies; also where a function that it calls is to blame."""
    policy = Policy("mine", function, to_source)
    with pytest.raises(PolicyError) as caught:
        compile_policy(policy, EMPTY)
    for words in ["policy 'mine': get_master cannot be compiled", f'File "{__file__}", line ', "compiled=False", *said]:
        assert words in str(caught.value)
    assert "oocgraph/kernels" not in str(caught.value)


def test_edge_function_that_cannot_be_compiled_is_named():
    """The other function's line."""
    policy = Policy("mine", lambda prop, v: 0, lambda prop, src, dst, src_master, dst_master: [src_master])
    with pytest.raises(PolicyError, match=r"get_edge_owner cannot be compiled: it returns list\(int64\)"):
        compile_policy(policy, EMPTY)


def test_plain_python_may_do_what_numba_cannot():
    """What cannot be compiled runs when asked to."""
    names = {0: "zero", 1: "one"}
    policy = Policy("names", lambda prop, v: len(names.get(v, "")) % prop.num_partitions, to_source, compiled=False)
    assert run(policy, *random_graph(0), 3)[0][:3].tolist() == [1, 0, 0]


def path_of_three():
    return make_prop(3, 4, 2, directed=False), np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.uint32)


MODES = pytest.mark.parametrize("compiled", [True, False])


@MODES
@pytest.mark.parametrize("value", [2, -1])
def test_partition_out_of_range_stops_the_loop(value, compiled):
    """Status 1, and where it happened with which value; what was assigned before stays."""
    prop, indptr, indices = path_of_three()
    policy = Policy("far", lambda prop, v: value if v == 1 else 0, lambda prop, s, d, sm, dm: value if d == 2 else sm, compiled=compiled)
    loops, masters, owners, at = compile_policy(policy), np.full(3, -1, np.int16), np.full(4, -1, np.int16), np.empty(3, np.int64)
    assert loops.assign_masters(prop, 0, 3, None, masters, at) == 1
    assert at[:2].tolist() == [1, value]
    assert masters.tolist() == [0, -1, -1]
    assert loops.edge_owners(prop, 0, indptr, indices, 0, False, np.zeros(3, np.int16), None, owners, at) == 1
    assert at.tolist() == [1, 2, value]
    assert owners.tolist() == [0, 0, -1, -1]


@MODES
def test_exception_of_a_policy_passes_and_says_where(compiled):
    """`at` holds the vertex or the edge; division by zero and an index out of bounds are exceptions in both modes."""
    prop, indptr, indices = path_of_three()
    policy = Policy(
        "fails", lambda prop, v, m_state: 1 // (2 - v), lambda prop, s, d, sm, dm, e_state: int(e_state[d]), compiled=compiled,
        master_state=np.zeros(1), edge_state=np.zeros(2, np.int64),
    )  # fmt: skip
    loops, masters, owners, at = compile_policy(policy), np.full(3, -1, np.int16), np.full(4, -1, np.int16), np.empty(3, np.int64)
    with pytest.raises(ZeroDivisionError):
        loops.assign_masters(prop, 0, 3, policy.initial_master_state(prop), masters, at)
    assert at[0] == 2
    with pytest.raises(IndexError):
        loops.edge_owners(prop, 0, indptr, indices, 0, False, np.zeros(3, np.int16), policy.initial_edge_state(prop), owners, at)
    assert at[:2].tolist() == [1, 2]


def writes_masters(prop, v, m_state, masters):
    """Change what the partitioner knows of another vertex."""
    masters[0] = 1
    return 0


@pytest.mark.parametrize(("compiled", "refused"), [(True, PolicyError), (False, ValueError)])
def test_a_policy_cannot_write_masters(compiled, refused):
    """Its line is shown, or it raises: it would make partitions whose masters are not those of the index."""
    policy = Policy("writer", writes_masters, lambda prop, src, dst, src_master, dst_master: src_master, compiled=compiled)
    prop, masters = make_prop(3, 4, 2, directed=False), np.full(3, -1, np.int16)
    with pytest.raises(refused, match=r"masters\[0\] = 1|read-only"):
        compile_policy(policy).assign_masters(prop, 0, 3, None, masters, np.empty(3, np.int64))


@MODES
def test_neighbours_are_not_at_hand_for_edges(compiled):
    """Rows of a block may be parts, so `get_edge_owner` cannot ask for them, whatever rows ``prop`` came with."""
    prop, indptr, indices = path_of_three()
    policy = Policy("asks", lambda prop, v: 0, lambda prop, s, d, sm, dm: prop.neighbours(s).size, compiled=compiled)
    here = prop.with_rows(0, indptr, indices, 0, rows_are_in=False)
    with pytest.raises(IndexError, match=r"prop\.neighbours"):
        compile_policy(policy).edge_owners(
            here, 0, indptr, indices, 0, False, np.zeros(3, np.int16), None, np.zeros(4, np.int16), np.empty(3, np.int64)
        )


def until_answered(prop, v, m_state, masters):
    """Tell that the loop has begun, and decide for 1 when somebody answers, for 0 when nobody does for ten seconds or more."""
    atomic_add(m_state, 0, 1)
    for _ in range(2_000_000_000):
        if atomic_add(m_state, 1, 0):
            return 1
    return 0


def test_loops_release_the_interpreter():
    """A second thread runs while a policy is at work, and the policy sees what it does."""
    prop = make_prop(1, 0, 3, directed=False)
    policy = Policy("waits", until_answered, to_source, master_state=np.zeros(2, np.int64))
    loops, state, masters = compile_policy(policy, prop), policy.initial_master_state(prop), np.empty(1, np.int16)
    thread = threading.Thread(target=loops.assign_masters, args=(prop, 0, 1, state, masters, np.empty(3, np.int64)))
    thread.start()
    while thread.is_alive() and not state[0]:
        pass
    state[1] = 1
    thread.join()
    assert masters[0] == 1


def degree_of(prop, v):
    return prop.in_degree(v)


@nb.njit
def compiled_degree_of(prop, v):
    return prop.out_degree(v)


class Asker:
    def __call__(self, prop, v):
        return 0


asker = Asker()


def calls_itself(prop, v):
    return 0 if v == 0 else calls_itself(prop, v - 1)


def through_a_closure(function):
    return lambda prop, v: function(prop, v) + 1


@pytest.mark.parametrize(
    ("function", "used"),
    [
        (lambda prop, v: v % prop.num_partitions, ""),
        (lambda prop, v: len(prop.neighbours(v)), "n"),
        (lambda prop, v: prop.out_degree(v), "o"),
        (lambda prop, v: prop.first_out_edge(v), "o"),
        (lambda prop, v: degree_of(prop, v) + 1, "i"),
        (lambda prop, v: compiled_degree_of(prop, v) + 1, "o"),
        (through_a_closure(degree_of), "i"),
        (lambda prop, v: max(degree_of(prop, u) for u in range(3)), "i"),
        (lambda prop, v: int(np.sqrt(math.floor(v))), ""),
        (calls_itself, ""),
        (lambda prop, v: getattr(prop, "out_" + "degree")(v), "nio"),
        (lambda prop, v: nowhere(prop, v) + 1, "nio"),  # noqa: F821 # the point of it
        (lambda prop, v: asker(prop, v) + 1, "nio"),
        (imports, "nio"),
    ],
)
def test_what_a_policy_asks_is_read_from_its_code(function, used):
    """Through functions that it calls; everything where something cannot be followed."""
    uses = uses_of(function)
    assert (uses.neighbours, uses.in_degree, uses.out_degree) == tuple(letter in used for letter in "nio")


def test_needs_of_both_functions_are_put_together():
    """What the run must load and whether masters need edges."""
    stateful, stateless = compile_policy(STATEFUL), compile_policy(STATELESS)
    assert stateful.has_master_state
    assert stateful.has_edge_state
    assert stateful.reads_neighbours
    assert stateful.uses_masters
    assert not stateless.has_master_state
    assert not stateless.reads_neighbours
    assert stateless.uses_out_degree
    assert stateless.uses_in_degree


def test_a_policy_is_compiled_once_in_a_process_and_anew_when_what_it_names_changes():
    """Two policies of the same functions share their loops; a global that has another value makes others."""
    here = {"limit": 1}
    exec("def get_master(prop, v): return v % limit\ndef get_edge_owner(prop, s, d, sm, dm): return sm", here)
    policies = [Policy("p", here["get_master"], here["get_edge_owner"]) for _ in range(2)]
    first, second = (compile_policy(policy) for policy in policies)
    assert first._assign is second._assign
    here["limit"] = 2
    third = compile_policy(policies[0])
    assert third._assign is not first._assign
    masters, at = np.full(4, -1, np.int16), np.empty(3, np.int64)
    prop = make_prop(4, 4, 2, directed=False)
    assert third.assign_masters(prop, 0, 4, None, masters, at) == 0
    assert masters.tolist() == [0, 1, 0, 1]


def test_a_policy_that_names_an_array_is_not_kept():
    """An array may change and be the same object."""
    here = {"table": np.zeros(4, np.int64)}
    exec("def get_master(prop, v): return table[v]\ndef get_edge_owner(prop, s, d, sm, dm): return sm", here)
    policy = Policy("p", here["get_master"], here["get_edge_owner"])
    assert compile_policy(policy)._assign is not compile_policy(policy)._assign


COMPILED = """
import numpy as np
from oocgraph.kernels.prop import RowLookup, make_prop
from oocgraph.partition import policies
from oocgraph.partition.policy import compile_policy

policies.{name} = {value}
none = np.empty(0, np.int64)
rows = RowLookup(np.arange(0, 82, 2), none, none, none)
prop = make_prop(40, 80, 6, directed=False, out_rows=rows, in_rows=rows, index_dtype=np.dtype("uint32"))
loops = compile_policy(policies.named_policy("2d", vertex_order="degree"), prop)
hits = [sum(loop.stats.cache_hits.values()) for loop in (loops._assign, loops._own)]
masters = np.empty(40, np.int16)
loops.assign_masters(prop, 0, 40, None, masters, np.empty(3, np.int64))
print(hits, masters.tolist())
"""


def test_policies_of_the_package_are_compiled_once_on_a_machine(tmp_path):
    """Another process finds them in numba's cache; not after something that they name has changed."""

    def run(name="UNRELATED", value=0):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", COMPILED.format(name=name, value=value)]
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        hits, masters = done.stdout.decode().split("] [")
        return hits, masters

    (cold, expected), (warm, again) = run(), run()
    assert (cold, warm) == ("[0, 0", "[1, 1")
    assert again == expected
    changed, otherwise = run("block_cyclic_set", "lambda prop, v, num_sets: 0")
    assert changed == "[0, 1"  # who owns an edge does not ask it
    assert otherwise != expected
    policy = Policy("mine", lambda prop, v: v % prop.num_partitions, lambda prop, src, dst, src_master, dst_master: src_master)
    assert compile_policy(policy)._assign._cache.cache_path is None  # a user's are not kept
