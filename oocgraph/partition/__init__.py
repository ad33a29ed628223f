"""Who owns which vertices: dealing a graph to partitions, and the maps between store numbers and local positions."""
