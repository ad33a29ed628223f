"""A graph, or a partition of one, in the memory of this process or of its GPU, and the steps of a search on it."""
