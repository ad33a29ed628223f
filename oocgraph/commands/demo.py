"""``oocgraph demo``: the whole path on real data, Debian packages that python3 brings within reach.

Edges: the relations that packages of Debian 12 declare (see ``data/README.md``), directed, string ids, the kind of
relation kept as an edge column. They are built into a store, searched, and the result is validated and written.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.common import emit, json_option, memory_option, progress_bars
from oocgraph.commands.tables import print_table

if TYPE_CHECKING:
    from oocgraph.kernels.load import Call
    from oocgraph.results.bfs import BFSResult

DATA = Path(__file__).parents[1] / "data" / "debian-bookworm-depends.parquet"
SOURCE = "python3"


@click.command()
@click.option("--folder", default="oocgraph-demo", show_default=True, help="Folder for the graph and the result.")
@memory_option
@json_option
def demo(folder: str, *, memory: str | None, as_json: bool) -> None:
    """Build a graph of Debian's packages, search it from python3, check the result."""
    from oocgraph.commands.build import build_store
    from oocgraph.kernels.load import load_kernels
    from oocgraph.verify import verify_bfs

    graph, output = Path(folder) / "debian.zarr", Path(folder) / "python3.parquet"
    with progress_bars() as progress:
        load_kernels(_kernel_calls(), progress)
    built = build_store(str(DATA), str(graph), directed=True, edge_columns=["kind"], memory_budget=memory, overwrite=True)
    result = _search(graph, memory)
    validation = verify_bfs(str(graph), result)
    result.write(output, overwrite=True)
    fields: dict[str, Any] = {
        "graph": str(graph),
        "result": str(output),
        "num_vertices": built["num_input_vertices"],
        "num_edges": built["num_edges"],
        "build_seconds": built["seconds"],
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

    from oocgraph.kernels import build, crc32c, deques, entries, join, packed_keys, sound, strings, warm
    from oocgraph.types import LEVEL_UNREACHED
    from oocgraph.verify import verify_calls

    parent, level = np.empty(0, np.uint32), np.empty(0, np.uint8)
    return [
        *warm.search_calls("uint32", only_tiny=True),
        *build.build_calls(),
        (build.scatter, (parent, np.empty(0, np.uint16), np.empty(0, np.int64), parent)),
        *strings.string_calls(),
        *join.hash_join_calls(),
        *entries.entry_calls(),
        *packed_keys.packing_calls(),
        *crc32c.checksum_calls(),
        *sound.sound_calls(),
        *verify_calls("uint32", parent, level, LEVEL_UNREACHED, 0, ascending=False),
        *deques.team_calls(),
    ]


def _search(graph: Path, memory: str | None) -> BFSResult:
    from oocgraph.algorithms.bfs import bfs
    from oocgraph.engine.local import LocalRuntime

    with progress_bars() as progress, LocalRuntime.open(graph, memory_budget=memory, progress=progress) as runtime:
        return bfs(runtime.store, SOURCE, runtime=runtime)


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
