"""The command line in process, and in a process of its own where signals, mounts or caches matter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from oocgraph.cli import cli
from tests.commands.announced import ANNOUNCED

ROOT = Path(__file__).parents[2]


class Outcome:
    """Exit code and output of a command."""

    def __init__(self, code, stdout, stderr):
        self.code, self.stdout, self.stderr = code, stdout, stderr

    @property
    def json(self):
        """The one object on stdout."""
        assert self.code == 0, self.stderr
        return json.loads(self.stdout)


@pytest.fixture(scope="session")
def run():
    """Run a command in process; anything but an exit code is raised."""

    def call(*arguments):
        result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture(scope="session")
def refused(run):
    """Run a command that must fail with exit code 2, one message with these words, and nothing on stdout."""

    def call(*arguments, words):
        outcome = run(*arguments)
        assert outcome.code == 2, outcome
        assert outcome.stdout == ""
        message = outcome.stderr.removeprefix(ANNOUNCED)
        assert message.startswith(("Error: ", "Usage: "))
        assert "Traceback" not in message
        for word in words:
            assert word in message
        return message

    return call


def command(*arguments):
    """Command line of a subprocess."""
    return [sys.executable, "-m", "oocgraph", *map(str, arguments)]


@pytest.fixture(scope="session")
def spawn():
    """Run a command in a process of its own; `before` is what comes in front of it, such as ``unshare``."""

    def call(*arguments, before=(), cwd=None):
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([*before, *command(*arguments)], capture_output=True, text=True, env=env, cwd=cwd, check=False, timeout=300)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def kron(run, tmp_path_factory):
    """Build a store of 2**12 vertices; not to be changed."""
    path = tmp_path_factory.mktemp("kron") / "kron12.zarr"
    assert run("generate", "kronecker", path, "--scale", 12).code == 0
    return path


def remains(folder):
    """Names of everything in a folder."""
    return sorted(path.name for path in Path(folder).iterdir())
