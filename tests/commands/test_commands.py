"""Every command answers, as text and as one JSON object."""

from __future__ import annotations

import json
import os
import resource

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import oocgraph
from oocgraph import open_graph
from tests.commands.announced import ANNOUNCED
from tests.commands.conftest import ROOT, command, remains
from tests.kernel_caches import cache_without
from tests.processes import on_terminal

BFS_FIELDS = {
    "source", "num_reached", "depth", "seconds", "teps", "bytes_read", "bytes_requested", "edge_bytes", "read_fraction", "peak_host_bytes",
    "memory_budget", "planes_resident", "load_seconds", "result_seconds", "iterations",
}  # fmt: skip
ITERATION_FIELDS = {"level", "direction", "reason", "frontier", "undecided", "seconds", "bytes_read"}


@pytest.mark.parametrize("kind", ["kronecker", "uniform"])
def test_generated_store_equals_the_build_of_its_edge_list(run, tmp_path, kind):
    """Straight to a store, or through Parquet or .npy: the same graph."""
    direct = run("generate", kind, tmp_path / "a.zarr", "--scale", 9, "--seed", 7, "--json").json
    for name in ("edges.parquet", "edges.npy"):
        written = run("generate", kind, "--scale", 9, "--seed", 7, "--edges", tmp_path / name, "--json").json
        assert written["num_edges"] == 16 << 9
        assert written["file_bytes"] == (tmp_path / name).stat().st_size
    built = run("build", tmp_path / "edges.parquet", tmp_path / "b.zarr", "--undirected", "--json").json
    same = ("num_vertices", "num_edges", "num_stored_edges", "num_isolated", "implied_ids")
    assert {name: built[name] for name in same} == {name: direct[name] for name in same}
    one, two = open_graph(tmp_path / "a.zarr"), open_graph(tmp_path / "b.zarr")
    for name in ("out/indices", "out/indptr", "vertices/id"):
        np.testing.assert_array_equal(one.read(name), two.read(name))
    assert remains(tmp_path) == ["a.zarr", "b.zarr", "edges.npy", "edges.parquet"]


def test_edge_files_are_plain(run, tmp_path):
    """Parquet: two int32 columns without dictionary, statistics, the number of vertices; .npy: the same pairs."""
    for name in ("e.parquet", "e.npy"):
        run("generate", "grid", "--rows", 30, "--columns", 40, "--edges", tmp_path / name, "--json").json  # noqa: B018 - checks the exit code
    file = pq.ParquetFile(tmp_path / "e.parquet")
    assert file.schema_arrow.names == ["source", "target"]
    assert {str(kind) for kind in file.schema_arrow.types} == {"int32"}
    assert file.schema_arrow.metadata[b"oocgraph.num_vertices"] == b"1200"
    column = file.metadata.row_group(0).column(0)
    assert (column.statistics.min, column.statistics.max, column.has_dictionary_page) == (0, 1198, False)
    pairs = np.load(tmp_path / "e.npy")
    assert pairs.dtype == np.int32
    np.testing.assert_array_equal(pairs, np.stack([file.read()[name].to_numpy() for name in ("source", "target")], axis=1))


def test_edge_file_is_overwritten_only_when_asked(run, refused, tmp_path):
    """An existing file is kept, or replaced with --overwrite."""
    arguments = ("generate", "grid", "--rows", 3, "--columns", 3, "--edges", tmp_path / "e.npy")
    assert run(*arguments).code == 0
    refused(*arguments, words=["exists already", "--overwrite"])
    assert run(*arguments, "--overwrite").code == 0
    assert remains(tmp_path) == ["e.npy"]


def test_generate_wants_one_output(refused, tmp_path):
    """A store or an edge list, not both, not neither."""
    refused("generate", "grid", "--rows", 3, "--columns", 3, words=["OUT.zarr or --edges"])
    refused(
        "generate", "grid", tmp_path / "g.zarr", "--edges", tmp_path / "e.npy", "--rows", 3, "--columns", 3, words=["OUT.zarr or --edges"]
    )


def test_build_reports_graph_and_figures(run, tmp_path):
    """JSON of a build: attributes, time, memory."""
    (tmp_path / "e.csv").write_text("source,target\n1,2\n2,3\n3,1\n9,9\n")
    fields = run("build", tmp_path / "e.csv", tmp_path / "g.zarr", "--directed", "--json").json
    assert (fields["num_vertices"], fields["num_edges"], fields["num_isolated"], fields["directed"]) == (4, 3, 1, True)
    assert fields["seconds"] > 0
    assert fields["peak_host_bytes"] > 0


