"""A matrix or a graph's edges times a vector: from memory, streamed from disk, on GPUs; iterations of PageRank."""
