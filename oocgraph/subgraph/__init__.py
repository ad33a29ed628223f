"""Dependency subgraphs: which rows need edges from disk, and the host threads that gather them."""
