"""Plays over connections of other kinds: local, one that carries no input, and none at all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collection.ansible import play, settings
from tests.lab.netlab import Lab, Namespace
from tests.vantage.runtime.support import lean_host

pytestmark = [
    pytest.mark.slow,
]

MATRIX = ["--only", "kube-apiserver"]
# Three hosts that are one machine with three addresses; the firewall keeps one port of it shut.
HOSTS = """[master]
one ansible_host=10.94.0.1
two ansible_host=10.94.0.2
[worker]
three ansible_host=10.94.0.3
[all:vars]
ansible_connection={connection}
"""
RULES = """table inet lab { chain in { type filter hook input priority 0;
    ip daddr 10.94.0.1 tcp dport 6443 drop
}
}"""
# Nothing may go through its standard input, as with AWS SSM, and no Python is there.
NO_INPUT = """
import os
from ansible.errors import AnsibleError
from ansible.plugins.connection.local import DOCUMENTATION, Connection as Local

DOCUMENTATION = DOCUMENTATION.replace("name: local", "name: noinput")

class Connection(Local):
    transport = "noinput"
    has_pipelining = False

    def exec_command(self, cmd, in_data=None, sudoable=True):
        if in_data:
            raise AnsibleError("this connection carries no input")
        cmd = "env PATH=" + os.environ["LEAN_PATH"] + " " + cmd
        return super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
"""
# What one host prints of its results is changed on its way.
CHANGING = """
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
import ansible.plugins.connection as package

spec = spec_from_file_location("builtin_local", Path(package.__file__).with_name("local.py"))
local = module_from_spec(spec)
spec.loader.exec_module(local)
DOCUMENTATION = local.DOCUMENTATION

class Connection(local.Connection):
    def exec_command(self, cmd, in_data=None, sudoable=True):
        status, said, words = super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        if b"10.94.0.2" == self._play_context.remote_addr.encode():
            said = re.sub(rb"(?m)^(NPR1 2 [^ ]+ ...)(.)", rb"\\1~", said)
        return status, said, words
"""
BLOCKED = "BLOCKED: 2 blocked of 4 required flows, 1 finding"


@pytest.fixture(scope="module")
def machine() -> Iterator[tuple[Lab, Namespace]]:
    """A machine with three addresses and a firewall."""
    with Lab() as lab:
        host = lab.namespace("one")
        host.ip(*(f"address add 10.94.0.{n}/32 dev lo" for n in (1, 2, 3)))
        host.nft(RULES)
        yield lab, host


def _netprobe(machine: tuple[Lab, Namespace], *words: str) -> subprocess.CompletedProcess[str]:
    lab, host = machine
    return subprocess.run(
        [*host.enter, sys.executable, "-m", "netprobe", *words],
        cwd=lab.folder,
        env=settings(lab.folder),
        capture_output=True,
        text=True,
        check=False,
    )


def test_check_mode_sends_nothing_and_says_so(machine: tuple[Lab, Namespace]) -> None:
    """`--check` prints the plan's numbers; no host is asked anything, and the play passes."""
    lab, host = machine
    lab.write("hosts.ini", HOSTS.format(connection="local"))
    given = {"netprobe_options": MATRIX, "matrix": "openshift-host-ports"}
    done = play(lab.folder, "-i", "hosts.ini", "--check", variables=given, within=host.enter)

    assert done.status == 0, done.stdout + done.stderr
    assert "4 flows, about " in done.stdout
    assert "check mode: nothing was sent to any host" in done.stdout
    assert done.recap("three")["ok"] == 0
    assert not done.reports.exists()


