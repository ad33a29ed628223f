"""`partition_graph` from outside: what it refuses and says, what is left behind when it fails, what it holds."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oocgraph
from oocgraph.errors import BudgetError, CorruptStoreError, OocGraphError, OutputError, PolicyError
from oocgraph.memory import host_bytes
from oocgraph.partition import partitioning
from oocgraph.partition import phases as partition_steps
from oocgraph.partition.cusp_spec import PartitionOptions
from oocgraph.partition.policy import Policy
from oocgraph.store import preallocated
from oocgraph.store.graph import open_graph
from tests import every_knob
from tests.partition.cusp_cases import Readers, assert_same_bytes, assert_sound, partition_with
from tests.reference_build import reference_build
from tests.stores import random_edges, rewrite, string_store

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "g"
    reference_build(*random_edges(1, 60, 200), path, directed=True)
    return open_graph(path)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Return a path over the letters of the alphabet."""
    letters = "abcdefghij"
    return string_store(tmp_path_factory.mktemp("words") / "g", letters[:-1], letters[1:], directed=True, vertex_order="original")


def to_source(prop, src, dst, src_master, dst_master):
    return src_master


def by_number(prop, v):
    return v % prop.num_partitions


def too_large(prop, v):
    return v // 3


def negative_owner(prop, src, dst, src_master, dst_master):
    return -1 if src == 4 else 0


def beyond_the_end(prop, v, m_state):
    return m_state[v - 5]


def divides(prop, src, dst, src_master, dst_master):
    return 1 // (6 - int(dst))


def text(prop, v):
    return "first"


def decoded(prop, v):
    return json.loads("0") + v


def partition(store, tmp_path, get_master, get_edge_owner=to_source, **options):
    compiled = options.pop("compiled", False)
    policy = Policy("mine", get_master, get_edge_owner, compiled=compiled, **options)
    return every_knob.partition(store, 3, policy, tmp_path / "p")


@pytest.fixture(autouse=True)
def nothing_left(tmp_path):
    """Whatever fails leaves nothing behind."""
    before = set(tmp_path.iterdir())
    yield
    left = {path.name for path in set(tmp_path.iterdir()) - before}
    assert not [name for name in left if name.startswith(".")]


class TestPolicies:
    """Mistakes of a policy's author."""

    @pytest.mark.parametrize("compiled", [True, False])
    def test_master_out_of_range_names_vertex_and_value(self, words, tmp_path, compiled):
        with pytest.raises(
            PolicyError, match=r"get_master returned 3 for vertex 9 \(id 'j'\), but partitions are 0 to 2; correct the policy"
        ):
            partition(words, tmp_path, too_large, compiled=compiled)
        assert not (tmp_path / "p").exists()

    @pytest.mark.parametrize("compiled", [True, False])
    def test_owner_out_of_range_names_both_ends(self, words, tmp_path, compiled):
        wanted = r"get_edge_owner returned -1 for the edge from vertex 4 \(id 'e'\) to vertex 5 \(id 'f'\), but partitions are 0 to 2"
        with pytest.raises(PolicyError, match=wanted):
            partition(words, tmp_path, by_number, negative_owner, compiled=compiled)

    @pytest.mark.parametrize("compiled", [True, False])
    def test_exception_names_vertex_or_edge(self, words, tmp_path, compiled):
        wanted = r"get_edge_owner raised ZeroDivisionError for the edge from vertex 5 \(id 'f'\) to vertex 6 \(id 'g'\)"
        with pytest.raises(PolicyError, match=wanted):
            partition(words, tmp_path, by_number, divides, compiled=compiled)
        with pytest.raises(PolicyError, match=r"get_master raised IndexError for vertex \d \(id '.'\)"):
            partition(words, tmp_path, beyond_the_end, master_state=np.zeros(2, np.int64), compiled=compiled)

    def test_what_is_no_integer(self, words, tmp_path):
        with pytest.raises(PolicyError, match=r"get_master raised TypeError for vertex 0 \(id 'a'\)"):
            partition(words, tmp_path, text)

    def test_what_cannot_be_compiled_shows_the_line(self, words, tmp_path):
        with pytest.raises(PolicyError, match=r"(?s)test_partition_graph\.py.*return json\.loads.*compiled=False"):
            partition(words, tmp_path, decoded, compiled=True)

    @pytest.mark.parametrize("threads", [1, 2])
    def test_global_counter(self, store, tmp_path, threads):
        """Decided otherwise in the second pass."""
        calls = []

        def counted(prop, src, dst, src_master, dst_master):
            calls.append(src)
            return len(calls) // 7 % prop.num_partitions

        policy = Policy("mine", by_number, counted, compiled=False)
        with pytest.raises(PolicyError, match=r"policy 'mine': get_edge_owner is not deterministic: .* vertices 0 to \d+ "):
            every_knob.partition(store, 3, policy, tmp_path / "p", threads=threads)

    def test_random_compiled(self, store, tmp_path):
        def drawn(prop, src, dst, src_master, dst_master):
            return np.random.randint(0, prop.num_partitions)  # noqa: NPY002 - compiled code has this one alone

        with pytest.raises(PolicyError, match="not deterministic"):
            partition(store, tmp_path, by_number, drawn, compiled=True)

    def test_two_edges_that_change_places_are_noticed(self, store, tmp_path):
        """The numbers of edges stay as they are: the owners of two edges of one vertex are exchanged."""
        seen = []

        def exchanged(prop, src, dst, src_master, dst_master):
            seen.append(src)
            later = len(seen) > store.attributes.num_stored_edges
            return int((dst == second) if later else (dst == first)) if src == row else 0

        indptr = store.read("out/indptr")
        row = int(np.argmax(np.diff(indptr)))
        first, second = store.read("out/indices")[indptr[row] : indptr[row] + 2].tolist()
        with pytest.raises(PolicyError, match="not deterministic"):
            partition(store, tmp_path, lambda prop, v: 0, exchanged)

    def test_unknown_name_and_no_policy(self, store, tmp_path):
        with pytest.raises(PolicyError, match=r"there is no policy 'XYZ'; choose one of EEC"):
            every_knob.partition(store, 2, "XYZ", tmp_path / "p")
        with pytest.raises(PolicyError, match=r"policy is 7; give a name such as 'CVC'"):
            every_knob.partition(store, 2, 7, tmp_path / "p")


