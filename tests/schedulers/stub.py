"""Stand-ins for the commands of PBS, LSF and Grid Engine: what is submitted is recorded, and run on this machine.

    python stub.py FOLDER SYSTEM COMMAND ARGUMENTS

with SYSTEM ``pbs``, ``lsf`` or ``sge``. Jobs and tasks get little of the environment that they are submitted in, as PBS and Grid Engine do
by default; LSF hands on all of it. PBS and Grid Engine run a script with sh, whatever its first line says, unless ``-S`` names a shell.
Every "node" is this machine, whatever its name, and tasks start in HOME there. FOLDER holds ``calls.jsonl``, a line for each command,
and for each job its script, ``N.json`` (its directives and options), ``N.pid`` and, once it has ended, ``N.code``. The commands know no
other options than those that the tests and dask-jobqueue use.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

PREFIX = {"pbs": "#PBS", "lsf": "#BSUB", "sge": "#$"}
SLOTS_OF_A_NODE = 2
"""The allocation rule of Grid Engine's parallel environments."""

SYSTEM_PATH = "/usr/bin:/bin"

FLAGS = {"-cwd", "-V", "-inherit", "-noshell", "-no-shell"}
FLAGS_OF_ONE = {"-r": "lsf"}
"""Options without a value: of all systems, and of one."""


def main():
    folder, system, command, *arguments = sys.argv[1:]
    folder = Path(folder)
    with open(folder / "calls.jsonl", "a") as file:
        file.write(json.dumps([command, *arguments]) + "\n")
    COMMANDS[command](folder, system, arguments)


def submit(folder, system, arguments):
    """``qsub`` and ``bsub``: of LSF the script comes from standard input."""
    options, rest = parsed(arguments, system)
    text = Path(rest[0]).read_text() if rest else sys.stdin.read()
    number = next_number(folder, text)
    directives = []
    for line in text.splitlines():
        if line.startswith(f"{PREFIX[system]} "):
            directives += parsed(shlex.split(line.removeprefix(PREFIX[system]), comments=False), system)[0]
    (folder / f"{number}.json").write_text(json.dumps({"directives": directives, "options": options, "folder": os.getcwd()}))
    run(folder, system, number, [*directives, *options])
    answer = {"pbs": "{}.stub", "lsf": "Job <{}> is submitted to queue <normal>.", "sge": "Your job {} has been submitted"}
    print(answer[system].format(number))


def next_number(folder, text):
    """Return the first number that no job has, which is then taken: jobs are submitted at the same time."""
    number = 1
    while True:
        try:
            with open(folder / f"{number}.script", "x") as file:
                file.write(text)
        except FileExistsError:
            number += 1
        else:
            return number


def parsed(words, system):
    """Return pairs of options and values, and what follows them."""
    options, words = [], list(words)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "--":
            break
        num_values = 0 if option in FLAGS or FLAGS_OF_ONE.get(option) == system else 2 if option == "-pe" else 1
        options.append((option, " ".join(words[:num_values]) or None))
        del words[:num_values]
    return options, words


