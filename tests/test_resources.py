"""Where a function runs is said in one way: what contradicts itself, or cannot be used, is refused before anything is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oocgraph
from oocgraph import ArgumentError, ArgumentTypeError, Resources, memory
from oocgraph.resources import CAPABILITIES, resources_of
from tests.test_signatures import WITH_RESOURCES

ROOT = Path(oocgraph.__file__).parents[1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"memory_budget": "lots"}, "memory_budget: 'lots' is not a size"),
        ({"device_memory_budget": 0}, "device_memory_budget: 0 is not a size"),
        ({"threads": 0}, "threads is 0; it must be 1 to"),
        ({"device": "gpu"}, "device is 'gpu'; it must be one of auto, cpu, cuda"),
        ({"num_partitions": 1.5}, "num_partitions is 1.5; it must be a whole number"),
    ],
)
def test_values_are_checked_when_they_are_given(given, words):
    with pytest.raises(ArgumentError, match=words):
        Resources(**given)


def test_numbers_may_be_numpys_and_a_wrong_keyword_names_the_right_ones():
    found = Resources(threads=np.int32(2), num_partitions=np.int64(3))
    assert (type(found.threads), type(found.num_partitions)) == (int, int)
    assert found == Resources(threads=2, num_partitions=3)
    with pytest.raises(ArgumentTypeError, match=r"Resources\(\) has no parameter 'thread'; it takes memory_budget, threads, device"):
        Resources(thread=2)


def test_keywords_stand_for_resources():
    assert resources_of("bfs", memory_budget="1G", client=False) == Resources(memory_budget="1G")
    assert resources_of("bfs", Resources(memory_budget="1G", threads=2), memory_budget="1G", client=False).threads == 2
    with pytest.raises(ArgumentError, match="memory_budget is '2G', and '1G' in resources; give it once"):
        resources_of("bfs", Resources(memory_budget="1G"), memory_budget="2G")
    with pytest.raises(ArgumentTypeError, match=r"resources is '1G'; give an oocgraph\.Resources"):
        resources_of("bfs", "1G")


@pytest.mark.parametrize("function", CAPABILITIES)
def test_what_a_function_cannot_use_is_refused(function):
    can = CAPABILITIES[function]
    needs = {
        "device": ("cuda", can.gpu), "device_memory_budget": ("1G", can.gpu), "client": ("a client", can.cluster),
        "num_partitions": (3, can.divides),
    }  # fmt: skip
    for name, (value, possible) in needs.items():
        given = Resources(**{name: value})
        if possible:
            resources_of(function, given)
        else:
            with pytest.raises(ArgumentError, match=rf"{name} is .*, but {function} .*; leave it out"):
                resources_of(function, given)


def test_one_rule_for_the_current_client(monkeypatch):
    """It is taken by every function that runs on clusters, unless another is given, or none is wanted."""
    monkeypatch.setattr("oocgraph.resources.current_client", lambda: "current")
    for function, can in CAPABILITIES.items():
        assert resources_of(function).client == ("current" if can.cluster else None)
        if can.cluster:
            assert resources_of(function, client="mine").client == "mine"
        assert resources_of(function, Resources(client=False)).client is None


def capability_table():
    """Return `CAPABILITIES` as a table in Markdown, as docs/api.md has it."""
    names = {"gpu": "GPU", "cluster": "cluster", "gpu_cluster": "GPUs of a cluster", "out_of_core": "out of core", "resumes": "resumes"}
    rows = [
        ["function", "in process", *names.values()],
        ["---"] * (len(names) + 2),
        *([f"`{name}`", "yes", *("yes" if getattr(found, one) else "" for one in names)] for name, found in CAPABILITIES.items()),
    ]
    return "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in rows)


def test_every_function_that_computes_is_in_the_table():
    assert sorted(CAPABILITIES) == WITH_RESOURCES
    assert capability_table() in (ROOT / "docs" / "api.md").read_text()


def test_functions_use_their_own_row(tmp_path):
    """Each refuses under its own name what its row does not have."""
    graph = oocgraph.build_csr((np.arange(3), np.arange(1, 4)), tmp_path / "g.zarr")
    result, gpu = oocgraph.bfs(graph, 0), Resources(device="cuda")
    components = oocgraph.connected_components(graph)
    calls = {
        "connected_components": lambda: oocgraph.connected_components(graph, resources=gpu),
        "partition_graph": lambda: oocgraph.partition_graph(graph, 2, policy="EEC", path=tmp_path / "p", resources=gpu),
        "build_csr": lambda: oocgraph.build_csr(([0], [1]), tmp_path / "h.zarr", resources=gpu),
        "export_graph": lambda: oocgraph.export_graph(graph, tmp_path / "g.npz", resources=gpu),
        "check_store": lambda: oocgraph.check_store(graph, resources=gpu),
        "verify_bfs": lambda: oocgraph.verify_bfs(graph, result, resources=gpu),
        "verify_components": lambda: oocgraph.verify_components(graph, components, resources=gpu),
        "plan_bfs": lambda: oocgraph.plan_bfs(graph, 2, resources=gpu),
    }
    for name, call in calls.items():
        with pytest.raises(ArgumentError, match=f"device is 'cuda', but {name} computes on the processor"):
            call()
    with pytest.raises(ArgumentError, match="num_partitions is 3, but pagerank does not take it"):
        oocgraph.pagerank(graph, resources=Resources(num_partitions=3))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.zarr"]


def test_what_is_not_there_or_cannot_be_used_is_an_error_of_pythons_own_kind(tmp_path):
    graph = oocgraph.build_csr((np.arange(3), np.arange(1, 4)), tmp_path / "g.zarr")
    for missing in ("none.csv", "none*.parquet"):
        with pytest.raises(FileNotFoundError, match="check the pa"):
            oocgraph.build_csr(tmp_path / missing, tmp_path / "no.zarr")
    for function in (oocgraph.open_graph, oocgraph.open_partitions):
        with pytest.raises(TypeError, match="None"):
            function(None)
    with pytest.raises(TypeError, match=r"client is 'tcp://localhost:1'; give a distributed\.Client"):
        oocgraph.bfs(graph, 0, client="tcp://localhost:1")
    with oocgraph.open_runtime(graph, client=False) as runtime:
        pass
    with pytest.raises(ValueError, match="closed; open another one"):
        runtime.search([0])
    for twice in (("a", "a"), ("a", "b", "w", "w")):
        with pytest.raises(ArgumentError, match=r"columns names '[aw]' twice"):
            oocgraph.build_csr(([0], [1]), tmp_path / "no.zarr", columns=twice)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.zarr"]


def test_generators_that_are_public_make_what_the_commands_make(tmp_path):
    for made, expected in (
        (oocgraph.generate_grid((3, 4), tmp_path / "grid.zarr"), (12, 17)),
        (oocgraph.generate_uniform(6, tmp_path / "uniform.zarr", edge_factor=4), (64, None)),
    ):
        assert made.attributes.num_input_vertices == expected[0]
        assert expected[1] in (None, made.num_edges)
    assert oocgraph.generate_uniform(6, tmp_path / "again.zarr", edge_factor=4, seed=2).num_edges > 0
    for wrong in (3, (3,), ("a", "b"), (0, 4), "33", (2.7, 3), (True, 3)):
        with pytest.raises(ArgumentError, match=r"rows and columns"):
            oocgraph.generate_grid(wrong, tmp_path / "no.zarr")
    assert not (tmp_path / "no.zarr").exists()


def test_a_control_group_that_leaves_too_little_is_named(monkeypatch):
    """A larger budget alone would not help."""
    monkeypatch.setattr(memory, "cgroup_limit_bytes", lambda: 180 << 20)
    assert memory.enough_memory(100 << 20) == "set memory_budget to at least 108M"
    assert memory.enough_memory(166 << 20).startswith("set memory_budget to at least 174M, and give the process more: the limit")
    assert memory.enough_memory(166 << 20).endswith("is 180.0 MiB, of which 85% may be used; it needs 205M")
    monkeypatch.setattr(memory, "cgroup_limit_bytes", lambda: 205 << 20)
    assert memory.enough_memory(166 << 20) == "set memory_budget to at least 174M"
