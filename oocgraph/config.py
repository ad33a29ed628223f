"""Every knob, once: defaults in ``oocgraph.yaml``, overridden by files, environment or code through ``dask.config``.

In: the key ``oocgraph`` of Dask's configuration. Out: `Settings`, typed and checked. Dask is imported only where it may say something
of this package: a command on an unconfigured machine begins 0.04 s earlier without it, 0.08 s with a cold disk.
"""

from __future__ import annotations

import math
import os
import re
import site
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from oocgraph.arguments import is_whole
from oocgraph.errors import ArgumentError, OocGraphError
from oocgraph.types import AskedOrder, Codec, DeviceKind, Precision

_DEFAULTS = Path(__file__).with_name("oocgraph.yaml")
_PROC = Path("/proc/self/status")

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration as it stands; field ``io_threads`` is the key ``oocgraph.io-threads``.

    Attributes
    ----------
    memory_budget
        Bytes the process may hold, as a number or a text such as ``2G``; None: what the machine leaves.
    threads
        Compute threads; never None here: the cores this process may use when nothing is configured.
    io_threads
        Host threads that read scattered pages.
    chunk_items
        Vertices that threads hand each other at once, 8 to 64.
    distribution
        Of work among threads: see `oocgraph.team`.
    pin_threads
        ``auto``: where a machine has several groups of cores that share a cache, threads that work on a list of vertices are bound to
        cores, and values first touched in the group that will use them; ``never``.
    device
        Where searches run: ``auto`` (a GPU if one can be used and its start pays), ``cpu`` or ``cuda``.
    device_memory_budget
        Bytes of device memory that a search on a GPU may hold, as a number or a text such as ``4G``; None: most of what is free.
    alpha, beta
        Thresholds of the direction ``alpha-beta`` (Beamer et al. 2012; defaults of GAPBS).
    worker_timeout
        Seconds to wait for a scheduler, for workers, and for a lost worker to come back; a text such as ``30s`` in the configuration.
    silent_worker_timeout
        Seconds without a heartbeat after which a worker is taken for lost; a text such as ``60s`` in the configuration.
    result_folder
        Folder of the result stores of searches on a cluster, which every worker must see; None: beside the graph.
    steps_ahead
        Tasks of a computation on a cluster that are submitted before their predecessors end.
    steps_per_task
        Iterations on a cluster that a task takes at most, where workers share a host's memory; 1: each is a task. None: as many as half a
        second has time for.
    exchange
        What messages between workers go through: ``auto``: memory that they share, where all are on one host, else Dask; ``windows``:
        shared memory, or an error that says why not; ``messages``: Dask.
    take_over
        Share of a worker's vertices, 0 to 1, that others of its host may work on in an iteration in which they wait for it; 0: none.
    precision
        Of what PageRank gathers along edges (ranks and sums are float64): ``double``; ``single`` (float32: the changes may not come below
        1.5e-7 * damping / (1 - damping) in all); ``auto``: single while a large graph's ranks still change by more than that and 1e-6 in
        all, then double.
    checkpoint_every
        Iterations between two checkpoints of PageRank.
    vertex_order
        Of the stores that are built: ``degree``: vertices are numbered by descending degree; ``locality``: neighbours near each other, for
        graphs without hubs, such as roads; ``original``: by ascending id; ``auto``: by locality where no vertex has more than 8 times
        the mean degree and that is at most 16, and the memory budget has 24 bytes a vertex, else by degree.
    codec
        Compression of the arrays of the stores that are built: ``none``, ``blosc`` or ``zstd``.
    storage_options
        Options of the file systems of remote URLs, such as ``{"anon": True}``, where `oocgraph.open_graph` is given none.
    storage_timeout
        Seconds that a request to a remote URL may take, repetitions of it included.
    redeal_shares
        ``auto``: an opened graph's workers get new shares of its edges between searches, where those measured were unequally busy
        (`oocgraph.plan.redealing`); ``off``: shares stay equal.
    dashboard_address
        Where a cluster that oocgraph starts serves Dask's dashboard, such as ``:8787``; None: nowhere.
    """

    memory_budget: str | int | None
    threads: int
    io_threads: int
    chunk_items: int
    distribution: Literal["auto", "static", "dynamic"]
    pin_threads: Literal["auto", "never"]
    device: DeviceKind
    device_memory_budget: str | int | None
    alpha: float
    beta: float
    worker_timeout: float
    silent_worker_timeout: float
    result_folder: str | None
    steps_ahead: int
    steps_per_task: int | None
    exchange: Literal["auto", "windows", "messages"]
    take_over: float
    redeal_shares: Literal["auto", "off"]
    dashboard_address: str | None
    precision: Precision
    checkpoint_every: int
    vertex_order: AskedOrder
    codec: Codec
    storage_options: Mapping[str, Any] | None = field(repr=False, hash=False)  # may hold secrets
    storage_timeout: float


def settings() -> Settings:
    """Return the settings in force now.

    Raises
    ------
    ArgumentError
        A setting has a wrong type or value, or the key ``oocgraph`` holds a name that is no setting; a file of
        Dask's configuration cannot be read; or /proc is missing.

    Examples
    --------
    >>> settings().io_threads > 0
    True
    """
    require_proc()
    asked: Mapping[str, Any] = {}
    if "dask" in sys.modules or _may_be_configured():
        try:
            import dask.config
        except ValueError as error:  # as Dask raises for a file that is no YAML
            raise ArgumentError(f"Dask's configuration cannot be read; mend the file: {' '.join(str(error).split())}") from None
        found: Any = dask.config.get("oocgraph", None)
        if found is not None and not isinstance(found, Mapping):
            raise ArgumentError(f"oocgraph is {found!r} in Dask's configuration; it must be a mapping of settings (see oocgraph.yaml)")
        asked = found or {}  # none, where all settings below it are comments
        _tell_dask()
    now = f"{asked!r} {num_cores()}"  # as a text, in which True is not 1
    kept = _kept.get("settings")
    if kept is None or kept[0] != now:  # a call asks several times, and reading takes 30 us
        kept = _kept["settings"] = now, _read(asked)
    return kept[1]


_kept: dict[str, tuple[str, Settings]] = {}
"""The settings that were read last, with the configuration and the cores that they are of."""


def _read(asked: Mapping[str, Any]) -> Settings:
    stored = {key.replace("-", "_"): value for key, value in {**_defaults(), **asked}.items()}
    names = {one.name for one in fields(Settings)}
    if unknown := sorted(set(stored) - names):
        raise ArgumentError(
            f"oocgraph.{_key(unknown[0])} is not a setting; known are {', '.join(sorted(_key(name) for name in names))} (see oocgraph.yaml)"
        )
    return Settings(
        memory_budget=_size("memory-budget", stored["memory_budget"]),
        threads=num_cores() if stored["threads"] is None else _positive("threads", stored["threads"], int),
        io_threads=_positive("io-threads", stored["io_threads"], int),
        chunk_items=_chunk_items(stored["chunk_items"]),
        distribution=_one_of("distribution", stored["distribution"], ("auto", "static", "dynamic")),
        pin_threads=_one_of("pin-threads", stored["pin_threads"], ("auto", "never")),
        device=_one_of("device", stored["device"], get_args(DeviceKind)),
        device_memory_budget=_size("device-memory-budget", stored["device_memory_budget"]),
        alpha=_positive("alpha", stored["alpha"], float),
        beta=_positive("beta", stored["beta"], float),
        worker_timeout=_seconds("worker-timeout", stored["worker_timeout"]),
        silent_worker_timeout=_seconds("silent-worker-timeout", stored["silent_worker_timeout"]),
        result_folder=_text("result-folder", stored["result_folder"]),
        steps_ahead=_positive("steps-ahead", stored["steps_ahead"], int),
        steps_per_task=None if stored["steps_per_task"] is None else _positive("steps-per-task", stored["steps_per_task"], int),
        exchange=_one_of("exchange", stored["exchange"], ("auto", "windows", "messages")),
        take_over=_share("take-over", stored["take_over"]),
        redeal_shares=_one_of("redeal-shares", _off(stored["redeal_shares"]), ("auto", "off")),
        dashboard_address=_text("dashboard-address", stored["dashboard_address"]),
        precision=_one_of("precision", stored["precision"], get_args(Precision)),
        checkpoint_every=_positive("checkpoint-every", stored["checkpoint_every"], int),
        vertex_order=_one_of("vertex-order", stored["vertex_order"], get_args(AskedOrder)),
        codec=_one_of("codec", stored["codec"], get_args(Codec)),
        storage_options=_mapping("storage-options", stored["storage_options"]),
        storage_timeout=_seconds("storage-timeout", stored["storage_timeout"]),
    )


def _mapping(key: str, value: Any) -> Mapping[str, Any] | None:
    if value is not None and not isinstance(value, Mapping):
        raise ArgumentError(f"oocgraph.{key} is a {type(value).__name__}; it must be a mapping from names of options to values, or null")
    return value


def _key(name: str) -> str:
    return name.replace("_", "-")


def setting(name: str, value: Any) -> AbstractContextManager[Any]:
    """Return a context in which a setting, such as ``precision``, has another value."""
    require_proc()
    import dask.config

    _tell_dask()
    context: AbstractContextManager[Any] = dask.config.set({f"oocgraph.{name}": value})
    return context


def require_proc() -> None:
    """Refuse to go on where the kernel does not tell what processes hold: no budget can be kept there, and Dask cannot be imported.

    Raises
    ------
    ArgumentError
        /proc is not mounted.
    """
    if not _PROC.exists():
        raise OocGraphError(
            "/proc is not mounted, and memory budgets and Dask need it; mount it (mount -t proc proc /proc), "
            "or have the container or chroot mount it"
        )


MAX_THREADS = 4096
"""More than any machine has cores for."""


def check_threads(threads: Any) -> None:
    """Refuse a number of threads that is none; None stands for all cores.

    Raises
    ------
    ArgumentError
        It is not a whole number from 1 to `MAX_THREADS`.
    """
    if threads is not None and not is_whole(threads, 1, MAX_THREADS):
        raise ArgumentError(f"threads is {threads!r}; it must be 1 to {MAX_THREADS}, or None for all cores")


def num_cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _defaults() -> dict[str, Any]:
    """Return the packaged settings."""
    import yaml  # type: ignore[import-untyped]

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a tenth of the time, where it is
    defaults: dict[str, Any] = yaml.load(_DEFAULTS.read_bytes(), Loader=loader)["oocgraph"]
    return defaults


@cache
def _tell_dask() -> None:
    """Make the packaged settings Dask's defaults, so that it shows them."""
    import dask.config

    dask.config.update_defaults({"oocgraph": _defaults()})


