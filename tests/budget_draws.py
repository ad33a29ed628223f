"""Draws (graph, command, options), asks with a budget that is too small, and runs with the one that the refusal names.

`Draws` makes the graphs and draws; `judge` runs one draw and returns what is wrong with it. ``python -m tests.budget_draws 200 --seed 1``
does so many times, prints what broke, and counts. Three ways to run: in the next process, under a control group whose limit just allows
the budget (`next`); in the process that was refused (`same`); in a process without any budget, under that control group (`none`).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import dask
import numpy as np
from numba import typeof

from oocgraph import Resources
from oocgraph.memory import CGROUP_SHARE, host_bytes
from tests import every_knob
from tests.capped import memory_group
from tests.processes import program

ROOT = Path(__file__).resolve().parent.parent

WAYS = ("next", "same", "none")

TINY = "1M"

SECONDS = 300
"""Within which any draw ends, on a busy machine too."""

TABLES = (".zarr", ".parquet", ".csv")

ITERATIONS = ("--tol", "0", "--max-iter", "5")

GRAPHS_OF = {
    ("scc", "condensation"): ("columns", "coded", "sinks", "gaps"),
    ("triangles", "louvain", "label-propagation", "spanning-forest", "biconnected-components", "coloring", "independent-set"): (
        "kron",
        "road",
        "names",
        "original",
    ),
    ("eccentricity", "diameter", "path"): ("road",),
    ("betweenness", "merge"): ("kron", "columns", "names", "coded", "original", "sinks", "gaps"),
}
"""Directed, undirected and connected graphs, those with few shortest paths and those not in locality order, for commands that need them."""

LOOKUPS = {"neighbors", "sample"}
"""Commands of one thread."""

ANALYSES = {
    "hits": ITERATIONS,
    "katz": ("--alpha", "1e-6", *ITERATIONS),
    "eigenvector": ITERATIONS,
    "personalized-pagerank": ("--seed-vertex", "ID", *ITERATIONS),
    "betweenness": ("--samples", "4"),
    "multi-source-bfs": ("--source", "ID"),
    "closeness": ("--samples", "4"),
    "harmonic": ("--vertex", "ID"),
    "eccentricity": ("--vertex", "ID"),
    "diameter": ("--max-searches", "4"),
    "spanning-forest": ("--unweighted",),
    "biconnected-components": (),
    "coloring": (),
    "independent-set": (),
    "label-propagation": ("--unweighted",),
    "louvain": ("--unweighted",),
    "triangles": (),
    "scc": (),
    "condensation": (),
    "path": ("ID", "ID"),
    "neighbors": ("ID", "ID"),
    "sample": ("ID", "ID"),
}
"""Commands with options that make them short; ID: of a vertex."""

COMPILED = "compiled in this process:"

NAMED = re.compile(r"to at least (\d+)M")


@dataclass(frozen=True)
class Draw:
    """A command with its options, and a way to run it."""

    arguments: tuple[str, ...]
    way: str
    output: Path | None

    def __str__(self) -> str:
        return f"[{self.way}] {' '.join(Path(one).name if '/' in one else one for one in self.arguments)}"


class Draws:
    """Graphs in `folder`, made once, of about `num_edges` edges; and draws from them."""

    def __init__(self, folder, num_edges, seed):
        self.folder, self.rng = Path(folder), np.random.default_rng(seed)
        self.num_edges, self.num_drawn = num_edges, 0
        self._make_sources()
        self._make_graphs(("zstd", "blosc")[seed % 2])

    def _make_sources(self):
        """Edge lists: integers with columns (Parquet, CSV), strings (Parquet), and edges that begin at few vertices, to one each."""
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet as pq

        rng, m = np.random.default_rng(5), self.num_edges
        source, target = rng.integers(0, m // 4, (2, m)) ** 2 // (m // 4)
        weight, kind = rng.random(m), np.array(["bus", "tram", "ferry"])[rng.integers(0, 3, m)]
        columns = {"source": source, "target": target, "weight": weight, "length": rng.integers(0, 99, m), "kind": kind}
        pq.write_table(pa.table(columns), self.folder / "columns.parquet")
        pyarrow.csv.write_csv(pa.table({"source": source, "target": target}), self.folder / "plain.csv")
        sinks = pa.table({"source": np.arange(m) // (m // 4) * (m // 3), "target": np.arange(m)[::-1]})
        pq.write_table(sinks, self.folder / "sinks.parquet", row_group_size=1 << 18)
        names = [f"package-{one:08d}" for one in range(m // 4)]
        ids = pa.array(names, pa.large_string())
        pq.write_table(
            pa.table({"source": ids.take(pa.array(source)), "target": ids.take(pa.array(target))}), self.folder / "names.parquet"
        )
        np.save(self.folder / "edges.npy", np.stack([source, target], axis=1))
        np.savez(self.folder / "pairs.npz", source=source, target=target)

    def _make_graphs(self, codec):
        from oocgraph import build_csr
        from oocgraph.commands.build import build_store
        from oocgraph.ingest.generators.grid import GridEdges
        from oocgraph.ingest.generators.kronecker import KroneckerEdges

        side, scale = int((self.num_edges / 2) ** 0.5), (self.num_edges // 16).bit_length()
        graphs = self.folder / "graphs"
        graphs.mkdir()
        build_store(KroneckerEdges(scale, edge_factor=16, seed=3), str(graphs / "kron"))
        build_store(GridEdges(side, side), str(graphs / "road"))
        build_store(GridEdges(side, side, keep=0.9, weights=(1, 255)), str(graphs / "streets"), vertex_order="locality")
        columns = {"weight_column": "weight", "edge_columns": ["length", "kind"]}
        every_knob.build(self.folder / "columns.parquet", graphs / "columns", directed=True, **columns)
        build_csr(self.folder / "names.parquet", graphs / "names", directed=False)
        every_knob.build(self.folder / "names.parquet", graphs / "coded", directed=True, codec=codec)
        every_knob.build(self.folder / "plain.csv", graphs / "original", directed=False, vertex_order="original")
        every_knob.build(self.folder / "sinks.parquet", graphs / "sinks", directed=True)
        every_knob.build(self.folder / "sinks.parquet", graphs / "gaps", directed=True, vertex_order="original")
        from oocgraph import open_graph
        from oocgraph.store.vertices import VertexIds

        every_knob.partition(open_graph(graphs / "kron"), 3, "CVC", self.folder / "kron-parts")
        every_knob.partition(open_graph(graphs / "columns"), 3, "EEC", self.folder / "columns-parts", transpose=True)
        self.scale = scale
        self.graphs = {path.name: str(path) for path in sorted(graphs.iterdir())}
        self.sources = {
            name: [str(one) for one in VertexIds(open_graph(path)).ids_of(np.arange(5)).tolist()] for name, path in self.graphs.items()
        }

    def draw(self):
        """Return the next `Draw`."""
        self.num_drawn += 1
        kinds = [self._build, self._generate, self._bfs, self._bfs, self._pagerank, self._spmv, self._export, self._partition, self._check]
        kinds += [self._components, self._sssp, self._core, self._plan, self._bench, *[self._analysis] * 6, self._append, self._merge]
        kind = self._one(kinds)
        arguments, output = kind(self._one(list(self.graphs)), self.folder / f"out-{self.num_drawn}")
        return Draw(tuple(map(str, arguments)), self._one(WAYS), output)

    def _one(self, values):
        return values[int(self.rng.integers(len(values)))]

    def _maybe(self, *arguments, share=0.5):
        return list(arguments) if self.rng.random() < share else []

    def _threads(self):
        return self._maybe("--threads", self._one([1, 2, 3, 4]), share=0.4)

    def _build(self, _graph, out):
        name = self._one(["columns.parquet", "columns.parquet", "plain.csv", "names.parquet", "sinks.parquet", "edges.npy", "pairs.npz"])
        columns = [
            *self._maybe("--weight-column", "weight"),
            *self._maybe("--edge-column", "length"),
            *self._maybe("--edge-column", "kind"),
        ]
        options = columns if name == "columns.parquet" else []
        options += [
            self._one(["--directed", "--undirected"]),
            *self._maybe("--vertex-order", self._one(["original", "locality", "auto"]), share=0.3),
            *self._threads(),
        ]
        options += self._maybe("--duplicates", "keep", share=0.3) + self._maybe("--codec", self._one(["blosc", "zstd"]), share=0.3)
        return ["build", self.folder / name, out, *options], out

    def _generate(self, _graph, out):
        kind = self._one(["kronecker", "uniform", "grid"])
        side = int((self.num_edges / 2) ** 0.5)
        size = ["--rows", side, "--columns", side] if kind == "grid" else ["--scale", self.scale]
        if self.rng.random() < 0.3:
            out = out.with_suffix(self._one([".parquet", ".npy"]))
            return ["generate", kind, "--edges", out, *size], out
        return ["generate", kind, out, *size, *self._threads()], out

    def _bfs(self, graph, out):
        options = [*self._maybe("--validate"), *self._threads()]
        written = self.rng.random() < 0.7
        out = out.with_suffix(self._one(TABLES))
        if self.rng.random() < 0.25:
            options += ["--partition", self._one(["1d", "2d"])]
        else:
            options += [*self._maybe("--check-pages"), *self._maybe("--direction", self._one(["push", "pull", "half"]), share=0.3)]
        options += ["--device", "cpu"] if "--partition" not in options else []
        found = [*options, *(["--out", out] if written else [])]
        return ["bfs", self.graphs[graph], "--source", self._one(self.sources[graph]), *found], out if written else None

    def _pagerank(self, graph, out):
        options = [*self._maybe("--personalize", self._one(self.sources[graph]), share=0.3), *self._threads()]
        options += self._maybe("--weight", "length") if graph == "columns" else []
        out = out.with_suffix(self._one(TABLES))
        written = ["--out", out] if self.rng.random() < 0.7 else []
        return ["pagerank", self.graphs[graph], "--top", self._one([0, 10, 1000]), "--max-iter", 200, *options, *written], out

    def _components(self, graph, out):
        out = out.with_suffix(self._one(TABLES))
        options = [*self._maybe("--validate"), *self._maybe("--check-pages"), *self._threads()]
        written = self.rng.random() < 0.7
        return ["components", self.graphs[graph], *options, *(["--out", out] if written else [])], out if written else None

    def _sssp(self, _graph, out):
        graph, out = self._one(["columns", "streets"]), out.with_suffix(self._one(TABLES))
        options = [*self._maybe("--validate"), *self._maybe("--check-pages"), *self._threads()]
        options += self._maybe("--schedule", self._one(["buckets", "rounds"]), share=0.3) + self._maybe("--distance-limit", 50, share=0.2)
        options += ["--weight", self._one(["weight", "length"])] if graph == "columns" else []
        written = ["--out", out] if self.rng.random() < 0.7 else []
        return ["sssp", self.graphs[graph], "--source", self._one(self.sources[graph]), *options, *written], out if written else None

    def _core(self, graph, out):
        out = out.with_suffix(self._one(TABLES))
        options = [*self._maybe("--validate"), *self._maybe("--schedule", "rounds", share=0.3), *self._threads()]
        written = ["--out", out] if self.rng.random() < 0.7 else []
        return ["core", self.graphs[graph], *options, *written], out if written else None

    def _analysis(self, graph, out):
        """One of the functions on graphs that NetworkX has, too."""
        command = self._one(list(ANALYSES))
        graph = next((self._one(graphs) for commands, graphs in GRAPHS_OF.items() if command in commands), graph)
        options = [self._one(self.sources[graph]) if one == "ID" else one for one in ANALYSES[command]]
        options += self._maybe("--check-pages") + ([] if command in LOOKUPS else self._threads())
        if command == "condensation":
            return [command, self.graphs[graph], out, *options], out
        out = out.with_suffix(self._one(TABLES))
        written = [] if command in {"diameter", "path", *LOOKUPS} else self._maybe("--out", out, share=0.7)
        return [command, self.graphs[graph], *options, *written], out if written else None

    def _append(self, _graph, out):
        """To a copy, which stays."""
        columns = ["--weight-column", "weight", "--edge-column", "length", "--edge-column", "kind"]
        draws = [("columns", "columns.parquet", columns), ("names", "names.parquet", []), ("coded", "names.parquet", [])]
        graph, edges, options = draws[int(self.rng.integers(len(draws)))]
        shutil.copytree(self.graphs[graph], out)
        return ["build", self.folder / edges, out, "--append", *options, *self._threads()], None

    def _merge(self, _graph, out):
        graph = self._one(GRAPHS_OF["betweenness", "merge"])
        return ["merge", self.graphs[graph], self.graphs[graph], out, *self._threads()], out

    def _spmv(self, graph, _out):
        return ["spmv", self.graphs[graph], *self._maybe("--transpose"), *self._threads()], None

    def _export(self, graph, out):
        out = out.with_suffix(self._one([".parquet", ".npz", ".sg"]))
        options = [*(self._maybe("--order", "store", share=0.3) if out.suffix != ".parquet" else []), *self._threads()]
        weight = self._maybe("--weight", "length") if graph == "columns" and out.suffix == ".npz" else []
        return ["export", self.graphs[graph], out, *options, *weight], out

    def _partition(self, graph, out):
        options = [*self._maybe("--check"), *self._maybe("--report"), *self._maybe("--transpose", share=0.3), *self._threads()]
        policy = self._one(["CVC", "EEC", "HVC", "FEC", "SVC", "GVC", "1D-vertex", "chunk"])
        return ["partition", self.graphs[graph], out, "--partitions", self._one([2, 4, 7]), "--policy", policy, *options], out

    def _check(self, graph, _out):
        path = self._one([self.graphs[graph]] * 3 + [self.folder / "kron-parts", self.folder / "columns-parts"])
        return ["check", path, *self._threads()], None

    def _plan(self, graph, _out):
        return ["plan", self.graphs[graph], "--workers", "2,4,9", "--no-levels"], None

    def _bench(self, graph, _out):
        kind = self._one(["bfs", "bfs", "pagerank", "spmv"])
        options = {"bfs": ["--num-sources", 2], "pagerank": ["--num-rounds", 1], "spmv": ["--rounds", 1]}[kind]
        return ["bench", kind, self.graphs[graph], *options, *self._threads()], None


@dataclass(frozen=True)
class Outcome:
    """What a draw came to: the budget that was named, the peak, and what is wrong (None: nothing)."""

    draw: Draw
    named_bytes: int
    peak_bytes: int
    wrong: str | None
    seconds: float


def judge(draw):
    """Ask with a tiny budget, run with the one that is named."""
    began = time.perf_counter()
    try:
        named, peak, wrong = _judge(draw)
    finally:
        if draw.output is not None:
            shutil.rmtree(draw.output, ignore_errors=True)
            draw.output.unlink(missing_ok=True)
    return Outcome(draw, named, peak, wrong, time.perf_counter() - began)


def _judge(draw):
    if draw.way == "same":
        code, text, peak = _run(["same", *draw.arguments], None)
        told = re.findall(r"^named (\d+)$", text, re.M)
        named = int(told[0]) << 20 if told else 0
    else:
        code, text, _ = _run(["run", *_with_memory(draw.arguments, TINY)], None)
        found = NAMED.findall(text)
        if code != 2 or len(found) != 1:
            return 0, 0, f"{TINY} is not refused with a number ({code}): {text[-800:]}"
        if draw.output is not None and draw.output.exists():
            return 0, 0, "a refused command left its output"
        named = int(found[0]) << 20
        arguments = draw.arguments if draw.way == "none" else _with_memory(draw.arguments, f"{found[0]}M")
        code, text, peak = _run(["run", *arguments], int(named / CGROUP_SHARE) + 1)
    if COMPILED in text:
        return named, peak, text[text.index(COMPILED) :].splitlines()[0]
    if code != 0:
        return named, peak, f"exit code {code} with {named >> 20}M: {text[-800:]}"
    if peak > named:
        return named, peak, f"held {peak / 2**20:.1f} MiB of {named >> 20}"
    return named, peak, None


def _with_memory(arguments, memory):
    """Add the budget; that of ``plan`` is its workers', and its own is configured."""
    return [*arguments, *(["--configured", memory] if arguments[0] == "plan" else ["--memory", memory])]


