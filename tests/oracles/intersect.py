"""The kernel of `oocgraph.kernels.intersect` as plain Python: the oracle that it must equal, same name and signature."""

from __future__ import annotations


def common_entries(entries, begin, end, pairs, counts, found):
    """See `oocgraph.kernels.intersect.common_entries`."""
    total = 0
    for p, (u, v) in enumerate(pairs.T.tolist()):
        first, second = (set(entries[begin[i, p] : end[i, p]].tolist()) for i in (0, 1))
        both = sorted(first & second)
        beside = [one for one in both if one not in (u, v)]
        counts[:, p] = len(both), len(beside)
        room = max(0, found.size - total)
        found[total : total + min(room, len(beside))] = beside[:room]
        total += len(beside)
    return total