@cache
def _may_be_configured() -> bool:
    """Whether Dask, once imported, may find something about this package: in its variables, or in a file that names the package."""
    inherited = "DASK_INTERNAL_INHERIT_CONFIG"
    if any(name == inherited or (name.startswith("DASK_") and "OOCGRAPH" in name.upper()) for name in os.environ):
        return True
    return any(b"oocgraph" in file.read_bytes().lower() for folder in _dask_folders() for file in _yaml_files(folder))


def _dask_folders() -> list[Path]:
    """Return where Dask looks for files, in no order: `dask.config.paths`, which is not imported for it."""
    prefixes = [sys.prefix, *site.PREFIXES]
    root = os.environ.get("DASK_ROOT_CONFIG", "/etc/dask")
    folders = [root, *(os.path.join(prefix, "etc", "dask") for prefix in prefixes), os.path.expanduser("~/.config/dask")]
    if "DASK_CONFIG" in os.environ:
        folders.append(os.environ["DASK_CONFIG"])
    return [Path(folder) for folder in dict.fromkeys(folders)]


def _yaml_files(path: Path) -> list[Path]:
    """Return files of configuration that can be read: what is in a folder, or a file itself."""
    if not os.access(path, os.R_OK):
        return []
    files = [one for one in path.iterdir() if one.suffix.lower() in (".json", ".yaml", ".yml")] if path.is_dir() else [path]
    return [one for one in files if one.is_file() and os.access(one, os.R_OK)]


