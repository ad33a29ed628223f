"""Settings: defaults, overrides by environment and code, and refusals."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import dask.config
import pytest

from oocgraph.config import _dask_folders, num_cores, settings
from oocgraph.errors import OocGraphError


def test_defaults_are_those_of_the_packaged_file():
    """Nothing configured: GAPBS's thresholds, one thread per core, no budget."""
    found = settings()
    assert (found.alpha, found.beta, found.io_threads, found.threads, found.memory_budget) == (15, 18, 32, num_cores(), None)
    assert (found.device, found.device_memory_budget) == ("auto", None)
    assert (found.worker_timeout, found.steps_ahead, found.steps_per_task, found.exchange) == (30, 8, None, "auto")
    assert found.take_over == 1.0
    assert (found.result_folder, found.dashboard_address) == (None, None)
    assert (found.silent_worker_timeout, found.redeal_shares) == (60, "auto")


@pytest.mark.parametrize("key", ["oocgraph.io-threads", "oocgraph.io_threads"])
def test_code_overrides_a_default(key):
    """Both spellings that Dask allows reach the setting."""
    with dask.config.set({key: 3}):
        assert settings().io_threads == 3
    assert settings().io_threads == 32


@pytest.mark.parametrize("value", ["off", False])
def test_off_is_what_yaml_reads_as_false(value):
    """In a file it may be written without quotes."""
    with dask.config.set({"oocgraph.redeal-shares": value}):
        assert settings().redeal_shares == "off"


def test_first_use_within_an_override():
    """The override ends with its context; the defaults stay, although Dask takes all of the key away that was not there before."""
    code = """if True:
        import dask
        from oocgraph.config import settings
        with dask.config.set({"oocgraph.io-threads": 3}):
            print(settings().io_threads)
        print(settings().io_threads)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "32"]


def test_a_file_overrides_a_default(tmp_path):
    """A file in a folder where Dask looks, named by a variable, is found although nothing else imports Dask."""
    (tmp_path / "mine.yaml").write_text("oocgraph:\n  io-threads: 7\n")
    code = "from oocgraph.config import settings; print(settings().io_threads)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "DASK_CONFIG": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["7"]


def test_a_file_that_is_no_yaml_is_named(tmp_path):
    """In one sentence that says what to do, not in a traceback of Dask's."""
    (tmp_path / "mine.yaml").write_text("oocgraph: [broken\n")
    code = "from oocgraph.config import settings; settings()"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "DASK_CONFIG": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("oocgraph.errors.ArgumentError: Dask's configuration cannot be read; mend the file: ")
    assert str(tmp_path / "mine.yaml") in last


@pytest.mark.parametrize("text", ["oocgraph:\n  # io-threads: 3\n", "oocgraph: 5\n"])
def test_a_section_without_settings_is_a_section_and_a_number_is_none(tmp_path, text):
    (tmp_path / "mine.yaml").write_text(text)
    code = "from oocgraph.config import settings; print(settings().io_threads)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "DASK_CONFIG": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    if "#" in text:
        assert done.stdout.split() == ["32"], done.stderr
    else:
        assert "ArgumentError: oocgraph is 5 in Dask's configuration; it must be a mapping" in done.stderr.strip().splitlines()[-1]


def test_files_are_looked_for_where_dask_looks(monkeypatch, tmp_path):
    """The folders are Dask's own; a file that does not name the package says nothing about it."""
    monkeypatch.setenv("DASK_CONFIG", str(tmp_path))
    assert set(map(str, _dask_folders())) == set(dask.config._get_paths())


def test_code_overrides_a_default_once_dask_is_imported():
    """Settings that were read before Dask was there are read again."""
    code = """if True:
        import sys
        from oocgraph.config import settings
        print("dask" in sys.modules, settings().io_threads)
        import dask
        dask.config.set({"oocgraph.io-threads": 3})
        print(settings().io_threads, settings().alpha)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "32", "3", "15.0"]


def test_environment_overrides_a_default():
    """DASK_OOCGRAPH__... is read at first use."""
    code = "from oocgraph.config import settings; s = settings(); print(s.io_threads, s.memory_budget)"
    env = {**os.environ, "DASK_OOCGRAPH__IO_THREADS": "5", "DASK_OOCGRAPH__MEMORY_BUDGET": "2G"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["5", "2G"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"oocgraph.io-threads": 0}, "io-threads is 0"),
        ({"oocgraph.threads": "two"}, "threads is 'two'"),
        ({"oocgraph.threads": True}, "threads is True"),
        ({"oocgraph.device": "gpu"}, "device is 'gpu'; it must be one of auto, cpu, cuda"),
        ({"oocgraph.device": None}, "device is None"),
        ({"oocgraph.device-memory-budget": 0}, "device-memory-budget is 0; it must be a size such as 4G"),
        ({"oocgraph.memory-budget": "lots"}, "memory-budget is 'lots'; it must be a size such as 4G"),
        ({"oocgraph.device-memory-budget": ""}, "device-memory-budget is ''"),
        ({"oocgraph.device-memory-budget": True}, "device-memory-budget is True"),
        ({"oocgraph.alpha": -1}, "alpha is -1"),
        ({"oocgraph.worker-timeout": 0}, "worker-timeout is 0; it must be a duration"),
        ({"oocgraph.worker-timeout": "soon"}, "worker-timeout is 'soon'"),
        ({"oocgraph.worker-timeout": None}, "worker-timeout is None"),
        ({"oocgraph.worker-timeout": True}, "worker-timeout is True"),
        ({"oocgraph.worker-timeout": "inf s"}, "worker-timeout is 'inf s'"),
        ({"oocgraph.steps-ahead": 0}, "steps-ahead is 0"),
        ({"oocgraph.steps-per-task": 0}, "steps-per-task is 0"),
        ({"oocgraph.exchange": "shared"}, "exchange is .shared."),
        ({"oocgraph.take-over": 1.5}, "take-over is 1.5; it must be a number from 0 to 1"),
        ({"oocgraph.redeal-shares": "always"}, "redeal-shares is 'always'; it must be one of auto, off"),
        ({"oocgraph.redeal-shares": True}, "redeal-shares is True"),
        ({"oocgraph.result-folder": 3}, "result-folder is 3"),
        ({"oocgraph.result-folder": ""}, "result-folder is ''"),
        ({"oocgraph.dashboard-address": 8787}, "dashboard-address is 8787"),
        ({"oocgraph.alhpa": 3}, "oocgraph.alhpa is not a setting; known are alpha, beta, checkpoint-every, chunk-items"),
    ],
)
def test_wrong_setting_is_refused_by_name(changes, words):
    """The message names the key and the value."""
    with dask.config.set(changes), pytest.raises(OocGraphError, match=words):
        settings()


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("2 minutes", 120), ("500ms", 0.5), (7, 7), (0.25, 0.25)])
def test_timeout_is_a_duration(text, seconds):
    """Texts as Dask writes durations, or seconds."""
    with dask.config.set({"oocgraph.worker-timeout": text}):
        assert settings().worker_timeout == seconds


def test_settings_travel_to_workers():
    """Settings survive pickling: the client reads them and sends them with the work."""
    assert pickle.loads(pickle.dumps(settings())) == settings()
