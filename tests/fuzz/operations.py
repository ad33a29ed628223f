"""What reads the damaged stores: every public function and command, in the ways in which each can read.

An operation draws its parameters and runs in a process of its own; its answer is what must not be wrong. Parameters that begin with an
underscore change how it works (directions, budgets, small pieces), and not its answer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import oocgraph
from oocgraph import Resources
from oocgraph.errors import OocGraphError
from tests import every_knob
from tests.fuzz.bases import CHECKPOINT, GRAPH, PARTS, QUIET_CLUSTER, SEARCH, Base

Answer = dict[str, Any]

HAS_SHIM = sys.platform == "linux" and platform.machine() == "x86_64" and shutil.which("g++") is not None
"""Whether CUDA sources can be executed on the CPU here."""


@dataclass(frozen=True, slots=True)
class Call:
    """One run of an operation.

    Attributes
    ----------
    base
        What was damaged.
    folder
        The damaged copy of its folder.
    out
        Empty folder for outputs.
    memory
        Bytes that the process may hold.
    options
        What the operation has drawn.
    """

    base: Base
    folder: Path
    out: Path
    memory: int
    options: dict[str, Any]

    @property
    def graph(self) -> str:
        """Path of the graph store."""
        return str(self.folder / GRAPH)

    @property
    def store(self) -> Any:
        """The graph, opened as drawn."""
        return oocgraph.open_graph(self.graph, check_pages=self.options.get("_check", False))

    @property
    def threads(self) -> int:
        """Number of threads, as drawn."""
        return int(self.options.get("_threads", 1))

    def resources(self, **more: Any) -> Resources:
        """Return memory and threads as drawn."""
        return Resources(memory_budget=self.memory, threads=self.threads, **more)


@dataclass(frozen=True, slots=True)
class Operation:
    """How to call something, how often, and of which kinds of base.

    Attributes
    ----------
    checks
        Whether what it reads with these options is compared with checksums, so that damage cannot change its answer.
    needs_threads
        It leaves threads behind, so that nothing can be forked afterwards.
    num_preloaded
        How many draws bring its kernels into memory.
    """

    run: Callable[[Call], Answer]
    draw: Callable[[np.random.Generator, Base], dict[str, Any]]
    kinds: tuple[str, ...] = ("graph",)
    share: int = 10
    checks: Callable[[dict[str, Any]], bool] = lambda options: bool(options.get("_check"))
    needs_threads: bool = False
    num_preloaded: int = 3

    @property
    def name(self) -> str:
        """As in reports."""
        return self.run.__name__


def _usual(rng: np.random.Generator) -> dict[str, Any]:
    return {"_threads": int(rng.integers(1, 3)), "_check": bool(rng.random() < 0.6), "_ample": bool(rng.random() < 0.5)}


def _pick(rng: np.random.Generator, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


# Searches.


def _draw_bfs(rng: np.random.Generator, base: Base) -> dict[str, Any]:
    sources = _pick(rng, [base.sources[:1], base.sources[:1], base.sources[:2], base.sources, base.sources[2:]])
    return {
        **_usual(rng), "sources": sources, "depth": _pick(rng, [None, None, None, 2]),
        "_direction": _pick(rng, ["auto", "push", "pull", "half", "alpha-beta", "gemini"]),
        "_cramped": _pick(rng, [None, 0, 1, 2, 3, 4, 5]),
    }  # fmt: skip


def bfs(call: Call) -> Answer:
    """Search in process; small residencies make it read pages."""
    options = call.options
    with _small_residency(options["_cramped"]):
        result = oocgraph.bfs(
            call.store, _sources(options), direction=options["_direction"], depth_limit=options["depth"],
            resources=call.resources(device="cpu"),
        )  # fmt: skip
    return _levels(result)


def bfs_on_device(call: Call) -> Answer:
    """Search on a device that is the CPU."""
    from oocgraph.engine import device_load
    from oocgraph.engine.device import DeviceRuntime
    from tests.cuda_on_cpu.device import CpuDevice
    from tests.engine.device_graphs import residency_of

    options = call.options
    original = device_load.plan_device_residency
    plan = original if options["_cramped"] is None else residency_of(original, options["_cramped"])
    with (
        patch.object(device_load, "plan_device_residency", plan),
        DeviceRuntime.open(
            call.store, device=CpuDevice(), io_threads=2, max_planes=None, memory_budget=call.memory, threads=call.threads
        ) as runtime,
    ):  # fmt: skip
        result = oocgraph.bfs(call.store, _sources(options), runtime=runtime, direction=options["_direction"], depth_limit=options["depth"])
        return _levels(result)


def bfs_over_partitions(call: Call) -> Answer:
    """Search over partitions made now, or stored ones."""
    options = call.options
    partition = str(call.folder / PARTS) if call.base.kind == "partitions" else options["_grid"]
    with _few_edges(options["_cramped"]):
        result = oocgraph.bfs(
            call.graph, _sources(options), partition=partition, depth_limit=options["depth"], resources=call.resources(),
        )  # fmt: skip
    return _levels(result)


def bfs_on_cluster(call: Call) -> Answer:
    """Search on workers in this process."""
    from distributed import Client, LocalCluster

    options = call.options
    resume = str(call.folder / SEARCH) if call.base.kind == "search" else None
    with LocalCluster(**QUIET_CLUSTER) as cluster, Client(cluster, set_as_default=False) as client:
        result = oocgraph.bfs(
            call.store, _sources(options), client=client, depth_limit=options["depth"], resources=call.resources(device="cpu"),
            resume=resume,
        )  # fmt: skip
        return {name: np.asarray(getattr(result, name)) for name in ("vertices", "level")}


def _draw_resumed(rng: np.random.Generator, base: Base) -> dict[str, Any]:
    return {**_usual(rng), "sources": base.sources[:1], "depth": None, "_check": False}


def resumed(call: Call) -> Answer:
    """Go on with a search, or read the result of one."""
    return bfs_on_cluster(call)


def verify(call: Call) -> Answer:
    """Search, and judge the result by the same store."""
    result = oocgraph.bfs(call.store, _sources(call.options), resources=call.resources(device="cpu"))
    oocgraph.verify_bfs(call.graph, result, resources=call.resources())
    return {"num_reached": result.num_reached}


def bfs_written(call: Call) -> Answer:
    """Search, and write the result."""
    result = oocgraph.bfs(call.store, _sources(call.options), resources=call.resources(device="cpu"))
    target = call.out / f"levels.{call.options['_format']}"
    result.write(target)
    return {"num_reached": result.num_reached}


def _draw_written(rng: np.random.Generator, base: Base) -> dict[str, Any]:
    return {**_usual(rng), "sources": base.sources[:1], "_format": _pick(rng, ["parquet", "csv", "zarr"])}


def _draw_grid(rng: np.random.Generator, base: Base) -> dict[str, Any]:
    return {**_draw_bfs(rng, base), "_grid": _pick(rng, ["1d", "2d"])}


def _sources(options: dict[str, Any]) -> Any:
    sources = options["sources"]
    return sources[0] if len(sources) == 1 else list(sources)


def _levels(result: Any) -> Answer:
    return {"vertices": np.asarray(result.vertices), "level": np.asarray(result.level), "num_reached": result.num_reached}


@contextlib.contextmanager
def _small_residency(seed: int | None) -> Any:
    """Let little of the edges stay in memory, so that pages are read."""
    from oocgraph.engine import shard_plan

    original = shard_plan.plan_residency

    def plan(sizes: Any, **options: Any) -> Any:
        rng = np.random.default_rng(seed)
        return dataclasses.replace(
            original(sizes, **options),
            num_planes=int(rng.integers(0, len(sizes.plane_edges))),
            num_resident=tuple(int(rng.integers(0, m)) if m > 0 else 0 for m in sizes.num_edges),
            cache_slots=int(rng.integers(1, 20)),
            num_kept=int(rng.integers(0, 2000)),
        )

    if seed is None:
        yield
        return
    with patch.object(shard_plan, "plan_residency", plan):
        yield


@contextlib.contextmanager
def _few_edges(seed: int | None) -> Any:
    """Let parts hold few edges."""
    from oocgraph.parts import local_edges, local_parts

    if seed is None:
        yield
        return
    rng = np.random.default_rng(seed)
    with (
        patch.object(local_parts, "STAGED_EDGES", int(rng.choice([5, 1000]))),
        patch.object(local_edges, "BATCH_ROWS", int(rng.choice([3, 1000]))),
        patch.object(local_parts, "_shares", lambda arrays, _: [int(rng.integers(0, max(1, array.length))) for array in arrays]),
    ):
        yield


# Products and ranks.


@contextlib.contextmanager
def _small_pieces(small: bool) -> Any:
    from oocgraph.sparse import edge_stream

    if not small:
        yield
        return
    with patch.object(edge_stream, "PIECE_BYTES", 600):
        yield


def _draw_product(rng: np.random.Generator, base: Base) -> dict[str, Any]:
    semiring = _pick(rng, ["plus_times", "min_plus", "or_and", "plus_second"])
    weight = _pick(rng, [None, *base.weights])
    return {**_usual(rng), "semiring": semiring, "weight": weight, "transpose": bool(rng.integers(2)), "_small": bool(rng.integers(2))}


def spmv(call: Call) -> Answer:
    """Multiply by a vector that depends on nothing read."""
    options = call.options
    size = oocgraph.open_graph(str(call.base.folder / GRAPH)).attributes.num_input_vertices
    x = np.random.default_rng(7).random(size)
    x = x < 0.3 if options["semiring"] == "or_and" else x
    with _small_pieces(options["_small"]):
        y = oocgraph.spmv(
            call.store, x, transpose=options["transpose"], semiring=options["semiring"], weight=options["weight"],
            resources=call.resources(device="cpu"),
        )  # fmt: skip
    return {"y": y}


def _draw_ranks(rng: np.random.Generator, base: Base) -> dict[str, Any]:
    weights = _pick(rng, [None, False, *[name for name in base.weights if name != "n"]])
    return {**_usual(rng), "weight": weights, "personal": bool(rng.random() < 0.3), "_small": bool(rng.integers(2))}


def pagerank(call: Call) -> Answer:
    """Rank; from a checkpoint where the base has one."""
    options = call.options
    personal = {call.base.sources[0]: 1.0, call.base.sources[1]: 2.0} if options["personal"] else None
    more: dict[str, Any] = {"max_iter": 12, "tol": 0, "personalization": personal, "weight": options["weight"]}
    if call.base.kind == "checkpoint":
        more |= {"checkpoint": call.folder / CHECKPOINT, "personalization": None, "weight": None}
    with _small_pieces(options["_small"]):
        result = oocgraph.pagerank(call.store, **more, resources=call.resources())
    return {"vertices": np.asarray(result.vertices), "rank": np.asarray(result.rank), "top": [str(one) for one, _ in result.top(1)]}


def components(call: Call) -> Answer:
    """Find the connected components."""
    result = oocgraph.connected_components(call.store, resources=call.resources())
    return {"vertices": np.asarray(result.vertices), "component": np.asarray(result.component)}


ANALYSES: dict[str, dict[str, Any]] = {
    "betweenness_centrality": {"k": 3}, "closeness_centrality": {"k": 3}, "core_numbers": {}, "hits": {"max_iter": 5, "tol": 0},
}  # fmt: skip
"""Functions that return values of all vertices, with arguments; below those of directed graphs, and of undirected ones."""

ON_DIRECTED = ("strongly_connected_components", "topological_generations")

ON_UNDIRECTED = (
    "biconnected_components", "greedy_coloring", "label_propagation", "louvain", "maximal_independent_set", "minimum_spanning_forest",
    "triangles",
)  # fmt: skip


def _draw_analysis(rng: np.random.Generator, base: Base) -> dict[str, Any]:
    names = [*ANALYSES, *(ON_DIRECTED if base.is_directed else ON_UNDIRECTED)]
    return {**_usual(rng), "function": _pick(rng, names), "_small": bool(rng.integers(2))}


def analysis(call: Call) -> Answer:
    """Call one of many functions; what they return are columns."""
    name = call.options["function"]
    with _small_pieces(call.options["_small"]):
        result = getattr(oocgraph, name)(call.store, **ANALYSES.get(name, {}), resources=call.resources())
    return {column: np.asarray(getattr(result, column)) for column in ("vertices", *result.columns)}


# Everything else that takes a graph.


def _draw_export(rng: np.random.Generator, base: Base) -> dict[str, Any]:
    return {**_usual(rng), "suffix": _pick(rng, ["parquet", "npz", "sg"]), "order": _pick(rng, ["input", "store"])}


def export(call: Call) -> Answer:
    """Write the graph for other programs; the answer is what stands in the file."""
    from oocgraph.export.files import export_graph

    target = call.out / f"graph.{call.options['suffix']}"
    report = export_graph(call.store, target, order=call.options["order"], resources=call.resources())
    answer: Answer = {"num_vertices": report.num_vertices, "num_edges": report.num_edges}
    if target.suffix == ".parquet":
        from pyarrow import parquet

        table = parquet.read_table(target)
        return answer | {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    if target.suffix == ".npz":
        import scipy.sparse as sp

        matrix = sp.load_npz(target).tocsr()
        return answer | {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data}
    return answer | {"bytes": np.fromfile(target, np.uint8)}


def _draw_partition(rng: np.random.Generator, base: Base) -> dict[str, Any]:
    policies = ["EEC", "CVC", "HVC", "FEC", "GVC", "SVC", "1D-edge", "1D-vertex", "chunk"]
    group = _pick(rng, ["out", "out", "in"])
    return {**_usual(rng), "policy": _pick(rng, policies), "read": group, "transpose": bool(rng.random() < 0.3), "_threads": 1}


def partition(call: Call) -> Answer:
    """Cut the graph; the answer is the parts."""
    parts = every_knob.partition(
        call.store, 3, call.options["policy"], call.out / "parts", read=call.options["read"], transpose=call.options["transpose"],
        memory_budget=call.memory, threads=call.threads,
    )  # fmt: skip
    return _parts(parts)


def _parts(parts: Any) -> Answer:
    answer: Answer = {"masters": parts.masters.read(0, parts.num_vertices)}
    for part in parts:
        group = "in" if parts.attributes.read == "in" else "out"
        answer[f"{part.index} global"], answer[f"{part.index} owner"] = part.global_id(), part.mirror_owner()
        for name in ("indptr", "indices"):
            answer[f"{part.index} {name}"] = part.store.read(f"{group}/{name}")
    return answer


def read_parts(call: Call) -> Answer:
    """Read stored partitions, and prove them."""
    from oocgraph.partition.check import check_partitions

    parts = oocgraph.open_partitions(call.folder / PARTS)
    check_partitions(parts, oocgraph.open_graph(call.graph), memory_budget=call.memory)
    return {"masters": parts.masters.read(0, parts.num_vertices)}


def to_scipy(call: Call) -> Answer:
    """Bring the whole graph into memory."""
    matrix = call.store.to_scipy(weight=call.options["weight"])
    return {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data, "shape": np.array(matrix.shape)}


def _draw_scipy(rng: np.random.Generator, base: Base) -> dict[str, Any]:
    return {**_usual(rng), "weight": _pick(rng, [None, *base.weights])}


def check(call: Call) -> Answer:
    """Check the store; where it finds nothing, all arrays are as they were."""
    store = oocgraph.open_graph(call.graph)
    oocgraph.check_store(store, resources=call.resources())
    answer: Answer = {name: store.read(name) for name in store.array_names()}
    told = store.attributes.to_json()
    return answer | {name: str(value) for name, value in told.items() if name not in ("source", "library_version")}


def _draw_usual(rng: np.random.Generator, _base: Base) -> dict[str, Any]:
    return _usual(rng)


def plan(call: Call) -> Answer:
    """Predict searches."""
    each = Resources(memory_budget="1G", threads=call.threads)
    found = oocgraph.plan_bfs(call.graph, [2, 4], source=call.base.sources[0], resources=each)
    return {"num_reached": found.num_reached}


# The command line.


def _draw_command(rng: np.random.Generator, base: Base) -> dict[str, Any]:
    source, graph, out = str(base.sources[0]), "{graph}", "{out}"
    memory = ["--memory", "{memory}"]
    check = ["--check-pages"] if rng.random() < 0.5 else []
    commands = {
        "graph": [
            ["info", graph], ["info", graph, "--json"], ["check", graph], ["check", graph],
            ["bfs", graph, "--source", source, *memory, *check, "--validate", "--out", f"{out}/levels.csv"],
            ["bfs", graph, "--source", source, "--partition", "2d", *memory], ["plan", graph, "--workers", "2,4"],
            ["pagerank", graph, "--top", "3", *memory, "--out", f"{out}/ranks.parquet"], ["export", graph, f"{out}/g.parquet", *memory],
            ["bench", "bfs", graph, "--num-sources", "2", *memory], ["bench", "spmv", graph, "--rounds", "1", "--partitions", "2", *memory],
            ["partition", graph, f"{out}/parts", "--partitions", "3", "--policy", "CVC", "--report", "--check", *memory],
        ],
        "partitions": [
            ["info", "{parts}"], ["info", "{parts}/part-00001"], ["check", "{parts}/part-00001"],
            ["check", "{parts}", "--of", graph, *memory],
            ["bfs", graph, "--source", source, "--partition", "{parts}", *memory],
        ],
    }  # fmt: skip
    return {"command": _pick(rng, commands[base.kind]), "_ample": True}


def command(call: Call) -> Answer:
    """Run a command as from a shell; its exit code and the one message are judged by `tests.fuzz.judge`."""
    from oocgraph.cli import cli

    places = {"graph": call.graph, "out": str(call.out), "parts": str(call.folder / PARTS), "memory": str(call.memory)}
    arguments = [one.format(**places) for one in call.options["command"]]
    with (
        (call.out / "stdout").open("w") as out,
        (call.out / "stderr").open("w") as errors,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        try:
            cli.main(arguments, prog_name="oocgraph", standalone_mode=True)
        except SystemExit as end:
            code = end.code
    told = (call.out / "stderr").read_text()
    sys.stderr.write(told)
    if code == 0:
        return {}
    if code == 2 and "Traceback" not in told and "Error: " in told:
        raise OocGraphError(told)
    if code == 1 and call.options["command"][0] == "bench":
        raise OocGraphError("invalid results")
    raise AssertionError(f"exit code {code}: {told}")


OPERATIONS = {
    operation.name: operation
    for operation in [
        Operation(bfs, _draw_bfs, kinds=("graph",), share=600),
        Operation(bfs_on_device, _draw_bfs, share=60 if HAS_SHIM else 0),
        Operation(bfs_over_partitions, _draw_grid, kinds=("graph", "partitions"), share=120, checks=lambda _: False),
        Operation(bfs_on_cluster, _draw_resumed, kinds=("graph",), share=2, checks=lambda _: False, needs_threads=True),
        Operation(resumed, _draw_resumed, kinds=("search",), share=100, checks=lambda _: False, needs_threads=True),
        Operation(verify, _draw_written, share=50),
        Operation(bfs_written, _draw_written, share=60),
        Operation(spmv, _draw_product, share=250),
        Operation(pagerank, _draw_ranks, kinds=("graph", "checkpoint"), share=250),
        Operation(components, _draw_usual, share=100),
        Operation(analysis, _draw_analysis, share=300, num_preloaded=40),
        Operation(export, _draw_export, share=250),
        Operation(partition, _draw_partition, share=150),
        Operation(read_parts, _draw_usual, kinds=("partitions",), share=120, checks=lambda _: False),
        Operation(to_scipy, _draw_scipy, share=120),
        Operation(check, _draw_usual, share=200, checks=lambda _: True),
        Operation(plan, _draw_usual, share=50, checks=lambda _: False),
        Operation(command, _draw_command, kinds=("graph", "partitions"), share=200, needs_threads=True),
    ]
}


def draw(base: Base, rng: np.random.Generator) -> tuple[Operation, dict[str, Any]]:
    """Draw an operation for a base, and its options."""
    fitting = [one for one in OPERATIONS.values() if base.kind in one.kinds]
    shares = np.cumsum([one.share for one in fitting])
    operation = fitting[int(np.searchsorted(shares, rng.integers(shares[-1]), side="right"))]
    return operation, operation.draw(rng, base)
