"""Traversals of graphs whose edges do not fit in memory."""

__version__ = "0.1.0"
