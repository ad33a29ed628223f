"""What NetworkX reads of oocgraph's backend when it is imported: names, costs and settings. Imports nothing.

`COSTS` says of each function of the backend what it costs; `oocgraph.networkx_backend` has the functions.
"""

SEARCH = "One breadth-first search: about 9 bytes a vertex; what the planes in memory leave undecided is read from disk."
"""What most functions of distances cost."""

TREE = f"{SEARCH} Edges come in an order that is breadth-first by the positions of the nodes; 24 bytes a vertex."

SHORTEST = (
    "Paths by priority, block by block: about 10 to 14 bytes a vertex, and blocks of edges as the budget has room. Weights are 0 or more."
)

ALL = "A search from every vertex, 64 at a time: hours for large graphs. 36 to 40 bytes a vertex."

COMPONENTS = "One to three passes over the edges: 9 or 17 bytes a vertex."

STRONG = "Sweeps over what trimming and searches leave undecided: 10 bytes a vertex, more where the budget allows it."

DEGREES = "Reads the degrees, no edges: 16 bytes a vertex."

CORES = "Edges in blocks, each list once: about 10 to 13 bytes a vertex."

ITERATION = "Each iteration reads the edges that do not fit in memory"

TRIANGLES = (
    "Earlier neighbours are held, in as many passes as the budget makes necessary: 36 bytes a vertex and more. Undirected graphs only."
)

PAIRS = "Reads the neighbours of both nodes of each pair; 16 bytes a pair, and rows as the budget has room. ebunch must be given."

TREES = "Rounds of Boruvka: 32 bytes a vertex. Where edges weigh the same, graphs of NetworkX are left to it."

LOUVAIN = (
    "Sweeps over all edges until modularity grows no more: 42 to 54 bytes a vertex, and 300 a community; graphs of communities are written "
    "beside the graph. Undirected graphs only."
)

LABELS = (
    "Half sweeps over the vertices whose neighbours have changed, until none would change: 12 to 18 bytes a vertex, and 300 a community. "
    "Undirected graphs only."
)

PRODUCT = "Reads the edges once, of directed graphs and by weights up to three times: 72 to 104 bytes a vertex, and what a product takes."

ALL_SEARCHES = f"A search from one node after the other, each as it is asked for. {SEARCH}"

ALL_SHORTEST = f"A search from one node after the other, each as it is asked for. {SHORTEST}"

BICONNECTED = "One pass over the edges: 23 bytes a vertex, and up to 56 for what is returned. Undirected graphs only."

GREEDY = "Few sweeps over the edges of vertices that have not decided yet: {} a vertex. Undirected graphs only."

COLOURS = "Components, one breadth-first search and a product: three passes over the edges, 72 bytes a vertex. Undirected graphs only."

SUBGRAPH = " Returns a graph in memory, whose edges must fit in the budget."

