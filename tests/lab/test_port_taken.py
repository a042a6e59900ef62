"""Ports that somebody holds before the installation, and services that must run by then.

Two masters, a node and a machine outside with services for all of them, behind one router.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.cli import COMMAND, Finished, environment, netprobe
from tests.lab.netlab import Lab, unprivileged, wait_for
from tests.lab.services import PYTHON, start_dns, start_https, start_sshd
from tests.lab.test_explain import wall
from tests.lab.test_truth import table

pytestmark = pytest.mark.lab

OUTSIDE = ["external-dns", "external-ntp", "external-registry"]
ROLES = {"m0": ["master"], "m1": ["master"], "n0": ["node"], "outside": OUTSIDE}
PORT = 4222
TAKEN = f"tcp {PORT}"
MATRIX = ("--matrix", "deckhouse-nodes")
# Accepts, and says nothing; it calls itself by its first argument.
HOLDER = """
import socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])
server = socket.create_server(("0.0.0.0", int(sys.argv[2])))
kept = []
while True:
    kept.append(server.accept())
"""


@pytest.fixture
def lab() -> Iterator[Lab]:
    """The four machines; nothing runs on them yet."""
    with Lab() as made:
        router = made.router("fw", "10.96.0.1")
        for number, name in enumerate(ROLES, start=10):
            made.host(name, router, f"10.96.1.{number}")
        made.wait_until_ready()
        made.inventory(ROLES, settings={"modules": ["metallb"]}, without_agent=["outside"])
        yield made


def _hold(lab: Lab, name: str = "squatter", port: int = PORT, host: str = "m0") -> int:
    process = lab[host].spawn(sys.executable, "-c", HOLDER, name, str(port))
    lab[host].wait_until_listening(f"tcp 0.0.0.0:{port}")
    return process.pid


def _words(lab: Lab) -> list[str]:
    return ["-i", str(lab.folder / "inventory.yaml"), "-o", "json"]


def _run(lab: Lab, *words: str) -> Finished:
    only = () if "--only" in words else ("--only", "deckhouse-controller-metrics")
    matrix = () if "--matrix" in words else MATRIX
    return netprobe("run", *matrix, *_words(lab), *only, *words)


def _site(lab: Lab, text: str) -> tuple[str, str]:
    head = "schema: netprobe.matrix/1\nextends: deckhouse-nodes\n"
    return "--matrix", str(lab.write("site.yaml", head + text))


def _said(done: Finished, destination: str) -> set[tuple[str, str]]:
    return {(r["verdict"], r["reason"]) for r in done.results if r["destination"] == destination}


def test_a_port_that_somebody_holds_stops_the_installation(lab: Lab) -> None:
    """Process and bind address are named, the exit status is 1; the other master's is free."""
    pid = _hold(lab)

    done = _run(lab)

    assert done.status == 1
    assert _said(done, "m0") == {("blocked", "port-taken")}
    assert _said(done, "m1") == {("pass", "nonce-answer")}
    holder = f"squatter (pid {pid}) on 0.0.0.0"
    for one in done.results:
        if one["destination"] == "m0":
            assert one["where"] == ["service"]
            assert one["holder"] == holder
            assert holder in one["because"]
    (finding,) = done.document["findings"]
    count = finding["count"]
    assert finding["title"] == f"port taken: {holder} holds {TAKEN} of m0 ({count} flows)"


@pytest.mark.needs("other users", "sshd")
def test_without_an_agent_a_held_port_is_no_better_answer(lab: Lab) -> None:
    """Nobody can say whose it is, and exit 0 would mean go; sshd says who it is by itself."""
    _hold(lab)
    start_sshd(lab, lab["n0"])
    lab.inventory(ROLES, settings={"modules": ["metallb"]}, without_agent=["m0", "n0", "outside"])

    done = _run(lab, "--to", "m0", "--to", "m1")
    ssh = _run(lab, "--only", "ssh-static-nodes", "--to", "n0")

    assert done.status == 3
    assert _said(done, "m0") == {("inconclusive", "unknown-holder")}
    assert _said(done, "m1") == {("pass", "nonce-answer")}
    assert {one["where"][0] for one in done.results if one["destination"] == "m0"} == {"service"}
    assert (ssh.status, _said(ssh, "n0")) == (0, {("pass", "syn-ack")})
    assert {one["proof"] for one in ssh.results} == {"service"}
    assert all("SSH-2.0-" in one["because"] for one in ssh.results)


@pytest.mark.needs("other users", "sshd")
def test_an_agent_without_rights_finds_sshd_by_its_banner(lab: Lab) -> None:
    """It cannot see whose the port is, and the banner shows the row's service."""
    start_sshd(lab, lab["n0"])
    there: dict[str, object] = {"vantage": {"command": [*lab["n0"].enter, *unprivileged()]}}
    lab.inventory(ROLES, without_agent=["m0", "outside"], overrides={"n0": there})

    done = _run(lab, "--only", "ssh-static-nodes", "--to", "n0")

    assert (done.status, _said(done, "n0")) == (0, {("pass", "syn-ack")})
    assert {one["proof"] for one in done.results} == {"service"}


