"""The graph on disk: one Zarr v3 group of CSR arrays, planes, checksums and vertex ids (see DESIGN.md beside this file)."""
