"""Push or pull: numbers in, a choice and its reason out. Pure.

The cost rule weighs the bytes that each direction would move through each tier, memory and disk. It is applied
twice: before an iteration (`choose_by_cost`), with an estimate of what a pull leaves undecided, and again after a
pull over what is resident (`choose_finish`), with the exact pages of both ways to finish. The three other rules are
`choose_half` (pull when the frontier holds half of the vertices), `choose_alpha_beta` (Beamer et al., SC 2012, section 4) and
`choose_gemini` (Zhu et al., "Gemini: A Computation-Centric Distributed Graph Processing System", OSDI 2016, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1

PROBE_BYTES = 12
"""Memory bytes per edge looked at: the neighbour (4) and the bitmap word it selects (8)."""

SCATTER_BYTES = 128
"""Memory bytes per vertex that a push finds: two cache lines, of its parent and its level, at a random place.
A pull finds vertices in order and pays next to nothing. (kron22: 819,016 vertices found by a push of 4.1 M edges took 54 ms.)"""

FINISH_MARGIN = 0.9
"""A push finishes a pull only if it reads less than this share of the pages (uniform, 2^22 vertices: a tie took 320 ms as a push)."""


DENSE_SHARE = 20
"""A frontier is dense if its out-edges are at least one in so many of all edges (Gemini, after Ligra)."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known before an iteration.

    Attributes
    ----------
    frontier, frontier_edges
        Active vertices, and the sum of their (out-)degrees.
    frontier_pages
        Distinct pages on disk that a push would read, exact; 0 when all is resident.
    unvisited, unvisited_edges
        Vertices without a level, and the sum of their (in-)degrees.
    num_vertices, num_edges
        Of the graph; edges as stored, an undirected one twice.
    sampled, sampled_probes, sampled_found, sampled_undecided
        Of a sample of the unvisited vertices: how many, how many edges in memory a pull looked at for them, how many it found and
        how many it left undecided. (Hub-first lists make any estimate from the frontier's size alone far too high.)
    disk_pages
        Pages of the pull group that are not resident.
    pulled
        Whether the last iteration was a pull.
    """

    frontier: int
    frontier_edges: int
    frontier_pages: int
    unvisited: int
    unvisited_edges: int
    num_vertices: int
    num_edges: int
    sampled: int
    sampled_probes: int
    sampled_found: int
    sampled_undecided: int
    disk_pages: int
    pulled: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """``push`` or ``pull``, and why."""

    direction: str
    reason: str


def expected_probes(facts: Facts) -> float:
    """Edges in memory that a pull looks at, from the sample."""
    return facts.sampled_probes * facts.unvisited / max(1, facts.sampled)


def expected_pull_pages(facts: Facts) -> float:
    """First pages of the tails that a pull leaves to the disk, from the sample: distinct ones of as many random pages."""
    undecided = facts.sampled_undecided * facts.unvisited / max(1, facts.sampled)
    return facts.disk_pages * -expm1(-undecided / facts.disk_pages) if facts.disk_pages else 0.0


def choose_by_cost(facts: Facts, *, disk_byte_cost: float, page_bytes: int) -> Choice:
    """Choose the direction that moves fewer bytes, a disk byte counting as `disk_byte_cost` memory bytes.

    A pull can still be finished as a push, so its disk bytes are at most those of the push; it is
    started only where it has a chance to read less.
    """
    push_disk = facts.frontier_pages * page_bytes
    pull_disk = min(expected_pull_pages(facts), facts.frontier_pages) * page_bytes
    found = facts.sampled_found * facts.unvisited / max(1, facts.sampled)
    push_memory = facts.frontier_edges * PROBE_BYTES + found * SCATTER_BYTES
    push = push_memory + disk_byte_cost * push_disk
    pull = expected_probes(facts) * PROBE_BYTES + facts.num_vertices / 8 + disk_byte_cost * pull_disk
    words = (
        f"push moves {push_memory:.3g} B in memory and {push_disk:.3g} B from disk, "
        f"pull {pull - disk_byte_cost * pull_disk:.3g} B and {pull_disk:.3g} B"
    )
    return Choice("push" if push <= pull else "pull", f"cost: {words}")


def choose_finish(*, undecided: int, pull_pages: int, push_pages: int) -> Choice:
    """Finish a pull whose resident part left vertices undecided: by the fewer pages, both counted exactly.

    A tie within `FINISH_MARGIN` goes to the pull: it stops at the first hit and finds its vertices in order.
    """
    words = f"finish: {undecided} undecided need {pull_pages} first pages, the frontier's rows {push_pages}"
    return Choice("push" if push_pages < FINISH_MARGIN * pull_pages else "pull", words)


def choose_half(facts: Facts) -> Choice:
    """Pull when the frontier holds at least half of the vertices."""
    pull = 2 * facts.frontier >= facts.num_vertices
    return Choice("pull" if pull else "push", f"half: frontier {facts.frontier} of {facts.num_vertices} vertices")


def choose_alpha_beta(facts: Facts, *, alpha: float, beta: float) -> Choice:
    """Beamer's rule: pull above m_u / alpha frontier edges, push again below n / beta frontier vertices."""
    if facts.pulled:
        pull = facts.frontier >= facts.num_vertices / beta
        return Choice("pull" if pull else "push", f"alpha-beta: frontier {facts.frontier}, n / beta = {facts.num_vertices / beta:.0f}")
    pull = facts.frontier_edges > facts.unvisited_edges / alpha
    return Choice(
        "pull" if pull else "push", f"alpha-beta: frontier edges {facts.frontier_edges}, m_u / alpha = {facts.unvisited_edges / alpha:.0f}"
    )


def choose_gemini(facts: Facts) -> Choice:
    """Gemini's rule: sparse (push) while the active vertices have fewer than |E| / 20 out-edges, else dense (pull)."""
    push = facts.frontier_edges * DENSE_SHARE < facts.num_edges
    words = f"gemini: frontier edges {facts.frontier_edges}, |E| / {DENSE_SHARE} = {facts.num_edges / DENSE_SHARE:.0f}"
    return Choice("push" if push else "pull", words)
