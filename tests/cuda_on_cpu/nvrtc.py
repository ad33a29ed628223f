"""CUDA C++ compiled for GPUs that are not there, by NVRTC through ctypes: no device, no driver, no CuPy.

The packages ``nvidia-cuda-nvrtc`` (CUDA 13) and ``nvidia-cuda-nvrtc-cu12`` lie side by side. What ptxas says of each kernel is kept in a
cache folder, so that an unchanged source is compiled once.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import multiprocessing
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.cuda_on_cpu.build import cache_folder

OPTIONS = ("-std=c++17", "--ptxas-options=-v")

FOLDERS = {12: "nvidia/cuda_nvrtc/lib/libnvrtc.so.12", 13: "nvidia/cu13/lib/libnvrtc.so.13"}
"""Where the packages put the libraries, under a folder of ``sys.path``."""

DEPRECATED = "Architectures prior to '<compute/sm>_75' are deprecated"
"""The one warning that is not about the source."""


@cache
def library(major: int) -> Path | None:
    """Find NVRTC of CUDA 12 or 13."""
    return next((path for folder in sys.path if (path := Path(folder) / FOLDERS[major]).exists()), None)


needs_nvrtc = [
    pytest.mark.nvrtc,
    pytest.mark.skipif(not all(map(library, FOLDERS)), reason="nvidia-cuda-nvrtc or nvidia-cuda-nvrtc-cu12 is not installed"),
]
"""Marks of a test module that compiles CUDA sources for GPUs."""


class CompileError(Exception):
    """NVRTC refused a source."""


@dataclass(frozen=True, slots=True)
class Use:
    """What a kernel takes of a multiprocessor, for each thread; `shared_bytes` for each block."""

    registers: int
    stack_bytes: int
    spill_bytes: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """A source compiled for one target: what each kernel uses, and warnings of all stages."""

    target: str
    kernels: dict[str, Use]
    warnings: tuple[str, ...]


class Nvrtc:
    """The compiler of one CUDA release. Its functions run without the interpreter lock."""

    def __init__(self, major: int) -> None:
        self._library = ctypes.CDLL(str(library(major)))
        minor, count = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(ctypes.c_int()), ctypes.byref(minor))
        self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        archs = (ctypes.c_int * count.value)()
        self._library.nvrtcGetSupportedArchs(archs)
        self.release, self.archs = f"{major}.{minor.value}", list(archs)

    def compile(self, source: str, arch: int, names: Sequence[str]) -> Compiled:
        """Compile kernels to machine code, or read what came of it before."""
        key = hashlib.sha256(repr((source, arch, tuple(names), OPTIONS, self.release)).encode()).hexdigest()[:20]
        kept = cache_folder() / f"nvrtc-{key}.json"
        if kept.exists():
            log, entries = json.loads(kept.read_text())
        else:
            log, entries = self._compile(source, arch, names)
            unfinished = kept.with_suffix(f".{os.getpid()}-{arch}")
            unfinished.write_text(json.dumps([log, entries]))
            unfinished.rename(kept)
        return Compiled(f"CUDA {self.release} sm_{arch}", {entries[entry]: use for entry, use in kernel_uses(log).items()}, warnings(log))

    def _compile(self, source: str, arch: int, names: Sequence[str]) -> tuple[str, dict[str, str]]:
        """Return the log, and the name that was asked for of each compiled one."""
        program = ctypes.c_void_p()
        self._check("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
        try:
            for name in names:
                self._check("nvrtcAddNameExpression", program, name.encode())
            options = [option.encode() for option in (f"-arch=sm_{arch}", *OPTIONS)]
            status = self._library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
            size = ctypes.c_size_t()
            self._check("nvrtcGetProgramLogSize", program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            self._check("nvrtcGetProgramLog", program, log)
            if status:
                raise CompileError(f"CUDA {self.release} sm_{arch}:\n{log.value.decode()}")
            return log.value.decode(), {self._lowered(program, name): name for name in names}
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _lowered(self, program: ctypes.c_void_p, name: str) -> str:
        lowered = ctypes.c_char_p()
        self._check("nvrtcGetLoweredName", program, name.encode(), ctypes.byref(lowered))
        return (lowered.value or b"").decode()

    def _check(self, function: str, *arguments: object) -> None:
        status = self._library[function](*arguments)
        if status:
            raise CompileError(f"{function} returned {status}")


class CupyNvrtc:
    """NVRTC behind the functions of `cupy.cuda.nvrtc`; `compilations` counts what it compiles."""

    def __init__(self, major: int) -> None:
        found = Nvrtc(major)
        self._library, self._version, self._archs = found._library, tuple(map(int, found.release.split("."))), tuple(found.archs)
        self.compilations, self.NVRTCError = 0, CompileError

    def getVersion(self) -> tuple[int, ...]:
        return self._version

    def getSupportedArchs(self) -> tuple[int, ...]:
        return self._archs

    def createProgram(self, code: str, name: str, headers: Sequence[str], include_names: Sequence[str]) -> int:
        program = ctypes.c_void_p()
        self._check("nvrtcCreateProgram", ctypes.byref(program), code.encode(), name.encode(), len(headers), None, None)
        return program.value or 0

    def addNameExpression(self, program: int, name: str) -> None:
        self._check("nvrtcAddNameExpression", ctypes.c_void_p(program), name.encode())

    def compileProgram(self, program: int, options: Sequence[str]) -> None:
        self.compilations += 1
        given = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        self._check("nvrtcCompileProgram", ctypes.c_void_p(program), len(options), given)

    def getLoweredName(self, program: int, name: str) -> str:
        lowered = ctypes.c_char_p()
        self._check("nvrtcGetLoweredName", ctypes.c_void_p(program), name.encode(), ctypes.byref(lowered))
        return (lowered.value or b"").decode()

    def getCUBIN(self, program: int) -> bytes:
        return self._content("CUBIN", program)

    def getPTX(self, program: int) -> bytes:
        return self._content("PTX", program)

    def getProgramLog(self, program: int) -> str:
        return self._content("ProgramLog", program).rstrip(b"\0").decode()

    def destroyProgram(self, program: int) -> None:
        self._library.nvrtcDestroyProgram(ctypes.byref(ctypes.c_void_p(program)))

    def _content(self, what: str, program: int) -> bytes:
        size = ctypes.c_size_t()
        self._check(f"nvrtcGet{what}Size", ctypes.c_void_p(program), ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self._check(f"nvrtcGet{what}", ctypes.c_void_p(program), content)
        return content.raw

    def _check(self, function: str, *arguments: object) -> None:
        if self._library[function](*arguments):
            raise CompileError(function)


def kernel_uses(log: str) -> dict[str, Use]:
    """Read what ``--ptxas-options=-v`` says of each entry, functions that it calls included."""
    uses = {}
    for part in log.split("Compiling entry function '")[1:]:
        stack, spills = [], []
        for match in re.finditer(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part):
            stack.append(int(match[1]))
            spills.append(int(match[2]) + int(match[3]))
        registers, shared = re.search(r"Used (\d+) registers", part), re.search(r"(\d+) bytes smem", part)
        uses[part.split("'")[0]] = Use(int(registers[1]), max(stack), sum(spills), int(shared[1]) if shared else 0)
    return uses


def warnings(log: str) -> tuple[str, ...]:
    """Return the lines that warn."""
    return tuple(line for line in log.splitlines() if re.search(r"\bwarning\b\s*[:#]", line) and DEPRECATED not in line)


def compile_for(source: str, names: Sequence[str], *, every_target: bool) -> list[Compiled]:
    """Compile for every target of both releases (CUDA 12 knows sm_50 and newer, CUDA 13 sm_75 and newer), or for the oldest and newest.

    In a process of its own: the compilers keep hundreds of MB, which later tests of budgets would find in this one.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as child:
        return child.submit(_compile_for, source, list(names), every_target).result()