def test_build_says_what_it_makes_of_duplicates(run, tmp_path):
    """With weights `drop` is `min`, without them `max` is `drop`; the note stands beside the answer."""
    (tmp_path / "e.csv").write_text("source,target,cost\n0,1,5\n0,1,3\n")
    weighted = ("--weight-column", "cost")
    for options, note, kept in (
        ((*weighted, "--duplicates", "drop"), "means 'min': an edge that occurs more than once gets its smallest weight", "min"),
        (("--duplicates", "max"), "means 'drop': an edge that occurs more than once is kept once", "drop"),
        ((*weighted, "--duplicates", "min"), "", "min"),
        (weighted, "", "min"),
    ):
        outcome = run("build", tmp_path / "e.csv", tmp_path / "g.zarr", *options, "--overwrite", "--json")
        assert outcome.json["duplicates"] == kept
        assert note in outcome.stderr
        assert ("--duplicates" in outcome.stderr) == bool(note)
    assert open_graph(tmp_path / "g.zarr").read("out/weight").tolist() == [3, 3]


def test_info_names_the_arrays(run, kron):
    """The attributes of the root, and what is stored."""
    fields = run("info", kron, "--json").json
    assert fields["num_vertices"] == 1 << 12
    assert {"out/indices", "out/indptr", "vertices/id"} <= set(fields["arrays"])
    assert "kron12.zarr" in run("info", kron).stdout


def test_check_accepts_a_sound_store(run, kron):
    """Exit code 0, and what was looked at."""
    assert run("check", kron, "--json").json["valid"] is True
    assert "sound" in run("check", kron).stdout


def test_bfs_reports_what_the_issue_lists(run, kron):
    """All fields, each iteration, valid."""
    fields = run("bfs", kron, "--source", 3, "--validate", "--json").json
    assert set(fields) >= BFS_FIELDS
    assert fields["source"] == 3
    assert fields["valid"] is True
    assert fields["iterations"]
    assert all(set(one) >= ITERATION_FIELDS for one in fields["iterations"])
    assert fields["peak_host_bytes"] > 20 << 20
    assert fields["read_fraction"] == fields["bytes_read"] / fields["edge_bytes"]


def test_bfs_text_shows_the_levels(run, kron):
    """A person sees the figures and a table of levels."""
    text = run("bfs", kron, "--source", 3).stdout
    assert "reached  " in text
    assert "direction" in text


def test_bfs_shows_the_vertices_of_each_level_before_metrics(run, kron):
    """Unless it is to be quiet: one line."""
    found = oocgraph.bfs(kron, 3)
    lines = run("bfs", kron, "--source", 3).stdout.splitlines()
    assert lines[0].startswith(f"<BFSResult from 3: {found.num_reached:,} of 4,096 vertices reached, depth {found.depth}; ")
    at = next(i for i, line in enumerate(lines) if line.split() == ["level", "vertices"])
    counts = np.bincount(found.level[found.level >= 0]).tolist()
    shown = [line.split()[:2] for line in lines[at + 1 : at + 1 + len(counts)]]
    assert shown == [[str(level), f"{count:,}"] for level, count in enumerate(counts)]
    assert lines[at + 1 + len(counts)] == ""
    assert next(i for i, line in enumerate(lines) if line.split()[:1] == ["source"]) > at
    quiet = run("bfs", kron, "--source", 3, "--quiet").stdout.splitlines()
    assert len(quiet) == 1
    assert quiet[0].startswith("<BFSResult from 3: ")
    assert run("bfs", kron, "--source", 3, "--json").json["vertices_per_level"] == counts


def test_other_answers_are_seen_at_a_glance(run, kron, tmp_path):
    """Sizes of components and communities, core numbers, distances, generations; ranks have a table of their own."""
    weighted = tmp_path / "w.zarr"
    oocgraph.generate_grid((4, 5), weighted, weights=(1, 9))
    for arguments, head in (
        (("components", kron), ["size", "components"]),
        (("core", kron), ["core", "number", "vertices"]),
        (("label-propagation", kron), ["size", "communities"]),
        (("sssp", weighted, "--source", 0), ["distance", "vertices"]),
        (("pagerank", kron), ["vertex", "rank"]),
    ):
        lines = [line.split() for line in run(*arguments).stdout.splitlines()]
        assert 0 < lines.index(head) < next(i for i, line in enumerate(lines) if line[:1] == ["seconds"])
        assert len(run(*arguments, "--quiet").stdout.splitlines()) == 1


