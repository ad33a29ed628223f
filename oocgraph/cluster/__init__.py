"""Computations on Dask: one session, one plugin and one ledger on each worker, and what each kind of computation does there."""
