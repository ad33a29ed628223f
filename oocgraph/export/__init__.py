"""A stored graph as a file that other programs read."""
