"""Measurements: subjects and peers on the same input, in turn; results validated; one module for each benchmark."""
