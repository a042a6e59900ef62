"""Plays in which hosts cannot probe each other are refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collection.ansible import Played, play

pytestmark = [
    pytest.mark.slow,
]

INVENTORY = """[kube_node]
one ansible_connection=local ansible_host=127.8.0.1
two ansible_connection=local ansible_host=127.8.0.2
"""
# A refusal ends a playbook: each play rescues itself, so that one run of Ansible shows them all.
PLAY = """
- hosts: all
  gather_facts: false
  {key}
  tasks:
    - block:
        - ansible.builtin.import_role: {{name: netprobe.preflight.gate}}
      rescue:
        - ansible.builtin.debug: {{msg: "{key} | {{{{ ansible_failed_result.msg }}}}"}}
"""
WAITING = "a host that is probed must listen before others probe it: use strategy linear"
SLICED = "hosts of different slices cannot probe each other: set the job template's slices to 1"
REFUSALS = {
    "serial: 1": "serial 1 takes the hosts in turns, and those of one turn cannot probe those of "
    "the next: leave serial out of this play",
    "strategy: free": f"strategy free lets hosts run ahead of each other, and {WAITING}",
    "strategy: host_pinned": f"strategy host_pinned lets hosts run ahead of each other, and "
    f"{WAITING}",
    "vars: {awx_job_slice_count: 3}": f"this job is one of 3 slices (awx_job_slice_count), and "
    f"{SLICED}",
    "vars: {netprobe_expect_hosts: 3}": "the play has 2 hosts, netprobe_expect_hosts says 3: a "
    "slice of the job template, or a limit, hides the others",
    "vars: {netprobe_command: /no/such}": "/no/such is not installed on the control node: install "
    "netprobe-matrix",
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One playbook with a play for every refusal."""
    home: Path = tmp_path_factory.mktemp("refused")
    (home / "hosts.ini").write_text(INVENTORY)
    (home / "own.yml").write_text("---" + "".join(PLAY.format(key=key) for key in REFUSALS))
    return play(home, "-i", "hosts.ini", "-e", "matrix=dce", playbook="own.yml", netprobe="")


@pytest.mark.parametrize("key", REFUSALS)
def test_a_play_without_lockstep_is_refused(key: str, played: Played) -> None:
    """The sentence says what is wrong and what to do."""
    assert f"{key} | {REFUSALS[key]}" in played.stdout, played.stdout + played.stderr


def test_nothing_was_asked_of_any_host(played: Played) -> None:
    """The refusal comes before the first step."""
    assert "Open listeners" not in played.stdout


def test_an_inventory_without_hosts_is_no_success(tmp_path: Path) -> None:
    """Ansible would pass over the play, and go on to the installation."""
    (tmp_path / "hosts.ini").write_text("")

    done = play(tmp_path, "-i", "hosts.ini", "-e", "matrix=dce", netprobe="")

    assert done.status != 0
    assert "NOTHING WAS TESTED: the inventory has no host of all" in done.stdout
