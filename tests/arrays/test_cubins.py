"""Compiled CUDA kernels are kept for the next process, whatever happens to them on disk."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from oocgraph.arrays import cubins
from oocgraph.arrays.compiler import Source, Target, compile_source, key_of, target_for
from oocgraph.arrays.cuda import CudaDevice
from oocgraph.cache_folder import VARIABLE
from oocgraph.errors import DeviceError
from tests.arrays.fake_cupy import FakeCupy, FakeNvrtc

ROOT = Path(__file__).parents[2]
SOURCE = Source("code", ("expand<unsigned int, 3>", "scan"))
TARGET = Target("-arch=sm_90", True)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """Return the folder of the entries, of which there are none."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(cubins, "_warned", set())
    return tmp_path / "cache" / f"cubins-{os.getuid()}"


def entries(cache):
    return sorted(cache.glob("*.cubin"))


def nvrtc(**options):
    return FakeNvrtc([], **options)


def test_the_second_process_compiles_nothing(cache):
    first, second = nvrtc(), nvrtc()
    compiled = cubins.compiled_for(first, SOURCE, TARGET)
    assert cubins.compiled_for(second, SOURCE, TARGET) == compiled == compile_source(nvrtc(), SOURCE, TARGET)
    assert (first.compilations, second.compilations) == (1, 0)
    assert cubins.is_kept(second, SOURCE, TARGET)
    assert cache.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in cache.iterdir()] == [f"{key_of(SOURCE, TARGET, (13, 0))}.cubin"]


@pytest.mark.parametrize(
    ("source", "target", "version"),
    [
        (SOURCE._replace(code="code "), TARGET, (13, 0)),
        (SOURCE._replace(names=("scan",)), TARGET, (13, 0)),
        (SOURCE, Target("-arch=sm_100", True), (13, 0)),
        (SOURCE, TARGET, (13, 1)),
    ],
)
def test_another_source_target_or_compiler_has_an_entry_of_its_own(cache, source, target, version):
    cubins.compiled_for(nvrtc(), SOURCE, TARGET)
    other = nvrtc(version=version)
    assert not cubins.is_kept(other, source, target)
    assert cubins.compiled_for(other, source, target) == compile_source(nvrtc(), source, target)
    assert (other.compilations, len(entries(cache))) == (1, 2)


def cut(content):
    return content[:-1]


def flip(content):
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


def append(content):
    return content + b"x"