class TestArguments:
    """What is refused at once."""

    @pytest.mark.parametrize("number", [0, -1, 1000, 2.0, True, "2"])
    def test_number_of_partitions(self, store, tmp_path, number):
        n = store.num_rows
        with pytest.raises(OocGraphError, match=rf"num_partitions is {number!r}, but .* has {n} vertices .* whole number from 1 to {n}"):
            every_knob.partition(store, number, "EEC", tmp_path / "p")

    def test_graph_without_edges(self, tmp_path):
        reference_build([], [], tmp_path / "g", implied=(0, 5))
        with pytest.raises(OocGraphError, match="has no edges, so there is nothing to partition"):
            every_knob.partition(tmp_path / "g", 1, "EEC", tmp_path / "p")

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ({"read": "both"}, "read is 'both'; it must be out or in"),
            ({"round_vertices": 0}, "round_vertices is 0; it must be a whole number, 1 or more"),
            ({"round_vertices": 1.5}, "round_vertices is 1.5"),
            ({"threads": 0}, "threads is 0; it must be a whole number, 1 or more"),
            ({"threads": -1}, "threads is -1"),
            ({"vertex_weight": "1"}, "vertex_weight is '1'"),
            ({"columns": "weight"}, "columns is 'weight'; it must be a list of different names"),
            ({"columns": ["cost", "cost"]}, "list of different names"),
            ({"edge_weight": -1.0}, "edge_weight -1.0"),
            ({"edge_weight": 0.0}, "not negative and not both 0"),
            ({"vertex_weight": float("nan")}, "finite"),
            ({"vertex_weight": float("inf")}, "finite"),
            ({"columns": ["cost"]}, "has no edge column 'cost'; it has none"),
        ],
    )
    def test_options(self, store, tmp_path, option, message):
        with pytest.raises(OocGraphError, match=re.escape(message)):
            every_knob.partition(store, 2, "EEC", tmp_path / "p", **option)

    def test_output_that_exists(self, store, tmp_path):
        (tmp_path / "p").mkdir()
        with pytest.raises(OutputError, match=r"/p: exists already; choose another name"):
            every_knob.partition(store, 2, "EEC", tmp_path / "p", compiled=False)
        assert list((tmp_path / "p").iterdir()) == []

    @pytest.mark.parametrize(
        ("parent", "message"), [("/sys/oocgraph", "no permission to write|cannot write"), ("file/below", "cannot write .*directory")]
    )
    def test_folder_that_cannot_be_written(self, store, tmp_path, parent, message):
        (tmp_path / "file").touch()
        with pytest.raises(OutputError, match=message):
            every_knob.partition(store, 2, "EEC", tmp_path / parent / "p", compiled=False)

    def test_parent_folders_are_made(self, store, tmp_path):
        assert every_knob.partition(store, 2, "EEC", tmp_path / "a" / "b", compiled=False).num_partitions == 2