def test_a_retry_does_not_keep_passes_of_a_port_that_is_taken_by_now(lab: Lab) -> None:
    """One source asks again, and finds the port held: it is held for those that passed, too."""
    record, again = (str(lab.folder / name) for name in ("first.jsonl", "second.jsonl"))
    wall(lab["m0"], "input", f"ip saddr 10.96.1.11 tcp dport {PORT} drop")
    before = _run(lab, "--record", record)
    failed = [one["source"] for one in before.results if one["verdict"] == "blocked"]
    assert failed == ["m1"], before.stderr

    lab["m0"].nft("delete table inet input")
    pid = _hold(lab)
    after = _run(lab, "--retry", record, "--record", again)
    read = netprobe("report", again, "-o", "json")

    assert (after.status, read.status) == (1, 1), after.stderr
    assert "found now; " not in before.stdout
    for done in after, read:
        assert _said(done, "m0") == {("blocked", "port-taken")}
        assert _said(done, "m1") == {("pass", "nonce-answer")}
        assert len(done.results) == len(before.results)
        kept = [one for one in done.results if "so m1 found now" in one["because"]]
        assert {one["source"] for one in kept} == {
            one["source"] for one in before.results if one["destination"] == "m0"
        } - {"m1"}
        assert all(f"(pid {pid})" in one["holder"] for one in kept)
        assert len(done.document["findings"]) == 1


def test_a_retry_keeps_the_passes_of_a_port_that_is_free(lab: Lab) -> None:
    """The firewall was mended, and the retry finds nothing else."""
    record = str(lab.folder / "first.jsonl")
    wall(lab["m0"], "input", f"ip saddr 10.96.1.11 tcp dport {PORT} drop")
    before = _run(lab, "--record", record)
    lab["m0"].nft("delete table inet input")
    after = _run(lab, "--retry", record)

    assert (before.status, after.status) == (1, 0)
    assert len(after.results) == len(before.results)
    assert {one["verdict"] for one in after.results} == {"pass"}
    passed = sum(one["verdict"] == "pass" for one in before.results)
    assert after.document["earlier"].startswith(f"RETRIED: {passed} pass of {record} ")


def test_a_service_that_answers_rightly_holds_its_own_port(lab: Lab) -> None:
    """dnsmasq holds 53 of a node, where a row asks for DNS; another row's port it would take."""
    start_dns(lab["n0"], {"a.lab.test": "192.0.2.1"})
    rows = "requirements:\n- {id: mine, from: master, to: node, udp: [53], tcp: [53], probe: dns}\n"
    plain = "requirements:\n- {id: mine, from: master, to: node, tcp: [53]}\n"

    checked = netprobe("check", "--hosts", *_site(lab, rows), *_words(lab)[:2])
    known = _run(lab, *_site(lab, rows), "--only", "mine", "--to", "n0")
    other = _run(lab, *_site(lab, plain), "--only", "mine", "--to", "n0")

    assert {(one["verdict"], one["proof"]) for one in known.results} == {("pass", "service")}
    asks = [line for line in checked.stdout.splitlines() if "a run will ask" in line]
    assert [line.partition(": dnsmasq")[0] for line in asks] == ["port held on n0: tcp 53; udp 53"]
    assert checked.status == 3
    assert _said(other, "n0") == {("blocked", "port-taken")}


@pytest.mark.parametrize("probe", ["tls", "https"])
def test_any_tls_server_is_not_the_rows_own(lab: Lab, probe: str) -> None:
    """Many programs are one: what must be there already passes, and what is in the way does not."""
    start_https(lab, lab["m0"], PORT)
    row = f"requirements:\n- {{id: mine, from: master, to: master, tcp: [{PORT}], probe: {probe}"

    taken = _run(lab, *_site(lab, row + "}\n"), "--only", "mine", "--to", "m0")
    listed = _run(lab, *_site(lab, f"{row}, process: {PYTHON}}}\n"), "--only", "mine", "--to", "m0")
    there = _run(lab, *_site(lab, row + ", existing: true}\n"), "--only", "mine", "--to", "m0")

    assert _said(taken, "m0") == {("blocked", "port-taken")}
    for known in (listed, there):
        assert _said(known, "m0") == {("pass", "syn-ack")}
        assert {one["proof"] for one in known.results} == {"service"}


def test_a_listed_process_holds_its_own_port(lab: Lab) -> None:
    """The matrix lists it for the row; a waiver accepts any other."""
    _hold(lab)
    row = "deckhouse-controller-metrics"

    listed = _run(lab, *_site(lab, f"override:\n  {row}: {{process: squatter}}\n"))
    waived = _run(lab, *_site(lab, f'waive:\n  {row}: "moves away on Monday"\n'))

    assert (listed.status, _said(listed, "m0")) == (0, {("pass", "syn-ack")})
    assert (waived.status, _said(waived, "m0")) == (0, {("blocked", "port-taken")})


