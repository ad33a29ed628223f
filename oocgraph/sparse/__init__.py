"""Sparse matrices cut at any nonzero, so that every worker has the same number of them: MSREP."""