def _run(arguments, limit_bytes):
    """Run in a process of its own; return exit code, output, and the peak of its RssAnon + RssShmem."""
    command = [sys.executable, "-m", "tests.budget_draws", *map(str, arguments)]
    with nullcontext() if limit_bytes is None else memory_group(limit_bytes) as group:
        enter = [] if group is None else ["/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "capped"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "cwd": ROOT, "env": environment}
        with program([*enter, *command], **options) as process:
            peak, ended = 0, threading.Event()

            def sample():
                nonlocal peak
                while not ended.wait(0.002):
                    peak = max(peak, host_bytes(process.pid))

            sampler = threading.Thread(target=sample)
            sampler.start()
            try:
                text, _ = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                return -1, f"did not end within {SECONDS} s: {_threads(process.pid)}", peak
            finally:
                ended.set()
                sampler.join()
    return process.returncode, text, peak


def _threads(pid):
    """Say what each thread of a process is waiting for, as far as the kernel tells."""
    told = []
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        with contextlib.suppress(OSError):
            told.append(f"{(task / 'stat').read_text().rpartition(')')[2].split()[0]} {(task / 'wchan').read_text()}")
    return "; ".join(told)


def _tell_what_is_compiled():
    """Have each kernel that this process compiles, or loads by its compiler, named: that takes 20 MB which no budget has.

    Policies are compiled where they are used, and charged.
    """
    from numba.core.dispatcher import Dispatcher

    compile_for = Dispatcher._compile_for_args

    def told(kernel, *arguments, **named):
        if not kernel.py_func.__module__.startswith("oocgraph.kernels.policy"):
            print(f"{COMPILED} {kernel.py_func.__module__}.{kernel.py_func.__name__} of {[typeof(one) for one in arguments]}", flush=True)
        return compile_for(kernel, *arguments, **named)

    Dispatcher._compile_for_args = told


def _command(arguments):
    """Run a command line, or `spmv`, which has none; return the exit code."""
    if arguments[0] == "spmv":
        return _spmv(arguments[1:])
    configured = {}
    if "--configured" in arguments:
        *arguments, _, memory = arguments
        configured = {"oocgraph.memory-budget": memory}
    try:
        with dask.config.set(configured):
            return _ended(arguments)
    finally:
        sys.stdout.flush()


def _ended(arguments):
    from oocgraph.cli import cli

    try:
        return cli.main(arguments, standalone_mode=True) or 0
    except SystemExit as ended:
        return ended.code or 0


def _spmv(arguments):
    from oocgraph import OocGraphError, open_graph, spmv

    parser = argparse.ArgumentParser()
    parser.add_argument("graph")
    parser.add_argument("--transpose", action="store_true")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--memory")
    given = parser.parse_args(arguments)
    graph = open_graph(given.graph)
    x = np.ones(graph.attributes.num_input_vertices)
    try:
        spmv(graph, x, transpose=given.transpose, resources=Resources(threads=given.threads, device="cpu"), memory_budget=given.memory)
    except OocGraphError as error:
        print(error)
        return 2
    return 0


def _same(arguments):
    """Ask and run in this process."""
    with contextlib.redirect_stderr(io.StringIO()) as told, contextlib.redirect_stdout(told):
        code = _command(_with_memory(arguments, TINY))
    found = NAMED.findall(told.getvalue())
    if code != 2 or len(found) != 1:
        print(f"{TINY} is not refused with a number ({code}): {told.getvalue()[-800:]}")
        return 1
    print(f"named {found[0]}", flush=True)
    return _command(_with_memory(arguments, f"{found[0]}M"))


def main():
    """Judge many draws, or be one of the processes that they run in."""
    if sys.argv[1] in ("run", "same"):
        _tell_what_is_compiled()
        sys.exit(_command(sys.argv[2:]) if sys.argv[1] == "run" else _same(sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("num_draws", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--edges", type=int, default=1 << 20)
    parser.add_argument("--only", default="", help="Judge only draws whose command contains this text.")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="oocgraph-draws-") as folder:
        draws = Draws(folder, given.edges, given.seed)
        while counts["drawn"] < given.num_draws:
            draw = draws.draw()
            if given.only not in str(draw):
                shutil.rmtree(draws.folder / f"out-{draws.num_drawn}", ignore_errors=True)  # a copy to append to
                continue
            counts["drawn"] += 1
            found = judge(draw)
            counts["wrong" if found.wrong else "right"] += 1
            sizes = f"{found.peak_bytes / 2**20:6.1f} of {found.named_bytes >> 20:4d} MiB {found.seconds:5.1f} s"
            print(
                f"{'WRONG' if found.wrong else 'right'} {sizes} {draw}{chr(10) + '    ' + found.wrong if found.wrong else ''}", flush=True
            )
    print(json.dumps(counts))
    sys.exit(1 if counts["wrong"] else 0)


if __name__ == "__main__":
    main()
