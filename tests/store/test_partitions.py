"""Opening partitions: what there is, and each way in which there is none."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import oocgraph
from oocgraph.errors import CorruptStoreError, StoreError
from oocgraph.store.graph import open_graph
from oocgraph.store.partitions import is_partitions, master_dtype, open_partitions
from tests import every_knob
from tests.reference_build import reference_build
from tests.stores import random_edges


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    reference_build(*random_edges(1, 40, 150), folder / "g", implied=(0, 45))
    return every_knob.partition(folder / "g", 3, "CVC", folder / "p", compiled=False)


@pytest.fixture
def copied(whole, tmp_path):
    shutil.copytree(whole.url, tmp_path / "p")
    return tmp_path / "p"


def say(folder, **attributes):
    """Change attributes of the index; None removes one."""
    path = folder / "zarr.json"
    group = json.loads(path.read_text())
    mine = group["attributes"]["oocgraph_partitions"] | attributes
    group["attributes"]["oocgraph_partitions"] = {key: value for key, value in mine.items() if value is not None}
    path.write_text(json.dumps(group))


def test_what_it_says(whole):
    store = open_graph(whole.attributes.graph)
    found = oocgraph.open_partitions(whole.url)
    assert (found.num_partitions, len(found), found.policy) == (3, 3, "CVC")
    assert (found.num_vertices, found.num_stored_edges) == (store.num_rows, store.attributes.num_stored_edges)
    assert (found.attributes.read, found.attributes.transposed, found.attributes.directed) == ("out", False, False)
    assert found.attributes.library_version == oocgraph.__version__
    assert "3 by CVC" in repr(found)
    assert found.masters.read(0, store.num_rows).dtype == np.int16
    assert [part.index for part in found] == [0, 1, 2]
    assert open_partitions(f"file://{whole.url}").attributes == found.attributes
    assert is_partitions(whole.url)
    assert not is_partitions(store.url)


def test_counts_of_a_part_are_those_of_its_arrays(whole):
    for part in whole:
        assert part.num_vertices == part.num_masters + part.num_mirrors == part.global_id().size
        assert part.mirror_owner().size == part.num_mirrors
        assert part.isolated_masters().size == part.num_isolated
        assert part.store.read("out/indices").size == part.num_edges
        assert part.store.attributes.directed
        assert part.store.attributes.vertex_order == "partition"


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_travels_as_its_path(whole, pickler):
    found = pickler.loads(pickler.dumps(whole))
    assert found.attributes == whole.attributes
    assert len(pickler.dumps(whole)) < 500


def test_opening_reads_no_chunk(copied):
    for path in copied.rglob("c"):
        shutil.rmtree(path)
    found = open_partitions(copied)
    assert [part.num_edges for part in found]
    with pytest.raises(CorruptStoreError, match="is missing"):
        found[0].global_id()


@pytest.mark.parametrize("p", [-1, 3])
def test_part_that_is_not_one(whole, p):
    with pytest.raises(IndexError):
        whole[p]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"complete": False}, "are incomplete; remove the folder and partition the graph again"),
        ({"complete": None}, "are incomplete"),
        ({"format": None}, "are incomplete"),
        ({"format": 2}, "format 2 are newer than format 1 of this oocgraph; upgrade oocgraph"),
        ({"num_partitions": None}, "attributes of these partitions are damaged .*num_partitions.*; partition the graph again"),
        ({"num_partitions": 4}, "part 3 of 4 is missing; restore part-00003, or partition the graph again"),
        ({"num_partitions": "three"}, "attributes of these partitions are damaged"),
        ({"read": "both"}, "attributes of these partitions are damaged"),
    ],
)
def test_index_that_cannot_be_used(copied, attributes, message):
    say(copied, **attributes)
    with pytest.raises(StoreError, match=message) as said:
        open_partitions(copied)
    assert str(copied) in str(said.value)


def test_fields_of_a_later_version_are_ignored(copied):
    say(copied, colour="blue")
    assert open_partitions(copied).num_partitions == 3


def test_missing_part(copied):
    shutil.rmtree(copied / "part-00001")
    with pytest.raises(StoreError, match="part 1 of 3 is missing; restore part-00001"):
        open_partitions(copied)


@pytest.mark.parametrize("change", [{"complete": False}, {"format": 9}])
def test_part_that_cannot_be_opened(copied, change):
    path = copied / "part-00002" / "zarr.json"
    group = json.loads(path.read_text())
    group["attributes"]["oocgraph"] |= change
    path.write_text(json.dumps(group))
    with pytest.raises(StoreError, match=r"part 2 of 3 is missing or damaged \(.*part-00002.*\); partition the graph again"):
        list(open_partitions(copied))


def test_index_without_masters(copied):
    (copied / "masters" / "zarr.json").unlink()
    with pytest.raises(CorruptStoreError, match="array masters is missing"):
        open_partitions(copied).masters  # noqa: B018


def test_what_is_no_partitions(whole, tmp_path):
    with pytest.raises(StoreError, match=r"nothing: no such file or folder; make partitions with `oocgraph partition GRAPH"):
        open_partitions(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="not partitions of a graph; give the folder that `oocgraph partition` wrote"):
        open_partitions(tmp_path / "empty")
    with pytest.raises(StoreError, match=r"not partitions of a graph \(it is a graph store: `oocgraph partition .*/g OUT`\)"):
        open_partitions(whole.attributes.graph)
    with pytest.raises(StoreError, match="not a graph store"):
        open_graph(whole.url)
    for text in ("{", "[]", '{"attributes": {"oocgraph_partitions": 7}}', '{"attributes": []}'):
        (tmp_path / "empty" / "zarr.json").write_text(text)
        with pytest.raises(StoreError, match="not partitions of a graph"):
            open_partitions(tmp_path / "empty")
    Path(tmp_path / "file").touch()
    with pytest.raises(StoreError, match="not partitions of a graph"):
        open_partitions(tmp_path / "file")


@pytest.mark.parametrize(("num_partitions", "name"), [(1, "int16"), (32_767, "int16"), (32_768, "int32")])
def test_dtype_of_masters(num_partitions, name):
    assert master_dtype(num_partitions).name == name


@pytest.mark.parametrize("p", range(3))
def test_a_mirror_whose_master_is_nowhere_is_refused(whole, copied, p):
    """Its place in the lists of that part would be that of another vertex, or none."""
    part = open_partitions(copied)[p]
    owner = part.mirror_owner()
    owner[0] = next(q for q in range(3) if q not in (p, owner[0]))
    owner.astype("<i4").tofile(Path(part.store.url) / "vertices" / "mirror_owner" / "c" / "0")
    with pytest.raises(
        CorruptStoreError, match=rf"part-0000{p}.*says that vertex \d+ .* has its master in part {owner[0]}, which does not"
    ):
        oocgraph.bfs(whole.attributes.graph, 0, partition=open_partitions(copied))


def test_a_mirror_whose_master_would_be_in_its_own_part_is_refused(whole, copied):
    """Such a part would send itself candidates by a list that it has not."""
    part = open_partitions(copied)[1]
    owner = part.mirror_owner()
    owner[2] = 1
    owner.astype("<i4").tofile(Path(part.store.url) / "vertices" / "mirror_owner" / "c" / "0")
    with pytest.raises(CorruptStoreError, match=r"part-00001.*: element 2 of vertices/mirror_owner is 1, the partition itself"):
        oocgraph.bfs(whole.attributes.graph, 0, partition=open_partitions(copied))
