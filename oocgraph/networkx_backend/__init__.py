"""oocgraph as a backend of NetworkX: ``nx.pagerank(oocgraph.open_graph(path))``, and ``nx.pagerank(graph, backend="oocgraph")``.

NetworkX imports this package when a function is first dispatched to it; what it reads before, ``_oocgraph_nx``, is at the top level, so
that ``import networkx`` imports nothing of oocgraph. In: stores, or graphs of NetworkX, which are converted to graphs in memory
(`oocgraph.networkx_backend.graph`). Out: what NetworkX returns; of a store, values of vertices are lazy mappings, sets of vertices are
`VertexSet`, and graphs are graphs of oocgraph.

A function is a few lines in the module of its topic. What it can do and what it refuses is said by its decorator
(`oocgraph.networkx_backend.registry`), what it costs in ``_oocgraph_nx``.
"""

from oocgraph.networkx_backend.interface import BackendInterface

__all__ = ["BackendInterface"]
