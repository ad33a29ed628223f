"""Measurements of searches: random sources, validated results, a peer on the same graph in the same run."""
