"""What a new user meets: help that is whole, kernels compiled beforehand, estimates."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from oocgraph.cli import COMMANDS, cli
from oocgraph.commands import first_use
from oocgraph.compiled import announce
from oocgraph.kernels import cached


def call(*arguments):
    return CliRunner().invoke(cli, [str(one) for one in arguments])


@pytest.mark.parametrize("group", [(), ("generate",), ("bench",)])
def test_lists_of_commands_are_not_cut_off(group):
    said = call(*group, "--help")
    assert said.exit_code == 0
    assert "..." not in said.stdout.partition("Commands:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_and_so_has_every_option(name):
    command = cli.get_command(None, name)
    assert command.help
    assert [one.name for one in command.params if one.param_type_name == "option" and not one.help] == []


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """Return a folder that is taken for that of the compiled kernels."""
    monkeypatch.setattr(cached, "kernel_folder", lambda: tmp_path)
    monkeypatch.setattr(announce.logger, "level", announce.logger.level)
    return tmp_path


def test_kernels_are_compiled_beforehand_once(empty_cache, monkeypatch):
    used = []
    monkeypatch.setattr(first_use, "use_everything", lambda folder, progress: used.append(folder))
    cold = call("warm", "--check", "--json")
    assert (cold.exit_code, json.loads(cold.stdout)["warm"], used) == (1, False, [])
    for _ in range(2):
        done = call("warm", "--json")
        assert (done.exit_code, json.loads(done.stdout)["warm"], len(used)) == (0, True, 1)
    assert json.loads(done.stdout)["folder"] == str(empty_cache)
    assert not used[0].exists()
    assert call("warm", "--check").exit_code == 0


def test_kernels_of_another_version_are_compiled_again(empty_cache):
    cached.mark_as_warm()
    assert cached.is_warm()
    (empty_cache / cached.MARK).write_text("of another version")
    assert not cached.is_warm()


def test_an_estimate_names_what_is_missing(kron):
    found = call("estimate", kron, "--memory", "1M", "--json")
    fields = json.loads(found.stdout)
    assert "store_bytes" not in fields
    assert fields["shortages"] == [fields["shortages"][0]]
    assert "a search does not fit in memory" in fields["shortages"][0]
    assert "a search does not fit in memory" in call("estimate", kron, "--memory", "1M").stdout


def test_an_estimate_of_an_edge_list(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n1,2\n2,3\n")
    fields = json.loads(call("estimate", tmp_path / "e.csv", "--json").stdout)
    assert (fields["num_edges"], fields["num_vertices"], fields["is_exact"]) == (2, 3, True)
    assert fields["store_bytes"] > 0
