"""The checker of partitions finds whatever is tampered with, even where all checksums are right."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import oocgraph
from oocgraph.errors import CorruptStoreError, StoreError
from oocgraph.partition import check
from oocgraph.partition.check import check_partitions
from oocgraph.store.check import check_store
from oocgraph.store.graph import open_graph
from oocgraph.store.partitions import open_partitions
from oocgraph.store.preallocated import PreallocatedArray
from tests import every_knob
from tests.partition.cusp_cases import assert_sound
from tests.reference_build import reference_build
from tests.stores import random_edges


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a graph and its partitions, which nobody may change."""
    folder = tmp_path_factory.mktemp("whole")
    reference_build(*random_edges(1, 40, 150), folder / "g", directed=True)
    store = open_graph(folder / "g")
    return store, every_knob.partition(store, 3, "CVC", folder / "p", compiled=False)


@pytest.fixture
def copied(whole, tmp_path):
    """Return the graph, and partitions to be changed."""
    store, partitions = whole
    shutil.copytree(partitions.url, tmp_path / "p")
    return store, open_partitions(tmp_path / "p")


def write(folder, name, values):
    """Write an array with its checksums, whatever it was."""
    values = np.asarray(values)
    for old in (Path(folder) / name, Path(folder) / "checksums" / name):
        shutil.rmtree(old)
    array = PreallocatedArray(Path(folder), name, values.dtype, values.size)
    array.create()
    array.write(0, values)
    array.seal()


def say(folder, **attributes):
    """Change attributes of a part."""
    path = Path(folder) / "zarr.json"
    group = json.loads(path.read_text())
    group["attributes"]["oocgraph"] |= attributes
    group.pop("consolidated_metadata")  # it tells of other arrays
    path.write_text(json.dumps(group))


def rows_of(part):
    """Return the local row of each edge, and its neighbour."""
    return np.repeat(np.arange(part.num_vertices), np.diff(part.store.read("out/indptr"))), part.store.read("out/indices")


def put_edges(part, rows, neighbours):
    """Replace the edges of a part."""
    order = np.lexsort((neighbours, rows))
    write(part.store.url, "out/indptr", np.append(0, np.cumsum(np.bincount(rows, minlength=part.num_vertices))))
    write(part.store.url, "out/indices", np.asarray(neighbours)[order].astype(np.uint32))
    loops = int((np.asarray(rows) == neighbours).sum())
    say(part.store.url, num_edges=len(rows), num_stored_edges=len(rows), num_self_loops=loops)


def put_in_place(partitions, folder):
    """Have another folder in place of part 1."""
    place = partitions[1].store.url
    shutil.rmtree(place)
    shutil.copytree(folder, place)


def refused(partitions, store, message):
    with pytest.raises(CorruptStoreError, match=message) as said:
        check_partitions(open_partitions(partitions.url), store)
    assert partitions.url in str(said.value)


def edge_of(part, k):
    rows, neighbours = rows_of(part)
    ids = part.global_id()
    return int(ids[rows[k]]), int(ids[neighbours[k]])


def test_sound_partitions_pass(copied):
    """Rewritten as they were, too."""
    store, partitions = copied
    part = partitions[1]
    put_edges(part, *rows_of(part))
    assert_sound(open_partitions(partitions.url), store)


@pytest.mark.parametrize("block_entries", [1, 7, 1 << 20])
def test_edge_that_is_dropped(copied, monkeypatch, block_entries):
    monkeypatch.setattr(check, "BLOCK_ENTRIES", block_entries)
    store, partitions = copied
    part = partitions[1]
    lost = edge_of(part, 4)
    put_edges(part, *(np.delete(a, 4) for a in rows_of(part)))
    check_store(open_graph(part.store.url))  # it is a sound graph
    refused(partitions, store, rf"edge \({lost[0]}, {lost[1]}\) is in no part; partition the graph again")


