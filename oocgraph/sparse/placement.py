"""Which NUMA node, and which of its workers, gets each part: first over nodes in proportion to their workers, then inside of each.

In: a number of parts and a topology, the machine's or a given one. Out: a `Place` for each part; neighbours in the matrix stay on one
node. Pure but for what reads ``/sys``: `machine_topology`, and where devices are attached. `stay_on` keeps a thread on its node.

Chen et al., "MSREP: A Fast yet Light Sparse Matrix Framework for Multi-GPU Systems", 2022, section 4.2 (two-level partitioning).
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oocgraph.config import num_cores
from oocgraph.errors import ArgumentError

NODES = Path("/sys/devices/system/node")
"""Where Linux describes NUMA nodes."""

PROCESSORS = Path("/sys/devices/system/cpu")
"""Where Linux describes processors and their caches."""


DEVICES = Path("/sys/bus/pci/devices")
"""Where Linux describes devices, by their addresses on the bus."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node and who works on it.

    Attributes
    ----------
    number : int
        As the machine numbers it.
    workers : tuple of int
        Processors, or devices: whatever works on parts.
    """

    number: int
    workers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part belongs: the number of a node, and one of its workers."""

    node: int
    worker: int


def topology(description: Mapping[int, Sequence[int] | int]) -> tuple[NumaNode, ...]:
    """Return the topology that a mapping from node to its workers (or to how many) describes; those that are counted are numbered on.

    Raises
    ------
    ArgumentError
        There are no workers, or a number of workers is negative.

    Examples
    --------
    >>> topology({0: [0, 1, 2], 1: 2})
    (NumaNode(number=0, workers=(0, 1, 2)), NumaNode(number=1, workers=(3, 4)))
    """
    nodes: list[NumaNode] = []
    next_worker = 0
    for number, workers in sorted(description.items()):
        if isinstance(workers, int) and workers < 0:
            raise ArgumentError(f"node {number} has {workers} workers; give 0 or more, or their numbers")
        own = tuple(range(next_worker, next_worker + workers)) if isinstance(workers, int) else tuple(int(one) for one in workers)
        next_worker = max((next_worker, *(one + 1 for one in own)))
        nodes.append(NumaNode(number, own))
    if not any(node.workers for node in nodes):
        raise ArgumentError("the topology has no workers; name at least one, as in {0: [0, 1], 1: [2, 3]}")
    return tuple(nodes)