class TestGraph:
    """Damage of the graph that is read."""

    @pytest.mark.parametrize("number", [60, 2**32 - 1])
    def test_neighbour_that_is_no_vertex(self, store, tmp_path, number):
        """Found before a policy or a bitmap is asked about it."""
        indices = store.read("out/indices")
        indices[7] = number
        damaged = rewrite(store.url, tmp_path / "damaged", arrays={"out/indices": indices})
        with pytest.raises(CorruptStoreError, match=r"element 7 of out/indices is \d+, but must be at least 0 and below 60"):
            every_knob.partition(damaged, 3, "HVC", tmp_path / "p", compiled=False)

    @pytest.mark.parametrize("damage", [lambda p: p[::-1].copy(), lambda p: p + 1, lambda p: np.minimum(p, p[-1] - 1)])
    @pytest.mark.parametrize("policy", ["EEC", "FEC"])
    def test_pointers_that_do_not_ascend(self, store, tmp_path, damage, policy):
        damaged = rewrite(store.url, tmp_path / "damaged", arrays={"out/indptr": damage(store.read("out/indptr"))})
        for executor in (Readers(1), Readers(3)):
            with pytest.raises(CorruptStoreError, match=r"of out/indptr is \d+, but must .*`oocgraph check`"):
                partition_with(executor, damaged, 3, policy, tmp_path / "p", compiled=False, round_vertices=8)

    def test_missing_chunk(self, store, tmp_path):
        damaged = rewrite(store.url, tmp_path / "damaged")
        (tmp_path / "damaged/out/indices/c/0").unlink()
        with pytest.raises(CorruptStoreError, match=r"out/indices/c/0: this chunk .* is missing"):
            every_knob.partition(damaged, 3, "EEC", tmp_path / "p", compiled=False)

    def test_remote_graph(self, store, tmp_path):
        """A store behind another file system is read all the same."""
        fsspec = pytest.importorskip("fsspec")
        memory = fsspec.filesystem("memory")
        memory.put(store.url, "/cusp.zarr", recursive=True)
        try:
            made = every_knob.partition("memory://cusp.zarr", 3, "CVC", tmp_path / "p", compiled=False)
            assert_sound(made, open_graph("memory://cusp.zarr"))
        finally:
            memory.rm("/cusp.zarr", recursive=True)


PHASES = ("masters", "edges", "allocate", "construct", "transpose", "seal", "seal masters")


