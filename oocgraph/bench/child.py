"""A Python module in a process of its own, so that its memory is not ours; it answers line by line.

In: the module's name and arguments, then one line a question, on its stdin. Out: one JSON object a line, from its stdout: first what it
loaded, then the answers. An object with the field ``error`` is raised here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from oocgraph.errors import OocGraphError


class Child:
    """Run ``python -m module arguments`` within the context; entering it waits until the module has loaded.

    Parameters
    ----------
    module, arguments
        What to run.
    who
        Its name in messages.

    Attributes
    ----------
    load
        The first answer.
    """

    def __init__(self, module: str, *arguments: str, who: str) -> None:
        self._who = who
        self._command = [sys.executable, "-m", module, *arguments]
        self.load: dict[str, Any] = {}

    def __enter__(self) -> Self:
        # in a group of its own: Ctrl-C is for this process, which then ends it
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0)
        try:
            self.load = self._answer()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    def ask(self, question: object) -> dict[str, Any]:
        """Send a line and return the answer.

        Raises
        ------
        OocGraphError
            The child reports an error, or has ended.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: its answer says why
            self._process.stdin.write(f"{question}\n")
            self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise OocGraphError(f"{self._who}: its process ended with code {self._process.wait()}; it may need more memory")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise OocGraphError(str(answer["error"]))
        return answer

    def _close(self) -> None:
        self._process.terminate()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def answer(**fields: object) -> None:
    """Print one answer; for the module that runs in the child."""
    print(json.dumps(fields), flush=True)
