"""Edges of any origin become a store: sources, generators, the external build."""
