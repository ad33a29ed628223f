"""A throw-away Slurm cluster: real daemons, several virtual nodes on this one machine, all state in a folder of its own.

Nothing outside the folder is written, no fixed port is used and no daemon outlives the process that started it, so clusters neither
meet each other nor a Slurm that the machine may have. Needs root, because slurmd starts jobs for any user, and Debian's packages
``slurm-wlm`` and ``munge``. GPUs are device files that look like ``/dev/null``: they only make Slurm count them and set
CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.processes import PATIENCE_SECONDS, free_ports

PROGRAMS = {
    name: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in ("munged", "slurmctld", "slurmd", "sbatch", "setpriv")
}
GPUS_PER_NODE = 2

# cred_expire: a requeued job may start that many seconds later; 120 by default, at least 5.
_CONFIGURATION = """\
ClusterName=oocgraph
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/controller
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdSpoolDir={folder}/%n
SlurmdPidFile={folder}/%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
KillWait=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports}] CPUs=2 RealMemory=4000 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 MaxTime=60 DefMemPerCPU=1000 State=UP
PartitionName=grace Nodes=ALL PriorityTier=1 GraceTime=120 MaxTime=60 DefMemPerCPU=1000 State=UP
PartitionName=high Nodes=ALL PriorityTier=10 MaxTime=60 DefMemPerCPU=1000 State=UP
"""


class SlurmCluster:
    """A running cluster: its folder, and the environment in which Slurm's commands reach it.

    Parameters
    ----------
    folder
        Configuration, state and logs.
    """

    def __init__(self, folder):
        self.folder = folder
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}

    def command(self, *command, env=None, cwd=None):
        """Run one of Slurm's commands; return what it printed."""
        done = subprocess.run(
            [*map(str, command)],
            env={**os.environ, **self.environment, **(env or {})},
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, *arguments, env=None, cwd=None):
        """Submit a batch job with sbatch's arguments; return its id."""
        return self.command("sbatch", "--parsable", *arguments, env=env, cwd=cwd).strip()

    def job(self, job):
        """Return what Slurm knows about the job: names and values of ``scontrol show job``."""
        shown = self.command("scontrol", "--oneliner", "show", "job", job)
        return dict(word.split("=", 1) for word in shown.split() if "=" in word)

    def wait(self, job, *states, timeout=PATIENCE_SECONDS):
        """Return the job once it is in one of the states (``COMPLETED``, ``RUNNING``, ...)."""
        return poll(
            lambda: (known := self.job(job))["JobState"] in states and known, timeout, lambda: f"job {job} to be {states}: {self.job(job)}"
        )

    def wait_ended(self, job, timeout=PATIENCE_SECONDS):
        """Return the job once it is at its end, good or bad."""
        return self.wait(job, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", timeout=timeout)

    def cancel_all(self):
        """Cancel every job and wait until the nodes are empty."""
        self.command("scancel", "--user=root")
        poll(lambda: not self.command("squeue", "--noheader"), PATIENCE_SECONDS, lambda: f"jobs to end: {self.command('squeue')}")


def poll(condition, timeout, what):
    """Return the condition's first true value; after `timeout` seconds an error that says what was waited for."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited {timeout} s for {what()}")
        time.sleep(0.1)
    return value


def missing():
    """Return why no cluster can be started here, or None."""
    if os.geteuid() != 0:
        return "a throw-away Slurm cluster needs root"
    absent = [name for name, path in PROGRAMS.items() if path is None]
    return f"no {', '.join(absent)}: apt-get install slurm-wlm munge" if absent else None


@contextmanager
def slurm_cluster(nodes=2):
    """Yield a `SlurmCluster` whose nodes are idle; stop it and remove its folder afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="oocgraph-slurm-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        _configure(folder, nodes)
        cluster = SlurmCluster(folder)
        daemons = [_munge_command(folder), [PROGRAMS["slurmctld"], "-D", "-c"]]
        daemons += [[PROGRAMS["slurmd"], "-D", "-N", f"n{node}"] for node in range(1, nodes + 1)]
        for number, daemon in enumerate(daemons):
            stack.enter_context(_daemon(daemon, folder / f"daemon{number}.log", cluster.environment))
            if number == 0:
                poll((folder / "munge.socket").exists, PATIENCE_SECONDS, lambda: "munged")
        poll(lambda: _num_idle(cluster) == nodes, PATIENCE_SECONDS, lambda: f"{nodes} idle nodes; {_logs(folder)}")
        stack.callback(cluster.cancel_all)
        yield cluster


def _configure(folder, nodes):
    (folder / "controller").mkdir()
    for node in range(1, nodes + 1):
        (folder / f"n{node}").mkdir()
    for gpu in range(GPUS_PER_NODE):
        os.mknod(folder / f"gpu{gpu}", 0o20666, os.makedev(1, 3))
    (folder / "gres.conf").write_text(f"NodeName=n[1-{nodes}] Name=gpu File={folder}/gpu[0-{GPUS_PER_NODE - 1}]\n")
    (folder / "munge.key").write_bytes(secrets.token_bytes(1024))
    (folder / "munge.key").chmod(0o400)
    controller_port, *ports = free_ports(1 + nodes)
    text = _CONFIGURATION.format(
        host=socket.gethostname().split(".")[0],
        controller_port=controller_port,
        folder=folder,
        nodes=nodes,
        ports=",".join(map(str, ports)),
        gpus=GPUS_PER_NODE,
    )
    (folder / "slurm.conf").write_text(text)


def _munge_command(folder):
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    return [PROGRAMS["munged"], "--foreground", "--force", f"--socket={folder}/munge.socket", *files]


@contextmanager
def _daemon(command, log, environment):
    """Run a daemon in the foreground of a process of ours; it ends with us, even when we are killed."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [PROGRAMS["setpriv"], "--pdeathsig", "TERM", *command],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _num_idle(cluster):
    try:
        return cluster.command("sinfo", "--noheader", "--Node", "--format=%t", "--partition=low").split().count("idle")
    except RuntimeError:  # the controller does not answer yet
        return 0


def _logs(folder):
    return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-2000:]}" for log in sorted(folder.glob("daemon*.log")))
