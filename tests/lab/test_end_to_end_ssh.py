"""The main job as an installer does it: over ssh, through a jump host, against live services."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cli import COMMAND, Finished, environment, netprobe
from tests.lab.netlab import Lab, wait_for
from tests.lab.services import (
    client_config,
    start_dns,
    start_https,
    start_ntp,
    start_sshd,
)
from tests.needs import require

OUTSIDE = ["external-dns", "external-ntp", "external-registry"]
ROLES = {
    "master-0": ["master"],
    "worker-0": ["node"],
    "worker-1": ["node", *OUTSIDE],
    "services": OUTSIDE,
}
BEHIND = ("master-0", "worker-0", "worker-1")
ADDRESSES = {
    "admin": "10.91.0.10",
    "jump": "10.91.0.11",
    "master-0": "10.91.1.10",
    "worker-0": "10.91.1.11",
    "worker-1": "10.91.1.12",
    "services": "10.91.2.10",
}
# What an installer meets: from outside only the jump host can be reached, and by it the rest.
RULES = f"""
table inet lab {{
    chain forward {{
        type filter hook forward priority 0;
        ip saddr {ADDRESSES["admin"]} ip daddr != {ADDRESSES["jump"]} drop
        ip saddr {ADDRESSES["worker-0"]} ip daddr {ADDRESSES["master-0"]} tcp dport 6443 drop
        ip saddr {ADDRESSES["worker-0"]} ip daddr {ADDRESSES["services"]} udp dport 123 drop
        ip saddr {ADDRESSES["worker-0"]} ip daddr {ADDRESSES["worker-1"]} udp dport 53 drop
    }}
}}
"""
UNREACHABLE = "10.91.1.99"
# Sooner than the 30 s after which an agent that hears nothing gives up.
GONE_S = 25.0


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Three machines with sshd behind a jump host, and services with and without an agent."""
    # sshd becomes another user.
    require("other users", "sshd", "dnsmasq", "chronyd", "openssl")
    with Lab() as made:
        router = made.router("fw", "10.91.0.1")
        for name, address in ADDRESSES.items():
            made.host(name, router, address)
        router.nft(RULES)
        for name in ("jump", *BEHIND):
            start_sshd(made, made[name], banner="Authorised use only.\n")
        for name in ("services", "worker-1"):
            start_dns(made[name], {"api.lab.test": ADDRESSES["master-0"]})
            start_ntp(made, made[name])
            start_https(made, made[name])
        client_config(made, made["jump"], [made[name] for name in BEHIND])
        _write_inventory(made)
        yield made


def _over_ssh(lab: Lab, *names: str) -> dict[str, dict[str, object]]:
    options = ["-F", str(lab.folder / "ssh_config")]
    return {
        name: {
            "vantage": "ssh",
            "ssh": {"host": ADDRESSES[name], "user": "root", "options": options},
        }
        for name in names
    }


def _write_inventory(lab: Lab) -> None:
    lab.inventory(
        ROLES,
        settings={"modules": ["metallb"]},
        without_agent=["services"],
        overrides=_over_ssh(lab, *BEHIND),
    )


def _words(lab: Lab) -> list[str]:
    return ["--matrix", "deckhouse-nodes", "-i", str(lab.folder / "inventory.yaml")]


@pytest.fixture(scope="module")
def run(lab: Lab) -> Finished:
    """One run from the administrator's machine, which reaches the jump host and nothing else."""
    return netprobe("run", *_words(lab), "-o", "json", within=lab["admin"].enter)


def _pick(run: Finished, **wanted: object) -> list[dict[str, Any]]:
    return [r for r in run.results if all(r[key] == value for key, value in wanted.items())]


def test_exactly_the_dropped_flows_are_blocked(run: Finished) -> None:
    """One flow between hosts with agents is dropped, one to a service with an agent, and one to a
    time server without, which answers others."""
    blocked = {
        (r["requirement"], r["source"], r["destination"]) for r in _pick(run, verdict="blocked")
    }
    assert blocked == {
        ("kube-apiserver", "worker-0", "master-0"),
        ("dns-udp", "worker-0", "worker-1"),
        ("ntp", "worker-0", "services"),
    }
    assert run.status == 1