def parse_bytes(text: str | int, name: str | None = None) -> int:
    """Return the number of bytes that `text` means: a number with an optional K, M, G or T (powers of 1024).

    Raises
    ------
    ArgumentError
        The text is not a size; the message names the parameter `name`.

    Examples
    --------
    >>> parse_bytes("640M"), parse_bytes("1.5GiB"), parse_bytes(4096)
    (671088640, 1610612736, 4096)
    """
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?)(I?B)?\s*", str(text).upper())
    if match is None or float(match[1]) <= 0:
        raise ArgumentError(f"{'' if name is None else f'{name}: '}{text!r} is not a size in bytes; write for example 640M or 2G")
    return int(float(match[1]) * _UNITS[match[2]])


def _positive(key: str, value: Any, kind: type[Any]) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, kind)) or value <= 0:
        raise ArgumentError(f"oocgraph.{key} is {value!r}; it must be a positive {'number' if kind is float else 'integer'}")
    return kind(value)


def _share(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ArgumentError(f"oocgraph.{key} is {value!r}; it must be a number from 0 to 1")
    return float(value)


def _chunk_items(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 8 <= value <= 64:
        raise ArgumentError(f"oocgraph.chunk-items is {value!r}; it must be an integer from 8 to 64")
    return value


def _one_of(key: str, value: Any, known: tuple[str, ...]) -> Any:
    if value not in known:
        raise ArgumentError(f"oocgraph.{key} is {value!r}; it must be one of {', '.join(known)}")
    return value


def _off(value: Any) -> Any:
    """Return the text for what YAML makes of an ``off`` without quotes: false."""
    return "off" if value is False else value


def _size(key: str, value: Any) -> str | int | None:
    if value is None:
        return None
    try:
        parse_bytes(value)
    except ArgumentError:
        raise ArgumentError(f"oocgraph.{key} is {value!r}; it must be a size such as 4G, or null") from None
    return value  # type: ignore[no-any-return]


def _seconds(key: str, value: Any) -> float:
    try:
        if isinstance(value, str):
            from dask.utils import parse_timedelta

            value = parse_timedelta(value)
        seconds = float(value)
    except (TypeError, ValueError, KeyError, AttributeError):
        seconds = math.nan
    if isinstance(value, bool) or not 0 < seconds < math.inf:
        raise ArgumentError(f"oocgraph.{key} is {value!r}; it must be a duration such as 30s or 2 minutes")
    return seconds


def _text(key: str, value: Any) -> str | None:
    if value is not None and (not isinstance(value, str | os.PathLike) or not os.fspath(value)):
        raise ArgumentError(f"oocgraph.{key} is {value!r}; it must be a text, or null")
    return None if value is None else os.fspath(value)
