"""Graph algorithms, each a loop in the order of its paper."""
