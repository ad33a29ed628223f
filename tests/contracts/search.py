"""What every breadth-first search keeps to, wherever it runs: levels of SciPy, a valid tree, the same words about what cannot be done."""

from __future__ import annotations

import numpy as np
import pytest

import oocgraph
from oocgraph.errors import OocGraphError, VertexNotFoundError
from oocgraph.store.vertices import VertexIds
from tests.algorithms.test_bfs import scipy_levels
from tests.graphs import GRAPHS, hubs, original, path_graph
from tests.reference_build import reference_build

FAR = 1 << 30


def expected_levels(store, sources, ids, depth_limit):
    """Return levels of some ids by SciPy: -1 where unreached, 0 of an isolated source."""
    level = np.full(store.num_rows + 1, FAR)  # the last stands for isolated ids
    for number in VertexIds(store).vertices_of(sources):
        if number >= 0:
            found = scipy_levels(store, number)
            level[:-1] = np.minimum(level[:-1], np.where(found < 0, FAR, found))
    level[level > (FAR - 1 if depth_limit is None else depth_limit)] = -1
    found = level[VertexIds(store).vertices_of(ids)]
    return np.where(np.isin(ids, sources), 0, found)


class SearchContract:
    """Tests of one way to search; a subclass says which.

    Attributes
    ----------
    directions
        That it takes.
    """

    directions: tuple[str, ...] = ("auto", "push", "pull", "half", "alpha-beta", "gemini")

    @pytest.fixture
    def opened(self):
        """Return a function of a store: a context, which gives a function ``(source, **options)`` that searches, again and again."""
        raise NotImplementedError

    def check(self, store, found, source, depth_limit=None):
        """Compare a result with SciPy and with Graph500's rules."""
        sources = source if isinstance(source, list) else [source]
        vertices, level = np.asarray(found.vertices), np.asarray(found.level)
        expected = expected_levels(store, sources, vertices.tolist(), depth_limit)
        np.testing.assert_array_equal(level, expected)
        assert found.num_reached == np.count_nonzero(expected >= 0)
        assert found.depth == max(0, expected.max())
        oocgraph.verify_bfs(store, found)

    @pytest.mark.one_in(2)
    @pytest.mark.parametrize("graph", GRAPHS)
    def test_levels_are_those_of_scipy(self, opened, graph, tmp_path):
        """From each source, in each direction, to some depths: with what was opened once."""
        sources = graph(tmp_path / "g.zarr")
        store = oocgraph.open_graph(tmp_path / "g.zarr")
        many = graph is not path_graph  # whose levels are many instead
        with opened(store) as search:
            for source in sources if many else sources[:1]:
                self.check(store, search(source), source)
            for direction in self.directions if many else ():
                self.check(store, search(sources[0], direction=direction), sources[0])
            for limit in (0, 1, 3):
                self.check(store, search(sources[-1], depth_limit=limit), sources[-1], limit)

    def test_what_is_found_does_not_depend_on_the_search_before(self, opened, tmp_path):
        """Levels and figures of a source are the same the third time, after a search from another."""
        first, (second, *_) = original(tmp_path / "g.zarr")
        store = oocgraph.open_graph(tmp_path / "g.zarr")
        with opened(store) as search:
            found = [search(source) for source in (first, second, first, first)]
            self.check(store, found[1], second)
        for again in found[2:]:
            np.testing.assert_array_equal(np.asarray(again.level), np.asarray(found[0].level))
            figures = ("num_reached", "num_reached_edges", "depth")
            assert [getattr(again, name) for name in figures] == [getattr(found[0], name) for name in figures]

    def test_what_cannot_be_searched(self, opened, tmp_path):
        """An id that is not there, a depth and a direction that are none: one message each; then it searches again."""
        reference_build(*hubs(1), tmp_path / "g.zarr", implied=(0, 2500))
        store = oocgraph.open_graph(tmp_path / "g.zarr")
        with opened(store) as search:
            with pytest.raises(VertexNotFoundError, match="9999"):
                search(9999)
            with pytest.raises(OocGraphError, match=r"depth_limit is -1; it must be a whole number"):
                search(0, depth_limit=-1)
            with pytest.raises(OocGraphError, match=r"direction is 'sideways'; it must be one of"):
                search(0, direction="sideways")
            with pytest.raises(OocGraphError, match="no source was given"):
                search([])
            self.check(store, search(0), 0)


class RuntimeContract(SearchContract):
    """Tests of a runtime that is opened and closed: what is said of one that cannot be used any more."""

    @pytest.fixture
    def open_runtime(self):
        """Return a function of a store that opens a runtime."""
        raise NotImplementedError

    @pytest.fixture
    def opened(self, open_runtime):
        """Search with a runtime."""
        return lambda store: _Searches(store, open_runtime(store))

    def test_a_runtime_that_is_closed_and_one_of_another_graph(self, open_runtime, tmp_path):
        for name in ("one", "other"):
            reference_build(*hubs(1), tmp_path / name)
        one, other = (oocgraph.open_graph(tmp_path / name) for name in ("one", "other"))
        with open_runtime(one) as runtime:
            with pytest.raises(OocGraphError, match=r"the runtime has loaded .*one, not .*other; open another"):
                oocgraph.bfs(other, 0, runtime=runtime)
            self.check(one, oocgraph.bfs(one, 0, runtime=runtime), 0)
        with pytest.raises(OocGraphError, match="is closed"):
            oocgraph.bfs(one, 0, runtime=runtime)
        runtime.close()


class _Searches:
    """A context in which a runtime searches."""

    def __init__(self, store, runtime):
        self._store, self._runtime = store, runtime

    def __enter__(self):
        runtime = self._runtime.__enter__()
        return lambda source, **options: oocgraph.bfs(self._store, source, runtime=runtime, **options)

    def __exit__(self, *error):
        return self._runtime.__exit__(*error)
