"""Operators of a user give what NumPy gives, and what cannot be computed in this way is found and named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import oocgraph
from oocgraph import ArgumentError, ArgumentTypeError, BudgetError, Operator, OperatorError, Resources, run
from oocgraph.engine import blocks
from tests.algorithms.test_sssp import few_slots, small_blocks  # noqa: F401 - fixtures


def narrower(value, weight):
    return value if value < weight else weight


def widest_relax(value, weight, old):
    return narrower(value, weight)


WIDEST = Operator("widest path", widest_relax, lambda value: 2 * value // 3, order="max")
SMALLEST = Operator("smallest label", lambda value, weight, old: value)
PATHS = Operator("paths", lambda value, weight, old: value + weight, lambda value: value // 3)


def random_store(seed, path, *, directed=True, weights=(1, 40)):
    """Build a graph whose weights may be negative, integers or floats; return also its edges, both ways if it is undirected."""
    rng = np.random.default_rng(seed)
    num_ids, num_edges = int(rng.integers(2, 60)), int(rng.integers(1, 200))
    source, target = rng.integers(0, num_ids, (2, num_edges))
    weight = rng.integers(*weights, num_edges)
    store = oocgraph.build_csr(
        pa.table({"source": source, "target": target, "w": weight}), path, weight="w", directed=directed, duplicates="keep", overwrite=True,
    )  # fmt: skip
    if not directed:
        source, target, weight = np.r_[source, target], np.r_[target, source], np.r_[weight, weight]
    return store, source, target, weight


def by_numpy(source, target, weight, value, relax, better):
    """Relax all edges again and again."""
    while True:
        before = value.copy()
        better.at(value, target, relax(before[source], weight))
        if np.array_equal(before, value):
            return value


@pytest.mark.usefixtures("small_blocks", "few_slots")
def test_the_widest_path_is_that_of_numpy(tmp_path, rounds):
    """On 200 graphs, for one, two and four threads and every schedule, two of these for each."""
    worst = np.iinfo(np.int64).min
    for seed in range(rounds(200)):
        store, source, target, weight = random_store(seed, tmp_path / "g", directed=bool(seed % 2))
        begin = int(source[0])
        value = np.full(60, worst)
        value[begin] = 1000
        expected = by_numpy(source, target, weight, value, np.minimum, np.maximum)
        for threads, schedule in ([(1, "async"), (2, "buckets")], [(4, "async"), (3, "rounds")])[seed // 2 % 2]:
            found = run(store, WIDEST, {begin: 1000}, schedule=schedule, resources=Resources(threads=threads))
            np.testing.assert_array_equal(found.value, expected[found.vertices])
            assert found.num_reached == np.count_nonzero(expected != worst)


@pytest.mark.usefixtures("small_blocks", "few_slots")
def test_labels_of_all_vertices_and_paths_from_several(tmp_path):
    store, source, target, _ = random_store(3, tmp_path / "g", directed=False)
    ids = store.read("vertices/id").astype(np.int64)
    found = run(store, SMALLEST, (ids, ids), weight=False)
    np.testing.assert_array_equal(found.value, oocgraph.connected_components(store).component)
    several = run(store, PATHS, {int(source[0]): 0, int(target[-1]): 5})
    alone = [oocgraph.sssp(store, int(vertex)).distance for vertex in (source[0], target[-1])]
    nearest = np.minimum(*(np.where(distance < 0, 2**40, distance + more) for distance, more in zip(alone, (0, 5), strict=True)))
    np.testing.assert_array_equal(np.minimum(several.value, 2**40), nearest)
    far = int(several.vertices[np.argmax(np.where(several.value > 2**40, -1, several.value))])
    path = several.path(far)
    assert several.parent_of(int(path[0])) == path[0]
    assert several.parent_of(far) == path[-2]


def test_floats_isolated_vertices_and_opened_graphs(tmp_path):
    table = pa.table({"source": ["a", "b", "z"], "target": ["b", "c", "z"], "w": [0.5, 0.25, 1.0]})
    store = oocgraph.build_csr(table, tmp_path / "g", weight="w", directed=True)
    with oocgraph.open_runtime(store) as runtime:
        found = run(store, PATHS_OF_FLOATS, {"a": 1, "z": 7}, runtime=runtime)
    assert found.value.tolist() == [1.0, 1.5, 1.75, 7.0]
    assert found.parent.tolist() == ["a", "a", "b", "z"]
    assert (found.path("c").tolist(), found.path("z").tolist(), found.num_reached) == (["a", "b", "c"], ["z"], 4)
    assert found.to_pandas().columns.tolist() == ["vertex", "value", "parent"]
    assert "paths of floats" in repr(found)


PATHS_OF_FLOATS = Operator("paths of floats", lambda value, weight, old: value + weight)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("weights", ["negative", "nan"])
def test_an_operator_that_is_not_monotone_is_named(tmp_path, weights):
    value = [1.0, -2.0, 3.0] if weights == "negative" else [1.0, 2.0, 3.0]
    store = oocgraph.build_csr(pa.table({"source": [1, 2, 3], "target": [2, 3, 4], "w": value}), tmp_path / "g", weight="w", directed=True)
    operator = Operator("sums", lambda value, weight, old: value + weight) if weights == "negative" else NOT_A_NUMBER
    with pytest.raises(OperatorError, match=r"'sums': of the edge from \d to \d relax makes a value that is better \(smaller\)"):
        run(store, operator, {1: 0.0})


@pytest.mark.one_in(2)
@pytest.mark.parametrize("better", ["smaller", "larger"])
def test_a_sum_that_overflows_is_named(tmp_path, better):
    """A compiler that takes integers never to overflow would look at the sign of the weight alone."""
    edges = pa.table({"source": [1, 2], "target": [2, 3], "w": [2**62, 2**62]})
    store = oocgraph.build_csr(edges, tmp_path / "g", weight="w", directed=True)
    operator = (
        Operator("sums", lambda value, weight, old: value + weight)
        if better == "smaller"
        else Operator("sums", lambda value, weight, old: value - weight, order="max")
    )
    with pytest.raises(OperatorError, match=rf"'sums': of the edge from 2 to 3 relax makes a value that is better \({better}\)"):
        run(store, operator, {1: 0 if better == "smaller" else -2})


NOT_A_NUMBER = Operator("sums", lambda value, weight, old: (value + weight) * np.inf - np.inf)


def test_functions_that_cannot_be_compiled_are_shown(tmp_path):
    store, source, _, _ = random_store(1, tmp_path / "g")
    begin = {int(source[0]): 0}
    with pytest.raises(OperatorError, match=r"'p': priority cannot be compiled: it returns float64, not an integer\n.*test_operators"):
        run(store, Operator("p", lambda value, weight, old: value, lambda value: value / 2), begin)
    with pytest.raises(OperatorError, match=r"'r': relax cannot be compiled: it returns .*, not a number"):
        run(store, Operator("r", lambda value, weight, old: "far"), begin)
    with pytest.raises(OperatorError, match=r"'u': relax cannot be compiled"):
        run(store, Operator("u", lambda value, weight, old: value.nothing), begin)
    with pytest.raises(ZeroDivisionError):
        run(store, Operator("z", lambda value, weight, old: value + weight // value), begin)
    with pytest.raises(OperatorError, match=r"'n': relax takes \(value, weight\); it must take \(value_u, weight, value_v\)"):
        Operator("n", lambda value, weight: value)
    with pytest.raises(OperatorError, match="'o': order is 'up'; it must be 'min' or 'max'"):
        Operator("o", widest_relax, order="up")
    with pytest.raises(OperatorError, match="'f': relax is 3, not a function"):
        Operator("f", 3)


@pytest.mark.parametrize(
    ("initial", "words"),
    [
        ([1, 2], "give a mapping of ids to values"),
        (([1, 2], [1]), r"initial has ids of shape \(2,\) and values of shape \(1,\)"),
        (([1, 1], [1, 2]), "initial names a vertex twice"),
        ({1: float("nan")}, "initial has a value that is NaN"),
        ({1: "far"}, "give a number each"),
    ],
)
def test_initial_values_that_make_no_sense_are_refused(tmp_path, initial, words):
    store = oocgraph.build_csr(([1, 2], [2, 3]), tmp_path / "g")
    with pytest.raises(ArgumentError, match=words):
        run(store, SMALLEST, initial)


def test_other_arguments_are_checked(tmp_path):
    store = oocgraph.build_csr(([1, 2], [2, 3]), tmp_path / "g")
    with pytest.raises(ArgumentTypeError, match=r"give an oocgraph\.Operator"):
        run(store, widest_relax, {1: 1})
    with pytest.raises(ArgumentError, match="schedule is 'later'"):
        run(store, SMALLEST, {1: 1}, schedule="later")
    with pytest.raises(oocgraph.VertexNotFoundError):
        run(store, SMALLEST, {9: 1})


def test_an_operator_is_compiled_once(tmp_path, monkeypatch):
    from oocgraph.algorithms import operators
    from oocgraph.kernels import relax

    store = oocgraph.build_csr(([1, 2], [2, 3]), tmp_path / "g")
    run(store, SMALLEST, {1: 1})
    monkeypatch.setattr(relax, "compile_operator", None)
    assert run(store, SMALLEST, {1: 1}).value.tolist() == [1, 1, 1]
    assert run(store, SMALLEST, (np.empty(0, np.int64), np.empty(0, np.int64))).num_reached == 0
    with pytest.raises(BudgetError, match="at least"):
        run(store, SMALLEST, {1: 1}, memory_budget="32M")
    assert len(operators._known) <= operators.MOST_KNOWN
    assert blocks.SHIFT == 14


def test_values_of_vertices_without_edges_are_those_given(tmp_path):
    """Of pandas by their places, whatever the index; each id once; the worst of values is that of vertices that are not reached."""
    store = oocgraph.build_csr(([0, 0, 1, 3], [1, 2, 2, 4]), tmp_path / "g", num_vertices=8)
    table = pd.DataFrame({"id": [0, 6, 7, 3], "value": [1, 2, 3, 4]}, index=[3, 2, 1, 0])
    expected = {0: 1, 1: 1, 2: 1, 3: 4, 4: 4, 6: 2, 7: 3}
    for ids, values in ((table.id, table.value), (pa.array(table.id), pa.array(table.value)), (table.id.to_numpy()[None], table.value)):
        assert dict(run(store, SMALLEST, (ids, values), weight=False).reached()) == expected
    for twice in (([6, 6], [1, 2]), {6: 1, "6": 2}):
        with pytest.raises(ArgumentError, match="names a vertex twice"):
            run(store, SMALLEST, twice, weight=False)
    found = run(store, SMALLEST, {0: 1, 6: np.iinfo(np.int64).max}, weight=False)
    assert (dict(found.reached()), found.num_reached, np.asarray(found.reached()).tolist()) == ({0: 1, 1: 1, 2: 1}, 3, [1, 1, 1])
