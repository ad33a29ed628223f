"""The commands of configs/README.md are run.

Those for Slurm are run in ``tests/slurm``, those for other batch systems in ``tests/schedulers``, those for GPUs in ``tests/fake_gpu``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import PATIENCE_SECONDS

CONFIGS = Path(__file__).parents[1] / "configs"


@pytest.mark.slow
def test_commands_for_one_machine_run(tmp_path):
    """In a folder with the files of ``configs/``."""
    folder = shutil.copytree(CONFIGS, tmp_path / "configs")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    scripts = re.findall(r"^```bash\n(.*?)^```$", (CONFIGS / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert scripts
    for script in scripts:
        done = subprocess.run(
            ["bash", "-euc", script], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"


def test_files_that_the_readme_names_exist():
    """Settings and scripts, and none is left out."""
    named = set(re.findall(r"`([\w-]+\.(?:yaml|sbatch|pbs|bsub|sge|sh))`", (CONFIGS / "README.md").read_text()))
    assert named == {path.name for path in CONFIGS.iterdir()} - {"README.md"}
