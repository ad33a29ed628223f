"""What is done to the files of a store: damage as disks and copies do it, and content that somebody made up.

In: a folder and a random generator. Out: the folder changed, and a text that says how. `damage` leaves checksums as they were; `craft`
writes those of arrays anew, so that only the content can tell.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from oocgraph.compiled.crc32c import page_checksums
from oocgraph.types import PAGE_BYTES

SPARSE_LENGTHS = (1 << 20, 1 << 28, 1 << 33, 1 << 40)
"""Lengths that metadata may claim; the files are sparse, so that their size is right."""

NUMBERS = (
    0, 1, -1, 2, 3, 63, 64, 65, 255, 4096, 2**16, 2**20, 2**28, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**40, 2**62, 2**63 - 1, -(2**63),
    2**63, 2**64, 10**9, 10**30,
)  # fmt: skip

VALUES: tuple[Any, ...] = (
    None, True, False, "", "x", "0", "../../evil", "/etc", "\x00", "int64", "int32", "uint32", "uint8", "float64", ">i8", "O", "string",
    "V8", "bool", "degree", "original", "partition", "group", "array", "none", "zstd", [], {}, [0], [1, 2], [[1]], [None], {"name": "gzip"},
    {"configuration": {}}, 0.5, 1e308, math.nan, math.inf, -math.inf, "x" * 100_000,
)  # fmt: skip


UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    RecursionError,
    OverflowError,
    RuntimeError,
    MemoryError,
)
"""What an earlier change may lead to when the next one reads."""

MAX_LENGTH = 1 << 20
"""Elements of an array that is changed at most."""


def files_of(folder: Path) -> list[Path]:
    """Files to choose from, always in the same order."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def arrays_of(folder: Path) -> list[Path]:
    """Folders of arrays, those of checksums apart, in the same order."""
    found = (path.parent for path in files_of(folder) if path.name == "zarr.json" and '"array"' in path.read_text())
    return [path for path in found if "checksums" not in path.relative_to(folder).parts]


# Damage.


def damage(folder: Path, rng: np.random.Generator) -> str:
    """Damage one file; return what was done."""
    files = files_of(folder)
    metadata = [file for file in files if file.name == "zarr.json"]
    data = [file for file in files if file.name != "zarr.json"]
    file = _choice(rng, metadata if metadata and (rng.random() < 0.25 or not data) else data)
    how = _choice(rng, [_flip_bits] * 6 + [_overwrite, _zero_page, _truncate, _extend, _remove, _replace])
    return f"{file.relative_to(folder)}: {how(file, rng, files)}"


def _flip_bits(file: Path, rng: np.random.Generator, _files: list[Path]) -> str:
    raw = bytearray(file.read_bytes())
    if not raw:
        return "empty, nothing done"
    told = []
    for _ in range(int(rng.choice([1, 1, 1, 2, 8]))):
        at, bit = int(rng.integers(len(raw))), int(rng.integers(8))
        raw[at] ^= 1 << bit
        told.append(f"{at}.{bit}")
    file.write_bytes(raw)
    return f"bits {' '.join(told)} of {len(raw)} bytes flipped"


def _overwrite(file: Path, rng: np.random.Generator, _files: list[Path]) -> str:
    raw = bytearray(file.read_bytes())
    at, size = int(rng.integers(len(raw) + 1)), int(rng.choice([1, 4, 8, 100]))
    size = min(size, len(raw) - at)
    raw[at : at + size] = _choice(rng, [bytes(size), b"\xff" * size, rng.bytes(size)])
    file.write_bytes(raw)
    return f"{size} bytes from {at} overwritten"


