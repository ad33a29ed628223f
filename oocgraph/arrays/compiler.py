"""CUDA C++ compiled to machine code by NVRTC: with which options, for which target, and what kernels are called afterwards.

In: a `Source` and the compute capability of a device. Out: `Compiled`, which any process loads on such a device without the compiler.
CuPy's own compilation is not used: it flushes float32 denormals to zero, which the processor does not, and its cache on disk does not
serve instances of templates in every release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

OPTIONS = ("-std=c++17", "-ftz=false")
"""Of the compiler: float32 is computed as on the processor, denormals included."""

FILE_NAME = "kernels.cu"
"""How the compiler's messages call the source."""


class Source(NamedTuple):
    """A CUDA C++ source, and the kernels wanted of it: functions, or instances of templates such as ``expand<unsigned int, 3>``."""

    code: str
    names: tuple[str, ...]


class Target(NamedTuple):
    """What is compiled for: the compiler's option, and whether that gives machine code (cubin) or PTX, which the driver compiles."""

    option: str
    is_binary: bool


class Compiled(NamedTuple):
    """What a driver loads, and the name in it of each kernel that was asked for."""

    image: bytes
    lowered: dict[str, str]


class CompileError(Exception):
    """The compiler refused a source; the text is its log."""


def target_for(capability: int, supported: Sequence[int]) -> Target:
    """Choose the target for a device: machine code of its own generation where the compiler makes it, else PTX.

    Parameters
    ----------
    capability
        Compute capability of the device, times 10; not less than the oldest of `supported`.
    supported
        Those that the compiler knows.

    Examples
    --------
    >>> target_for(90, [75, 80, 90, 100])
    Target(option='-arch=sm_90', is_binary=True)
    >>> target_for(86, [75, 80, 90])  # runs code for 8.0
    Target(option='-arch=sm_80', is_binary=True)
    >>> target_for(130, [75, 90, 120])
    Target(option='-arch=compute_120', is_binary=False)
    """
    older = [one for one in supported if one <= capability]
    same = [one for one in older if one // 10 == capability // 10]
    return Target(f"-arch=sm_{max(same)}", True) if same else Target(f"-arch=compute_{max(older)}", False)


def key_of(source: Source, target: Target, version: tuple[int, int]) -> str:
    """Return what tells a compilation from all others: source, kernels, options, target, and the compiler's version."""
    parts = (*source, OPTIONS, target.option, tuple(version))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def compile_source(nvrtc: Any, source: Source, target: Target) -> Compiled:
    """Compile; `nvrtc` is CuPy's module of that name.

    Raises
    ------
    CompileError
        The compiler refuses the source.
    """
    program = nvrtc.createProgram(source.code, FILE_NAME, (), ())
    try:
        for name in source.names:
            nvrtc.addNameExpression(program, name)
        try:
            nvrtc.compileProgram(program, (*OPTIONS, target.option))
        except nvrtc.NVRTCError as error:
            raise CompileError(nvrtc.getProgramLog(program) or str(error)) from error
        lowered = {name: nvrtc.getLoweredName(program, name) for name in source.names}
        image = nvrtc.getCUBIN(program) if target.is_binary else nvrtc.getPTX(program)
    finally:
        nvrtc.destroyProgram(program)
    return Compiled(image.encode() if isinstance(image, str) else bytes(image), lowered)