def test_where_a_kubelet_runs_the_platform_holds_its_ports(lab: Lab) -> None:
    """The agent's hello says so, here by the kubelet's port, for an agent with its own processes.

    A process that is called kubelet would be one for every lab on this machine.
    """
    _hold(lab)
    _hold(lab, port=10250)
    inside = ["unshare", "--pid", "--fork", "--mount-proc", *lab["m0"].enter]
    lab.inventory(
        ROLES, settings={"modules": ["metallb"]}, without_agent=["outside"],
        overrides={"m0": {"vantage": {"command": inside}}},
    )  # fmt: skip

    done = _run(lab)

    assert (done.status, _said(done, "m0")) == (0, {("pass", "syn-ack")})


@pytest.mark.needs("other users", "sshd")
def test_check_hosts_says_it_first_and_does_not_list_sshd(lab: Lab) -> None:
    """The first line names host, port, process and bind address; sshd on 22 is the row's own."""
    start_sshd(lab, lab["m0"])
    pid = _hold(lab)

    done = netprobe("check", "--hosts", *MATRIX, *_words(lab)[:2])

    lines = done.stdout.splitlines()
    assert lines[0] == f"PORT TAKEN on m0: {TAKEN}: squatter (pid {pid}) on 0.0.0.0"
    assert not [line for line in lines[1:] if "PORT TAKEN" in line or "sshd" in line]
    assert done.status == 1


def test_another_run_on_the_same_ports_is_named_as_such(lab: Lab) -> None:
    """Its agents hold the ports: nobody could look, and both ways to ask say why.

    A firewall that drops keeps the other run waiting.
    """
    lab["fw"].nft(table("filter hook forward priority 0", "wall", f"tcp dport {PORT} drop"))
    first = subprocess.Popen(
        [*COMMAND, "run", *MATRIX, *_words(lab), "--only", "deckhouse-controller-metrics",
         "--timeout", "60"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    try:
        place = f"tcp {lab['m0'].address(4)}:{PORT}"
        wait_for(lambda: place in lab["m0"].listening() or first.poll() is not None, place)
        checked = netprobe("check", "--hosts", *MATRIX, *_words(lab)[:2])
        own = _run(lab, "--from", "m0", "--to", "m0")
    finally:
        first.kill()
        first.wait()

    assert "another netprobe run is active on m0: tcp 4222: netprobe-agent" in checked.stdout
    assert "PORT TAKEN" not in checked.stdout
    assert checked.status == 3
    ((verdict, because),) = {
        (r["verdict"], r["because"]) for r in own.results if r["destination"] == "m0"
    }
    assert (verdict, own.status) == ("not-tested", 3)
    assert because.startswith("another netprobe run is active on m0: ")


DNS_ROWS = ("--only", "dns-udp", "--only", "dns-tcp")
OUTSIDE_ROWS = (*DNS_ROWS, "--only", "ntp", "--only", "registry")


def _outside(lab: Lab, *words: str) -> dict[str, Any]:
    done = _run(lab, *OUTSIDE_ROWS, *words)
    return {"status": done.status, "said": _said(done, "outside")}


@pytest.mark.parametrize("agent", [False, True], ids=["no-agent", "agent"])
def test_what_exists_before_the_installation_must_listen(lab: Lab, agent: bool) -> None:
    """Nothing runs outside: a refusal there, and a listener of ours, would be no DNS server."""
    lab.inventory(
        ROLES, settings={"modules": ["metallb"]}, without_agent=[] if agent else ["outside"]
    )

    assert _outside(lab) == {"status": 1, "said": {("blocked", "nothing-listens")}}


def test_a_site_may_say_that_its_services_need_not_exist_yet(lab: Lab) -> None:
    """For a role, or for one requirement, which overrules its role."""
    roles = "".join(f"  {role}: {{existing: false}}\n" for role in OUTSIDE)

    assert _outside(lab, *_site(lab, f"roles:\n{roles}"))["status"] == 0
    one = _outside(lab, *_site(lab, "override:\n  ntp: {existing: false}\n"))
    assert one["said"] == {("blocked", "nothing-listens"), ("pass", "port-unreach")}


@pytest.mark.needs("dnsmasq")
def test_existing_services_that_run_pass_as_before(lab: Lab) -> None:
    """A DNS server outside answers; with an agent beside it nobody calls its port taken."""
    start_dns(lab["outside"], {"a.lab.test": "192.0.2.1"})
    lab.inventory(ROLES, settings={"modules": ["metallb"]})

    done = _run(lab, *DNS_ROWS)

    assert {(one["verdict"], one["proof"]) for one in done.results} == {("pass", "service")}
    assert done.status == 0