def _zero_page(file: Path, rng: np.random.Generator, _files: list[Path]) -> str:
    raw = bytearray(file.read_bytes())
    at = int(rng.integers(len(raw) // PAGE_BYTES + 1)) * PAGE_BYTES
    size = min(PAGE_BYTES, len(raw) - at)
    raw[at : at + size] = bytes(size)
    file.write_bytes(raw)
    return f"page at {at} zeroed"


def _truncate(file: Path, rng: np.random.Generator, _files: list[Path]) -> str:
    size = file.stat().st_size
    kept = int(_choice(rng, [0, rng.integers(size + 1), max(0, size - 1), max(0, size - 8), size // 2]))
    os.truncate(file, kept)
    return f"cut to {kept} of {size} bytes"


def _extend(file: Path, rng: np.random.Generator, _files: list[Path]) -> str:
    more = int(rng.choice([1, 8, 4096, 1 << 20]))
    with file.open("ab") as out:
        out.write(rng.bytes(more) if rng.random() < 0.5 else bytes(more))
    return f"{more} bytes appended"


def _remove(file: Path, rng: np.random.Generator, _files: list[Path]) -> str:
    file.unlink()
    if rng.random() < 0.3:
        file.mkdir()
        return "replaced by a folder"
    return "removed"


def _replace(file: Path, rng: np.random.Generator, files: list[Path]) -> str:
    other = _choice(rng, files)
    file.write_bytes(other.read_bytes())
    return f"replaced by {other.name} of {other.parent.parent.name}/{other.parent.name}"


# What somebody made up.


def craft(folder: Path, rng: np.random.Generator) -> str:
    """Change metadata or arrays, one to three times; return what was done."""
    told = []
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        how = _choice(rng, [_change_metadata] * 4 + [_change_array] * 8 + [_claim_length] * 2 + [_odd_file, _odd_json])
        told.append(how(folder, rng))
    return "; ".join(told)


def _change_metadata(folder: Path, rng: np.random.Generator) -> str:
    """Change a value anywhere in a zarr.json, most often one of the attributes."""
    documents = [file for file in files_of(folder) if file.name == "zarr.json"]
    if not documents:
        return "no metadata"
    roots = [file for file in documents if "oocgraph" in file.read_text()]
    file = _choice(rng, roots if roots and rng.random() < 0.5 else documents)
    try:
        document = json.loads(file.read_text())
    except UNREADABLE:
        return f"{file.relative_to(folder)}: no JSON any more"
    places = list(_places(document))
    if not places:
        return f"{file.relative_to(folder)}: nothing in it"
    holder, key, path = _choice(rng, places)
    old = holder[key]
    if rng.random() < 0.1:
        del holder[key]
        change = "removed"
    else:
        holder[key] = _changed_value(old, rng)
        change = f"{_short(old)} -> {_short(holder[key])}"
    file.write_text(json.dumps(document))
    return f"{file.relative_to(folder)}: {path} {change}"


def _places(value: Any, path: str = "") -> Any:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key, f"{path}/{key}"
            yield from _places(value[key], f"{path}/{key}")


def _changed_value(old: Any, rng: np.random.Generator) -> Any:
    if isinstance(old, int) and not isinstance(old, bool) and rng.random() < 0.8:
        return _choice(rng, [old + 1, old - 1, old + 8, old - 10, 2 * old, old // 2, -old, *NUMBERS])
    if isinstance(old, bool) and rng.random() < 0.7:
        return not old
    if isinstance(old, str) and rng.random() < 0.2:
        return old + "x"
    if rng.random() < 0.05:
        nested: Any = []
        for _ in range(int(rng.choice([50, 900]))):
            nested = [nested]
        return nested
    return _choice(rng, [*VALUES, *NUMBERS])


def _change_array(folder: Path, rng: np.random.Generator) -> str:
    """Change the values of an array, and its length now and then; checksums are made to fit."""
    arrays = arrays_of(folder)
    if not arrays:
        return "no arrays"
    place = _choice(rng, arrays)
    name = place.relative_to(folder)
    try:
        values = read_array(place)
        change, values = _changed_values(values, rng)
        write_array(folder, place, values)
    except UNREADABLE as error:
        return f"{name}: left as it was ({type(error).__name__})"
    return f"{name}: {change}"


def _changed_values(values: np.ndarray, rng: np.random.Generator) -> tuple[str, np.ndarray]:
    values, size = values.copy(), values.size
    least, most = (np.iinfo(values.dtype).min, np.iinfo(values.dtype).max) if values.dtype.kind in "iu" else (-1e300, 1e300)
    how = _choice(rng, ["set"] * 6 + ["swap", "fill", "level", "reverse", "shift", "insert", "remove", "shuffle", "empty", "random"])
    if how == "set" and size:
        told = []
        for _ in range(int(rng.choice([1, 1, 2, 5]))):
            at = int(_choice(rng, [0, size - 1, rng.integers(size), rng.integers(size)]))
            own = values[at].item()
            usual = [own + 1, own - 1, own * 2, size, size - 1, size + 1, 0, most, least, int(rng.integers(2 * size + 2)), *NUMBERS]
            if values.dtype.kind == "f":
                usual += [math.nan, math.inf, -math.inf, -0.0]
            new = _choice(rng, usual)
            values[at] = new if values.dtype.kind == "f" else min(most, max(least, int(new)))
            told.append(f"[{at}] {own} -> {values[at]}")
        return ", ".join(told), values
    if how == "swap" and size > 1:
        at, other = rng.integers(size, size=2)
        values[[at, other]] = values[[other, at]]
        return f"[{at}] and [{other}] swapped", values
    if how == "fill" and size:
        at, stop = sorted(rng.integers(size + 1, size=2).tolist())
        values[at:stop] = _choice(rng, [0, most, values[int(rng.integers(size))]])
        return f"[{at}:{stop}] filled with {values[at] if at < stop else None}", values
    if how == "level" and size > 1:  # what ascends still does: rows are longer then, and others empty
        at, stop = sorted(rng.integers(size, size=2).tolist())
        values[at:stop] = values[_choice(rng, [at, stop])]
        return f"[{at}:{stop}] levelled to {values[at] if at < stop else None}", values
    if how == "shift" and size:
        at, by = int(rng.integers(size)), int(rng.choice([-1, 1, -5, 7, 100]))
        with np.errstate(all="ignore"):
            values[at:] += np.array(by).astype(values.dtype)
        return f"[{at}:] shifted by {by}", values
    if how == "insert":
        at, many = int(rng.integers(size + 1)), int(rng.choice([1, 1, 100]))
        return f"{many} more from [{at}]", np.insert(values, at, np.resize(values[at : at + 1] if at < size else np.zeros(1), many))
    if how == "remove" and size:
        at, many = int(rng.integers(size)), int(rng.choice([1, 1, 100]))
        return f"{many} fewer from [{at}]", np.delete(values, slice(at, at + many))
    if how == "empty":
        return "emptied", values[:0]
    if how == "random" and values.dtype.kind in "iu":
        return "random content", rng.integers(least, most, size, dtype=values.dtype, endpoint=True)
    if how == "shuffle":
        return "shuffled", rng.permutation(values)
    return "reversed", values[::-1].copy()


def _claim_length(folder: Path, rng: np.random.Generator) -> str:
    """Let an array claim a length that the machine has no memory for; its chunks have the size that they must have."""
    arrays = arrays_of(folder)
    if not arrays:
        return "no arrays"
    place, length = _choice(rng, arrays), int(rng.choice(SPARSE_LENGTHS))
    try:
        document = json.loads((place / "zarr.json").read_text())
        itemsize = np.dtype(document["data_type"]).itemsize
        old = document["shape"][0]
        document["shape"] = [length]
        whole = rng.random() < 0.7
        if whole:
            document["chunk_grid"]["configuration"]["chunk_shape"] = [length]
            (place / "c").mkdir(exist_ok=True)
            with (place / "c" / "0").open("ab") as file:
                file.truncate(length * itemsize)
        (place / "zarr.json").write_text(json.dumps(document))
    except UNREADABLE as error:
        return f"{place.relative_to(folder)}: left as it was ({type(error).__name__})"
    told = f"{place.relative_to(folder)}: claims {length} elements{' over a sparse chunk' if whole else ''}"
    return told + _claim_everywhere(folder, old, length, rng)


def _claim_everywhere(folder: Path, old: int, length: int, rng: np.random.Generator) -> str:
    """Let the attributes tell the same length, in half of the cases."""
    if rng.random() < 0.5:
        return ""
    changed = []
    for file in [file for file in files_of(folder) if file.name == "zarr.json" and "oocgraph" in file.read_text()]:
        try:
            document = json.loads(file.read_text())
        except UNREADABLE:
            continue
        for holder, key, _ in list(_places(document)):
            if isinstance(holder[key], int) and not isinstance(holder[key], bool) and holder[key] in (old, old - 1) and old > 1:
                holder[key] = length - (old - holder[key])
                changed.append(str(key))
        file.write_text(json.dumps(document))
    return f", and so do {' '.join(changed)}" if changed else ""


def _odd_file(folder: Path, rng: np.random.Generator) -> str:
    """Put something in a file's place that is none."""
    if not files_of(folder):
        return "no files"
    file = _choice(rng, files_of(folder))
    name = file.relative_to(folder)
    file.unlink()
    how = _choice(rng, ["fifo", "loop", "zero", "null", "folder", "dangling"])
    if how == "fifo":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    else:
        file.symlink_to({"loop": file.name, "zero": "/dev/zero", "null": "/dev/null", "dangling": "nothing"}[how])
    return f"{name}: a {how} in its place"


def _odd_json(folder: Path, rng: np.random.Generator) -> str:
    """Write JSON that is deep, long, empty or none."""
    if not files_of(folder):
        return "no files"
    file = _choice(rng, [file for file in files_of(folder) if file.name == "zarr.json"] or files_of(folder))
    old = file.read_text(errors="replace")
    how, text = _choice(
        rng,
        [
            ("nested deeply", "[" * 100_000 + "]" * 100_000), ("nested objects", '{"attributes":' * 50_000 + "1" + "}" * 50_000),
            ("empty", ""), ("a number", "7"), ("a list", "[]"), ("null", "null"), ("a text", '"x"'), ("cut", old[: len(old) // 2]),
            ("a byte order mark", "\ufeff" + old), ("zeros", "\0" * 100), ("digits", old.replace("0", "0" * 5000, 1)),
            ("long number", '{"node_type": "array", "shape": [' + "9" * 5000 + "]}"), ("surrogate", old.replace("oocgraph", "\\ud800", 1)),
            ("keys twice", old.replace('"attributes"', '"attributes": {}, "attributes"', 1)),
        ],
    )  # fmt: skip
    file.write_text(text)
    return f"{file.relative_to(folder)}: {how}"


# Arrays, read and written without the code that is on trial.


def read_array(place: Path) -> np.ndarray:
    """Return an array's values."""
    if not all(file.is_file() or file.is_dir() for file in place.rglob("*")):
        raise ValueError("a change before has put something in a file's place, such as a pipe that would be waited for")
    document = json.loads((place / "zarr.json").read_text())
    length, dtype = document["shape"][0], np.dtype(document["data_type"])
    if length > MAX_LENGTH or document["chunk_grid"]["configuration"]["chunk_shape"][0] > MAX_LENGTH:
        raise ValueError("too long to be changed")
    if len(document["codecs"]) > 1:
        import zarr

        return zarr.open_array(str(place), mode="r")[:]
    chunks = [
        np.fromfile(place / "c" / str(i), dtype) for i in range(-(-length // document["chunk_grid"]["configuration"]["chunk_shape"][0]))
    ]
    return np.concatenate([np.empty(0, dtype), *chunks])[:length]


def write_array(folder: Path, place: Path, values: np.ndarray) -> None:
    """Write an array anew, its checksums too."""
    from oocgraph.store.writer import ArrayWriter

    codecs = json.loads((place / "zarr.json").read_text())["codecs"]
    shutil.rmtree(place)
    store = _store_of(place, folder)
    writer = ArrayWriter(store, str(place.relative_to(store)), values.dtype, codecs[-1]["name"] if len(codecs) > 1 else "none")
    writer.append(values)
    writer.close()
    kept = store / "checksums" / place.relative_to(store)
    if kept.is_dir():
        checksums = writer.checksums() if len(codecs) > 1 else page_checksums(values.view(np.uint8), PAGE_BYTES)
        shutil.rmtree(kept)
        own = ArrayWriter(store, str(kept.relative_to(store)), np.uint32, "none")
        own.append(checksums)
        own.close()


def _store_of(place: Path, folder: Path) -> Path:
    """Return the store that an array belongs to: the nearest folder above with checksums, or the outermost."""
    while place != folder:
        place = place.parent
        if (place / "checksums").is_dir():
            break
    return place


def _choice(rng: np.random.Generator, options: Any) -> Any:
    """Choose one of any objects (`Generator.choice` would make an array of them)."""
    return options[int(rng.integers(len(options)))]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:50] + "..."