class TestFailures:
    """It ends in the middle."""

    @pytest.mark.parametrize("phase", PHASES)
    @pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
    def test_nothing_is_left_of_any_phase(self, store, tmp_path, phase, error):
        def stop(name, done, total):
            if name == phase and done == total:
                assert [path.name for path in tmp_path.iterdir()] != []
                raise error

        wanted = pytest.raises(OutputError, match="disk is full") if isinstance(error, OSError) else pytest.raises(KeyboardInterrupt)
        with wanted:
            every_knob.partition(store, 3, "EEC", tmp_path / "p", transpose=True, compiled=False, progress=stop)
        assert list(tmp_path.iterdir()) == []

    def test_interrupt_within_the_policy(self, store, tmp_path):
        def interrupted(prop, v):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            partition(store, tmp_path, interrupted)
        assert list(tmp_path.iterdir()) == []

    def test_disk_that_is_full_while_edges_are_written(self, store, tmp_path, monkeypatch):
        def full(fd, data, offset):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(OutputError, match=r"/p: the disk is full .* nothing was left behind"):
            every_knob.partition(store, 3, "EEC", tmp_path / "p", compiled=False)
        assert list(tmp_path.iterdir()) == []

    def test_somebody_else_was_faster(self, store, tmp_path):
        """The place is taken meanwhile: what is there stays."""

        def take(name, done, total):
            if name == "seal masters":
                (tmp_path / "p").mkdir(exist_ok=True)

        with pytest.raises(OutputError, match="exists already"):
            every_knob.partition(store, 3, "EEC", tmp_path / "p", compiled=False, progress=take)
        assert list((tmp_path / "p").iterdir()) == []

    @pytest.mark.kill
    def test_killed_run_leaves_nothing_that_opens_and_the_next_removes_it(self, store, tmp_path):
        child = subprocess.Popen([sys.executable, "-c", STOPPED, store.url, tmp_path / "p"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "there\n"
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        [remains] = tmp_path.iterdir()
        assert remains.name.startswith(".oocgraph-building")
        for path in (tmp_path / "p", remains, remains / "output"):
            with pytest.raises(oocgraph.StoreError):
                oocgraph.open_partitions(path)
        with pytest.raises(oocgraph.StoreError):
            oocgraph.open_graph(remains / "output" / "part-00000")
        made = every_knob.partition(store, 3, "EEC", tmp_path / "p", compiled=False)
        assert_sound(made, store)
        assert [path.name for path in tmp_path.iterdir()] == ["p"]


STOPPED = """
import sys, time
import oocgraph

def stop(phase, done, total):
    if phase == "construct" and done:
        print("there", flush=True)
        time.sleep(600)

oocgraph.partition_graph(sys.argv[1], 3, policy="EEC", path=sys.argv[2], progress=stop)
"""


MEASURED = """
import json, sys
import oocgraph
from oocgraph.memory import PeakSampler
from oocgraph.partition import phases as partition_steps

budgets = []

class Noted(partition_steps.Stage):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        budgets.append(self.budget)

partition_steps.Stage = Noted
url, out, name, budget = sys.argv[1:]
with PeakSampler() as sampler:
    try:
        two = oocgraph.Resources(threads=2, memory_budget=budget)
        oocgraph.partition_graph(url, 8, policy=name, path=out, transpose=True, resources=two)
        said = ""
    except oocgraph.BudgetError as error:
        said = str(error)
promised = budgets[0].promised_bytes if budgets else 0
print(json.dumps({"said": said, "peak": sampler.peak_bytes, "promised": promised, "limit": oocgraph.memory.parse_bytes(budget)}))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Return a graph of a million stored edges."""
    return oocgraph.generate_kronecker(15, tmp_path_factory.mktemp("large") / "g", seed=1)


class TestMemory:
    """What it holds is what it has promised."""

    @pytest.mark.parametrize("name", ["CVC", "FEC"])
    def test_smallest_budget_is_named_works_and_is_kept(self, large, tmp_path, name):
        """Each in a process of its own, with nothing compiled before; the first is refused."""

        def run(budget):
            out = tmp_path / budget
            done = subprocess.run(
                [sys.executable, "-c", MEASURED, large.url, out, name, budget], cwd=ROOT, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout), out

        refused, out = run("100M")
        smallest = re.search(r"needs .* set memory_budget to at least (\d+M)", refused["said"])
        assert smallest, refused
        assert not out.exists()
        made, out = run(smallest[1])
        assert made["said"] == ""
        assert made["peak"] <= made["promised"] <= made["limit"]
        assert_sound(oocgraph.open_partitions(out), large)

    @pytest.mark.usefixtures("steady_memory")
    def test_too_little_is_refused_before_anything_is_read_or_written(self, large, tmp_path, monkeypatch):
        monkeypatch.setattr(preallocated.PreallocatedArray, "write", None)
        monkeypatch.setattr(partition_steps.Stage, "read_rows", None)
        with pytest.raises(BudgetError, match=r"set memory_budget to at least \d+M"):
            every_knob.partition(large, 3, "EEC", tmp_path / "p", compiled=False, memory_budget=host_bytes() + (1 << 20))
        assert list(tmp_path.iterdir()) == []

    def test_more_partitions_need_more(self, large, tmp_path):
        """Bitmaps and ranks are charged for each partition, before they are made."""
        with pytest.raises(BudgetError, match=r"partitioning \(masters .*, proxies of each partition \d+\.\d MiB, .*needs"):
            every_knob.partition(large, 20_000, "1D-vertex", tmp_path / "p", compiled=False, memory_budget="1G")


def test_progress_goes_through_all_phases(store, tmp_path):
    told = []
    every_knob.partition(store, 3, "EEC", tmp_path / "p", transpose=True, compiled=False, progress=lambda *now: told.append(now))
    assert list(dict.fromkeys(name for name, _, _ in told)) == list(PHASES)
    assert all(0 <= done <= total for _, done, total in told)
    assert {name for name, done, total in told if done == total} == set(PHASES)


def test_same_call_twice_writes_the_same_bytes(store, tmp_path):
    for name in ("one", "two"):
        every_knob.partition(store, 3, "SVC", tmp_path / name, compiled=False, transpose=True, threads=2)
    assert_same_bytes(tmp_path / "one", tmp_path / "two")


def test_relative_paths_and_urls(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.symlink(store.url, "g")
    made = every_knob.partition("g", 2, "EEC", "p", compiled=False)
    assert made.attributes.graph == str(tmp_path / "g")
    assert made.url == str(tmp_path / "p")
    monkeypatch.chdir("/")
    assert_sound(made, open_graph(made.attributes.graph))
    assert every_knob.partition(f"file://{store.url}", 2, "EEC", tmp_path / "q", compiled=False).num_partitions == 2


def test_phases_are_timed(store, tmp_path):
    options = PartitionOptions(
        num_partitions=2, policy=partitioning.checked_policy("EEC", vertex_order="degree", compiled=False), transposed=True,
        round_vertices=9, threads=1,
    )  # fmt: skip
    seconds = partitioning.partition_store(store, tmp_path / "p", options, Readers(1), overwrite=False, durable=True)
    assert list(seconds) == ["master assignment", "edge assignment", "allocation", "construction", "transpose", "checksums", "sync"]
    assert all(value > 0 for value in seconds.values())
