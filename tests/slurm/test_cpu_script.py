"""``configs/slurm-cpu.sbatch``: a scheduler and two workers in one allocation, preemption, failure."""

from __future__ import annotations

import pytest

from oocgraph.store.search_store import SearchStore
from tests.slurm import hold
from tests.slurm.cluster import poll
from tests.slurm.outcome import assert_right, output

pytestmark = pytest.mark.slurm

TWO_WORKERS = ("--nodes=2", "--mem=2500M")


def test_search_on_two_nodes_is_right_and_so_is_the_same_line_submitted_again(slurm, submit, folder, levels):
    """A worker on each node; the job ends with its search, and leaves no process that would hold its nodes.

    A job that goes back to the queue between its last line and its end writes the result again, too.
    """
    for _ in range(2):
        job = submit("slurm-cpu.sbatch", *TWO_WORKERS)
        ended = slurm.wait_ended(job)
        assert (ended["JobState"], ended["ExitCode"]) == ("COMPLETED", "0:0"), output(folder, job)
        assert_right(folder, levels)
        logs = [(folder / f"oocgraph-{job}.0" / f"worker-{task}.log").read_text() for task in range(2)]
        assert all("scheduler-close" in log for log in logs)


def test_failed_search_fails_the_job(slurm, submit, folder):
    """The exit code is the search's."""
    (folder / "levels.parquet").mkdir()
    job = submit("slurm-cpu.sbatch", *TWO_WORKERS)
    ended = slurm.wait_ended(job)
    assert (ended["JobState"], ended["ExitCode"]) == ("FAILED", "2:0"), output(folder, job)


def test_workers_that_all_end_fail_the_job_at_once(slurm, submit, folder):
    """A search without any worker is not waited for, although it would itself wait for minutes."""
    job = submit("slurm-cpu.sbatch", "--nodes=2", "--mem=0", env={"DASK_DISTRIBUTED__WORKER__PRELOAD": "['no-such-module']"})
    ended = slurm.wait_ended(job, timeout=60)
    assert (ended["JobState"], ended["ExitCode"]) == ("FAILED", "1:0"), output(folder, job)
    assert "every worker has ended" in output(folder, job)


def test_too_little_memory_fails_the_job_with_the_remedy(slurm, submit, folder):
    """A worker's share is told before anything is started."""
    job = submit("slurm-cpu.sbatch", "--nodes=1", "--mem=1200M")
    assert slurm.wait_ended(job)["ExitCode"] == "2:0"
    assert "a worker would have 176 MiB of the 1200 MiB on a node" in output(folder, job)


@pytest.mark.parametrize("partition", ["low", "grace"])
def test_preempted_search_goes_on_from_its_last_level(slurm, submit, folder, levels, tmp_path_factory, partition):
    """A job of higher priority takes the nodes in the middle of a step; the search starts again behind the steps it had logged.

    In partition ``grace`` Slurm tells the workers first and would requeue the job two minutes later.
    """
    steps = tmp_path_factory.mktemp("steps")
    (steps / "hold").touch()
    env = {"DASK_DISTRIBUTED__WORKER__PRELOAD": f"['{hold.__file__}']", "OOCGRAPH_TEST_HOLD": str(steps)}
    job = submit("slurm-cpu.sbatch", *TWO_WORKERS, f"--partition={partition}", env=env)
    poll(lambda: hold.HELD_STEP in hold.steps_taken(steps, start=0), 60, lambda: f"step {hold.HELD_STEP}; {output(folder, job)}")

    slurm.submit("--output=/dev/null", "--partition=high", "--nodes=2", "--exclusive", "--wrap=true")
    poll(lambda: slurm.job(job)["Restarts"] == "1", 60, lambda: f"the job to be requeued: {slurm.job(job)} {output(folder, job)}")
    assert slurm.wait_ended(job)["JobState"] == "COMPLETED", output(folder, job)
    (steps / "hold").unlink()
    assert_right(folder, levels)
    assert min(hold.steps_taken(steps, start=1)) == hold.HELD_STEP
    assert SearchStore.open(str(folder / "result.zarr")).fields["epoch"] == 1
