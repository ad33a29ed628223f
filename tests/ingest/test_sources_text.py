"""CSV, TSV, GAPBS text: delimiters, headers, comments, types, damage with its line."""

import gzip
import itertools
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from oocgraph import append_edges, build_csr
from oocgraph.errors import InputError
from oocgraph.ingest.sources import lines, open_source, parsed_lines
from tests.ingest.helpers import SOURCE, TARGET, check, peak_anonymous_bytes, plain, read, refused

EDGES = (SOURCE, TARGET)


def write(path, text):
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def rows(delimiter, end="\n", edges=EDGES):
    return end.join(f"{u}{delimiter}{v}" for u, v in zip(*edges, strict=True)) + end


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " ", "   ", " \t ", ", "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", " \n"])
@pytest.mark.parametrize("name", ["e.csv", "e.txt", "e.txt.gz"])
def test_delimiters_and_line_ends(tmp_path, delimiter, end, name):
    source = open_source(write(tmp_path / name, rows(delimiter, end)))
    check(source, EDGES, id_kind="int64", num_rows=None, directed=None, weight=None)


@pytest.mark.parametrize("name", ["e.tsv", "e.tsv.gz", "e.csv.gz", "e.el", "e.el.gz"])
def test_other_extensions(tmp_path, name):
    check(open_source(write(tmp_path / name, rows("\t"))), EDGES)


def test_no_line_end_at_the_end_and_a_byte_order_mark(tmp_path):
    check(open_source(write(tmp_path / "e.csv", b"\xef\xbb\xbf" + rows(",").strip().encode())), EDGES)
    check(open_source(write(tmp_path / "e.txt", "  " + rows(" ").strip() + " ")), EDGES)


def test_comments_and_blank_lines_anywhere(tmp_path):
    text = "# a, comment, of, many, fields\n% another\n\n" + rows(",").replace("2,3\n", "2,3\n  # within\n\n") + "# last"
    check(open_source(write(tmp_path / "e.csv", text)), EDGES)
    check(open_source(write(tmp_path / "e.el", text.replace(",", " "))), EDGES)


def test_blocks_of_any_size_give_the_same_edges(tmp_path, monkeypatch):
    """Blocks of a few bytes: lines, comments and the header fall on every boundary."""
    edges = (list(range(200)), list(range(1, 201)))
    path = write(tmp_path / "e.csv", "source,target\n" + rows(",", "\n# comment\n", edges))
    source = open_source(path)
    for num_bytes in (1, 2, 7, 64, 1000):
        monkeypatch.setattr(parsed_lines, "block_bytes_for", lambda *_, num_bytes=num_bytes: num_bytes)
        check(source, edges)


@pytest.mark.parametrize("header", ["source,target", "src,dst", "From,To", "a,b", '"a","b"', "_1,b c"])
def test_header_above_numbers(tmp_path, header):
    check(open_source(write(tmp_path / "e.csv", f"\n# c\n{header}\n" + rows(","))), EDGES)


def test_header_is_required_by_names(tmp_path):
    path = write(tmp_path / "e.csv", "w,b,a\n1.5,1,2\n2,3,4\n")
    check(open_source(path, source_column="a", target_column="b", weight_column="w"), ([2, 4], [1, 3]), {"w": [1.5, 2]}, weight="w")
    check(open_source(path, weight_column="w"), ([1, 3], [2, 4]), {"w": [1.5, 2]})
    refused(path, "'w', 'b', 'a'", "in columns")
    refused(path, "no column 'c'", "'w', 'b', 'a'", source_column="c", target_column="b")
    path = write(tmp_path / "f.csv", "1,2,3\n")
    refused(path, "without a header", "no column 'a'", "'f0', 'f1', 'f2'", source_column="a", target_column="b")