@pytest.mark.parametrize("block_entries", [1, 1 << 20])
def test_edge_that_is_in_two_parts(copied, monkeypatch, block_entries):
    """Once more at the end of a list, of an edge that both ends are there for."""
    monkeypatch.setattr(check, "BLOCK_ENTRIES", block_entries)
    store, partitions = copied
    one, other = partitions[0], partitions[1]
    local = {v: i for i, v in enumerate(other.global_id().tolist())}
    twice = next(e for e in (edge_of(one, k) for k in range(one.num_edges)) if e[0] in local and e[1] in local)
    rows, neighbours = rows_of(other)
    put_edges(other, np.append(rows, local[twice[0]]), np.append(neighbours, local[twice[1]]))
    refused(partitions, store, rf"edge \({twice[0]}, {twice[1]}\) is in more than one part, or not of the graph")


def test_edge_that_is_twice_in_a_part(copied):
    store, partitions = copied
    rows, neighbours = rows_of(partitions[2])
    twice = edge_of(partitions[2], 3)
    put_edges(partitions[2], np.append(rows, rows[3]), np.append(neighbours, neighbours[3]))
    refused(partitions, store, rf"edge \({twice[0]}, {twice[1]}\) is in more than one part")


def test_edge_with_another_end(copied):
    """As many edges as before, in every row."""
    store, partitions = copied
    part = partitions[0]
    rows, neighbours = rows_of(part)
    neighbours = neighbours.copy()
    has = set(neighbours[rows == rows[0]].tolist())
    neighbours[0] = next(u for u in range(part.num_vertices) if u not in has)
    put_edges(part, rows, neighbours)
    refused(partitions, store, r"edge \(\d+, \d+\) is in (no part|more than one part, or not of the graph)")


def test_neighbour_that_is_no_vertex(copied):
    store, partitions = copied
    indices = partitions[0].store.read("out/indices")
    indices[2] = partitions[0].num_vertices
    write(partitions[0].store.url, "out/indices", indices)
    refused(partitions, store, r"part-00000/out/indices/c/0: element 2 of out/indices is \d+, but must be at least 0 and below")


def test_pointers_that_do_not_ascend(copied):
    store, partitions = copied
    indptr = partitions[0].store.read("out/indptr")
    indptr[3], indptr[4] = indptr[4] + 5, indptr[3]
    write(partitions[0].store.url, "out/indptr", indptr)
    refused(partitions, store, r"part-00000/out/indptr/c/0: element 4 of out/indptr is \d+, but must not be below the element before it")


def test_vertex_with_two_masters(copied):
    """A mirror of one part is listed as a master too."""
    store, partitions = copied
    part = partitions[2]
    ids = part.global_id()
    moved = int(ids[part.num_masters])
    order = np.concatenate([np.sort(ids[: part.num_masters + 1]), ids[part.num_masters + 1 :]])
    write(part.store.url, "vertices/id", order)
    write(part.store.url, "vertices/mirror_owner", part.mirror_owner()[1:])
    say(part.store.url, num_masters=part.num_masters + 1)
    refused(partitions, store, rf"part 2 is not the only master of vertex {moved}")


def test_vertex_that_is_listed_twice_by_its_own_part(copied):
    """As a master with edges and as one without."""
    store, partitions = copied
    part = partitions[0]
    twice = int(part.global_id()[0])
    isolated = np.union1d(part.isolated_masters(), [twice])
    write(part.store.url, "vertices/isolated_id", isolated)
    say(part.store.url, num_isolated=isolated.size, num_input_vertices=part.num_vertices + isolated.size)
    refused(partitions, store, rf"part 0 is not the only master of vertex {twice}")


def test_master_elsewhere_than_the_index_says(copied):
    store, partitions = copied
    masters = partitions.masters.read(0, store.num_rows)
    v = int(np.flatnonzero(masters == 1)[0])
    masters[v] = 2
    write(partitions.url, "masters", masters)
    refused(partitions, store, rf"(part 1 is not the only master of vertex {v}|mirror {v} says)")


def test_vertex_without_a_master(tmp_path):
    """Neither with edges nor without."""
    reference_build([0, 1, 2], [1, 2, 3], tmp_path / "g", directed=True, vertex_order="original")
    store = open_graph(tmp_path / "g")
    policy = oocgraph.Policy("ends", lambda prop, v: 1 if v == 3 else 0, lambda prop, s, d, a, b: 0, compiled=False)
    made = every_knob.partition(store, 2, policy, tmp_path / "p")
    assert made[1].isolated_masters().tolist() == [3]
    write(made[1].store.url, "vertices/isolated_id", np.empty(0, np.int64))
    say(made[1].store.url, num_isolated=0, num_input_vertices=0)
    refused(made, store, "vertex 3 has no master")