@pytest.mark.full
def test_run_by_ansible_has_the_status_and_the_reports_of_run(
    machine: tuple[Lab, Namespace], tmp_path: Path
) -> None:
    """netprobe's own exit status, text on standard output, Ansible's words on standard error."""
    machine[0].write("hosts.ini", HOSTS.format(connection="local"))
    done = _netprobe(
        machine, "run", "--engine", "ansible", "-m", "openshift-host-ports", "-i", "hosts.ini",
        *MATRIX, "-o", "text", "-o", f"json={tmp_path}/out.json",
        "--record", f"{tmp_path}/run.jsonl",
    )  # fmt: skip

    assert done.returncode == 1, done.stderr
    assert BLOCKED in done.stdout
    assert "PLAY [Ask all hosts]" in done.stderr
    document = json.loads((tmp_path / "out.json").read_text())
    blocked = [one["source"] for one in document["results"] if one["verdict"] == "blocked"]
    assert sorted(blocked) == ["three", "two"]
    assert (tmp_path / "run.jsonl").stat().st_size


@pytest.mark.full
def test_one_hosts_changed_answers_are_that_hosts_failure(
    machine: tuple[Lab, Namespace], tmp_path: Path
) -> None:
    """The others are reported: one of the two blocked flows is another host's."""
    lab, host = machine
    lab.write("hosts.ini", HOSTS.format(connection="local"))
    (lab.folder / "changing").mkdir()
    lab.write("changing/local.py", CHANGING)
    words = ["-m", "openshift-host-ports", "-i", "hosts.ini", *MATRIX, "-o", "json"]
    done = subprocess.run(
        [*host.enter, sys.executable, "-m", "netprobe", "run", "--engine", "ansible", *words],
        cwd=lab.folder, capture_output=True, text=True, check=False,
        env={**settings(lab.folder), "ANSIBLE_CONNECTION_PLUGINS": str(lab.folder / "changing")},
    )  # fmt: skip

    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    words_of = {one["name"]: one["words"] for one in document["hosts"] if one["state"] == "failed"}
    assert list(words_of) == ["two"]
    assert "is not as the host wrote it" in words_of["two"]
    verdicts = {(one["source"], one["verdict"]) for one in document["results"]}
    assert verdicts >= {("three", "blocked"), ("two", "not-tested")}
    assert ("two", "blocked") not in verdicts


def test_a_folder_is_played_without_input_or_python_and_merged(
    machine: tuple[Lab, Namespace],
) -> None:
    """`bundle --folder`, the play, `merge`: the play reports nothing, and merge does.

    The connection carries no input: orders go ahead as a file, which is gone afterwards. The host
    has no Python: one is sent.
    """
    lab, host = machine
    lab.write("hosts.ini", HOSTS.format(connection="noinput"))
    (lab.folder / "plugins").mkdir()
    lab.write("plugins/noinput.py", NO_INPUT)
    more = {"ANSIBLE_CONNECTION_PLUGINS": str(lab.folder / "plugins")}
    more["ANSIBLE_REMOTE_TEMP"] = str(lab.folder / "remote")
    more["LEAN_PATH"] = str(lab.folder / "lean")
    lean_host(lab.folder / "lean")
    for name in ("cat", "mv", "sleep"):  # of an engine's commands, and of Ansible's own
        (lab.folder / "lean" / name).symlink_to(f"/bin/{name}")
    # netprobe's own inventory: it would take hosts of such a connection for mere destinations.
    names = {"one": ("10.94.0.1", "master"), "two": ("10.94.0.2", "master")}
    names["three"] = ("10.94.0.3", "worker")
    lab.write("own.yaml", json.dumps({
        "schema": "netprobe.inventory/1", "defaults": {"vantage": "local"},
        "hosts": {one: {"address": text, "roles": [role]} for one, (text, role) in names.items()},
    }))  # fmt: skip
    folder = str(lab.folder / "run")
    words = ["--folder", folder, "-m", "openshift-host-ports", "-i", "own.yaml", *MATRIX]
    words.append("--with-runtime")
    assert _netprobe(machine, "bundle", *words).returncode == 0
    given = {"netprobe_folder": folder, "netprobe_rounds": 1}

    done = play(lab.folder, "-i", "hosts.ini", variables=given, within=host.enter, environment=more)
    merged = _netprobe(machine, "merge", folder)

    assert done.status == 0, done.stdout + done.stderr
    assert "BLOCKED" not in done.stdout
    assert (merged.returncode, BLOCKED in merged.stdout) == (1, True), merged.stdout
    assert not [*(lab.folder / "remote").glob("*")]
