"""The fake driver, for tests that show GPUs where there are none."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

needs_fake_gpus = [
    pytest.mark.fake_gpu,
    pytest.mark.skipif(find_spec("dask_cuda") is None, reason="dask-cuda is not installed"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]
"""Marks of a test module."""


def build_driver(folder):
    """Compile the library into a folder, which is to be on LD_LIBRARY_PATH; return the folder."""
    source, library = Path(__file__).with_name("fake_nvml.c"), folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, source], check=True)
    return folder
