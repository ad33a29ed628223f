"""Traversals over partitions of edges: masters and mirrors in memory, and what such a traversal would send."""
