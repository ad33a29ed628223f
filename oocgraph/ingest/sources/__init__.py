"""Everything that turns an input into an `EdgeSource`: one module for each format, one function to open any of them.

Ids are integers 0 .. 2**63 - 1 (any width and dtype; floats when all are whole) or strings. Whatever cannot be an edge is an
InputError that names the file, the place and the remedy; nothing is skipped.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from oocgraph.errors import InputError, InputNotFoundError
from oocgraph.ingest.edges import EdgeSource
from oocgraph.ingest.sources.both_directions import both_directions
from oocgraph.ingest.sources.found_files import files_below, files_matching, is_pattern, is_store
from oocgraph.ingest.sources.source import COMPRESSIONS, InputFile, Request, Source, reading, refuse_stream
from oocgraph.store.graph import CSRStore
from oocgraph.store.outputs import tilde_hint
from oocgraph.types import IdKind

__all__ = ["is_dask", "open_requested", "open_source"]


def open_source(
    source: Any,
    *,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    edge_columns: Sequence[str] = (),
    num_vertices: int | None = None,
    id_kind: IdKind | None = None,
) -> EdgeSource:
    """Open an edge list of any format.

    Parameters
    ----------
    source
        A path (one file; for Parquet and text also a folder, a glob or a list; for Parquet a URL), or an object: a pair of arrays, which is
        a tuple (sources, targets) or a list of two arrays or lists, or an array (num_edges, 2), each of NumPy or Dask; a tuple (sources,
        targets, weights) of arrays or lists; a list of tuples (source, target), or (source, target, weight), however many; an array
        (num_edges, 2) of Zarr, h5py or another library, which is read a range of rows at a time; a dict of columns, a structured array; a
        SciPy sparse matrix; a NetworkX graph; a pandas or Dask DataFrame; a pyarrow or Polars table; a pyarrow dataset, a Polars lazy
        frame, a DuckDB relation, or any other stream of Arrow batches (``__arrow_c_stream__``); an iterable of paths, of edges (tuples or
        other sequences, as in a list) or of tables, arrays and pairs of arrays, which are read one after the other.
    source_column, target_column
        Needed where a table has more than two columns and none called source/target, src/dst or from/to.
    weight_column, edge_columns
        Columns to keep beside the edges. Matrix Market, SciPy matrices, GAPBS .wel and .wsg, DIMACS, METIS with weights, and tuples of
        three (of edges, or of columns) have one, ``weight``, by themselves.
    num_vertices
        Declares that the vertices are 0 .. num_vertices - 1.
    id_kind
        What the ids of a text file are read as.

    Raises
    ------
    InputError
        The input is missing, empty, of an unknown format, or its columns cannot be edges.
    """
    request = Request(source_column, target_column, weight_column, edge_columns, num_vertices, id_kind=id_kind)
    return open_requested(source, request)


def open_requested(source: Any, request: Request) -> EdgeSource:
    """Open an edge list of any format, as `open_source` does, unless it is an `EdgeSource`.

    For a directed graph an undirected one gives its edges in both directions.
    """
    edges: EdgeSource
    if hasattr(type(source), "streams"):
        edges = source
    else:
        edges = _open_path(os.fspath(source), request) if isinstance(source, str | os.PathLike) else _open_object(source, request)
    return both_directions(edges) if request.directed and edges.directed is False else edges


_TEXT = (".csv", ".tsv", ".txt", ".el", ".wel", ".edges", ".edgelist")
_LINES = {
    ".mtx": "matrix_market.open_matrix_market",
    ".gr": "dimacs.open_dimacs",
    ".graph": "metis.open_metis",
    **dict.fromkeys(_TEXT, "text.open_text_edges"),
}
KONECT = "out."
"""Beginning of the names of files of KONECT, which end in what the network is called."""

_FORMATS = {
    KONECT: "konect.open_konect",
    ".parquet": "parquet.open_parquet",
    ".pq": "parquet.open_parquet",
    ".npy": "numpy_files.open_npy",
    ".sg": "csr.open_sg",
    ".wsg": "csr.open_sg",
    ".npz": "numpy_files.open_npz",
    **{extension + compression: opener for extension, opener in _LINES.items() for compression in ("", *COMPRESSIONS)},
}
"""Module and function of this package that opens files of each extension, or of `KONECT`; it is loaded with the libraries that it needs at
first use."""

_PLAIN = [name for name in _FORMATS if name != KONECT and not name.endswith(COMPRESSIONS)]
_KNOWN = f"{', '.join(_PLAIN)}, {KONECT}NAME; text also with {', '.join(COMPRESSIONS)}"

_TOGETHER = {"parquet.open_parquet": "parquet.open_parquet", "text.open_text_edges": "text.open_text_files"}
"""What opens several files of those that can be read together, by what opens one."""


def _opener(name: str) -> Callable[..., Source]:
    """Return a function of this package by its module and name."""
    module, _, function = name.partition(".")
    opener: Callable[..., Source] = getattr(import_module(f"{__name__}.{module}"), function)
    return opener


def _open_path(text: str, request: Request) -> Source:
    text = text.removeprefix("file://")
    if not text:  # which would be the current folder
        raise InputError("the path of the edge list is empty; name a file or a folder (. is the current one)")
    if "://" in text:
        return _open_url(text, request)
    path = Path(text)
    with reading(path):
        is_folder, exists = path.is_dir(), path.exists()
        if exists:
            refuse_stream(path, path.stat().st_mode)
    if is_folder:
        return _open_folder(path, request)
    if not exists and (hint := tilde_hint(text)):
        raise InputNotFoundError(f"{path}: no such file{hint}")
    if not exists and is_pattern(text):
        return _open_glob(text, request)
    extension = _extension(path)
    if extension is None:
        if not exists:
            raise InputNotFoundError(f"{path}: no such file; check the path")
        raise InputError(
            f"{path}: unknown extension {path.suffix!r}; known are: {_KNOWN}; if it is text with an edge on each line, rename it .txt"
        )
    return _with_files([path], lambda: _opener(_FORMATS[extension])(path, request))


def _open_url(url: str, request: Request) -> Source:
    extension = _extension(Path(url))
    if extension not in {".parquet", ".pq", KONECT, None}:
        raise InputError(f"{url}: of URLs, only Parquet (a file or a folder) is read, not {extension}; copy it here first")
    return _opener("remote_parquet.open_remote_parquet")(url, request)


def _with_files(paths: Sequence[Path], opened: Callable[[], Source]) -> Source:
    """Open files, and note how they were before."""
    files = tuple(InputFile.of(path) for path in paths)
    source = opened()
    source.files = files
    return source


def _extension(path: Path) -> str | None:
    """Return the longest known extension that the name ends in, or `KONECT`, which it begins with."""
    name = path.name.lower()
    found = max((extension for extension in _FORMATS if name.endswith(extension)), key=len, default=None)
    return KONECT if found is None and name.startswith(KONECT) else found


def _open_folder(path: Path, request: Request) -> Source:
    if is_store(path):
        raise InputError(
            f"{path} is a Zarr group: a graph store already, not an edge list; open it as it is, with open_graph, or "
            "add its edges to another with merge_graphs"
        )
    seen = files_below(path)
    files = [file for file in seen if _extension(file) is not None]
    if not files:
        raise InputError(f"{path}: the folder holds no edge list; known are: {_KNOWN}")
    other = next((file for file in seen if _extension(file) is None), None)
    if other is not None:
        inner = "**/" if any(file.parent != path for file in files) else ""
        raise InputError(
            f"{path}: {other} is of no format that is read here, and its edges would be missing; name those to be read by a list or a "
            f"pattern, such as {path}/{inner}*{_extension(files[0])}"
        )
    return _open_many(files, str(path), request, are_named=False)


def _open_glob(text: str, request: Request) -> Source:
    files = files_matching(text)
    return _open_path(str(files[0]), request) if len(files) == 1 else _open_many(files, text, request)


def _open_list(paths: list[str], request: Request) -> Source:
    """Open several files, in the order given."""
    names = [path.removeprefix("file://") for path in paths]
    if url := next((name for name in names if "://" in name), None):
        raise InputError(f"{url}: of URLs, one file or one folder is read, not a list; name the folder, or copy the files here first")
    files = list(map(Path, names))
    if missing := next((file for file in files if not file.is_file()), None):
        raise InputNotFoundError(f"{missing}: {'a folder' if missing.is_dir() else 'no such file'}; a list of paths names files")
    return _open_path(str(files[0]), request) if len(files) == 1 else _open_many(files, f"{files[0]} and {len(files) - 1} more", request)


def _open_many(files: list[Path], description: str, request: Request, *, are_named: bool = True) -> Source:
    openers = {file: _TOGETHER.get(_FORMATS.get(_extension(file) or "", "")) for file in files}
    other = next((file for file, opener in openers.items() if opener is None or opener != openers[files[0]]), None)
    if other is not None and len(files) == 1:
        return _open_path(str(other), request)
    if other is not None:
        one = files[1] if other == files[0] else files[0]
        raise InputError(
            f"{description}: {other} cannot be read together with {one}; only Parquet files are, or only text ({', '.join(_TEXT)}), so "
            "name one file, and add others to its store (append_edges), or convert them"
        )
    opener = str(openers[files[0]])
    options = {"are_named": are_named} if opener.startswith("text.") else {}
    return _with_files(files, lambda: _opener(opener)(files, request, description, **options))


def _open_object(source: Any, request: Request) -> Source:
    if (opened := _open_table(source, request)) is not None:
        return opened
    if hasattr(type(source), "__iter__") and not isinstance(source, str | bytes | list | tuple | io.IOBase):
        return _opener("iterables.open_iterable")(source, request, _open_element)
    raise _unknown(source)


def _open_element(source: Any, request: Request) -> Source:
    """Open what an iterable gives."""
    if (opened := _open_table(source, request)) is not None:
        return opened
    raise _unknown(source)


def _open_table(source: Any, request: Request) -> Source | None:
    """Open an object that is edges; return None where it is none that is known."""
    package = type(source).__module__.split(".", maxsplit=1)[0]
    if isinstance(source, CSRStore):
        raise InputError(
            f"{source.url} is a graph already, not an edge list; give its edges, graph.edges(), or merge two graphs with merge_graphs"
        )
    if isinstance(source, list) and source and all(isinstance(one, str | os.PathLike) for one in source):
        return _open_list([os.fspath(one) for one in source], request)
    if isinstance(source, list) and not source:
        raise InputError("an empty list has neither paths nor edges; for a graph without edges give ([], []), and num_vertices")
    if _is_list_of_edges(source):
        return _opener("arrays.open_list")(source, request)
    if isinstance(source, tuple | list) and (len(source) == 2 or _is_three_columns(source)):
        return _open_columns(source, request)
    if is_dask(source):
        return _opener("dask_collections.open_collection")(source, request)
    if package == "numpy" and hasattr(source, "dtype"):
        opener = "table.open_structured" if source.dtype.names and source.ndim == 1 else "arrays.open_edge_array"
        return _opener(opener)(source, request)
    if package == "scipy" and hasattr(source, "format") and hasattr(source, "tocsr"):
        return _opener("csr.open_matrix")(source, request)
    if hasattr(source, "is_multigraph") and hasattr(source, "adjacency"):  # a subclass lives in any package
        return _opener("networkx_graph.open_networkx")(source, request)
    if package == "pandas" and hasattr(source, "columns"):
        return _opener("table.open_pandas")(source, request)
    if package == "pyarrow" and hasattr(source, "get_fragments"):
        return _opener("arrow_stream.open_dataset")(source, request)
    if package == "polars" and hasattr(source, "collect_schema") and not hasattr(source, "__arrow_c_stream__"):
        return _opener("arrow_stream.open_lazy_frame")(source, request)
    if package in ("pyarrow", "polars") and hasattr(source, "__arrow_c_stream__") and hasattr(source, "columns"):
        return _opener("table.open_arrow")(source, request)
    is_array = hasattr(source, "shape") and hasattr(source, "dtype") and hasattr(type(source), "__getitem__")
    if is_array and (len(source.shape) == 2 or not hasattr(source, "__arrow_c_stream__")):
        return _opener("arrays.open_sliced")(source, request)
    if hasattr(source, "__arrow_c_stream__"):
        return _opener("arrow_stream.open_stream")(source, request)
    if isinstance(source, dict):
        return _opener("table.open_dict")(source, request)
    return None


def _unknown(source: Any) -> InputError:
    return InputError(
        f"cannot read edges from {type(source).__module__}.{type(source).__qualname__}; give a path, arrays (sources, targets) or "
        "(sources, targets, weights), an array (num_edges, 2), a list of tuples (source, target) or (source, target, weight), a dict of "
        "columns, a SciPy sparse matrix, a NetworkX graph, a pandas or Dask DataFrame, any Arrow table or stream "
        "(pyarrow, Polars, DuckDB, ...), or an iterator of tuples or of any of these"
    )


def _is_list_of_edges(source: Any) -> bool:
    """Whether a source is a list of tuples, as NetworkX takes edges; a pair of lists, of arrays or of other sequences is none."""
    some = source[:2] if isinstance(source, list) else []
    return any(isinstance(one, tuple) for one in some) and all(isinstance(one, tuple | list) for one in some)


def _is_three_columns(source: Any) -> bool:
    """Whether a source is (sources, targets, weights) of arrays or lists; a list of three may be three edges, as may three tuples."""
    is_three = isinstance(source, tuple) and len(source) == 3
    return is_three and all(isinstance(one, list) or hasattr(one, "__array__") for one in source)


def _open_columns(columns: Sequence[Any], request: Request) -> Source:
    if not any(map(is_dask, columns)):
        return _opener("arrays.open_columns")(columns, request)
    if len(columns) == 3:
        raise InputError("of Dask collections, sources and targets are read as a pair; give those with weights as a Dask DataFrame")
    return _opener("dask_collections.open_pair")(*columns, request)


def is_dask(source: Any) -> bool:
    """Whether a source is a Dask collection, or a pair with one; types are asked, because a Delayed has any attribute."""
    ends = source if isinstance(source, tuple | list) and len(source) == 2 else [source]
    return any(hasattr(type(end), "__dask_graph__") and not type(end).__module__.startswith("xarray.") for end in ends)