def test_columns_without_a_header_are_named_by_position(tmp_path):
    path = write(tmp_path / "e.csv", "1,2,0.5,a\n3,4,1,b\n")
    check(open_source(path), ([1, 3], [2, 4]))
    source = open_source(path, weight_column="f2", edge_columns=["f3"])
    check(source, ([1, 3], [2, 4]), {"f2": [0.5, 1], "f3": ["a", "b"]}, columns={"f2": "float64", "f3": "string"})
    check(open_source(path, source_column="f1", target_column="f0"), ([2, 4], [1, 3]))


def test_header_above_names(tmp_path):
    """An all-text file has a header only where its names say so."""
    path = write(tmp_path / "e.csv", "package,needs\nlibc6,libgcc\n0ad,libc6\n")
    check(open_source(path), (["package", "libc6", "0ad"], ["needs", "libgcc", "libc6"]), id_kind="string")
    check(open_source(path, source_column="package", target_column="needs"), (["libc6", "0ad"], ["libgcc", "libc6"]))
    check(open_source(write(tmp_path / "f.csv", "Source,Target\na,b\n")), (["a"], ["b"]))
    check(
        open_source(write(tmp_path / "g.csv", "a,b,n\nx,y,1\n"), source_column="a", target_column="b", edge_columns=["n"]),
        (["x"], ["y"]),
        {"n": [1]},
    )


def test_names_with_quotes_spaces_and_letters_of_all_sorts(tmp_path):
    text = 'source,target\n"a, b",c d\né,"say ""x"""\nNA,null\n'
    check(open_source(write(tmp_path / "e.csv", text)), (["a, b", "é", "NA"], ["c d", 'say "x"', "null"]), id_kind="string")
    check(open_source(write(tmp_path / "e.txt", "a' b\"\n")), (["a'"], ['b"']))


def test_numbers_among_names_are_names(tmp_path):
    path = write(tmp_path / "e.csv", "libc6,4store\n7,libc6\nx,007\n")
    check(open_source(path), (["libc6", "7", "x"], ["4store", "libc6", "007"]), id_kind="string")


def test_whole_floats_are_ids(tmp_path):
    check(open_source(write(tmp_path / "e.csv", "a,b\n1.0,2.0\n3.0,4e2\n")), ([1, 3], [2, 400]), id_kind="int64")


def test_weights_of_gapbs(tmp_path):
    check(open_source(write(tmp_path / "e.wel", "0 1 5\n2 3 7\n")), ([0, 2], [1, 3]), {"weight": [5, 7]}, weight="weight")
    check(open_source(write(tmp_path / "e.wel.gz", "0 1 .5\n2 3 7\n")), ([0, 2], [1, 3]), {"weight": [0.5, 7]})
    refused(write(tmp_path / "f.wel", "0 1\n"), ".wel means source target weight", ".txt")


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "source,target\n", "source,target"])
def test_no_edges(tmp_path, text):
    path = write(tmp_path / "e.csv", text or "\n\n")
    check(open_source(path), ([], []), id_kind="int64")


def test_no_edges_under_given_names(tmp_path):
    path = write(tmp_path / "e.csv", "a,b,w\n")
    check(open_source(path, source_column="a", target_column="b", weight_column="w"), ([], []), {"w": []}, columns={"w": "float64"})


def test_one_edge_of_names(tmp_path):
    check(open_source(write(tmp_path / "e.csv", "a,b\n")), (["a"], ["b"]))


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1", ("has 1 columns but 2", "correct the line")),
        ("1,2,3", ("has 3 columns but 2",)),
        ("1,x", ("'x' is not a number", "correct it")),
        (",2", ("'f0'", "missing", "fill it in")),
        ("1,NaN", ("'f1'", "missing")),
        ("-1,2", ("'f0'", "-1 is negative", "strings")),
        ("1,2.5", ("'f1'", "fractional")),
        ("1,99999999999999999999", ("'f1'", "overflows")),
        ("1,\xff", ("UTF-8",)),
        ("1,2\0", ("NUL", "binary")),
        ('1,"2', ("quotation mark",)),
        ("1," + "2" * (lines.PARSE_BYTES + 1), ("longer than",)),
    ],
)
@pytest.mark.parametrize("distance", [3, 20_000])
@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz"])
def test_bad_line_is_named(tmp_path, line, words, distance, name):
    """Near the start, where the types are found, and far behind, where another block is read."""
    head = "# comment\n\n" + "1,2\n" * distance
    path = write(tmp_path / name, (head + line + "\n3,4\n5,6\n").encode("latin-1"))
    refused(path, f"line {distance + 3}", *words)


