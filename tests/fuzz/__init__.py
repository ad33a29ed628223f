"""Damages stores at random, has every command read them, and judges what comes of it. ``python -m tests.fuzz --help``."""
