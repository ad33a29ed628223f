"""Networks of KONECT (``out.NAME``): text whose first line says what edges are, as in ``% sym weighted``.

Columns are source, target and, where there are more, weight and time. Source: Kunegis, "KONECT: The Koblenz Network Collection", WWW
Companion 2013.
"""

from __future__ import annotations

from pathlib import Path

from oocgraph.errors import InputError
from oocgraph.ingest.sources.lines import HEADER_BYTES, line_blocks
from oocgraph.ingest.sources.source import Request, Source
from oocgraph.ingest.sources.text import open_text_edges


def open_konect(path: Path, request: Request) -> Source:
    """Open a file of KONECT, compressed or not.

    Raises
    ------
    InputError
        Its first line is another, or the network is bipartite: both sides of one have the same ids.
    """
    first = next((bytes(block.raw.partition(b"\n")[0]) for block in line_blocks(path, HEADER_BYTES)), b"")
    words = first.decode("ascii", "replace").split()
    if words[:1] != ["%"] or words[1:2] not in (["sym"], ["asym"], ["bip"]):
        raise InputError(
            f"{path}, line 1: {first.decode('ascii', 'replace')!r:.60} is not '% sym ...' or '% asym ...', with which a file of KONECT, "
            "out.NAME, begins; if it is other text, rename it .txt"
        )
    if words[1] == "bip":
        raise InputError(
            f"{path}, line 1: the network is bipartite, and both sides count from 1, so that one id means two vertices; write ids that "
            'differ, such as awk \'!/^%/ {print "a" $1, "b" $2}\' does, to a file .txt'
        )
    source = open_text_edges(path, request)
    source.directed = False if words[1] == "sym" else None
    return source
