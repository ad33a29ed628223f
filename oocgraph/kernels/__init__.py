"""Arrays in, arrays out: the plain NumPy oracle and the compiled kernels."""
