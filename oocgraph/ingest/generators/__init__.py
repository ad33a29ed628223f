"""Synthetic graphs as edge sources: any block of edges is computed from its position, so nothing grows with the graph."""