def test_silence_of_a_server_that_answers_others(run: Finished) -> None:
    """Nobody saw whether the request to chronyd arrived: it may be the server that ignores it."""
    assert not [one["because"] for one in _pick(run, verdict="inconclusive")]
    (result,) = _pick(run, requirement="ntp", source="worker-0", destination="services")
    assert {"path", "service"} <= {*result["where"]}
    assert "in this run it answered " in result["because"]


@pytest.mark.parametrize("destination", ["services", "worker-1"])
@pytest.mark.parametrize(
    ("requirement", "proofs"),
    [
        ("dns-udp", ["service"]),
        ("dns-tcp", ["service"]),
        ("ntp", ["service"]),
        ("registry", ["service"]),
    ],
)
def test_live_services_are_asked_for_what_they_serve(
    run: Finished, destination: str, requirement: str, proofs: Sequence[str]
) -> None:
    """A held port is never touched: its real service answers, with and without an agent there."""
    (result,) = _pick(run, requirement=requirement, source="master-0", destination=destination)

    assert (result["verdict"], result["proof"] in proofs) == ("pass", True), result


def test_sshd_itself_is_a_live_service(run: Finished) -> None:
    """Port 22 is held by the sshd that carries the agent: it is probed, and goes on living."""
    result = _pick(run, requirement="ssh-static-nodes", source="master-0", destination="worker-0")

    assert [r["verdict"] for r in result] == ["pass"]


def test_everything_else_passes(run: Finished) -> None:
    """All that is neither dropped nor unknowable passes."""
    others = {r["verdict"] for r in run.results} - {"blocked", "inconclusive"}
    assert others == {"pass"}
    assert run.document["complete"] is True


def test_a_host_that_ssh_cannot_reach_is_only_its_own_loss(lab: Lab) -> None:
    """ssh's own words stand in the result, and every flow of the other hosts is tested."""
    entries = _over_ssh(lab, "master-0", "worker-0")
    entries["worker-0"]["ssh"] = {
        "host": UNREACHABLE,
        "options": ["-F", f"{lab.folder}/ssh_config", "-o", "ProxyJump=bastion"],
    }
    lab.inventory(
        {"master-0": ["master"], "worker-0": ["node"]},
        settings={"modules": ["metallb"]},
        overrides=entries,
    )
    done = netprobe("run", *_words(lab), "-o", "json", within=lab["admin"].enter)
    _write_inventory(lab)

    tested = {(r["source"], r["verdict"]) for r in done.results}
    assert {verdict for source, verdict in tested if source == "worker-0"} == {"not-tested"}
    assert ("master-0", "pass") in tested
    said = next(r["because"] for r in done.results if r["source"] == "worker-0")
    assert UNREACHABLE in said
    # The jump host's words: ours can only tell that it closed the connection.
    assert "open failed: connect failed: " in said
    assert "the jump host" in said


def _agents(lab: Lab) -> list[str]:
    """Processes on the machines that are neither sshd nor one of the lab's services."""
    mine = {p.pid for host in lab.namespaces.values() for p in host.processes}
    left = []
    for name in ("admin", "jump", *BEHIND):
        for pid in lab[name].pids():
            words = _command(pid)
            if pid not in mine and words and "sshd" not in words:
                left.append(f"{name}: {words}")
    return left


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_nothing_is_left_on_any_machine(lab: Lab, run: Finished) -> None:
    """After the run no agent, no ssh connection and no listener of ours is left."""
    assert run.status == 1
    assert not _agents(lab)
    assert lab["master-0"].listening() == {f"tcp {ADDRESSES['master-0']}:22"}


def test_a_killed_coordinator_leaves_nothing_on_the_machines(lab: Lab) -> None:
    """SIGKILL here: ssh closes, and every agent behind the jump host ends."""
    process = subprocess.Popen(
        [*lab["admin"].enter, *COMMAND, "run", *_words(lab), "-o", "json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    quiet = {f"tcp {ADDRESSES['master-0']}:22"}
    wait_for(lambda: lab["master-0"].listening() - quiet or process.poll() is not None, "listeners")
    assert process.poll() is None
    process.kill()
    process.wait()

    wait_for(
        lambda: not _agents(lab) and lab["master-0"].listening() == quiet, "all to end", GONE_S
    )
