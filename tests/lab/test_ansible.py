"""The collection against real machines: the blocked set of `run`, and every way a host is lost."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collection.ansible import BESIDE, Played, find_ansible, play, settings
from tests.collection.estate import MATRIX, ONLY, Estate, Lost, build, lost_flows
from tests.lab.cli import COMMAND, Finished
from tests.lab.netlab import Lab, wait_for
from tests.needs import skip
from tests.sudoers import write_rules

pytestmark = [
    # Its play takes two minutes; tests/lab/test_ansible_local.py always runs one.
    pytest.mark.full,
    pytest.mark.slow,
    # sshd becomes another user, too.
    pytest.mark.needs("new users", "sshd", "sudo", "useradd"),
]

USER = f"npplay{os.getpid()}"
PASSWORD = "correct horse ' battery $taple"
# Where the release of the distribution is.
SYSTEM = Path("/usr/bin")
RULES = Path(f"/etc/sudoers.d/{USER}")
GHOST = "10.92.1.250"


@pytest.fixture(scope="module")
def estate() -> Iterator[Estate]:
    """Five machines, one of which is entered by a user with sudo, and one that does not exist."""
    subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/sh", USER], check=True)
    subprocess.run(["chpasswd"], input=f"{USER}:{PASSWORD}\n", text=True, check=True)
    write_rules(RULES, f"{USER} ALL=(ALL) ALL\n")
    with Lab() as lab:
        made = build(lab, 5)
        made.lab.folder.chmod(0o755)  # sshd reads the key as the user
        (made.lab.folder / "identity.pub").chmod(0o644)
        made.inventory(f"ghost ansible_host={GHOST}")
        text = (made.lab.folder / "hosts.ini").read_text()
        sudo = f"ansible_user={USER} ansible_become=true"
        text = text.replace("host-4 ", f"host-4 {sudo} ")
        made.lab.write("hosts.ini", text)
        yield made
    RULES.unlink()
    subprocess.run(["userdel", USER], check=True)


@pytest.fixture(scope="module")
def lost(estate: Estate) -> set[Lost]:
    """What the firewall drops: the truth."""
    return estate.drop(4, seed=15)


@pytest.fixture(scope="module")
def live(estate: Estate, lost: set[Lost]) -> Finished:
    """A live run of the same inventory."""
    assert lost
    os.environ["NETPROBE_BECOME_PASSWORD"] = PASSWORD
    try:
        return estate.run_live(*(word for one in ONLY for word in ("--only", one)))
    finally:
        del os.environ["NETPROBE_BECOME_PASSWORD"]


@pytest.fixture(scope="module")
def played(estate: Estate, lost: set[Lost]) -> Played:
    """The playbook of the collection, with the password as Ansible knows it."""
    assert lost
    return _play(estate)


def _play(estate: Estate, **more: object) -> Played:
    given = {
        "ansible_become_password": PASSWORD,
        "matrix": MATRIX,
        "netprobe_options": [word for one in ONLY for word in ("--only", one)],
        **more,
    }
    return play(estate.lab.folder, "-i", "hosts.ini", variables=given, within=estate.admin)


def _among_hosts(flows: set[Lost]) -> set[Lost]:
    """Leave out what goes to the machine that does not exist."""
    return {flow for flow in flows if flow.destination != "ghost"}


def test_the_play_finds_what_run_finds(played: Played, live: Finished, lost: set[Lost]) -> None:
    """The same flows are blocked, which are those that the firewall drops; all others pass."""
    passed = lost_flows(live.results, "pass")
    assert _among_hosts(lost_flows(live.results)) == lost
    assert _among_hosts(lost_flows(played.results)) == lost
    assert lost_flows(played.results, "pass") == passed
    assert len(passed) > 50


def test_the_play_fails_with_the_first_line(played: Played) -> None:
    """Ansible's own status, and the report's first line as its message."""
    report = (played.reports / "netprobe.txt").read_text()
    assert played.status == 2
    assert report.startswith("SELECTION: ")
    assert f'"msg": "{report.splitlines()[0]}"' in played.stdout


def test_the_reports_lie_on_the_control_node(played: Played) -> None:
    """Text, JSON and JUnit."""
    names = {path.name for path in played.reports.iterdir()}
    assert names == {"netprobe.txt", "netprobe.json", "netprobe-junit.xml"}
    assert "<failure" in (played.reports / "netprobe-junit.xml").read_text()


def test_an_unreachable_host_is_only_its_own_loss(played: Played) -> None:
    """Its flows are not tested, with ssh's words, and the play goes on without it."""
    of_ghost = [one for one in played.results if one["source"] == "ghost"]
    assert {one["verdict"] for one in of_ghost} == {"not-tested"}
    assert "unreachable" in of_ghost[0]["because"]
    assert played.recap("ghost")["ignored"] == 1
    assert played.recap("ghost")["unreachable"] == 0


