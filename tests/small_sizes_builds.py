"""Builds, appends, merges, exports and answers with small blocks, bins and pages: ``python -m tests.small_sizes_builds 200 --seed 1``.

What comes of small sizes is compared with what the usual ones give, stores byte for byte.
"""

from contextlib import ExitStack, contextmanager
from importlib import import_module
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import oocgraph
from oocgraph.config import setting
from oocgraph.errors import BudgetError
from oocgraph.ingest.build_job import Sizes
from tests.ingest.helpers_build import ArraySource, assert_same_store
from tests.small_sizes import main

SIZES = """
ingest.ids: FREE_POSITIONS=0,50 MAX_GAPS=0,1 ingest.merge_ids: BLOCK_BYTES=1,40,1000 ingest.merge_steps: STEP=1,7,100 ingest.planes:
WRITE_BYTES=8192,12288 COPY_LENGTH=1,7,1000 ingest.build_job: MAX_BINS=8,30 MAX_BLOCK_ROWS=10,100 MIN_BLOCK_ROWS=8,50 ingest.string_ids:
SLICE_STRINGS=1,3,20 SAMPLED_STRINGS=1,5 MOST_PARTS=2,3 ingest.rows: STARTS_ROWS=1,5,50 ingest.merge_rows: WINDOW_ROWS=1,5,50
MOST_ENTRIES=1,9,100 TIED_ENTRIES=1,3,20 ingest.dedupe: STORED_BELOW=0,2 ingest.stored_rows: BUFFER_BYTES=4096,8192 ingest.ranks:
SMALL_DEGREES=1,2,10 BLOCK=1,7,64 ingest.sources.lines: PARSE_BYTES=700,2000 MIN_BLOCK_BYTES=256,1000 BLOCK_BYTES=256,1000
ingest.sources.source: MAX_STREAMS=1,2,3 ingest.sources.parquet: MAX_BLOCK_ROWS=1,7,100 TEXT_BYTES=1,300 ingest.sources.compressed:
CHUNK_BYTES=7,100 external_sort.bins: CACHED_BYTES=1,50,500 external_sort.oversize: MAX_SPLIT=2,3 store.scipy: BLOCK_ENTRIES=1,9,100
store.row_gatherer: PART_BYTES=1,100 WINDOW_BYTES=8,100,4096 store.id_order: _PAGE_IDS=2,16 _MOST_BYTES=8,200 store.vertices:
BLOCK_VERTICES=1,7 TEXT_BYTES=1,100 _SEEK_IDS=1,5 store.values: BLOCK=1,7,100 store.induced: PIECE_ENTRIES=1,5,50 store.rows:
BLOCK_ROWS=1,3,20 store.strings: GROUP_STRINGS=1,5 MOST_GROUP_BITS=1,3 SORT_SECONDS=1 GROUP_SECONDS=1 store.files: DIRECT_BYTES=4096,8192
LEAST_DIRECT_BYTES=4096 store.scattered: BUFFER_BYTES=4096,8192 PART_PAGES=1,2 FEW_RANGES=0,1 store.columns: COALESCE_BYTES=1,64
RANGE_BYTES=8,64,4096 store.edge_masks: TESTED_EDGES=8,64 GRAIN_EDGES=64,128 LEAST_SHIFT=6,7 LOOP_EDGES=1,9 BLOCK_VERTICES=1,9
store.check_structure: BLOCK_ENTRIES=1,9,100 PIECE_ROWS=1,9 store.edge_lookup: PAIRS=1,3 store.paged_ids: STREAMED_PAGES=1e-6 FEWEST=1
BLOCK=1,5 export.edge_tables: BLOCK_ENTRIES=1,9,100 MIN_BLOCK_BYTES=1 export.text: PIECE_BYTES=50,1000 BLOCK_ENTRIES=1,9,100
export.ordered_rows: BIN_ENTRIES=1,9,100 MAX_BINS=1,2,30 BLOCK_ENTRIES=1,9,100 _SAMPLE=1,3 MIN_ENTRIES=1,9 results.base: BLOCK_VERTICES=1,7
sorting: LARGE=1,10 TRIAL_AFTER=1
"""
"""Constants of modules, with small values that they may have."""


@contextmanager
def small(rng, threads):
    """Draw sizes, and use them."""
    plan = Sizes(threads, *(int(rng.choice(of)) for of in ((1, 3, 30, 300), (8, 50, 400), (0, 20, 1 << 20), (1, 40, 1000))), 1 << 40)
    with ExitStack() as stack:
        for word in SIZES.split():
            name, _, values = word.partition("=")
            if not values:
                home = import_module(f"oocgraph.{name.removesuffix(':')}")
            elif rng.random() < 0.3:
                value = float(rng.choice(values.split(",")))
                stack.enter_context(patch.object(home, name, int(value) if value.is_integer() else value))
        if rng.random() < 0.7:
            for place in ("build", "merge_job"):
                stack.enter_context(patch(f"oocgraph.ingest.{place}.plan_sizes", lambda *_, **__: plan))
            stack.enter_context(patch.object(Sizes, "slice_ids", int(rng.choice([20, 100, 1000]))))
        yield


