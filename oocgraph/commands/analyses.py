"""Commands whose answer is a few values of every vertex: centralities, communities, components, spanning forests, triangles."""

from __future__ import annotations

import click

from oocgraph.commands.values import iteration_options, rank_options, values_command, weight_options

_vertices = click.option(
    "--vertex", "vertices", metavar="ID", multiple=True, callback=lambda context, parameter, given: list(given) or None,
    help="Vertex whose value is wanted; repeat for several.  [default: all]",
)  # fmt: skip

_k = click.option("--samples", "k", type=int, help="Estimate all values by searches from so many vertices.")

_seed = click.option("--seed", type=int, default=1, show_default=True, help="Seed of the choice of these vertices.")

_community_seed = click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same communities.")

hits = values_command(
    "hits", "hits",
    """Find hubs and authorities of the graph store GRAPH: edges lead from good hubs to good authorities.

    Each of the two sums up to 1; --top shows hubs.""",
    "iterations",
    iteration_options, weight_options, on_cluster=True,
)  # fmt: skip

katz = values_command(
    "katz", "katz_centrality",
    """Find the Katz centrality of every vertex of the graph store GRAPH.

    It is alpha times the sum of those of its in-neighbours, and beta.""",
    "iterations",
    click.option(
        "--alpha", type=float, default=0.1, show_default=True, help="Attenuation, below 1 / (largest eigenvalue)."
    ),
    click.option("--beta", type=float, default=1.0, show_default=True, help="Centrality of each vertex by itself."),
    click.option("--normalized/--absolute", default=True, show_default=True, help="Divide by the Euclidean norm, or do not."),
    iteration_options, weight_options, on_cluster=True,
)  # fmt: skip

eigenvector = values_command(
    "eigenvector", "eigenvector_centrality",
    """Find the eigenvector centrality of every vertex of the graph store GRAPH.

    It is in proportion to the sum of those of its in-neighbours; the Euclidean norm is 1.""",
    "iterations",
    iteration_options, weight_options, on_cluster=True,
)  # fmt: skip

betweenness = values_command(
    "betweenness", "betweenness_centrality",
    """Find the betweenness centrality of every vertex of the graph store GRAPH.

    It is the share of the shortest paths between others that go through it, added up; weights are not used. Of the metrics, depth is
    the number of edges of the longest of the shortest paths.""",
    "searches",
    click.option("--samples", "k", metavar="K", type=int, help="Paths from so many vertices.  [default: from all of them]"),
    click.option("--seed", type=int, default=1, show_default=True, help="Seed of the choice of these vertices."),
    click.option(
        "--normalized/--absolute", default=True, show_default=True, help="Divide by the number of pairs of other vertices, or do not."
    ),
    click.option("--endpoints", is_flag=True, help="Count the ends of paths, too."),
)  # fmt: skip

closeness = values_command(
    "closeness", "closeness_centrality",
    """Find the closeness centrality of vertices of the graph store GRAPH: 1 / (average distance to it of those that reach it).

    Exact for given vertices, or all, each of which takes a search; or estimated by a sample (--samples).""",
    "searches",
    _vertices, _k,
    click.option(
        "--wf-improved/--plain", default=True, show_default=True, help="Multiply by the share of vertices that reach it, or do not."
    ),
    _seed, on_cluster=True,
)  # fmt: skip

harmonic = values_command(
    "harmonic", "harmonic_centrality",
    """Find the harmonic centrality of vertices of the graph store GRAPH: the sum of 1 / distance of all that reach it.

    Exact for given vertices, or all, each of which takes a search; or estimated by a sample (--samples).""",
    "searches",
    _vertices, _k, _seed, on_cluster=True,
)  # fmt: skip

eccentricity = values_command(
    "eccentricity", "eccentricity",
    """Find the eccentricity of vertices of the graph store GRAPH: the distance to the vertex that is farthest.

    The graph must be connected, a directed one strongly. Each vertex takes a search.""",
    "searches",
    _vertices, on_cluster=True,
)  # fmt: skip

