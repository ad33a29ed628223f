"""What a batch script makes of its job's nodes, folder and environment, with stand-ins for ``dask`` and ``oocgraph``."""

from __future__ import annotations

import pytest

from tests.schedulers.conftest import output
from tests.schedulers.programs import MKDIR, NO_MKDIR, Programs
from tests.schedulers.test_batch_scripts import ONE_SYSTEM, SCRIPTS

GPU_SCRIPTS = {"pbs": "pbs-gpu.pbs", "lsf": "lsf-gpu.bsub", "sge": "sge-cpu.sge"}


@pytest.fixture
def programs(tmp_path):
    """Programs that jobs find instead of ``dask`` and ``oocgraph``."""
    folder = tmp_path / "programs"
    folder.mkdir()
    return Programs(folder)


@pytest.mark.parametrize(
    ("stubs", "options", "threads"),
    [
        ("pbs", "-l select=1:ncpus=2:mpiprocs=2:mem=2gb", "2"),
        ("pbs", "-l select=2:ncpus=2:mem=2gb -l place=pack", "2"),
        ("sge", "-pe mpi 2 -q all.q,long.q", "2"),
    ],
    indirect=["stubs"],
)
def test_node_that_is_listed_again_has_one_worker(stubs, submit, folder, programs, options, threads):
    """Memory of a node is promised once; slots of Grid Engine's queues are added up, CPUs of PBS are those of a chunk."""
    job = submit(SCRIPTS[stubs.system], options, **programs.variables())
    assert stubs.code(job) == 0, output(folder, job)
    assert programs.given("--memory-limit") == ["1024MiB"]
    assert programs.given("--nthreads") == [threads]


@pytest.mark.parametrize("stubs", ["pbs"], indirect=True)
def test_nodes_after_one_that_is_listed_again_have_their_own_number(stubs, submit, folder, programs):
    """``pbsdsh -n`` counts lines of the node file."""
    job = submit(SCRIPTS[stubs.system], "-l select=2:ncpus=2:mpiprocs=2:mem=2gb", **programs.variables())
    assert stubs.code(job) == 0, output(folder, job)
    assert sorted(call[2] for call in stubs.calls if call[0] == "pbsdsh") == ["0", "2"]


def test_script_for_gpus_starts_one_command_on_a_node(stubs, submit, folder, programs):
    """``dask cuda worker`` starts a worker for each GPU, with its share of the memory."""
    job = submit(GPU_SCRIPTS[stubs.system], GPUS=1, **programs.variables())
    assert stubs.code(job) == 0, output(folder, job)
    assert programs.given("--memory-limit") == ["1024MiB"] * 2


@ONE_SYSTEM
@pytest.mark.parametrize("code", [0, 3])
def test_only_the_user_reads_what_workers_get_and_only_while_the_job_runs(stubs, submit, folder, programs, code):
    """The file holds the whole environment, secrets and all.

    A job that fails ends after its workers, which their scheduler tells to end.
    """
    job = submit(SCRIPTS[stubs.system], **programs.variables(code, SECRET="hunter2"))
    assert stubs.code(job) == code, output(folder, job)
    assert programs.recorded("modes") == [["700", "600"]] * 2
    assert all("SECRET=hunter2" in lines for lines in programs.recorded("environment"))
    run = folder / f"oocgraph-{job}.0"
    assert not (run / "worker.sh").exists()
    assert list(run.glob("worker-*.log"))
    assert code == 0 or len(list(programs.record.glob("*.ended"))) == 2


@pytest.mark.parametrize(("stubs", "options"), [("lsf", "-n 1 -J 'oocgraph[7]'"), ("sge", "-pe mpi 2 -t 7")], indirect=["stubs"])
def test_element_of_a_job_array_has_a_folder_of_its_own(stubs, submit, folder, programs, options):
    """All elements have the same number of a job; PBS and Slurm tell them apart by it."""
    job = submit(SCRIPTS[stubs.system], options, **programs.variables())
    assert stubs.code(job) == 0, output(folder, job)
    assert [path.name for path in folder.glob(f"oocgraph-{job}*.0")] == [f"oocgraph-{job}-7.0"]


@ONE_SYSTEM
def test_folder_that_another_job_creates_first_is_left_to_it(stubs, submit, folder, programs):
    """In the moment between a look for a free name and its use."""
    programs.add("mkdir", MKDIR)
    job = submit(SCRIPTS[stubs.system], **programs.variables())
    assert stubs.code(job) == 0, output(folder, job)
    assert list((folder / f"oocgraph-{job}.0").iterdir()) == []
    assert (folder / f"oocgraph-{job}.1" / "scheduler.log").exists()


@ONE_SYSTEM
def test_folder_that_cannot_be_created_fails_the_job(stubs, submit, folder, programs):
    """With the reason, and without another try."""
    programs.add("mkdir", NO_MKDIR)
    job = submit(SCRIPTS[stubs.system], **programs.variables())
    assert stubs.code(job) == 2
    assert output(folder, job).count("No space left on device") == 1


@ONE_SYSTEM
def test_relative_paths_reach_workers_that_start_elsewhere(stubs, submit, folder, programs):
    """In ``DASK_CONFIG``, ``PYTHONPATH`` and ``PATH``."""
    (folder / "my.yaml").write_text("{}")
    path = f"bin:{programs.folder}:/usr/bin:/bin"
    job = submit(SCRIPTS[stubs.system], **programs.variables(DASK_CONFIG="my.yaml", PYTHONPATH="lib:/opt/lib:") | {"PATH": path})
    assert stubs.code(job) == 0, output(folder, job)
    for lines in programs.recorded("environment"):
        found = dict(line.split("=", 1) for line in lines if "=" in line)
        assert found["DASK_CONFIG"] == f"{folder}/my.yaml"
        assert found["PYTHONPATH"] == f"{folder}/lib:/opt/lib:{folder}/"
        assert f":{folder}/bin:{programs.folder}:" in f":{found['PATH']}"


def test_job_of_a_failed_search_ends_after_its_workers(stubs, submit, folder, programs):
    """They still look for a scheduler, and are ended by a signal."""
    job = submit(SCRIPTS[stubs.system], **programs.variables(3, STUBBORN="yes"))
    assert stubs.code(job) == 3, output(folder, job)
    assert len(list(programs.record.glob("*.ended"))) == 2