def machine_topology(folder: Path = NODES) -> tuple[NumaNode, ...]:
    """Return the nodes of this machine with the processors that this process may use; one node where the machine tells nothing."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(num_cores()))
    found: dict[int, list[int]] = {}
    for node in folder.glob("node[0-9]*"):
        try:
            listed = _cpu_list((node / "cpulist").read_text())
        except (OSError, ValueError):
            continue
        found[int(node.name.removeprefix("node"))] = sorted(set(listed) & usable)
    if not any(found.values()):
        found = {0: sorted(usable)}
    return topology({number: workers for number, workers in found.items() if workers})


def cache_groups(folder: Path = PROCESSORS, nodes: Path = NODES) -> tuple[NumaNode, ...]:
    """Return the groups of processors that share a last-level cache, of those that this process may use; else the NUMA nodes."""
    groups: set[tuple[int, ...]] = set()
    found = machine_topology(nodes)
    for core in sorted(core for node in found for core in node.workers):
        try:
            listed = _cpu_list((folder / f"cpu{core}" / "cache" / "index3" / "shared_cpu_list").read_text())
        except (OSError, ValueError):
            return found
        groups.add(tuple(sorted(set(listed) & {core for node in found for core in node.workers})))
    return topology(dict(enumerate(sorted(groups))))


def own_node(folder: Path = NODES) -> int | None:
    """Return the node that has all processors which this process may use; None where there are several."""
    nodes = machine_topology(folder)
    return nodes[0].number if len(nodes) == 1 else None


def topology_of_workers(where: Sequence[tuple[str, int | None]]) -> tuple[NumaNode, ...]:
    """Return the topology of worker processes, numbered as they are given: a node for each NUMA node of each machine.

    Parameters
    ----------
    where
        Machine and NUMA node of each; None is a node of its own of that machine: nothing is known of who shares what.

    Examples
    --------
    >>> [node.workers for node in topology_of_workers([("b", 0), ("a", 1), ("a", 0), ("a", 1)])]
    [(2,), (1, 3), (0,)]
    """
    groups: dict[tuple[str, int], list[int]] = {}
    for worker, (host, node) in enumerate(where):
        groups.setdefault((host, -1 if node is None else node), []).append(worker)
    return topology(dict(enumerate(groups[key] for key in sorted(groups))))


def topology_of_devices(bus_ids: Sequence[str | None], folder: Path = DEVICES) -> tuple[NumaNode, ...]:
    """Return the topology of devices, numbered as they are given, by their addresses on the PCI bus; what is not known is node 0.

    Parameters
    ----------
    bus_ids
        Such as ``0000:3b:00.0``; None where it is not known.
    """
    groups: dict[int, list[int]] = {}
    for device, bus_id in enumerate(bus_ids):
        try:
            node = -1 if bus_id is None else int((folder / bus_id.lower() / "numa_node").read_text())
        except (OSError, ValueError):
            node = -1
        groups.setdefault(max(0, node), []).append(device)  # Linux says -1 where the firmware says nothing
    return topology(groups)


def cores_near(devices: Sequence[NumaNode], machine: Sequence[NumaNode]) -> dict[int, tuple[int, ...]]:
    """Return the processors of the node of each device; of a machine of one node, and of a node without processors, none.

    Parameters
    ----------
    devices
        From `topology_of_devices`.
    machine
        From `machine_topology`.

    Examples
    --------
    >>> cores_near(topology({0: [0], 1: [1, 2]}), topology({0: [0, 1], 1: [2, 3]}))
    {0: (0, 1), 1: (2, 3), 2: (2, 3)}
    """
    if len(machine) < 2:
        return {}
    cores = {node.number: node.workers for node in machine}
    return {device: cores[node.number] for node in devices for device in node.workers if cores.get(node.number)}


def stay_on(cores: Sequence[int] | None) -> None:
    """Let this thread run on these processors only, so that pages that it touches first are near to them; None: where it likes."""
    if cores is not None and hasattr(os, "sched_setaffinity"):
        try:
            os.sched_setaffinity(0, cores)
        except OSError as error:  # the process may not use them any more
            logger.warning("a thread cannot be kept on processors %s: %s", list(cores), error)


def place(num_parts: int, nodes: Sequence[NumaNode]) -> tuple[Place, ...]:
    """Return where each part belongs, in order.

    Parameters
    ----------
    num_parts
        Any number from 0: nodes and workers get equal numbers within one, in proportion to the workers; some may get none.
    nodes
        From `topology` or `machine_topology`.

    Examples
    --------
    >>> [(one.node, one.worker) for one in place(3, topology({0: [0, 1], 1: [2]}))]
    [(0, 0), (0, 1), (1, 2)]
    """
    if num_parts < 0:
        raise ArgumentError(f"num_parts is {num_parts}; it must be 0 or more")
    places: list[Place] = []
    for node, count in zip(nodes, _shares(num_parts, [len(node.workers) for node in nodes]), strict=True):
        places += [Place(node.number, node.workers[i * len(node.workers) // count]) for i in range(count)]
    return tuple(places)


def _shares(total: int, weights: Sequence[int]) -> list[int]:
    """Divide a number in proportion to weights: each gets its exact share, rounded; larger remainders are rounded up first."""
    exact = [total * weight for weight in weights]
    divisor = max(1, sum(weights))
    shares = [one // divisor for one in exact]
    by_remainder = np.argsort([-(one % divisor) for one in exact], kind="stable")
    for at in by_remainder[: total - sum(shares)].tolist():
        shares[at] += 1
    return shares


def _cpu_list(text: str) -> list[int]:
    """Read a list of processors as Linux writes it, such as ``0-3,8``."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            raise ValueError(part)
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return numbers