personalized_pagerank = values_command(
    "personalized-pagerank", "personalized_pagerank",
    """Rank the vertices of the graph store GRAPH as each --seed-vertex sees them: by walks that start again there.

    --top shows the ranks of the first; --out has those of all, in the columns rank_0, rank_1, ... in the order of the seeds.""",
    "iterations",
    click.option("--seed-vertex", "seeds", metavar="ID", multiple=True, required=True, help="Id of a seed; repeat."),
    rank_options,
    weight_options,
    on_cluster=True,
)  # fmt: skip

spanning_forest = values_command(
    "spanning-forest", "minimum_spanning_forest",
    """Find a minimum spanning forest of the graph store GRAPH, which is undirected: a tree of each component.

    --out has the parent of each vertex (a root is its own), and the weight of the edge between them.""",
    "rounds",
    weight_options, click.option("--maximum", is_flag=True, help="Find the forest of greatest weight."),
    num_shown=None,
)  # fmt: skip

biconnected_components = values_command(
    "biconnected-components", "biconnected_components",
    """Find the biconnected components of the undirected graph store GRAPH, its articulation points and bridges.

    --out has, of each vertex, the component above it in a forest of vertices and components (component, named after the smallest id below
    it; a root has its own id), the vertex above that (parent), how many components it is in (components; of an articulation point several),
    and whether the edge to the parent is a bridge. largest is how many vertices the largest component has.""",
    "sweep and what follows it",
    num_shown=None,
)  # fmt: skip

coloring = values_command(
    "coloring", "greedy_coloring",
    """Give every vertex of the undirected graph store GRAPH a colour that none of its neighbours has, with few colours.

    One vertex after the other takes the smallest one that is left, those of most neighbours first.""",
    "sweeps",
    num_shown=None,
)  # fmt: skip

independent_set = values_command(
    "independent-set", "maximal_independent_set",
    """Find vertices of the undirected graph store GRAPH of which no two are neighbours, and to which none can be added.

    --out tells of each vertex whether it is in the set.""",
    "sweeps",
    click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same set."),
    num_shown=None,
)  # fmt: skip

scc = values_command(
    "scc", "strongly_connected_components",
    """Find the strongly connected components of the directed graph store GRAPH.

    Each component is named after its vertex with the smallest id; largest is how many vertices the largest one has.""",
    "algorithm",
    num_shown=0,
)  # fmt: skip

topological_generations = values_command(
    "topological-generations", "topological_generations",
    """Find the topological generations of GRAPH, a directed graph store without cycles.

    The generation of a vertex is the number of edges on the longest path to it. A graph with cycles is an error, which names one.""",
    "algorithm",
    num_shown=None,
)  # fmt: skip

label_propagation = values_command(
    "label-propagation", "label_propagation",
    """Find communities of the undirected graph store GRAPH by label propagation.

    Each vertex takes the community that most of its neighbours are in, until each has one of these.

    Communities are named after their smallest ids.""",
    "sweeps and what is between them",
    _community_seed,
    click.option("--max-iter", type=int, default=100, show_default=True, help="Maximum number of iterations; more are an error."),
    weight_options, num_shown=0,
)  # fmt: skip

louvain = values_command(
    "louvain", "louvain",
    """Find communities of high modularity of the undirected graph store GRAPH by Louvain's method.

    Graphs of communities are written beside GRAPH, or to the folder oocgraph.result-folder, and removed at the end.

    Communities are named after their smallest ids.""",
    "sweeps and what is between them",
    _community_seed,
    click.option("--resolution", type=float, default=1.0, show_default=True, help="Above 1 communities get smaller, below 1 larger."),
    click.option("--threshold", type=float, default=1e-7, show_default=True, help="Stop when modularity grows by no more than this."),
    weight_options, num_shown=0,
)  # fmt: skip

triangles = values_command(
    "triangles", "triangles",
    """Count the triangles of every vertex of the undirected graph store GRAPH, and find its clustering coefficient.

    Transitivity is the share of all pairs of edges with a common end that are part of a triangle. --top shows the vertices of most
    triangles. Of the metrics, num_passes says how often all edges were swept, besides once to count and once to hold them.""",
    "sweeps",
)  # fmt: skip