def drawn_table(rng):
    n, m = int(rng.choice([1, 5, 30, 200, 900])), int(rng.choice([1, 5, 60, 300, 900]))
    kind, few = rng.choice(["dense", "gaps", "sparse", "string"]), int(rng.choice([1, 3, 50]))
    ids = np.sort(rng.choice(n if kind == "dense" else 99_999, n, replace=False)) * (10**13 if kind == "sparse" else 1)
    ids = np.array([f"{'http://example.org/' * (i % 2)}é{i}" for i in ids]) if kind == "string" else ids
    ends = ids[rng.permutation(n)[(n * rng.random((2, m)) ** rng.choice([1, 4])).astype(int)]]
    beside = {"word": np.array([f"w{i}" for i in range(99)])[rng.integers(0, few, m)], "day": rng.integers(0, few, m).astype(np.int16)}
    table = {"source": ends[0], "target": ends[1]} | {name: values for name, values in beside.items() if rng.random() < 0.4}
    return pa.table(table | ({"weight": rng.integers(-few, few, m).astype(rng.choice(["int32", "float64"]))} if rng.random() < 0.6 else {}))


def as_source(rng, table, folder):
    """Return edges in some form, and how to read it."""
    names = table.column_names
    options = {"columns": [one for one in names if one != "weight"], "weight": "weight" if "weight" in names else None}
    large = [one.combine_chunks().cast(pa.large_string()) if pa.types.is_string(one.type) else one.to_numpy() for one in table.columns]
    folder.mkdir(parents=True)
    match rng.choice(["arrays", "parquet", "csv.gz"][: 3 if table.num_rows else 2]):
        case "arrays":
            kind, beside = "int64" if isinstance(large[0], np.ndarray) else "string", dict(zip(names, large, strict=True))
            size = [None, table.num_rows][rng.integers(2)]
            return ArraySource(*map(beside.pop, names[:2]), beside, kind, weight=options["weight"], num_rows=size), {}
        case "parquet":
            pq.write_table(table, folder / "g.parquet", row_group_size=int(rng.choice([1, 10, 300])), data_page_size=99)
            return folder / "g.parquet", options
        case _:
            table.to_pandas().to_csv(folder / "g.csv.gz", index=False)
            types = {name: str(table[name].type).replace("double", "float64") for name in ("day", "weight") if name in names}
            return folder / "g.csv.gz", options | {"dtypes": types, "id_kind": str(table["source"].type)}


def compare(seed, folder):
    """Draw edges, build from them, and return what differs: a list of names."""
    rng, folder = np.random.default_rng(seed), folder / f"builds-{seed}"
    table, threads, order = drawn_table(rng), int(rng.choice([1, 2, 5])), str(rng.choice(["degree", "original", "locality"]))
    asked = {"resources": oocgraph.Resources(threads=threads, client=False)}
    options: dict = dict(zip(("directed", "keep_self_loops"), (rng.random(2) < 0.5).tolist(), strict=True))
    options["duplicates"] = str(rng.choice(["drop", "keep", "min", "max", "sum", "first"]))
    cut, count, wrong = int(rng.integers(table.num_rows + 1)), iter(range(99)), []

    def build(edges, path=None):
        source, how = as_source(rng, edges, folder / f"in{next(count)}")
        return oocgraph.build_csr(source, path, **options, **how, **asked)

    def append(path):
        more = {"weight": "weight" if "weight" in table.column_names else None, "keep_self_loops": options["keep_self_loops"]}
        return oocgraph.append_edges(build(table[:cut], path), table[cut:], **more, **asked)

    ways = {
        "build": lambda path: build(table, path), "hold": lambda path: build(table).save(path), "append": append,
        "merge": lambda path: oocgraph.merge_graphs(build(table[:cut], folder / "one"), build(table[cut:]), path, **asked),
    }  # fmt: skip
    with setting("vertex-order", order), setting("codec", str(rng.choice(["none", "zstd", "blosc"]))):
        whole = build(table, folder / "whole")
        for name in list(ways)[: 2 if order == "locality" else 4]:
            try:
                with small(rng, threads):
                    ways[name](folder / name)
                assert_same_store(folder / "whole", folder / name)
            except Exception as error:
                if not isinstance(error, BudgetError):  # of very many small passes
                    wrong.append(f"{name}: {type(error).__name__}: {error}")
        for name, ask in questions(rng, whole, folder, asked):
            expected, graph = ask(whole), oocgraph.open_graph(folder / "whole", check_pages=bool(rng.random() < 0.5))
            try:
                with small(rng, threads):
                    found = ask(graph)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            wrong += [f"{name}: {str(found)[:200]}, not {str(expected)[:200]}"] if found != expected else []
    return wrong


def questions(rng, whole, folder, asked):
    """Yield names, and functions of a graph."""
    names = list(whole.attributes.columns)
    some, other = ([list(whole)[i] for i in rng.integers(len(whole), size=20)] for _ in range(2))
    yield "edges", lambda g: [list(g), oocgraph.check_store(g, **asked) and None, *(batch.to_pydict() for batch in g.edges(batch_size=7))]
    yield "subgraph", lambda g: [g.has_edge(some, other).tolist(), *(batch.to_pydict() for batch in g.subgraph(some).edges())]
    yield "matrix", lambda g: [part.tolist() for matrix in [g.to_scipy()] for part in (matrix.indptr, matrix.indices, matrix.data)]
    yield "walk", lambda g: [g.degree().tolist(), g.random_walk(some, 5).tolist()]
    yield "neighbours", lambda g: [g.neighbors(some, direction=way, columns=names).to_pylist() for way in ("in", "out")]
    if "word" in names and whole.num_edges:
        yield "where", lambda g: oocgraph.bfs(g, some[0], where='word in ["w0", "w2"] or word < "w11"', **asked).level.tolist()
    for extension in (".csv", ".mtx", ".sg"):
        yield extension, lambda g, file=folder / f"export{extension}": oocgraph.export_graph(g, file, overwrite=True) and file.read_bytes()


if __name__ == "__main__":
    main(compare, __doc__)
