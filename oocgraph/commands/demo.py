"""``oocgraph demo``: the whole path on real data, Debian packages that python3 brings within reach.

Edges: the relations that packages of Debian 12 declare (see ``data/README.md``), directed, string ids, the kind of
relation kept as an edge column. They become a graph in memory, which is saved as a store and searched; the result is validated and
written. A graph on disk needs three times as many kernels, which a first command would wait for.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.common import emit, json_option, memory_option, progress_bars
from oocgraph.commands.tables import print_table

if TYPE_CHECKING:
    from oocgraph.compiled.load import Call
    from oocgraph.results.bfs import BFSResult
    from oocgraph.store.in_memory import MemoryGraph

DATA = Path(__file__).parents[1] / "data" / "debian-bookworm-depends.parquet"
SOURCE = "python3"


@click.command()
@click.option("--folder", default="oocgraph-demo", show_default=True, help="Folder for the graph and the result.")
@memory_option
@json_option
def demo(folder: str, *, memory: str | None, as_json: bool) -> None:
    """Build a graph of Debian's packages, search it from python3, check the result."""
    from oocgraph.compiled.load import load_kernels
    from oocgraph.ingest.build import build_csr
    from oocgraph.store.in_memory import MemoryGraph
    from oocgraph.verify import verify_bfs

    store, output = Path(folder) / "debian.zarr", Path(folder) / "python3.parquet"
    with progress_bars() as progress:
        load_kernels(_kernel_calls(), progress)
        began = perf_counter()
        graph = build_csr(str(DATA), directed=True, columns=(None, None, "kind"), memory_budget=memory, progress=progress)
        assert isinstance(graph, MemoryGraph)
        graph.save(store, overwrite=True)
        build_seconds = perf_counter() - began
    result = _search(graph, memory)
    validation = verify_bfs(graph, result, memory_budget=memory)
    result.write(output, overwrite=True)
    fields: dict[str, Any] = {
        "graph": str(store),
        "result": str(output),
        "num_vertices": graph.attributes.num_input_vertices,
        "num_edges": graph.num_edges,
        "build_seconds": build_seconds,
        **result.summary(),
        "valid": True,
        "num_edges_checked": validation.num_edges_checked,
    }
    if as_json:
        emit(fields, as_json=True, title="")
        return
    _tell(fields, result)


def _kernel_calls() -> list[Call]:
    """Return all kernels that are needed, to be compiled together: one after the other, when they are needed, takes three times as long."""
    import numpy as np

    from oocgraph.compiled import crc32c, deques
    from oocgraph.kernels import build, few, strings
    from oocgraph.types import LEVEL_UNREACHED
    from oocgraph.verify import verify_calls

    return [
        *strings.string_calls(),
        *few.few_calls("uint32"),
        *build.memory_build_calls(),
        *crc32c.checksum_calls(),
        *deques.team_calls(),
        *verify_calls("uint32", np.empty(0, np.uint32), np.empty(0, np.uint8), LEVEL_UNREACHED, 0, ascending=False),
    ]


def _search(graph: MemoryGraph, memory: str | None) -> BFSResult:
    from oocgraph.algorithms.bfs import bfs
    from oocgraph.engine.small import SmallRuntime

    with SmallRuntime(graph, memory_budget=memory) as runtime:
        return bfs(graph, SOURCE, runtime=runtime)


def _tell(fields: dict[str, Any], result: BFSResult) -> None:
    import numpy as np

    click.echo(
        f"Debian 12: {fields['num_vertices']:,} packages, {fields['num_edges']:,} relations, built in {fields['build_seconds']:.2f} s.\n"
        f"From {SOURCE}, {result.num_reached:,} packages are within reach, the farthest {result.depth} steps away; "
        f"{1000 * result.seconds:.1f} ms.\n"
        f"The result obeys Graph500's five rules ({fields['num_edges_checked']:,} edges checked)."
    )
    counts = np.bincount(result.level[result.level >= 0])
    farthest = result.vertices[result.level == result.depth]
    rows = [{"step": level, "packages": int(count), "one of them": _example(result, level)} for level, count in enumerate(counts)]
    print_table(rows)
    click.echo(f"One shortest path to {farthest[0]}:\n  {' > '.join(result.path(farthest[0]))}\n")
    click.echo(f"graph   {fields['graph']}   (try: oocgraph info {fields['graph']})")
    click.echo(f"result  {fields['result']}   (vertex, level, parent)")


def _example(result: BFSResult, level: int) -> str:
    """Name the first package of a level."""
    return str(result.vertices[(result.level == level).argmax()])
