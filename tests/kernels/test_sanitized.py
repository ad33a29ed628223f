"""No CUDA kernel reads or writes what is not its own: their tests once more, under the address sanitizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cuda_on_cpu.build import needs_shim
from tests.cuda_on_cpu.sanitizer import run_pytest

pytestmark = needs_shim

FILES = sorted(path.name for pattern in ("test_cuda_*.py", "test_gpu_*.py") for path in Path(__file__).parent.glob(pattern))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("file", FILES)
def test_accesses_are_within_bounds(file):
    """Under one order of threads; the first access out of bounds ends the run with a report."""
    done = run_pytest(f"tests/kernels/{file}", "-k", "order-1")
    assert done.returncode == 0, done.stdout + done.stderr