def _compile_for(source: str, names: Sequence[str], every_target: bool) -> list[Compiled]:
    by_release = [
        [(nvrtc, arch) for arch in (nvrtc.archs if every_target else (min(nvrtc.archs), max(nvrtc.archs)))] for nvrtc in map(Nvrtc, FOLDERS)
    ]
    targets = [target for both in zip_longest(*by_release) for target in both if target]  # libraries do not wait for each other
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda target: target[0].compile(source, target[1], names), targets))


def registers(compiled: Sequence[Compiled]) -> dict[str, dict[str, int]]:
    """Return the registers of a thread, by kernel and target."""
    return {kernel: {one.target: one.kernels[kernel].registers for one in compiled} for kernel in compiled[0].kernels}


def table(compiled: Sequence[Compiled]) -> str:
    """Return a line for each kernel: registers at least and at most over all targets, stack and shared memory at most."""
    lines = [f"{'registers':>12} {'stack':>6} {'shared':>7}  kernel ({len(compiled)} targets)"]
    for kernel in compiled[0].kernels:
        uses = [asdict(one.kernels[kernel]) for one in compiled]
        most = {key: max(use[key] for use in uses) for key in uses[0]}
        least = min(use["registers"] for use in uses)
        lines.append(f"{least:>5} .. {most['registers']:<3} {most['stack_bytes']:>6} {most['shared_bytes']:>7}  {kernel}")
    return "\n".join(lines)
