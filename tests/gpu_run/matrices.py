"""Products of a store on the GPU and on the processor, and of a matrix on the GPU beside cuSPARSE."""

from __future__ import annotations

import sys
import time

import numpy as np

import oocgraph
from oocgraph import Resources

NUM_ROWS, NUM_ENTRIES, ROUNDS = 1 << 22, 1 << 27, 5


def of_store(url, devices=("cuda", "cpu"), rounds=3):
    """Iterate over (device, seconds) of products of a graph."""
    graph = oocgraph.open_graph(url)
    x = np.random.default_rng(0).random(graph.attributes.num_input_vertices)
    for device in devices:
        for _ in range(rounds):
            began = time.perf_counter()
            oocgraph.spmv(graph, x, resources=Resources(device=device))
            yield device, time.perf_counter() - began


def beside_cusparse():
    """Iterate over (library, seconds, bytes a second) of a product of a random matrix in device memory."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    pointers = cupy.asarray(np.linspace(0, NUM_ENTRIES, NUM_ROWS + 1).astype(np.int32))
    columns = cupy.random.randint(0, NUM_ROWS, NUM_ENTRIES, dtype=np.int32)
    matrix = csr_matrix((cupy.random.rand(NUM_ENTRIES), columns, pointers), shape=(NUM_ROWS, NUM_ROWS))
    x = cupy.random.rand(NUM_ROWS)
    assert cupy.allclose(oocgraph.spmv(matrix, x), matrix @ x)
    for name, multiply in (("oocgraph", lambda: oocgraph.spmv(matrix, x)), ("cuSPARSE", lambda: matrix @ x)):
        multiply()
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        for _ in range(ROUNDS):
            multiply()
        cupy.cuda.Device().synchronize()
        seconds = (time.perf_counter() - began) / ROUNDS
        yield name, seconds, (12 * NUM_ENTRIES + 16 * NUM_ROWS) / seconds


if __name__ == "__main__":
    for device, seconds in of_store(sys.argv[1]):
        print("a store's product,", device, seconds, "s", flush=True)
    for name, seconds, rate in beside_cusparse():
        print("a product on the device,", name, seconds, "s,", rate / 1e9, "GB/s", flush=True)
