"""A rehearsal of a balancer that ends while a back end fails leaves nothing on the hosts."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.lab.balancers import HOSTS, HTTPS_CHECK, PORT, BalancedHosts, ServerWatch
from tests.lab.cli import COMMAND, environment
from tests.lab.killing import killed_run
from tests.lab.netlab import wait_for

pytestmark = [
    pytest.mark.lab, pytest.mark.slow, pytest.mark.full, pytest.mark.needs("haproxy"),
]  # fmt: skip

MOMENTS = 3

LISTINGS = (
    ("ip", "-d", "address"), ("ip", "rule"), ("ip", "route", "show", "table", "all"),
    ("ss", "-Hlntu"), ("nft", "list", "ruleset"),
    ("sysctl", "-a", "--pattern", "^net[.]"),
)  # fmt: skip


@pytest.fixture
def lab() -> Iterator[BalancedHosts]:
    with BalancedHosts() as made:
        yield made


def list_all(lab: BalancedHosts) -> dict[str, str]:
    return {
        f"{host}: {' '.join(words)}": lab[host].run(*words)
        for host in (*HOSTS, "client")
        for words in LISTINGS
    }


def is_failing(watch: ServerWatch) -> bool:
    """Whether a server is down that was up."""
    return any(seen[-2:] == ["UP", "DOWN"] for seen in [*watch.states.values()])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_stays(lab: BalancedHosts, number: signal.Signals) -> None:
    """Ctrl-C reports what is known and exits with 130; after SIGKILL, too, every port is closed,
    also that of the back end that fails, and no agent runs."""
    lab.start_haproxy(HTTPS_CHECK, options="check check-ssl verify none inter 1s fall 2 rise 2")
    lab.wait_until_down()
    before = list_all(lab)
    assert not any(f":{PORT}" in text for text in before.values())
    health = {"health": {PORT: {"https": "/readyz"}}}
    words = [*COMMAND, "run", "--rehearse=balancer", "--only", "api", "-o", "json"]
    running = subprocess.Popen(
        [*words, *lab.write_files(health)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(), text=True,
    )  # fmt: skip
    try:
        with ServerWatch(lab) as watch:
            wait_for(lambda: is_failing(watch), "a back end that fails", 60)
        assert any(f":{PORT}" in one for one in lab["cp1"].listening())
        running.send_signal(number)
        stdout, stderr = running.communicate(timeout=60)
    finally:
        running.kill()
    if number == signal.SIGINT:
        assert running.returncode == 130, stderr
        assert json.loads(stdout)["complete"] is False
    assert "Traceback" not in stderr
    wait_for(lambda: not any(lab[host].pids() for host in HOSTS), "the end of all agents")
    wait_for(lambda: list_all(lab) == before, "the hosts as they were")


@pytest.mark.parametrize("who", ["agents", "coordinator"])
def test_nothing_stays_after_kill_9(lab: BalancedHosts, who: str) -> None:
    """Whenever agents or coordinator are killed, from the first back end that is played until one
    has failed and come back. ``-p tests.repeat --repeat 9`` tries more moments."""
    lab.start_haproxy(HTTPS_CHECK, options="check check-ssl verify none inter 1s fall 2 rise 2")
    lab.wait_until_down()
    before = list_all(lab)
    health = {"health": {PORT: {"https": "/readyz"}}}
    words = [*COMMAND, "run", "--rehearse=balancer", "--only", "api", *lab.write_files(health)]
    hosts = [lab[host] for host in (*HOSTS, "client")]

    def is_played() -> bool:
        return any(f":{PORT}" in one for one in lab["cp1"].listening())

    for _ in range(MOMENTS):
        moment = random.uniform(0, 12)
        with killed_run(words, hosts, who, begins=is_played, moment_s=moment):
            pass
        wait_for(lambda: not any(host.pids() for host in hosts), "the end of all agents")
        wait_for(lambda: list_all(lab) == before, f"the hosts as they were, killed at {moment}")