def test_mirror_with_a_wrong_owner(copied):
    store, partitions = copied
    part = partitions[0]
    owner = part.mirror_owner()
    owner[1] = 3 - owner[1]
    v = int(part.global_id()[part.num_masters + 1])
    write(part.store.url, "vertices/mirror_owner", owner)
    refused(partitions, store, rf"part 0: mirror {v} says that its master is in part {owner[1]}, but it is in part {3 - owner[1]}")


@pytest.mark.parametrize(("name", "change", "message"), [
    ("vertices/id", lambda ids: ids[::-1], "vertices/id is .*, but must be above the element before it"),
    ("vertices/id", lambda ids: ids + 1000, "element 0 of vertices/id is 1000, but must be below 40"),
    ("vertices/id", lambda ids: ids - 1000, "element 0 of vertices/id is -1000, but must be at least 0"),
    ("vertices/id", lambda ids: ids[:-1], r"vertices/id has \d+ elements, but the attributes make it \d+"),
    ("vertices/mirror_owner", lambda owner: owner[1:], r"vertices/mirror_owner has \d+ elements, but the attributes make it \d+"),
])  # fmt: skip
def test_lists_of_vertices_that_cannot_be(copied, name, change, message):
    store, partitions = copied
    write(partitions[0].store.url, name, change(partitions[0].store.read(name)))
    refused(partitions, store, message)


def test_partitions_of_another_graph(whole, tmp_path):
    partitions = whole[1]
    reference_build(*random_edges(2, 40, 150), tmp_path / "other", directed=True)
    with pytest.raises(CorruptStoreError, match=r"are not partitions of .*other, but of .*/g; name that graph"):
        check_partitions(partitions, open_graph(tmp_path / "other"))


def test_part_of_other_partitions(copied, whole, tmp_path):
    """Each part is sound, and so is the graph."""
    store, partitions = copied
    other = every_knob.partition(store, 3, "1D-vertex", tmp_path / "other", compiled=False)
    put_in_place(partitions, other[1].store.url)
    refused(partitions, store, "partition the graph again")


def test_chunk_that_is_missing(copied):
    store, partitions = copied
    (Path(partitions[2].store.url) / "out/indices/c/0").unlink()
    with pytest.raises(CorruptStoreError, match=r"part-00002/out/indices/c/0: this chunk of out/indices is missing"):
        check_partitions(partitions, store)


def test_changed_byte_is_found_by_the_checksums_of_its_part(copied):
    _, partitions = copied
    path = Path(partitions[1].store.url) / "vertices/mirror_owner/c/0"
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptStoreError, match="vertices/mirror_owner"):
        check_store(partitions[1].store)


def test_graph_in_place_of_a_part(copied):
    store, partitions = copied
    put_in_place(partitions, store.url)
    with pytest.raises(StoreError, match="part 1 of 3 is another graph store"):
        check_partitions(partitions, store)


def test_progress_counts_edges(whole, monkeypatch):
    monkeypatch.setattr(check, "BLOCK_ENTRIES", 20)
    store, partitions = whole
    told = []
    check_partitions(partitions, store, lambda *now: told.append(now))
    assert told[-1] == ("edges", store.attributes.num_stored_edges, store.attributes.num_stored_edges)
    assert len(told) > 4


@pytest.mark.usefixtures("steady_memory")
def test_a_check_that_does_not_fit_is_refused_with_the_budget_that_does(tmp_path):
    """Before anything is compared; the budget that is named is enough."""
    store = oocgraph.generate_kronecker(8, tmp_path / "graph.zarr", seed=3)
    made = every_knob.partition(store, 2, "EEC", tmp_path / "parts", compiled=False)
    with pytest.raises(oocgraph.BudgetError, match=r"what is compared needs .*at least") as refused:
        check_partitions(made, store, memory_budget="64M")
    named = re.search(r"at least ([0-9]+)M", str(refused.value))[1]
    assert check_partitions(made, store, memory_budget=f"{int(named) + 16}M").num_edges == store.attributes.num_stored_edges
