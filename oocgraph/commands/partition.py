"""``oocgraph partition``: cut a graph by a policy, say how good the partitions are, prove that they are right."""

from __future__ import annotations

import runpy
import shutil
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from oocgraph.commands.clusters import Place, client_options
from oocgraph.commands.common import check_pages_option, emit, json_option, note, overwrite_option, progress_bars, resources_options
from oocgraph.commands.running import running
from oocgraph.commands.tables import print_table

if TYPE_CHECKING:
    from oocgraph.partition.policy import Policy
    from oocgraph.resources import Resources
    from oocgraph.store.graph import CSRStore
    from oocgraph.store.partitions import Partitions
    from oocgraph.types import Progress


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.argument("out", metavar="OUT")
@click.option("--partitions", "parts", type=int, required=True, help="Number of partitions.")
@click.option(
    "--policy",
    metavar="NAME|FILE:NAME",
    default="CVC",
    show_default=True,
    help="EEC, HVC, CVC, FEC, GVC, SVC, 1D-edge, 1D-vertex, chunk, 1d, 2d; or an oocgraph.Policy that a Python file defines, as "
    "my.py:policy.",
)
@click.option("--read", type=click.Choice(["out", "in"]), default="out", show_default=True, help="Lists to read: parts are CSR, or CSC.")
@click.option("--transpose", is_flag=True, help="Give each part the other lists too.")
@click.option("--slow", is_flag=True, help="Run the policy as plain Python instead of compiling it.")
@click.option("--report", is_flag=True, help="Say how good the partitions are, and search once to count what a search sends.")
@click.option("--check", is_flag=True, help="Prove that each edge is in one part, each vertex has one master, and mirrors are complete.")
@check_pages_option
@client_options
@resources_options
@overwrite_option
@json_option
def partition(
    graph: str, out: str, *, parts: int, policy: str, read: Any, transpose: bool, slow: bool, report: bool, check: bool,
    resources: Resources, check_pages: bool, overwrite: bool, place: Place, as_json: bool,
) -> None:  # fmt: skip
    """Cut the graph store GRAPH into partitions, in the folder OUT.

    A policy is two functions: who is the master of a vertex, who owns an edge. The edges are streamed, in this process or on a Dask
    cluster (--cluster, --scheduler); --memory and --threads are then those of each worker. The workers write OUT, so workers on several
    hosts need a file system that all of them see, with GRAPH and OUT on it; this is checked before anything is read.
    """
    from oocgraph.algorithms.partition_graph import partition_options, partition_with_report
    from oocgraph.errors import BudgetError
    from oocgraph.partition.report import report_of
    from oocgraph.store.graph import open_graph

    place.check()
    store, chosen = open_graph(graph, check_pages=check_pages), policy_of(policy)
    began, memory, threads = perf_counter(), resources.memory_budget, resources.threads
    with running(resources, place) as run:
        client = run.resources.client
        options = partition_options(
            store, parts, chosen, read=read, transposed=transpose, compiled=False if slow else None, threads=threads, memory_budget=memory,
            following_bytes=0 if client is not None else _following_bytes(store, parts, read, check=check, report=report),
        )  # fmt: skip
        made, phases = partition_with_report(store, out, options, client, overwrite=overwrite, progress=run.progress)
    seconds = perf_counter() - began
    found = asdict(report_of(made))
    rows = found.pop("parts")
    fields = {"graph": graph, "partitions": out, **found, "seconds": seconds, "sync_seconds": phases["sync"]}
    fields |= {"edges_per_second": store.attributes.num_stored_edges / seconds, **run.figures()}
    try:
        with progress_bars() as progress:
            if check:
                fields |= _check(made, store, memory, progress)
            if report:
                fields |= _search(made, store, resources)
    except BudgetError:
        if not overwrite:
            shutil.rmtree(out)  # what is refused leaves nothing behind
        raise
    emit({**fields, "parts": rows}, as_json=as_json, title=repr(made))
    if not as_json and report:
        print_table(rows)


def _following_bytes(store: CSRStore, parts: int, read: str, *, check: bool, report: bool) -> int:
    """Return what the check and the search after a partitioning need in the same process, at the most."""
    from oocgraph.algorithms.partitioned_bfs import following_bytes
    from oocgraph.partition.check import most_check_bytes
    from oocgraph.partition.cusp_spec import COMPILER_BYTES

    checking = COMPILER_BYTES + most_check_bytes(store, parts, read) if check else 0
    return max(checking, following_bytes(store, parts) if report else 0)


def policy_of(text: str) -> str | Policy:
    """Return a policy's name, or the policy that a file defines."""
    from oocgraph.errors import PolicyError
    from oocgraph.partition.policy import Policy

    path, _, name = text.rpartition(":")
    if not path:
        if text.endswith(".py"):
            raise PolicyError(f"--policy {text} is a file; name the oocgraph.Policy in it, too, as {text}:policy")
        return text
    if not Path(path).is_file():
        raise PolicyError(f"--policy {text}: there is no file {path}; name a Python file and the oocgraph.Policy in it, as my.py:policy")
    try:
        defined = runpy.run_path(path)
    except Exception as error:  # whatever the user's file raises
        raise PolicyError(f"--policy {text}: {path} cannot be run ({type(error).__name__}: {error})") from error
    if not isinstance(defined.get(name), Policy):
        known = [key for key, value in defined.items() if isinstance(value, Policy)]
        raise PolicyError(f"--policy {text}: {path} defines no oocgraph.Policy {name!r}; it defines {', '.join(known) or 'none'}")
    policy: Policy = defined[name]
    return policy


def _check(made: Partitions, store: CSRStore, memory: str | int | None, progress: Progress) -> dict[str, Any]:
    from oocgraph.partition.check import check_partitions

    began = perf_counter()
    found = check_partitions(made, store, progress, memory_budget=memory)
    return {"valid": True, "edges_compared": found.num_edges, "check_seconds": perf_counter() - began}


def _search(made: Partitions, store: CSRStore, resources: Resources) -> dict[str, Any]:
    """Search once from the vertex with the longest list, and count what the parts send."""
    from oocgraph.algorithms.bfs import bfs
    from oocgraph.store.vertices import VertexIds

    source = VertexIds(store).ids_of([_longest(store)]).tolist()[0]
    if store.attributes.directed and made.attributes.read != "out" and not made.attributes.transposed:
        note("no search was made to count what it sends: these parts hold in-lists only; add --transpose")
        return {}
    result = bfs(store, source, partition=made, resources=resources)
    summary = result.summary()
    return {"bfs_source": source, **{f"bfs_{name}": summary[name] for name in ("exchanged_bytes", "num_messages", "depth", "num_reached")}}


def _longest(store: CSRStore) -> int:
    """Return the vertex with the longest out-list."""
    from oocgraph.store.rows import longest_row

    if store.attributes.vertex_order == "degree" and not store.attributes.directed:
        return 0
    return longest_row(store, "out")[0]