def test_quiet_commands_print_a_line(run, kron, tmp_path):
    """Of what they have made, checked or found; figures that were asked for are shown."""
    edges, parts, vector = tmp_path / "e.csv", tmp_path / "parts", tmp_path / "y.csv"
    edges.write_text("1,2\n2,3\n")
    for arguments in (
        ("build", edges, tmp_path / "g.zarr"),
        ("build", edges, tmp_path / "g.zarr", "--append"),
        ("merge", tmp_path / "g.zarr", kron, tmp_path / "m.zarr"),
        ("generate", "grid", tmp_path / "grid.zarr", "--rows", 3, "--columns", 4),
        ("generate", "kronecker", "--scale", 4, "--edges", tmp_path / "k.npy"),
        ("export", kron, tmp_path / "k.sg"),
        ("partition", kron, parts, "--partitions", 2),
        ("spmv", kron, "--out", vector),
        ("check", kron),
        ("path", tmp_path / "g.zarr", 1, 3),
    ):
        outcome = run(*arguments, "--quiet")
        assert outcome.code == 0, outcome.stderr
        assert len(outcome.stdout.splitlines()) == 1, outcome.stdout
        assert outcome.stderr == ""
    for shown in (kron, parts):
        assert run("info", shown, "--quiet").stdout == run("info", shown).stdout


@pytest.mark.parametrize("direction", ["auto", "push", "pull", "half", "alpha-beta", "gemini"])
def test_directions_find_the_same_levels(run, kron, tmp_path, direction):
    """Each rule writes the same levels, in each format."""
    levels = []
    for name in ("a.csv", "a.parquet"):
        run("bfs", kron, "--source", 3, "--direction", direction, "--out", tmp_path / name, "--json").json  # noqa: B018 - exit code
        table = (pyarrow.csv.read_csv if name.endswith("csv") else pq.read_table)(tmp_path / name)
        levels.append(table["level"].to_numpy())
    plain = run("bfs", kron, "--source", 3, "--direction", "push", "--json").json
    np.testing.assert_array_equal(levels[0], levels[1])
    assert (levels[0] >= 0).sum() == plain["num_reached"]
    assert levels[0].max() == plain["depth"]


def test_bfs_from_a_set_is_one_search(run, kron):
    """Repeated --source: every source is at level 0."""
    fields = run("bfs", kron, "--source", 3, "--source", 4, "--depth-limit", 0, "--json").json
    assert fields["source"] == [3, 4]
    assert (fields["num_reached"], fields["depth"]) == (2, 0)


def test_bfs_stops_at_the_depth_limit(run, kron):
    """Levels beyond the limit are not found."""
    full, limited = (run("bfs", kron, "--source", 3, "--validate", "--json", *more).json for more in ((), ("--depth-limit", 2)))
    assert limited["depth"] == 2 < full["depth"]
    assert limited["num_reached"] < full["num_reached"]


def test_bfs_writes_zarr(run, kron, tmp_path):
    """The result as arrays of vertices, level and parent."""
    assert run("bfs", kron, "--source", 3, "--out", tmp_path / "r.zarr").code == 0
    assert (tmp_path / "r.zarr" / "zarr.json").exists()


def test_nothing_but_json_on_stdout_in_a_process(spawn, kron):
    """--json prints one object, also where nothing is a terminal."""
    done = spawn("bfs", kron, "--source", 3, "--json")
    assert done.code == 0
    assert json.loads(done.stdout)["depth"] > 0
    assert done.stderr in ("", ANNOUNCED)


def test_bars_are_drawn_on_a_terminal_only(tmp_path):
    """Stderr is a terminal: bars there; stdout has the JSON object alone all the same."""
    arguments = command("generate", "kronecker", "--scale", 16, "--edges", tmp_path / "e.npy", "--json")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    done = on_terminal(arguments, env=env)
    assert b"writing edges" in done.stderr
    assert json.loads(done.stdout)["num_edges"] == 1 << 20


GENERATE = ("generate", "kronecker", "g.zarr", "--scale", 8, "--overwrite", "--json")
SEARCH = ("bfs", "g.zarr", "--source", 3, "--validate", "--json")


def test_first_compile_is_a_step_of_its_own(spawn, tmp_path, monkeypatch):
    """With a cold cache the compiler is announced, and is silent the second time."""
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    cache = cache_without(tmp_path / "cache", ("crc32c", "serial_levels"), [command(*GENERATE), command(*SEARCH)], environment)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    for said in (ANNOUNCED, ""):
        built, found = spawn(*GENERATE), spawn(*SEARCH)
        assert (built.json["num_vertices"], built.stderr) == (256, said)
        assert (found.json["valid"], found.stderr) == (True, said)


@pytest.mark.slow
def test_first_compile_takes_seconds(spawn, tmp_path, monkeypatch):
    """Of everything: under 20 s of processor time; up to twice that where others use the processor's caches."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    seconds = []
    for _ in range(2):
        begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        assert [spawn(*GENERATE).code, spawn(*SEARCH).code] == [0, 0]
        seconds.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin)
    cold, warm = seconds
    assert cold - warm < 40


def test_version_and_help(run):
    """Help names every command."""
    assert run("--version").stdout.startswith("oocgraph, version ")
    text = run("--help").stdout
    assert all(name in text for name in ("demo", "generate", "build", "info", "check", "export", "bfs", "bench"))
    assert run().code == 2
