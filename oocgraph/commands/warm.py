"""``oocgraph warm``: all kernels compiled beforehand, so that no first call waits for them."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import click

from oocgraph.commands.common import emit, json_option, progress_bars

EXIT_COLD = 1


@click.command()
@click.option("--check", is_flag=True, help="Compile nothing; exit with 1 if there is something to compile.")
@json_option
@click.pass_context
def warm(context: click.Context, *, check: bool, as_json: bool) -> None:
    """Compile all kernels beforehand.

    Otherwise each is compiled when it is first needed, once for this version of oocgraph. They are kept beside the package or, where that
    cannot be written to, in the user's cache folder or in the temporary directory; NUMBA_CACHE_DIR names another place. In an image of a
    container, run this when the image is made. Kernels for GPUs are compiled where there is one, for its kind. Kernels of weights other
    than float64 (shortest paths: int64, too), of policies of partitions, of operators of your own and of graphs of more than 2^32 vertices
    are not among them.
    """
    from oocgraph.arrays import devices_choice
    from oocgraph.commands.first_use import use_everything
    from oocgraph.compiled import announce
    from oocgraph.compiled.load import keep_compilers
    from oocgraph.kernels import cached
    from oocgraph.kernels.warm_device import uncompiled

    began = time.perf_counter()
    was_warm = cached.is_warm()
    if not (was_warm or check):
        announce.silence()
        with tempfile.TemporaryDirectory(prefix="oocgraph-warm-") as folder, progress_bars() as progress, keep_compilers():
            use_everything(Path(folder), progress)
        cached.mark_as_warm()
    devices, reason = devices_choice("auto")
    if not check:
        for device, source in uncompiled(devices):
            device.module(*source)
    fields = {
        "warm": (was_warm or not check) and not uncompiled(devices),
        "devices": ", ".join(device.name for device in devices) or f"none ({reason})",
        "folder": str(cached.kernel_folder()),
        "cached_bytes": cached.cached_bytes(),
        "seconds": time.perf_counter() - began,
    }
    emit(fields, as_json=as_json, title="all kernels are compiled" if fields["warm"] else "kernels have yet to be compiled")
    if not fields["warm"]:
        context.exit(EXIT_COLD)