TEXT_IDS = "007,7\n7,1e3\n -1,NaN\n"


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz"])
def test_ids_are_text_where_the_user_says_so(tmp_path, name):
    """As they stand there, whatever they look like, and in the next block too."""
    text = TEXT_IDS + "5,6\n" * 20_000 + "x,y\n"
    refused(write(tmp_path / name, text), "line 3")
    fives, sixes = ["5"] * 20_000, ["6"] * 20_000
    edges = (["007", "7", " -1", *fives, "x"], ["7", "1e3", "NaN", *sixes, "y"])
    source = open_source(tmp_path / name, id_kind="string")
    assert (source.id_kind, read(source, 30_000)[:2]) == ("string", edges)
    write(tmp_path / f"h.{name}", f"source,target,weight\n{TEXT_IDS.replace(chr(10), ',2.5' + chr(10))}")
    source = open_source(tmp_path / f"h.{name}", id_kind="string", weight_column="weight")
    assert read(source)[2] == {"weight": [2.5] * 3}


def test_ids_are_numbers_where_the_user_says_so(tmp_path):
    """Also where most look like names: the first that is none is refused with its line."""
    for text in ("1,2\n3,x\n", "a,b\nc,d\n"):
        open_source(write(tmp_path / "e.csv", text), id_kind="int64")
        with pytest.raises(InputError, match=r"line [12], .* is not a number; correct it, or give id_kind='string'"):
            read(open_source(tmp_path / "e.csv", id_kind="int64"))
    check(open_source(write(tmp_path / "e.csv", "1,2\n"), id_kind="int64"), ([1], [2]), id_kind="int64")


def test_fractional_ids_from_the_start(tmp_path):
    refused(write(tmp_path / "e.csv", "1,2\n3,2.5\n"), "line 2", "'f1'", "2.5 is fractional")


def test_integer_written_otherwise_late_in_the_file(tmp_path):
    path = write(tmp_path / "e.csv", "1,2\n" * 20_000 + "3,4.0\n")
    refused(path, "line 20001", "'4.0' is not written as a plain integer")


@pytest.mark.parametrize("text", ['a,"b\nc,d\n', 'a,"b\nc,d"\ne,f\n', 'source,target\na,"b\n\nc"\n'])
def test_line_break_within_quotes(tmp_path, text):
    path = write(tmp_path / "e.csv", "x,y\n" * 20_000 + text)
    refused(path, "line 2000", "quotation mark is not closed", "line breaks within quotes")


def test_line_ends_of_old_and_fields_of_any_length(tmp_path):
    refused(write(tmp_path / "e.csv", "1,2\n3,4\r5,6\r"), "line 2", "carriage return", "convert")
    check(open_source(write(tmp_path / "f.csv", f"a,{'b' * 200_000}\n")), (["a"], ["b" * 200_000]))
    refused(write(tmp_path / "g.csv", f'a,"{"b" * 200_000}"\n'), "line 1", "field")


def test_numbers_that_only_python_reads(tmp_path):
    """Nor is such a first row taken for a header."""
    for number in ("1_000", "0x10", "+1", "1O"):
        refused(write(tmp_path / "e.csv", f"{number},2\n3,4\n"), "line 1", f"'{number}' is not a number")


def test_missing_name(tmp_path):
    refused(write(tmp_path / "e.csv", "a,b\nc,\n"), "line 2", "missing (empty)")


