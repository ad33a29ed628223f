"""Searches, shortest paths and products on a device against the processor; small, for compute-sanitizer.

In: a store (``python -m tests.gpu_run.answers STORE``), and where a device comes from.
Out: a line for each case; the exit code is 1 if an answer is wrong.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
import scipy.sparse as sp

import oocgraph
from oocgraph import Resources
from oocgraph.engine.device import DeviceRuntime
from oocgraph.errors import BudgetError

SOURCES = (3, 4, 5)
DIRECTIONS = ("auto", "push", "pull", "alpha-beta", "gemini")
RESIDENCIES = {"all": {}, "tenth, host": {"share": 0.1}, "tenth, disk": {"share": 0.1, "max_host_edges": 0}}
"""What of the edges is on the device beyond what must be; where the others are."""

VECTOR_BYTES = 64
"""Bytes of a vertex that ranks take on a device, and more."""

SEMIRINGS = ("plus_times", "min_plus", "or_and", "plus_second")


def least_bytes(store, device):
    """Return the least budget of device memory that works, as the refusal of less names it."""
    try:
        DeviceRuntime.open(store, device=device, device_memory_budget=1).close()
    except BudgetError as error:
        return int(str(error).rsplit("at least ", 1)[1].split("M")[0]) << 20
    raise AssertionError("one byte of device memory was enough")


def searches(store, open_device):
    """Iterate over searches: what was searched, whether levels are those of the processor and the tree is valid, and its seconds."""
    with oocgraph.open_runtime(store, resources=Resources(device="cpu")) as runtime:
        levels = {source: np.asarray(oocgraph.bfs(store, source, runtime=runtime).level) for source in SOURCES}
    least = least_bytes(store, open_device())
    for name, how in RESIDENCIES.items():
        budget = least + int(how["share"] * store.edge_bytes) if how else None
        edges = how.get("max_host_edges")
        with DeviceRuntime.open(store, device=open_device(), device_memory_budget=budget, max_host_edges=edges) as runtime:
            for direction in DIRECTIONS:
                for source, expected in levels.items():
                    found = oocgraph.bfs(store, source, runtime=runtime, direction=direction)
                    oocgraph.verify_bfs(store, found)
                    yield f"bfs {name}, {direction}, from {source}", np.array_equal(np.asarray(found.level), expected), found.seconds


def paths(store, device, open_device):
    """Iterate over shortest paths of a store with weights: what was searched, and whether distances are the processor's."""
    some = least_bytes(store, open_device()) + VECTOR_BYTES * store.num_rows + store.edge_bytes // 4
    for budget in (None, some):
        asked = Resources(device=device, device_memory_budget=budget)
        with oocgraph.open_runtime(store, resources=asked) as runtime:
            for source in SOURCES:
                expected = oocgraph.sssp(store, source, resources=Resources(device="cpu"))
                found = oocgraph.sssp(store, source, runtime=runtime)
                oocgraph.verify_sssp(store, found)
                yield f"sssp, device memory {budget}, from {source}", np.allclose(found.distance, expected.distance, rtol=1e-12)


def products(device):
    """Iterate over products of matrices in every format: what was multiplied, and whether it is what the processor makes."""
    rng, matrix = np.random.default_rng(0), sp.random(5000, 4000, 0.01, format="csr", random_state=0)
    for form in ("csr", "csc", "coo"):
        for semiring in SEMIRINGS:
            x = rng.random(4000) > 0.9 if semiring == "or_and" else rng.random(4000)
            found = oocgraph.spmv(matrix.asformat(form), x, semiring=semiring, resources=Resources(device=device))
            expected = oocgraph.spmv(matrix.asformat(form), x, semiring=semiring, resources=Resources(device="cpu"))
            same = np.array_equal(found, expected) if semiring == "or_and" else np.allclose(found, expected, rtol=1e-10)
            yield f"spmv {form}, {semiring}", same
        with oocgraph.open_runtime(matrix.asformat(form), resources=Resources(device=device)) as runtime:
            for width in (1, 5, 1):
                x = rng.random((4000, width))
                found = oocgraph.spmv(runtime.matrix, x, runtime=runtime)
                yield f"spmv {form}, open, {width} vectors", np.allclose(found, matrix @ x, rtol=1e-10)


def ranks(store, device, open_device):
    """Iterate over ranks and products of a store, with all of it on the device and with little: whether they are those of the processor."""
    expected = oocgraph.pagerank(store, tol=1e-10, resources=Resources(device="cpu")).rank
    x = np.random.default_rng(0).random(store.attributes.num_input_vertices)
    product = oocgraph.spmv(store, x, resources=Resources(device="cpu"))
    some = least_bytes(store, open_device()) + VECTOR_BYTES * store.num_rows + store.edge_bytes // 4
    for budget in (None, some):
        asked = Resources(device=device, device_memory_budget=budget)
        with oocgraph.open_runtime(store, resources=asked) as runtime:
            for number in (1, 2):
                found = oocgraph.pagerank(store, tol=1e-10, runtime=runtime)
                yield f"pagerank, device memory {budget}, run {number}", np.allclose(found.rank, expected, rtol=1e-9)
                found = oocgraph.spmv(store, x, runtime=runtime)
                yield f"spmv of the store, device memory {budget}, {number}", np.allclose(found, product, rtol=1e-10)


def main(url):
    """Compare all of it on the GPU; return the exit code."""
    from oocgraph.arrays import device_choice

    def open_device():
        return device_choice("cuda").device

    wrong = 0
    for name, right, seconds in searches(oocgraph.open_graph(url), open_device):
        wrong += not right
        print(name, "right" if right else "WRONG", f"{1e3 * seconds:.3f} ms", flush=True)
    store = oocgraph.open_graph(url)
    weighted = paths(store, "cuda", open_device) if store.attributes.weighted else ()
    others = (weighted, products("cuda"), ranks(store, "cuda", open_device))
    for name, right in itertools.chain(*others):
        wrong += not right
        print(name, "right" if right else "WRONG", flush=True)
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
