"""Dependency subgraphs: which rows need edges from disk, and the way of edges to a device."""