def test_bad_values_of_edge_columns(tmp_path):
    path = write(tmp_path / "e.csv", "1,2,1.5\n1,2,\n")
    assert np.isnan(read(open_source(path, edge_columns=["f2"]))[2]["f2"][1])
    refused(path, "line 2", "'f2'", "missing", weight_column="f2")
    refused(write(tmp_path / "f.csv", "1,2,a\n1,2,b\n"), "'f2'", "weight must be a number", weight_column="f2")
    path = write(tmp_path / "g.csv", "1,2,7\n" * 20_000 + "1,2,7.5\n")
    refused(path, "line 20001", "'f2'", "'7.5'", "(dtypes)", edge_columns=["f2"])


def test_one_column_only(tmp_path):
    refused(write(tmp_path / "e.csv", "abc\ndef\n"), "'abc' has one column only", "an edge needs two")


def test_files_of_another_kind(tmp_path):
    refused(write(tmp_path / "e.csv", b"PAR1\x15\x00\x15\x10" * 10), "line 1", "NUL", "extension")
    refused(write(tmp_path / "f.csv", "1,2\n".encode("utf-16")), "line 1", "UTF-16")


@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz"])
def test_a_file_of_nothing_is_no_edge_list(tmp_path, name):
    """Compressed or not; what was cut off before its first line would be a graph without edges."""
    refused(write(tmp_path / name, ""), "0 bytes", "write the edge list again")