COSTS = {
    "adamic_adar_index": PAIRS,
    "all_pairs_bellman_ford_path": ALL_SHORTEST,
    "all_pairs_bellman_ford_path_length": ALL_SHORTEST,
    "all_pairs_dijkstra": ALL_SHORTEST,
    "all_pairs_dijkstra_path": ALL_SHORTEST,
    "all_pairs_dijkstra_path_length": ALL_SHORTEST,
    "all_pairs_shortest_path": ALL_SEARCHES,
    "all_pairs_shortest_path_length": ALL_SEARCHES,
    "all_shortest_paths": SEARCH + " Paths are made as they are asked for, of the neighbours of their nodes. By the number of edges only.",
    "ancestors": SEARCH,
    "approximate_diameter": "Two breadth-first searches, of a directed graph four: about 9 bytes a vertex.",
    "articulation_points": BICONNECTED,
    "asyn_lpa_communities": LABELS,
    "average_clustering": TRIANGLES,
    "average_degree_connectivity": PRODUCT,
    "average_neighbor_degree": PRODUCT,
    "average_shortest_path_length": ALL,
    "bellman_ford_path": SHORTEST,
    "bellman_ford_path_length": SHORTEST,
    "betweenness_centrality": "Two searches' worth of sweeps for every 8 sources: 96 bytes a vertex. Give k for large graphs.",
    "bfs_edges": TREE,
    "bfs_layers": SEARCH,
    "bfs_predecessors": TREE,
    "bfs_successors": TREE,
    "bfs_tree": TREE + SUBGRAPH,
    "biconnected_components": BICONNECTED,
    "bidirectional_dijkstra": SHORTEST,
    "bidirectional_shortest_path": SEARCH,
    "boundary_expansion": PRODUCT,
    "bridges": BICONNECTED + " From root, a breadth-first search, too.",
    "center": ALL,
    "closeness_centrality": ALL + " One search for one node.",
    "clustering": TRIANGLES,
    "color": COLOURS,
    "conductance": PRODUCT,
    "connected_components": COMPONENTS,
    "core_number": CORES,
    "cut_size": PRODUCT,
    "dag_longest_path": STRONG + " The path is made of the neighbours of its nodes. By the number of edges only.",
    "dag_longest_path_length": STRONG + " By the number of edges only.",
    "degree_assortativity_coefficient": PRODUCT,
    "degree_centrality": DEGREES,
    "degree_pearson_correlation_coefficient": PRODUCT,
    "descendants": SEARCH,
    "descendants_at_distance": SEARCH,
    "diameter": "Few searches for roads, grids and graphs with hubs, by bounds, many where all nodes are about equally eccentric (random "
    "graphs): 40 bytes a vertex. Of a directed graph a search from every vertex.",
    "dijkstra_path": SHORTEST,
    "dijkstra_path_length": SHORTEST,
    "eccentricity": ALL + " One search for one node.",
    "edge_expansion": PRODUCT,
    "efficiency": SEARCH + " It ends when the target is found.",
    "ego_graph": SEARCH + SUBGRAPH,
    "eigenvector_centrality": f"{ITERATION} once: 16 bytes a vertex.",
    "fast_label_propagation_communities": LABELS,
    "global_efficiency": ALL,
    "greedy_color": GREEDY.format("4 to 5 bytes"),
    "group_closeness_centrality": SHORTEST,
    "group_degree_centrality": PRODUCT,
    "group_in_degree_centrality": PRODUCT,
    "group_out_degree_centrality": PRODUCT,
    "harmonic_centrality": ALL,
    "harmonic_diameter": ALL,
    "has_bridges": BICONNECTED,
    "has_eulerian_path": COMPONENTS,
    "has_path": SEARCH + " It ends when the target is found.",
    "hits": f"{ITERATION} twice: 24 bytes a vertex.",
    "in_degree_centrality": DEGREES,
    "is_arborescence": COMPONENTS,
    "is_biconnected": BICONNECTED,
    "is_bipartite": COLOURS,
    "is_branching": COMPONENTS,
    "is_connected": COMPONENTS,
    "is_directed_acyclic_graph": STRONG,
    "is_dominating_set": PRODUCT,
    "is_empty": "Nothing: the counts are known.",
    "is_eulerian": COMPONENTS,
    "is_forest": COMPONENTS,
    "is_isolate": "A few pages of the ids.",
    "is_k_regular": DEGREES,
    "is_regular": DEGREES,
    "is_semieulerian": COMPONENTS,
    "is_strongly_connected": STRONG,
    "is_tree": COMPONENTS,
    "is_weakly_connected": COMPONENTS,
    "isolates": "Reads the ids.",
    "jaccard_coefficient": PAIRS,
    "k_core": CORES + SUBGRAPH,
    "k_corona": CORES + SUBGRAPH,
    "k_crust": CORES + SUBGRAPH,
    "k_shell": CORES + SUBGRAPH,
    "katz_centrality": f"{ITERATION} once: 16 bytes a vertex.",
    "local_reaching_centrality": SEARCH,
    "louvain_communities": LOUVAIN,
    "maximal_independent_set": GREEDY.format("1 byte") + " What is returned takes 72 bytes a vertex, and strings.",
    "maximum_spanning_edges": TREES,
    "maximum_spanning_tree": TREES + SUBGRAPH,
    "minimum_spanning_edges": TREES,
    "minimum_spanning_tree": TREES + SUBGRAPH,
    "mixing_expansion": PRODUCT,
    "modularity": "Reads the edges once: 96 bytes a vertex. Undirected graphs only.",
    "multi_source_dijkstra": SHORTEST,
    "multi_source_dijkstra_path": SHORTEST,
    "multi_source_dijkstra_path_length": SHORTEST,
    "node_boundary": PRODUCT,
    "node_connected_component": SEARCH,
    "node_expansion": PRODUCT,
    "normalized_cut_size": PRODUCT,
    "number_connected_components": COMPONENTS,
    "number_of_isolates": "Nothing: the counts are known.",
    "number_of_selfloops": "Nothing: the counts are known.",
    "number_strongly_connected_components": STRONG,
    "number_weakly_connected_components": COMPONENTS,
    "out_degree_centrality": DEGREES,
    "pagerank": f"{ITERATION} once: 28 bytes a vertex, 32 with weights.",
    "periphery": ALL,
    "preferential_attachment": "Reads the degrees, no edges: 24 bytes a vertex, and 120 a pair. ebunch must be given.",
    "radius": ALL,
    "resource_allocation_index": PAIRS,
    "s_metric": PRODUCT,
    "sets": COLOURS,
    "shortest_path": f"By the number of edges: {SEARCH} By a weight: {SHORTEST}",
    "shortest_path_length": f"By the number of edges: {SEARCH} By a weight: {SHORTEST}",
    "single_source_bellman_ford": SHORTEST,
    "single_source_bellman_ford_path": SHORTEST,
    "single_source_bellman_ford_path_length": SHORTEST,
    "single_source_dijkstra": SHORTEST,
    "single_source_dijkstra_path": SHORTEST,
    "single_source_dijkstra_path_length": SHORTEST,
    "single_source_shortest_path": SEARCH,
    "single_source_shortest_path_length": SEARCH,
    "single_target_shortest_path": SEARCH,
    "single_target_shortest_path_length": SEARCH,
    "strongly_connected_components": STRONG,
    "topological_generations": STRONG,
    "topological_sort": STRONG,
    "transitivity": TRIANGLES,
    "triangles": TRIANGLES,
    "volume": PRODUCT,
    "voronoi_cells": SHORTEST + " 24 bytes a vertex more.",
    "weakly_connected_components": COMPONENTS,
    "wiener_index": ALL,
}
"""What each function costs, in memory beside what the budget has left for edges, and in edges read."""

PARAMETERS = {"memory_budget : str or int, optional": "Bytes that the process may hold, such as ``'2G'``; by default as configured."}
"""Parameters that every function of the backend has beside NetworkX's."""


def get_info() -> dict[str, object]:
    """Return what NetworkX asks of a backend."""
    return {
        "backend_name": "oocgraph",
        "project": "oocgraph",
        "package": "oocgraph",
        "short_summary": "Graphs whose edges do not fit in memory.",
        "description": "Stores of oocgraph are graphs of NetworkX: nx.pagerank(oocgraph.open_graph(path)).",
        "functions": {name: {"additional_docs": cost, "additional_parameters": PARAMETERS} for name, cost in COSTS.items()},
        "default_config": {"memory_budget": None, "threads": None, "min_edges": 10_000},
    }
