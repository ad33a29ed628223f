"""Values that an object computes when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:
        """As in Python 3.12: before, a lock was held meanwhile, for which a process that another thread had forked then waited for ever.

        Two threads may compute a value at once; both have the same.
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, owned: Any, owner: type | None = None) -> Any:
            if owned is None:
                return self
            value = owned.__dict__[self._name] = self._compute(owned)
            return value


__all__ = ["cached_property"]
