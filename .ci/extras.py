"""Check what one extra promises, or without extras the errors that name the one to install.

    extras.py [plot|networkx|s3|hpc|notebooks|all]

Run by ``.ci/package`` in an environment that has the package with this extra and nothing else.
"""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import oocgraph


def message_of(call):
    """Return the message of the error that a call raises; of none, nothing."""
    try:
        call()
    except oocgraph.OocGraphError as error:
        return str(error)
    return ""


def nothing(graph, folder):
    """Each error names an extra."""
    result = oocgraph.bfs(graph, 0)
    assert "oocgraph[plot]" in message_of(result.plot)
    assert "oocgraph[notebooks]" in message_of(result.to_pandas)
    assert "oocgraph[s3]" in message_of(lambda: oocgraph.open_graph("s3://bucket/graph.zarr"))


def plot(graph, folder):
    """Draw a picture."""
    oocgraph.bfs(graph, 0).plot().savefig(folder / "levels.png")


def networkx(graph, folder):
    """Build from a graph of NetworkX."""
    import networkx as nx

    assert oocgraph.build_csr(nx.path_graph(4), folder / "path.zarr").num_edges == 3


def s3(graph, folder):
    """Get as far as the network: the endpoint does not answer."""
    options = {"endpoint_url": "http://127.0.0.1:1", "key": "k", "secret": "s"}
    message = message_of(lambda: oocgraph.open_graph("s3://bucket/graph.zarr", storage_options=options))
    assert "127.0.0.1:1" in message, message
    assert "pip install" not in message, message


def hpc(graph, folder):
    """Write a job script."""
    from dask_jobqueue.slurm import SLURMJob

    assert "dask_worker" in SLURMJob("tcp://127.0.0.1:1", "worker", cores=1, memory="1GiB").job_script()


def notebooks(graph, folder):
    """Frames, pictures and JupyterLab."""
    assert find_spec("jupyterlab") is not None
    assert len(oocgraph.bfs(graph, 0).to_pandas()) == graph.num_vertices
    plot(graph, folder)
    networkx(graph, folder)


PROMISES = {"": nothing, "plot": plot, "networkx": networkx, "s3": s3, "hpc": hpc, "notebooks": notebooks}

with tempfile.TemporaryDirectory() as scratch:
    place = Path(scratch)
    grid = oocgraph.generate_grid((3, 4), place / "grid.zarr")
    named = sys.argv[1]
    for name in [one for one in PROMISES if one] if named == "all" else [named]:
        folder = place / f"extra-{name}"
        folder.mkdir()
        PROMISES[name](grid, folder)
        print(f"extra {name or 'none'}: ok")
