"""``oocgraph spmv``: a graph's adjacency matrix times a vector, written under the input's ids."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.clusters import Place, client_options
from oocgraph.commands.common import (
    check_pages_option,
    check_result_path,
    device_resources_options,
    emit,
)
from oocgraph.commands.running import result_options, running

if TYPE_CHECKING:
    from oocgraph.resources import Resources
    from oocgraph.types import Array

SEMIRINGS = ["plus_times", "min_plus", "or_and", "plus_second"]


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.option("--x", "vector", metavar="FILE.npy", help="The vector: a number for each input id, ascending.  [default: ones]")
@click.option("--transpose", is_flag=True, help="Multiply by the transpose.")
@click.option("--semiring", type=click.Choice(SEMIRINGS), default="plus_times", show_default=True, help="How products are made and added.")
@click.option("--weight", metavar="COLUMN", help="Edge column of the values.  [default: the graph's weight, else ones]")
@device_resources_options
@check_pages_option
@client_options
@result_options("vertices and values")
def spmv(
    graph: str, *, vector: str | None, resources: Resources, check_pages: bool, place: Place, out: str | None, overwrite: bool,
    as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Multiply the adjacency matrix of the graph store GRAPH and a vector.

    It runs in this process, on GPUs if there are some (--device), or on a Dask cluster (--cluster, --scheduler); --memory and --threads
    are then of each worker. sum, least and largest are of the finite values of the product.
    """
    import numpy as np

    from oocgraph.algorithms.spmv import spmv as multiply
    from oocgraph.results.product import VectorResult
    from oocgraph.store.graph import open_graph
    from oocgraph.store.vertices import VertexIds

    place.check()
    store = open_graph(graph, check_pages=check_pages)
    check_result_path(out, overwrite=overwrite)
    x = _vector_of(vector, store.attributes.num_input_vertices, boolean=options["semiring"] == "or_and")
    with running(resources, place) as run:
        began = perf_counter()
        y = multiply(store, x, resources=run.resources, progress=run.progress, **options)
        seconds = perf_counter() - began
        run.finish(VectorResult(ids=VertexIds(store), by_id=y), out, overwrite=overwrite)
    finite = y[np.isfinite(y)].astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        total = float(finite.sum())
    fields: dict[str, Any] = {
        "num_values": int(y.size),
        "num_finite": int(finite.size),
        "dtype": y.dtype.name,
        "sum": total,
        "least": float(finite.min()) if finite.size else None,
        "largest": float(finite.max()) if finite.size else None,
        "seconds": seconds,
        **run.figures(),
    }
    emit(fields, as_json=as_json, title=f"{graph}: its adjacency matrix times {vector or 'ones'}")


def _vector_of(path: str | None, size: int, *, boolean: bool) -> Array:
    """Read the vector of a file, or make one of ones."""
    import numpy as np

    from oocgraph.errors import InputError

    if path is None:
        return np.ones(size, np.bool_ if boolean else np.float64)
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"--x {path}: no vector can be read ({error}); write one by numpy.save, a number for each vertex") from error
