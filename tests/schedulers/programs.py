"""Stand-ins for ``dask`` and ``oocgraph`` in a batch script's job: they record what they are given, and end as the test wants.

The scheduler runs until it is ended. A worker writes its arguments, its environment and the modes of ``worker.sh`` and its folder into
files ``RECORD/PID.*``; it ends a while after the search, or, with the variable ``STUBBORN``, only a while after a signal to end, and then
writes ``PID.ended``. The search ends with the code ``CODE`` once it has all its workers.
"""

from __future__ import annotations

END_SECONDS = 2
"""Time that a worker takes to end."""

DASK = f"""#!/bin/bash
[ "$1" != scheduler ] || exec sleep 100
while [ "$1" != --scheduler-file ]; do shift; done
end() {{ sleep {END_SECONDS}; touch "$RECORD/$$.ended"; exit; }}
trap end TERM
run=$(dirname "$2")
stat -c %a "$run" "$run/worker.sh" >"$RECORD/$$.modes"
printf '%s\\n' "$@" >"$RECORD/$$.arguments"
env >"$RECORD/$$.environment"
while [ ! -e "$RECORD/over" ] || [ -n "$STUBBORN" ]; do sleep 0.1; done
end
"""

OOCGRAPH = """#!/bin/bash
while [ "$1" != --workers ]; do shift; done
while [ "$(ls "$RECORD" | grep -c environment)" -lt "$2" ]; do sleep 0.1; done
touch "$RECORD/over"
exit "$CODE"
"""

MKDIR = """#!/bin/bash
[ -e "$RECORD/raced" ] || { touch "$RECORD/raced"; /bin/mkdir "${@: -1}"; }
exec /bin/mkdir "$@"
"""
"""``mkdir`` of a job beside which another one creates the same folder first."""

NO_MKDIR = """#!/bin/bash
echo "mkdir: No space left on device" >&2
exit 1
"""


class Programs:
    """A folder of programs, and what they recorded.

    Parameters
    ----------
    folder
        An empty folder.
    """

    def __init__(self, folder):
        self.folder, self.record = folder, folder / "record"
        self.record.mkdir()
        self.add("dask", DASK)
        self.add("oocgraph", OOCGRAPH)

    def add(self, name, text):
        """Have jobs find a program of this name first."""
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def variables(self, code=0, **others):
        """Return variables of a job that runs them."""
        return {"PATH": f"{self.folder}:/usr/bin:/bin", "RECORD": self.record, "CODE": code, **others}

    def recorded(self, what):
        """Return lines that each worker recorded: its ``arguments``, its ``environment`` or ``modes``."""
        return [path.read_text().splitlines() for path in self.record.glob(f"*.{what}")]

    def given(self, option):
        """Return the values of an option of the workers."""
        return [words[words.index(option) + 1] for words in self.recorded("arguments")]
