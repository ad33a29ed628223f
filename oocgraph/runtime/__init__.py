"""Who runs what where: in process here; Dask later."""
