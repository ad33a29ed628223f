"""Batch scripts for PBS, LSF and Grid Engine: a scheduler and two workers in one job, and how it ends."""

from __future__ import annotations

import re

import pytest

from tests.schedulers.conftest import CONFIGS, output
from tests.slurm.outcome import assert_right

SCRIPTS = {"pbs": "pbs-cpu.pbs", "lsf": "lsf-cpu.bsub", "sge": "sge-cpu.sge"}

ASKED = {
    "pbs": [("-N", "oocgraph"), ("-l", "select=2:ncpus=8:mem=32gb"), ("-l", "place=scatter"), ("-l", "walltime=01:00:00"), ("-r", "y")],
    "lsf": [("-J", "oocgraph"), ("-n", "16"), ("-R", "span[ptile=8]"), ("-R", "rusage[mem=32GB]"), ("-W", "01:00"), ("-r", None)],
    "sge": [("-N", "oocgraph"), ("-pe", "mpi 16"), ("-l", "h_vmem=4G"), ("-l", "h_rt=01:00:00"), ("-r", "y"), ("-cwd", None)],
}
"""Two nodes of 8 CPUs and 32 GB for an hour, in a job that may run again."""

ONE_SYSTEM = pytest.mark.parametrize("stubs", ["pbs"], indirect=True)
"""What `batch.sh` does, for all of them alike."""

NAMES = {"GRAPH": "my graph.zarr", "RESULT": "result.zarr", "OUT": "levels.parquet"}

LAUNCHERS = {"pbs": "pbsdsh", "lsf": "blaunch", "sge": "qrsh"}


@pytest.mark.parametrize("stubs", ["lsf", "sge"], indirect=True)
def test_search_on_two_nodes_is_right(stubs, submit, folder, graph, levels):
    """A worker on each node, with a name that its log has; everything that they share lies beside the script."""
    check_search(stubs, submit, folder, graph, levels)


@ONE_SYSTEM
def test_the_next_start_of_a_job_goes_on_where_its_result_is(stubs, submit, folder, graph, levels):
    """The first is right, as those of other systems. The next is only written again, in place of what it wrote; logs of both stay."""
    (folder / "oocgraph-1.0").mkdir()
    check_search(stubs, submit, folder, graph, levels, start=1)
    launched = [call for call in stubs.calls if call[0] == LAUNCHERS["pbs"]]
    assert sorted(call[2] for call in launched) == ["0", "1"]
    assert sorted(path.name for path in folder.glob("oocgraph-1.*")) == ["oocgraph-1.0", "oocgraph-1.1"]

    written = (folder / "result.zarr" / "zarr.json").read_bytes()
    before = (folder / "levels.parquet").stat().st_ino
    job = submit(SCRIPTS["pbs"], **NAMES)
    assert stubs.code(job) == 0, output(folder, job)
    assert (folder / "levels.parquet").stat().st_ino != before
    assert (folder / "result.zarr" / "zarr.json").read_bytes() == written
    assert_right(folder, levels)


def check_search(stubs, submit, folder, graph, levels, *, start=0):
    """Submit a search with relative names, in a folder with spaces: workers start in another one, and no shell may split a name."""
    (folder / NAMES["GRAPH"]).symlink_to(graph.url)
    job = submit(SCRIPTS[stubs.system], **NAMES)
    assert stubs.code(job) == 0, output(folder, job)
    assert_right(folder, levels)

    run = folder / f"oocgraph-{job}.{start}"
    names = sorted(path.stem.removeprefix("worker-") for path in run.glob("worker-*.log"))
    assert len(names) == 2
    registered = re.findall(r"Register worker addr: \S+ name: (\S+)", (run / "scheduler.log").read_text())
    assert sorted(registered) == names
    assert (folder / "result.zarr" / "zarr.json").exists()
    assert set(ASKED[stubs.system]) <= set(stubs.submitted(job))
    launched = [call for call in stubs.calls if call[0] == LAUNCHERS[stubs.system]]
    assert [call[-3:-1] for call in launched] == [["/bin/bash", f"{run}/worker.sh"]] * 2


@ONE_SYSTEM
def test_a_job_that_begins_replaces_no_file(stubs, submit, folder):
    """It may be of another search: only one that goes on where its result is replaces what it has written.

    The exit code is the search's.
    """
    (folder / "levels.parquet").write_text("another's")
    job = submit(SCRIPTS[stubs.system])
    assert stubs.code(job) == 2, output(folder, job)
    assert "levels.parquet: exists already" in output(folder, job)
    assert (folder / "levels.parquet").read_text() == "another's"


@ONE_SYSTEM
def test_workers_that_all_end_fail_the_job_at_once(stubs, submit, folder):
    """A search without any worker is not waited for, although it would itself wait for minutes."""
    job = submit(SCRIPTS[stubs.system], DASK_DISTRIBUTED__WORKER__PRELOAD="['no-such-module']")
    assert stubs.code(job) == 1, output(folder, job)
    assert "every worker has ended" in output(folder, job)


@ONE_SYSTEM
@pytest.mark.parametrize(
    ("variables", "words"),
    [({"MEMORY_GIB": 1}, "a worker would have 0 MiB of the 1 GiB on a node"), ({"DASK_CONFIG": "/no/such.yaml"}, "no /no/such.yaml")],
)
def test_what_cannot_work_fails_the_job_before_anything_is_started(stubs, submit, folder, variables, words):
    """With the remedy, and exit code 2."""
    job = submit(SCRIPTS[stubs.system], **variables)
    assert stubs.code(job) == 2
    assert words in output(folder, job)
    assert not list(folder.glob("oocgraph-*/scheduler.json"))


def test_settings_are_those_of_the_script():
    """Each script has a file of its name, and shows how to submit it as the README does."""
    readme = (CONFIGS / "README.md").read_text().splitlines()
    for name in SCRIPTS.values():
        path = CONFIGS / name
        assert f"settings={path.stem}.yaml" in path.read_text()
        assert path.with_suffix(".yaml").exists()
        (command,) = [line for line in readme if line.startswith(("qsub -v GRAPH", "bsub")) and line.endswith(f" {name}")]
        assert f"#     {command}\n" in path.read_text()