def run(folder, system, number, options):
    """Start the job in a session of its own."""
    environment = dict(os.environ) if system == "lsf" else {"HOME": os.environ["HOME"], "PATH": SYSTEM_PATH}
    for option, value in options:
        if option in ("-v", "-env"):
            environment |= dict(word.split("=", 1) for word in re.split(", ?", value) if "=" in word)
    environment["PATH"] = f"{folder}:{environment['PATH']}"
    environment |= ALLOCATED[system](folder, number, options)
    shell = f"{interpreter(folder, system, number, options)} {folder}/{number}.script; echo $? >{folder}/{number}.part; "
    shell += f"mv {folder}/{number}.part {folder}/{number}.code"
    with open(Path.cwd() / f"oocgraph.o{number}", "ab") as output:
        process = subprocess.Popen(
            ["/bin/bash", "-c", shell], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    (folder / f"{number}.pid").write_text(str(process.pid))


def interpreter(folder, system, number, options):
    """Return what runs the script: LSF alone reads its first line."""
    if system == "lsf":
        return (folder / f"{number}.script").read_text().splitlines()[0].removeprefix("#!")
    (shell,) = last(options, "-S", "(.+)") or ("/bin/sh",)
    return shell


def last(options, name, pattern):
    """Return the groups of the last option of this name whose value fits."""
    found = [match.groups() for option, value in options if option == name and (match := re.search(pattern, value or ""))]
    return found[-1] if found else None


def node_names(num_nodes):
    """Return names of nodes: only the first is one that the network knows."""
    return ["localhost", *(f"node{number}" for number in range(2, num_nodes + 1))]


def of_pbs(folder, number, options):
    """Return variables of a job: a line of the node file for each MPI process of a chunk; chunks have nodes of their own if scattered."""
    chunks, cpus = last(options, "-l", r"select=(\d+):ncpus=(\d+)") or (1, 1)
    (processes,) = last(options, "-l", r"mpiprocs=(\d+)") or (1,)
    names = node_names(int(chunks)) if last(options, "-l", r"place=(\w+)") == ("scatter",) else ["localhost"] * int(chunks)
    nodes = folder / f"{number}.nodes"
    nodes.write_text("".join(f"{name}\n" * int(processes) for name in names))
    return {"PBS_JOBID": f"{number}.stub", "PBS_O_WORKDIR": os.getcwd(), "PBS_NODEFILE": str(nodes), "NCPUS": str(cpus)}


def of_lsf(folder, number, options):
    """Return variables of a job: CPUs by node."""
    (slots,) = last(options, "-n", r"(\d+)") or (1,)
    (tile,) = last(options, "-R", r"span\[ptile=(\d+)\]") or (slots,)
    (index,) = last(options, "-J", r"\[(\d+)\]") or (0,)
    hosts = " ".join(f"{name} {tile}" for name in node_names(int(slots) // int(tile)))
    return {"LSB_JOBID": str(number), "LSB_JOBINDEX": str(index), "LS_SUBCWD": os.getcwd(), "LSB_MCPU_HOSTS": hosts}


def of_sge(folder, number, options):
    """Return variables of a job: a line of the host file for each queue of a node, among which its slots are divided."""
    (slots,) = last(options, "-pe", r"\w+ (\d+)") or (1,)
    (queues,) = last(options, "-q", "(.+)") or ("all.q",)
    (task,) = last(options, "-t", r"(\d+)") or ("undefined",)
    queues = queues.split(",")
    hosts = folder / f"{number}.nodes"
    lines = [
        f"{name} {SLOTS_OF_A_NODE // len(queues)} {queue}@{name} UNDEFINED\n"
        for queue in queues
        for name in node_names(int(slots) // SLOTS_OF_A_NODE)
    ]
    hosts.write_text("".join(lines))
    return {
        "JOB_ID": str(number),
        "SGE_TASK_ID": task,
        "SGE_O_WORKDIR": os.getcwd(),
        "PE_HOSTFILE": str(hosts),
        "NSLOTS": str(slots),
    }


ALLOCATED = {"pbs": of_pbs, "lsf": of_lsf, "sge": of_sge}


def cancel(folder, system, arguments):
    """``qdel`` and ``bkill``."""
    for job in arguments:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int((folder / f"{job.partition('.')[0]}.pid").read_text()), signal.SIGTERM)


def on_a_node(folder, system, arguments):
    """``pbsdsh``, ``blaunch`` and ``qrsh``: run a command with the variables of the job that a node has, and wait for it.

    ``blaunch`` and ``qrsh`` hand it to a shell there, as one line, unless an option forbids it.
    """
    options, words = parsed(arguments[1:] if system == "lsf" else arguments, system)
    names = [name for name, _ in options]
    if (system == "sge" and "-inherit" not in names) or (system == "pbs" and "-n" not in names):
        sys.exit(f"no node is named by {arguments}")
    if system == "sge":
        del words[0]
    if system != "pbs" and not {"-noshell", "-no-shell"} & set(names):
        words = ["/bin/sh", "-c", " ".join(words)]
    os.chdir(os.environ["HOME"])
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PBS_", "LSB_", "JOB_ID"))}
    os.execve(words[0], words, {**kept, "HOME": os.environ["HOME"], "PATH": SYSTEM_PATH})


COMMANDS = {"qsub": submit, "bsub": submit, "qdel": cancel, "bkill": cancel, "pbsdsh": on_a_node, "blaunch": on_a_node, "qrsh": on_a_node}

if __name__ == "__main__":
    main()