def test_results_stay_out_of_callbacks(played: Played) -> None:
    """Ansible prints, and AWX would keep, some numbers of a host and no answers."""
    head, _, _ = played.stdout.partition("TASK [netprobe.preflight.gate : Report]")
    assert len(head) < 10_000


def test_sudo_with_a_password_makes_the_agent_root(played: Played) -> None:
    """The user's host is probed as root, as the others are."""
    hosts = {one["name"]: one for one in played.document["hosts"]}
    assert [hosts[name]["privileged"] for name in ("host-0", "host-4")] == [True, True]


@pytest.mark.full
@pytest.mark.parametrize("folder", [BESIDE, SYSTEM], ids=["locked", "system"])
def test_run_brings_the_sudo_password_to_every_release(estate: Estate, folder: Path) -> None:
    """Also to 2.14, Debian 12's, which finds no file that is a pipe. Hosts are probed as root."""
    if find_ansible(folder=folder) is None:
        skip(
            f"no ansible-playbook in {folder}", "`make lab-packages` as root (Debian: ansible-core)"
        )
    environment = settings(estate.lab.folder, folder) | {"NETPROBE_BECOME_PASSWORD": PASSWORD}
    words = ["--engine", "ansible", "-m", MATRIX, "-i", "hosts.ini", "-o", "json"]
    words += ["--only", ONLY[0], "--from", "host-0", "--to", "host-4"]
    done = subprocess.run(
        [*estate.admin, *COMMAND, "run", *words],
        cwd=estate.lab.folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode in (0, 1, 3), done.stderr
    hosts = {one["name"]: one for one in json.loads(done.stdout)["hosts"]}
    assert [hosts[name]["privileged"] for name in ("host-0", "host-4")] == [True, True], done.stderr
    assert PASSWORD not in done.stdout + done.stderr


def _find_runs(played: Played) -> set[str]:
    return set(re.findall("netprobe: run ([0-9a-f]{16}), round 1", played.stdout))


def test_nothing_is_left_on_any_host(estate: Estate, played: Played) -> None:
    """No process, no listener and no folder of ours outlives the play."""
    assert played.status == 2
    for name, address in estate.hosts.items():
        assert estate.lab[name].listening() == {f"tcp {address}:22"}
    (run,) = _find_runs(played)
    places = (Path("/run"), Path("/dev/shm"), Path("/tmp"), Path.home())
    assert not [path for place in places for path in place.glob(f"*{run}*")]


@pytest.mark.full
def test_a_host_that_dies_on_the_way_is_only_its_own_loss(estate: Estate) -> None:
    """sshd and all that it started are gone after the listeners opened: the play goes on."""
    host = estate.lab["host-4"]
    address = estate.hosts["host-4"]
    played: list[Played] = []
    work = threading.Thread(target=lambda: played.append(_play(estate, netprobe_rounds=1)))
    work.start()
    wait_for(lambda: len(host.listening()) > 2 or not work.is_alive(), "listeners of host-4")
    for pid in host.pids():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    work.join()

    (done,) = played
    for run in _find_runs(done):  # a dead machine's memory is empty
        shutil.rmtree(f"/run/netprobe-{run}-h4", ignore_errors=True)
    verdicts = {one["verdict"] for one in done.results if one["source"] == "host-4"}
    assert verdicts == {"not-tested"}
    assert {one["verdict"] for one in done.results if one["source"] == "host-0"} >= {"pass"}
    assert address not in str(lost_flows(done.results))
