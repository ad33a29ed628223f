"""Who owns which vertices: vertex_partition a graph to partitions, and the maps between store numbers and local positions."""
