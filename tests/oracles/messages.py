"""Bytes of a message of a partitioned traversal, as `oocgraph.partition.message_size` describes them."""


def message_bytes(count: int, length: int, *, parent_bytes: int = 0) -> int:
    """Return header, the shorter of positions and bitmap over the memoised list, and parents; 0 where nothing is sent."""
    return 8 + min(4 * count, 8 * -(-length // 64)) + parent_bytes * count if count else 0
