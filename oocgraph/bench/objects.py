"""Searches of a graph in an object store that is far away: from opening it on, beside fsspec reading as many bytes.

In: the URL of a graph, a delay. Out: a `Report`: requests of a search, the most of them under way at once, seconds, bytes by the graph's
edges; ``ratio`` is the seconds by those of ``cat_ranges`` for the neighbours of all vertices in pieces of 1 MiB, in the same round, all at
once. All requests go through a proxy of this machine that delays each (`oocgraph.bench.proxy`). It and the reader beside are processes of
their own: what they hold is not in the search's budget.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from oocgraph.algorithms.bfs import bfs
from oocgraph.bench.child import Child, answer
from oocgraph.bench.harness import Report, in_turn, medians, paired_ratios
from oocgraph.bench.results_on_disk import first_violation
from oocgraph.bench.sources import draw_sources, source_ids
from oocgraph.config import settings
from oocgraph.errors import ArgumentError
from oocgraph.resources import Resources
from oocgraph.store.fetched import REQUEST_BYTES
from oocgraph.store.graph import CSRStore, open_graph
from oocgraph.types import Progress


def bench_objects(
    url: str, *, delay_seconds: float, num_sources: int, seed: int, progress: Progress, memory_budget: str | int | None = None,
    threads: int | None = None,
) -> Report:  # fmt: skip
    """Measure searches of a graph at an ``s3://`` URL.

    Parameters
    ----------
    url
        The graph. The setting ``oocgraph.storage-options`` names the server: ``{"client_kwargs": {"endpoint_url": "http://..."}}``.
    delay_seconds
        Added to each request.
    num_sources, seed
        Rounds, each with a source of its own.
    progress
        Called with runs done.
    memory_budget, threads
        As for `oocgraph.bfs`.

    Raises
    ------
    ArgumentError
        The setting names no server that is reached without encryption.
    OocGraphError
        All that `oocgraph.bfs` raises.
    """
    options = dict(settings().storage_options or {})
    server = options.get("client_kwargs", {}).get("endpoint_url", "")
    if not server.startswith("http://"):
        raise ArgumentError(
            f"oocgraph.storage-options has the endpoint_url {server!r}; a proxy needs a server at http://, such as one of this machine"
        )
    resources = Resources(memory_budget=memory_budget, threads=threads, device="cpu", client=False)
    proxy = Child("oocgraph.bench.proxy", server, str(delay_seconds), who="the proxy")
    with proxy, Child("oocgraph.bench.objects", url, who="the reader beside") as reader:
        options["client_kwargs"] = {**options["client_kwargs"], "endpoint_url": proxy.load["address"]}
        store = open_graph(url, storage_options=options)
        sources = source_ids(store, draw_sources(store, num_sources, seed))
        # kernels are loaded, and connections are open
        last = bfs(store, sources[-1], resources=resources)
        reader.ask(json.dumps(options))

        def search(source: Any) -> Mapping[str, Any]:
            return _counted(proxy, lambda: bfs(open_graph(url, storage_options=options), source, resources=resources))

        subjects = {"search": search, "cat_ranges": lambda _: _counted(proxy, lambda: reader.ask(json.dumps(options)))}
        rows = in_turn(subjects, sources, progress, phase="searching")
    violation = first_violation(open_graph(url), last, memory_budget=memory_budget)
    invalid = [] if violation is None else [f"from {sources[-1]}: {violation}"]
    metrics: dict[str, Any] = {"delay_seconds": delay_seconds, "num_rounds": len(sources), "edge_bytes": store.edge_bytes}
    for row in (*rows["search"], *rows["cat_ranges"]):
        row["edge_share"] = row["bytes"] / max(1, store.edge_bytes)
    metrics |= paired_ratios("ratio", *([row["seconds"] for row in rows[name]] for name in subjects))
    for name in subjects:
        found = medians(rows[name], "seconds", "requests", "in_flight", "edge_share")
        metrics |= {f"{name}_{key}": value for key, value in found.items()}
    return Report(title=f"{store.url}: searches at {1000 * delay_seconds:g} ms a request", metrics=metrics, invalid=tuple(invalid))


def _counted(proxy: Child, run: Any) -> dict[str, Any]:
    """Run, and return seconds and what the proxy counted."""
    proxy.ask("reset")
    began = perf_counter()
    run()
    seconds, traffic = perf_counter() - began, proxy.ask("reset")
    return {
        "seconds": seconds, "requests": len(traffic["requests"]), "in_flight": traffic["most_in_flight"], "bytes": traffic["body_bytes"],
    }  # fmt: skip


def _cat_ranges(store: CSRStore, options: Mapping[str, Any]) -> None:
    """Read the neighbours of all vertices."""
    import fsspec

    file_system, path = fsspec.core.url_to_fs(str(store.url), **options)
    pieces = []
    for group in store.attributes.stored_groups:
        array = store.array(f"{group}/indices")
        for chunk, start, stop in array.chunk_ranges(0, array.length):
            first, last = ((one - chunk * array.chunk_length) * array.dtype.itemsize for one in (start, stop))
            pieces += [(f"{path}/{array.name}/c/{chunk}", a, min(last, a + REQUEST_BYTES)) for a in range(first, last, REQUEST_BYTES)]
    file_system.cat_ranges(*(list(column) for column in zip(*pieces, strict=True)))


def main(url: str) -> None:
    """Read as a child (`oocgraph.bench.child`) the neighbours of all vertices, at each line of storage options."""
    answer()
    store = None
    for line in sys.stdin:
        options = json.loads(line)
        store = store or open_graph(url, storage_options=options)
        _cat_ranges(store, options)
        answer()


if __name__ == "__main__":
    main(*sys.argv[1:])
