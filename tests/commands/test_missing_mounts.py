"""A machine without /proc or /dev/shm (a chroot, a strict container): what works without them works, all else says what it needs."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.commands.conftest import ROOT, command


@pytest.fixture(autouse=True)
def may_mount():
    if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs root and mount namespaces")


def hidden(folder, *arguments):
    """Run a command in a mount namespace of its own, where `folder` is empty and cannot be written."""
    return mounted(f"mount -t tmpfs -o ro none {folder}", *arguments)


def mounted(first, *arguments):
    """Run a command in a mount namespace of its own, after another."""
    script = f'{first} && exec "$@"'
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = ["unshare", "-m", "sh", "-c", script, "-", *command(*arguments)]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("arguments", [("info",), ("bfs", "--help")], ids=str)
def test_without_proc_what_needs_none_works(kron, arguments):
    assert hidden("/proc", arguments[0], kron, *arguments[1:]).returncode == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "arguments",
    [
        ("bfs", "--source", 3),
        ("bfs", "--source", 3, "--memory", "1G"),
        ("bfs", "--source", 3, "--cluster", "local"),
        ("pagerank",),
        ("export", "out.npz"),
        ("plan", "--workers", 2),
        ("partition", "parts", "--partitions", 2),
        ("bench", "bfs"),
    ],
    ids=str,
)
def test_without_proc_all_else_says_so(kron, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    place = 2 if arguments[0] == "bench" else 1
    done = hidden("/proc", *arguments[:place], kron, *arguments[place:])
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "/proc is not mounted" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_without_shared_memory_a_cluster_says_so(kron, disk_path_factory):
    """Its processes need semaphores."""
    kron = shutil.copytree(kron, disk_path_factory.mktemp("shown") / "kron12.zarr")
    done = hidden("/dev/shm", "bfs", kron, "--source", 3, "--cluster", "local", "--workers", 1)
    assert done.returncode == 2, done.stderr
    assert "worker processes need POSIX semaphores, which are kept in /dev/shm" in done.stderr
    assert "Traceback" not in done.stderr
    assert hidden("/dev/shm", "bfs", kron, "--source", 3, "--json").returncode == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("pages", [0, 1, 8, 200])
def test_with_little_shared_memory_left_a_cluster_says_so(kron, disk_path_factory, pages):
    """Dask says that a worker's status is "init". With enough pages it starts."""
    kron = shutil.copytree(kron, disk_path_factory.mktemp("shown") / "kron12.zarr")
    full = f"mount -t tmpfs -o size=1m none /dev/shm && dd if=/dev/zero of=/dev/shm/others bs=4k count={256 - pages} status=none"
    done = mounted(full, "bfs", kron, "--source", 3, "--cluster", "local", "--workers", 2, "--threads-per-worker", 1)
    if pages == 200:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2, done.stderr
    assert "/dev/shm, and that cannot be used (No space left on device); remove what nobody uses there" in done.stderr