@pytest.mark.parametrize("damage", [cut, flip, append, lambda _: b"", lambda content: b"other" + content, lambda c: c[: len(c) // 3]])
def test_a_damaged_entry_is_compiled_again_and_replaced(cache, caplog, damage):
    compiled = cubins.compiled_for(nvrtc(), SOURCE, TARGET)
    (path,) = entries(cache)
    content = path.read_bytes()
    path.write_bytes(damage(content))
    again = nvrtc()
    assert cubins.compiled_for(again, SOURCE, TARGET) == compiled
    assert (again.compilations, path.read_bytes()) == (1, content)
    assert f"{path} is damaged: the CUDA kernels are compiled again" in caplog.text


def test_an_entry_under_the_name_of_another_is_damaged(cache, caplog):
    """One for another architecture, which the GPU would refuse or, worse, take."""
    cubins.compiled_for(nvrtc(), SOURCE, Target("-arch=sm_75", True))
    (path,) = entries(cache)
    path.rename(cache / f"{key_of(SOURCE, TARGET, (13, 0))}.cubin")
    again = nvrtc()
    cubins.compiled_for(again, SOURCE, TARGET)
    assert again.compilations == 1
    assert "is damaged" in caplog.text


def test_an_entry_that_is_no_file_is_told_and_not_used(cache, caplog):
    cubins.compiled_for(nvrtc(), SOURCE, TARGET)
    (path,) = entries(cache)
    path.unlink()
    path.mkdir()
    again = nvrtc()
    assert cubins.compiled_for(again, SOURCE, TARGET) == compile_source(nvrtc(), SOURCE, TARGET)
    assert again.compilations == 1
    assert "cannot be read" in caplog.text
    assert "cannot be kept" in caplog.text
    assert list(cache.glob("unfinished-*")) == []


@pytest.mark.parametrize("danger", ["open", "link", "file", "owner", "parent"])
def test_a_folder_to_which_others_could_write_is_not_used(cache, tmp_path, caplog, danger):
    """Every process compiles for itself, and says so once."""
    cache.parent.mkdir()
    if danger == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        cache.symlink_to(tmp_path / "elsewhere")
    elif danger == "file":
        cache.touch()
    else:
        cache.mkdir(mode=0o700)
    if danger == "owner":
        if os.getuid():
            pytest.skip("only root can give a folder away")
        os.chown(cache, 65534, 65534)
    elif danger in ("open", "parent"):
        (cache if danger == "open" else cache.parent).chmod(0o777)
    compiler = nvrtc()
    for _ in range(2):
        assert cubins.compiled_for(compiler, SOURCE, TARGET) == compile_source(nvrtc(), SOURCE, TARGET)
    assert (compiler.compilations, cubins.is_kept(compiler, SOURCE, TARGET)) == (2, False)
    assert caplog.text.count("so that each process compiles its own; set NUMBA_CACHE_DIR") == 1
    assert danger == "file" or list(cache.iterdir()) == []


def test_a_folder_of_a_group_is_used_as_numba_uses_it(cache):
    """Many systems give each user a group of their own, and let groups write."""
    cache.parent.mkdir()
    cache.parent.chmod(0o775)
    cubins.compiled_for(nvrtc(), SOURCE, TARGET)
    assert len(entries(cache)) == 1


def test_a_disk_that_is_full_costs_the_cache_alone(cache, caplog, monkeypatch):
    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cubins.tempfile, "NamedTemporaryFile", full)
    assert cubins.compiled_for(nvrtc(), SOURCE, TARGET) == compile_source(nvrtc(), SOURCE, TARGET)
    assert "No space left on device" in caplog.text
    assert entries(cache) == []


def test_entries_used_longest_ago_are_removed(cache, monkeypatch):
    monkeypatch.setattr(cubins, "MOST_ENTRIES", 2)
    sources = [SOURCE._replace(code=str(i)) for i in range(3)]
    for i, source in enumerate(sources[:2]):
        cubins.compiled_for(nvrtc(), source, TARGET)
        os.utime(cache / f"{key_of(source, TARGET, (13, 0))}.cubin", (i, i))
    (cache / "unfinished-of-a-killed-process").touch()
    os.utime(cache / "unfinished-of-a-killed-process", (0, 0))
    cubins.compiled_for(nvrtc(), sources[0], TARGET)  # used now
    cubins.compiled_for(nvrtc(), sources[2], TARGET)
    assert [cubins.is_kept(nvrtc(), source, TARGET) for source in sources] == [True, False, True]
    assert len(list(cache.iterdir())) == 2


TWO = """
import sys, time
from oocgraph.arrays import cubins
from oocgraph.arrays.compiler import Source, Target, compile_source
from tests.arrays.fake_cupy import FakeNvrtc

class Slow(FakeNvrtc):
    def compileProgram(self, program, options):
        time.sleep(0.3)
        super().compileProgram(program, options)

nvrtc, source, target = Slow([]), Source("code", ("k",)), Target("-arch=sm_90", True)
print("ready", flush=True)
sys.stdin.readline()
assert cubins.compiled_for(nvrtc, source, target) == compile_source(FakeNvrtc([]), source, target)
print(nvrtc.compilations)
"""


def test_of_processes_that_begin_together_one_compiles(cache, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", TWO]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, cwd=ROOT) for _ in range(3)
    ]
    for one in started:
        assert one.stdout.readline() == "ready\n"
    for one in started:
        one.stdin.write("\n")
        one.stdin.flush()
    said = [one.communicate(timeout=60)[0] for one in started]
    assert sorted(map(int, said)) == [0, 0, 1]
    assert len(entries(cache)) == 1


def test_code_that_a_device_refuses_is_compiled_again(cache, caplog):
    """An entry that is whole, and yet not what this device or driver takes."""
    cupy = FakeCupy()
    cubins.compiled_for(cupy.nvrtc, SOURCE, TARGET)
    cupy.stuck.loads = [209]
    assert CudaDevice(cupy, 0).module(*SOURCE).get_function("scan")
    assert (cupy.nvrtc.compilations, len(entries(cache))) == (2, 1)
    assert "does not take CUDA kernels from the cache (cudaError209" in caplog.text
    cupy = FakeCupy()
    cupy.stuck.loads = [209, 209]
    with pytest.raises(DeviceError, match=r"CUDA device 0 .*cudaError209"):
        CudaDevice(cupy, 0).module(*SOURCE)


def test_a_device_that_is_lost_while_it_loads_is_no_fault_of_the_cache(cache):
    cupy = FakeCupy()
    cupy.stuck.loads = [46]
    with pytest.raises(DeviceError, match="has failed: cudaError46"):
        CudaDevice(cupy, 0).module(*SOURCE)
    assert (cupy.nvrtc.compilations, len(entries(cache))) == (1, 1)
    assert CudaDevice(cupy, 0).module(*SOURCE).get_function("scan")


def test_a_device_says_what_it_would_have_to_compile(cache):
    device = CudaDevice(FakeCupy(), 0)
    assert device.lacks(*SOURCE)
    device.module(*SOURCE)
    assert not device.lacks(*SOURCE)
    for path in entries(cache):
        path.unlink()
    assert not device.lacks(*SOURCE)  # it has them in memory
    assert CudaDevice(FakeCupy(), 0).lacks(*SOURCE)


def test_each_generation_has_its_code_and_a_newer_one_has_ptx(cache):
    """Of a device that the compiler does not know, code of an older one of its generation serves, too."""
    archs = (75, 80, 86, 90, 120)
    assert [target_for(one, archs) for one in (75, 86, 89, 90, 121)] == [Target(f"-arch=sm_{arch}", True) for arch in (75, 86, 86, 90, 120)]
    assert target_for(103, archs) == Target("-arch=compute_90", False)
    cupy = FakeCupy(capability=(10, 3), archs=archs)
    CudaDevice(cupy, 0).module(*SOURCE)
    assert cupy.called("load")[0][0].startswith(b".version")


def test_the_cache_is_not_announced_as_trouble(cache, caplog):
    with caplog.at_level(logging.INFO):
        cubins.compiled_for(nvrtc(), SOURCE, TARGET)
        cubins.compiled_for(nvrtc(), SOURCE, TARGET)
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]
    assert "compiling 2 CUDA kernels with -arch=sm_90" in caplog.text
