"""Text files that are read together: the edges of one file that holds all their lines, or a message that names the odd one."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import oocgraph
from oocgraph.errors import InputError, InputNotFoundError
from oocgraph.ingest.sources import open_source
from tests.ingest.helpers import read, refused

HEAD = "source,target,weight,kind\n"


@pytest.fixture
def folder(tmp_path):
    """Make three files of edges, of which one is compressed and one has another order of columns and another delimiter."""
    path = tmp_path / "days"
    path.mkdir()
    (path / "1.csv").write_text(HEAD + "ann,bob,1,a\nbob,cid,2,\n")
    (path / "2.csv.gz").write_bytes(gzip.compress((HEAD + "cid,dan,3.5,b\n").encode()))
    (path / "3.tsv").write_text("kind\tweight\ttarget\tsource\nc\t4\tann\tdan\n")
    (path / "_SUCCESS").touch()
    return path


WANTED = pd.DataFrame(
    {"source": ["ann", "bob", "cid", "dan"], "target": ["bob", "cid", "dan", "ann"], "weight": [1, 2, 3.5, 4], "kind": ["a", "", "b", "c"]}
)


def test_folders_patterns_and_lists_are_one_table(folder, tmp_path):
    options = {"columns": ("source", "target", "kind"), "weight": "weight", "directed": True}
    wanted = oocgraph.build_csr(WANTED, **options)
    for given in (
        folder,
        f"{folder}/*.?s*",
        [folder / name for name in ("1.csv", "2.csv.gz", "3.tsv")],
        [f"{folder}/3.tsv", *folder.glob("[12].*")],
    ):
        graph = oocgraph.build_csr(given, tmp_path / "g.zarr", overwrite=True, **options)
        assert graph.attributes.columns == wanted.attributes.columns
        assert next(graph.edges()).to_pydict() == next(wanted.edges()).to_pydict()
    oocgraph.append_edges(tmp_path / "g.zarr", folder, columns=options["columns"], weight="weight")
    assert oocgraph.open_graph(tmp_path / "g.zarr").num_edges == 4


def test_rows_are_numbered_through(folder):
    """So the first of repeated edges is the one of the file that was named first."""
    (folder / "4.csv").write_text(HEAD + "ann,bob,7,x\n")
    for files, weight in ((["1.csv", "4.csv"], 1), (["4.csv", "1.csv"], 7)):
        graph = oocgraph.build_csr([folder / name for name in files], weight="weight", duplicates="first")
        assert graph.neighbors(["ann"], columns=["weight"])["weight"].to_pylist() == [weight]
        blocks = [block for stream in open_source([folder / name for name in files]).streams(1) for block in stream()]
        assert [block.first_row for block in blocks] == [0, 1, 2]


def test_a_column_is_what_all_of_its_values_are(folder, tmp_path):
    (tmp_path / "a.csv").write_text("source,target,x,y,z\n1,2,,3,4\n")
    (tmp_path / "b.csv").write_text("source,target,x,y,z\n2,3,text,0.5,5\n")
    (tmp_path / "c.csv").write_text("source,target,x,y,z\n")
    for names in ("abc", "cba"):
        source = open_source([tmp_path / f"{name}.csv" for name in names], edge_columns=["x", "y", "z"])
        assert source.columns == {"x": "string", "y": "float64", "z": "int64"}
        assert source.id_kind == "int64"
    assert open_source([tmp_path / "c.csv", folder / "1.csv"]).id_kind == "string"


def test_files_without_headers_are_named(tmp_path):
    (tmp_path / "a.txt").write_text("1 2\n3 4\n")
    (tmp_path / "b.txt").write_text("5 6\n")
    refused(tmp_path, "a.txt has no header", "list or a pattern", f"{tmp_path}/*.txt")
    found = read(open_source(f"{tmp_path}/*.txt"))
    np.testing.assert_array_equal(found[:2], [[1, 3, 5], [2, 4, 6]])
    (tmp_path / "b.txt").unlink()
    assert open_source(tmp_path).id_kind == "int64"  # one file is no question


def test_what_does_not_belong_together_is_named(folder, tmp_path):
    (folder / "9.csv").write_text("source,target,weight\n1,2,3\n")
    with pytest.raises(InputError, match=r"9.csv has no column 'kind'"):
        oocgraph.build_csr(folder, columns=("source", "target", "kind"))
    refused(folder, "ids of", "1.csv are names", "9.csv are numbers", "id_kind='string'")
    assert oocgraph.build_csr(folder, id_kind="string").num_vertices == 6
    (folder / "9.csv").write_text("from,to\nx,y\n")
    refused(folder, "9.csv has the columns from, to", "1.csv the columns source, target, weight, kind", "same columns")
    (folder / "9.csv").write_text("x,y\n")
    refused([folder / "1.csv", folder / "9.csv"], "9.csv has 2 columns without a header")
    (folder / "9.csv").write_text("")
    refused(folder, "9.csv is empty")
    (folder / "9.csv").write_text(HEAD + "x,y,1,a\nx,y\n")
    with pytest.raises(InputError, match=r"9.csv, line 3"):
        oocgraph.build_csr(folder)
    with pytest.raises(InputNotFoundError, match=r"8.csv: no such file"):
        oocgraph.build_csr([folder / "1.csv", folder / "8.csv"])
    with pytest.raises(InputNotFoundError, match=r"days: a folder; a list of paths names files"):
        oocgraph.build_csr([folder / "1.csv", folder])


def test_the_command_and_the_estimate_take_them(folder, tmp_path):
    pattern = f"{folder}/*"
    for given in (folder, pattern, [folder / "1.csv", folder / "3.tsv"]):
        assert oocgraph.estimate(given).num_edges > 0


def test_a_folder_holds_nothing_that_is_left_out(folder, tmp_path):
    """What cannot be read there has edges that the graph would lack."""
    (folder / "README.md").write_text("# Edges")
    (folder / "LICENSE").touch()
    (folder / "Readme.txt").write_text("Edges of three days")
    (folder / ".git").mkdir()
    (folder / ".git" / "index").touch()
    oocgraph.build_csr(([1], [2]), folder / "g.zarr")
    assert len(read(open_source(folder, id_kind="string"))[0]) == 4
    inner = folder / "more"
    inner.mkdir()
    for name in ("4.csv.lz4", "part-00001", "4.dat", "4.json"):
        (inner / name).touch()
        refused(folder, name, "of no format", f"{folder}/*.csv")
        (inner / name).unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (inner / "link").symlink_to(elsewhere)
    refused(folder, "more/link", "of no format")
    assert len(read(open_source(f"{folder}/*.?s*", id_kind="string"))[0]) == 4


def test_a_folder_that_cannot_be_listed_is_named(folder, tmp_path, monkeypatch):
    (folder / "closed").mkdir()
    listed = os.scandir

    def scandir(path):
        if Path(os.fspath(path)).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    refused(folder, "days/closed: no permission")
    refused(f"{folder}/**/*.csv", "days/closed: no permission")


def test_patterns_pass_over_what_is_hidden_and_over_folders(folder):
    attempt = folder / "_temporary" / "0"
    attempt.mkdir(parents=True)
    (attempt / "1.csv").write_text(HEAD + "x,y,1,a\n")
    (folder / "more").mkdir()
    (folder / "more" / "4.csv").write_text(HEAD + "x,z,1,a\n")
    (folder / "_SUCCESS").unlink()
    for pattern, num_edges in ((f"{folder}/**", 5), (f"{folder}/**/*.csv", 3), (f"{attempt}/*", 1), (f"{folder}/_*/*/*.csv", 1)):
        assert len(read(open_source(pattern, id_kind="string"))[0]) == num_edges


def test_files_without_headers_are_as_wide_as_each_other(tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("0,5,6\n1,7,8\n")
    refused(f"{tmp_path}/*.csv", "b.csv has 3 columns without a header", "a.csv 2 columns without a header")
    (tmp_path / "b.csv").write_text("# nothing\n")
    refused(f"{tmp_path}/*.csv", "b.csv has neither rows nor a header", "leave it out")
    (tmp_path / "b.csv").unlink()
    (tmp_path / "b.el").write_text("1 2\n")
    refused(f"{tmp_path}/*", "b.el has 2 columns without a header (source, target)", "(f0, f1)")


def test_a_header_is_one_by_that_of_another_file(tmp_path, caplog):
    """Of a file without rows, or with text alone, only the names tell."""
    (tmp_path / "a.csv").write_text("caller,callee,minutes\nann,bob,3\n")
    (tmp_path / "b.csv").write_text("callee,caller,minutes\n")
    (tmp_path / "c.csv").write_text("caller,callee,minutes\ncid,dan,\n")
    for given in (tmp_path, f"{tmp_path}/*.csv", [tmp_path / "c.csv", tmp_path / "b.csv", tmp_path / "a.csv"]):
        graph = oocgraph.build_csr(given, columns=("caller", "callee"), directed=True)
        assert sorted(graph.edges(columns=[]).read_all().to_pandas().itertuples(index=False, name=None)) == [("ann", "bob"), ("cid", "dan")]
    source = open_source(tmp_path, source_column="caller", target_column="callee", edge_columns=["minutes"])
    assert source.columns == {"minutes": "int64"}
    (tmp_path / "a.csv").unlink()
    (tmp_path / "c.csv").write_text("callee,caller,minutes\n")
    assert "if it is a header" not in caplog.text
    assert open_source(f"{tmp_path}/*.csv").id_kind == "string"
    assert "if it is a header, name its columns, as in columns=('callee', 'caller')" in caplog.text


def test_a_header_without_rows_needs_no_columns_to_be_named(tmp_path):
    (tmp_path / "a.csv").write_text("u,v\n")
    (tmp_path / "b.csv").write_text("u,v\n1,2\n")
    for given in (tmp_path, f"{tmp_path}/*.csv"):
        source = open_source(given)
        assert source.id_kind == "int64"
        np.testing.assert_array_equal(read(source)[:2], [[1], [2]])


def test_a_list_names_files_of_this_machine(folder):
    names = ["1.csv", "2.csv.gz"]
    assert len(read(open_source([f"file://{folder}/{name}" for name in names]))[0]) == 3
    refused([f"s3://bucket/{name}" for name in names], "s3://bucket/1.csv: of URLs, one file or one folder is read, not a list")