def test_damaged_gzip(tmp_path):
    path = tmp_path / "e.csv.gz"
    data = gzip.compress(("\n".join(f"{i},{i * i}" for i in range(100_000))).encode())
    path.write_bytes(data[: len(data) // 2])
    assert refused(path, "truncated").__cause__ is not None
    path.write_bytes(b"1,2\n")
    refused(path, "not a gzip file")
    path.write_bytes(data[:1000] + bytes(1000) + data[2000:])
    refused(path, "damaged")


def test_declared_number_of_vertices(tmp_path):
    path = write(tmp_path / "e.csv", rows(","))
    check(open_source(path, num_vertices=10), EDGES, num_vertices=10)
    refused(path, "line 4", "9 is not below", num_vertices=9)


def test_a_long_file_is_read_in_bounded_memory(tmp_path):
    path = write(tmp_path / "e.csv", b"123456789012,987654321098\n" * 2_000_000)
    grown, num_edges = peak_anonymous_bytes(path)
    assert num_edges == 2_000_000
    assert grown < 40 << 20


def test_blocks_are_as_large_as_the_rows_asked_for():
    """Threads that parse a block finish together if it is large; what a build with little memory asks for stays small."""
    assert lines.block_bytes_for(1 << 10, 8) == lines.MIN_BLOCK_BYTES
    assert lines.block_bytes_for(1 << 18, 100) == lines.BLOCK_BYTES
    assert lines.block_bytes_for(1 << 20, 100) == lines.BLOCK_ROW_BYTES << 20
    assert lines.block_bytes_for(1 << 20, 8) == 8 << 20


def test_pieces_of_a_large_block_stay_where_they_are(tmp_path):
    names = [f"name of vertex {i:09d}" for i in range(200_001)]
    edges = [f"{u}\t{v}" for u, v in itertools.pairwise(names)]
    path = write(tmp_path / "e.tsv", "\n".join(edges))
    blocks = [block for stream in open_source(path).streams(1 << 20) for block in stream()]
    assert len(blocks) > parsed_lines.PIECES_PER_THREAD or pa.cpu_count() > 4
    assert [block.first_row for block in blocks] == np.cumsum([0, *(len(block.source) for block in blocks)])[:-1].tolist()
    assert pa.concat_arrays([block.source for block in blocks]).to_pylist() == names[:-1]
    assert pa.concat_arrays([block.target for block in blocks]).to_pylist() == names[1:]
    edges[150_000] = "only one"
    write(path, "\n".join(edges))
    with pytest.raises(InputError, match="line 150001 has 1 columns"):
        list(open_source(path).streams(1 << 20)[0]())


def test_arrow_has_let_go_of_a_block_before_it_is_dealt(tmp_path, monkeypatch):
    """A thread of Arrow that lets go of it while the program ends would abort the process."""
    parse, held, ended = csv.read_csv, [], []

    def read_csv(reader, **options):
        def hold(reader=reader):
            time.sleep(0.05)
            ended.append(True)

        thread = threading.Thread(target=hold)
        thread.start()
        held.append(thread)
        return parse(pa.BufferReader(bytes(reader.read_buffer())), **options)

    monkeypatch.setattr(parsed_lines.pacsv, "read_csv", read_csv)
    path = write(tmp_path / "e.csv", rows(","))
    for block in (block for stream in open_source(path).streams(100) for block in stream()):
        assert len(ended) == len(held) == 1
        assert block.source.tolist() == SOURCE
    write(path, rows(",") + "1,2,3\n")
    with pytest.raises(InputError, match="columns"):
        list(open_source(path).streams(100)[0]())
    assert len(ended) == 2
    for thread in held:
        thread.join()


@pytest.mark.parametrize("length", [lines.PARSE_BYTES - 10, lines.PARSE_BYTES])
def test_a_long_line_is_refused_whatever_memory_there_is(tmp_path, length):
    """Pieces of a large block are longer."""
    edges = [*(f"vertex {i:020d}\tvertex {i + 1:020d}" for i in range(200_000)), "a" * length + "\tb", "c\td", ""]
    path = write(tmp_path / "e.tsv", "\n".join(edges))
    for block_rows in (1 << 12, 1 << 20):
        [stream] = open_source(path).streams(block_rows)
        if length < lines.PARSE_BYTES:
            assert sum(len(block.source) for block in stream()) == len(edges) - 1
        else:
            with pytest.raises(InputError, match=f"line 200001 is longer than {lines.PARSE_BYTES} bytes"):
                list(stream())


TAGS = [("#python", "%code"), ("#code", "java"), ("java", "#c"), ("%c", "#python")]


@pytest.mark.parametrize("delimiter", [",", " "])
@pytest.mark.parametrize("num_bytes", [1, 7, 1000, 1 << 20])
def test_names_may_begin_as_comments_do(tmp_path, monkeypatch, num_bytes, delimiter):
    """Comments end with the first row, whatever blocks it is read in."""
    text = "# of tags\n\n  % of code\nsource,target\n\n" + "".join(f"{u},{v}\n" for u, v in TAGS)
    source = open_source(write(tmp_path / "e.txt", text.replace(",", delimiter)))
    monkeypatch.setattr(parsed_lines, "block_bytes_for", lambda *_: num_bytes)
    check(source, tuple(zip(*TAGS, strict=True)), id_kind="string")


def test_where_numbers_are_text_comments_end_with_the_first_row(tmp_path):
    """As where ids are names."""
    text = "# a\n1,2\n%3,4\n# 5,6\n"
    check(open_source(write(tmp_path / "e.csv", text)), ([1], [2]), id_kind="int64")
    check(open_source(tmp_path / "e.csv", id_kind="string"), (["1", "%3", "# 5"], ["2", "4", "6"]), id_kind="string")
    write(tmp_path / "e.txt", "1 2\n# within it\n")
    with pytest.raises(InputError, match=r"line 2 has 3 columns .* comments stand before the first row only"):
        read(open_source(tmp_path / "e.txt", id_kind="string"))


def test_below_a_header_lines_that_begin_as_comments_do_are_told_apart_by_the_user(tmp_path):
    """Unless other rows are there, or they have too few fields for an edge."""
    path = write(tmp_path / "e.csv", "source,target\n#ai,#ml\n%ml,nlp\n")
    refused(path, "line 2", "'#ai' begins as a comment does", "id_kind='string'", "id_kind='int64'")
    check(open_source(path, id_kind="string"), (["#ai", "%ml"], ["#ml", "nlp"]), id_kind="string")
    check(open_source(path, id_kind="int64"), ([], []), id_kind="int64")
    check(open_source(write(tmp_path / "f.csv", "source,target\n#ai,#ml\nml,nlp\n")), (["#ai", "ml"], ["#ml", "nlp"]))
    check(open_source(write(tmp_path / "f.csv", "source,target\n#1,2\n3,4\n")), ([3], [4]), id_kind="int64")
    check(open_source(write(tmp_path / "f.csv", "source,target\n# none\n")), ([], []))


def test_types_are_those_of_rows_that_begin_as_comments_do_too(tmp_path):
    path = write(tmp_path / "e.csv", "source,target,w\na,b,1\n#c,d,1.5\n")
    check(open_source(path, weight_column="w"), (["a", "#c"], ["b", "d"]), {"w": [1, 1.5]}, weight="w")


def test_text_that_is_added_to_a_graph_of_strings_is_read_like_its_ids(tmp_path):
    build_csr((["x"], ["y"]), tmp_path / "g", directed=True)
    graph = append_edges(tmp_path / "g", write(tmp_path / "e.csv", "source,target\n#ai,#ml\n#ml,7\n"))
    found = [edge for batch in graph.edges() for edge in zip(*map(plain, batch.columns[:2]), strict=True)]
    assert sorted(found) == [("#ai", "#ml"), ("#ml", "7"), ("x", "y")]


UNENDED = [
    ("who,whom\n1,2", {}, ([1], [2]), {}),
    ("who,whom,w\nann,bob,3", {"weight_column": "w", "source_column": "who", "target_column": "whom"}, (["ann"], ["bob"]), {"w": [3]}),
    ("source,target,w\n1,2,9007199254740993", {"weight_column": "w"}, ([1], [2]), {"w": [2**53 + 1]}),
    ("x,y\n5,a\nb,c", {}, (["x", "5", "b"], ["y", "a", "c"]), {}),
    ("source,target\nann,bob", {}, (["ann"], ["bob"]), {}),
    ("source,target,w\n1,2,3\n4,5,1.5", {"weight_column": "w"}, ([1, 4], [2, 5]), {"w": [3, 1.5]}),
]


@pytest.mark.parametrize(("text", "options", "edges", "columns"), UNENDED)
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize(("name", "delimiter"), [("e.csv", ","), ("e.csv.gz", ","), ("e.tsv", "\t"), ("e.txt", " ")])
def test_the_last_row_counts_without_a_line_end(tmp_path, text, options, edges, columns, end, name, delimiter):
    """It is of the sample, too."""
    source = open_source(write(tmp_path / name, (text + end).replace(",", delimiter)), **options)
    check(source, edges, columns)


def test_gapbs_weights_of_the_last_row_count_without_a_line_end(tmp_path):
    check(open_source(write(tmp_path / "e.wel", "1 2 3\n4 5 1.5")), ([1, 4], [2, 5]), {"weight": [3, 1.5]})


@pytest.mark.parametrize("distance", [0, 20_000])
def test_quotes_between_spaces_are_refused(tmp_path, distance):
    """White space would cut a quoted name; a quotation mark within a name is one of its letters."""
    names = 'a"b it\'s"\n' * distance
    for line in ('"New York" "Los Angeles"', 'ann "bob"'):
        path = write(tmp_path / "e.txt", f'# of "places"\n{names}{line}\n')
        refused(path, f"line {distance + 2}", "begins with a quotation mark", "commas or tabs")
    check(open_source(write(tmp_path / "e.el", '# "a" b\na"b c"\n')), (['a"b'], ['c"']))


def test_an_open_quote_is_no_reason_to_blame_the_separator(tmp_path):
    """With the tab within it the line has one column, and is taken for one that spaces separate."""
    refused(write(tmp_path / "e.tsv", '"a b\tc\nd\te\n'), "line 1", "quotation mark is not closed")


@pytest.mark.parametrize("text", ["0x10,5", "5,0X1f", "5, 0x10", '"0x10",5'])
def test_hexadecimal_numbers_are_refused_far_behind_too(tmp_path, text):
    path = write(tmp_path / "e.csv", "1,2\n" * 20_000 + f"3,4\n{text}\n")
    refused(path, "line 20002", "is not a number")


def test_hexadecimal_numbers_are_text_in_columns_of_text(tmp_path):
    path = write(tmp_path / "e.csv", "source,target,w\n0xab,0xcd,5\n0xEF,0XA,7\n")
    check(open_source(path, weight_column="w"), (["0xab", "0xEF"], ["0xcd", "0XA"]), {"w": [5, 7]})
    write(tmp_path / "e.csv", "source,target,w\n" + "0xab,0xcd,5\n" * 20_000 + "0xab,0xcd,0x5\n")
    refused(path, "line 20002", "'w'", "'0x5' is not int64", weight_column="w")


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("blank", "end"), [("  ", "\n"), ("\f", "\r\n"), ("\t", "\n"), (" \t\v", "\r\n")])
@pytest.mark.parametrize(("delimiter", "name"), [(",", "e.csv"), (" ", "e.txt"), ("\t", "e.tsv")])
def test_lines_of_white_space_are_blank(tmp_path, blank, delimiter, name, end):
    """At the beginning and the end, around the header and far behind; where tabs separate fields one with tabs is a row without ids."""
    text = end.join([blank, "source,target", blank, *["1,2", blank, '"3",4' if delimiter == "," else "3,4"] * 10_000])
    path = write(tmp_path / name, (text + end + blank).replace(",", delimiter))
    if delimiter == "\t" and "\t" in blank:
        refused(path, "line")
    else:
        source = open_source(path)
        assert read(source, 30_000)[:2] == ([1, 3] * 10_000, [2, 4] * 10_000)
        write(path, (text + end + "5,x").replace(",", delimiter))
        refused(path, "line 30004", "'x' is not a number")


def test_a_row_of_tabs_is_named(tmp_path):
    for row in ("a\tb", "1\t2"):
        refused(write(tmp_path / "e.tsv", f"{row}\n \n\t\n"), "line 3", "missing")


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("1,2, \n", {"edge_columns": ["f2"]}, ("line 1", "'f2'", "the value is missing (' ')", "drop the line")),
        ("1,2,3\n4,5, NA\n", {"edge_columns": ["f2"]}, ("line 2", "the value is missing (' NA')", "drop the line")),
        ("1, Nan\n2,3\n", {}, ("line 1", "the id is missing (' Nan')", "drop the line")),
        ("1,2\n" * 20_000 + "3,inf\n", {}, ("line 20001", "'inf' is not finite")),
        ("1.0,2\n3,inf\n", {}, ("line 2", "is not finite")),
    ],
)
def test_what_stands_for_no_value_is_named(tmp_path, text, options, words):
    refused(write(tmp_path / "e.csv", text), *words, **options)


def test_the_line_of_a_bad_row_is_named_where_names_begin_as_comments_do(tmp_path):
    text = "# of tags\nsource,target\n" + "".join(f"{u},{v}\n" for u, v in TAGS) + "#x,\n"
    refused(write(tmp_path / "e.csv", text), "line 7", "the id is missing")


def test_a_first_row_that_may_be_a_header_is_pointed_out(tmp_path, caplog):
    """None of its names is in another row."""
    for header, told in (("person,friend", True), ("ann,dan", False), ("source,target", False)):
        caplog.clear()
        open_source(write(tmp_path / "e.csv", f"{header}\nann,bob\nbob,cid\ncid,dan\n"))
        assert bool(caplog.records) == told
        if told:
            assert "the first row (person, friend) is taken for an edge" in caplog.text
            assert "columns=('person', 'friend')" in caplog.text
