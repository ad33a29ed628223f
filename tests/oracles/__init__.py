"""What kernels must equal, in plain NumPy and Python: the same names and signatures, nothing shared, nothing quick."""
