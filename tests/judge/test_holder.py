"""Who holds a required port before the installation, and services that must run already."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.judge.holder import say_held
from netprobe.model.evidence import (
    Evidence,
    Listener,
    Outcome,
    RefusalMaker,
    ResetOrigin,
    ServiceFinding,
)
from netprobe.model.matrix import Waiver

from .test_verdict import RESET, B, evidence, one, story

C = replace(B, name="c")
OPENED = Outcome("connect", None, answer="unasked")
ANSWERED = Outcome("answer", None, answer="unasked")
QUIET = Outcome("answer", "no-answer", attempts=2)
PYTHON = Listener("live", "python3 (pid 9) on 0.0.0.0", processes=("python3.11", "python3"))
HIDDEN = Listener("live", "a process that the agent may not see on 0.0.0.0")
OTHER_RUN = Listener(
    "live", "netprobe-agent (pid 5) on 10.0.0.2", processes=("python3.11", "netprobe-agent")
)
LOOPBACK = Listener("loopback", "etcd (pid 8) on 127.0.0.1", processes=("etcd",))
# Our listener, and who holds its port on another address: on loopback, or beside it.
BESIDE_LOOPBACK = Listener(
    "ours", processes=("etcd",), beside="etcd (pid 8) on 127.0.0.1", beside_loopback=True
)
BESIDE = Listener("ours", processes=("etcd",), beside="etcd (pid 8) on 10.0.0.3")
NONCE = Outcome("answer", None, answer="nonce")
PASS = ("pass", "nonce-answer", ())


def row(some: Evidence, *, existing: bool = False, **keys: Any) -> Evidence:
    """The same evidence of a row with these keys."""
    block = some.flow.block
    wanted = replace(block.requirement, **keys)
    return replace(
        some, flow=replace(some.flow, block=replace(block, requirement=wanted, existing=existing))
    )


def said(some: Evidence, **rules: bool) -> tuple[str, str, tuple[str, ...]]:
    """What the cases compare."""
    result = one(some, **rules)
    return result.verdict, result.reason, result.where


TAKEN = ("blocked", "port-taken", ("service",))


@pytest.mark.parametrize(
    ("outcome", "protocol"),
    [
        (OPENED, "tcp"),
        (replace(OPENED, answer="silent"), "tcp"),
        (replace(OPENED, answer="other", said="not DNS"), "tcp"),
        (replace(OPENED, answer="tunnel"), "tcp"),
        (ANSWERED, "udp"),
        (QUIET, "udp"),
        (Outcome("send", None), "udp"),
    ],
)
def test_a_port_that_somebody_else_holds_is_taken(outcome: Outcome, protocol: str) -> None:
    """Whatever the holder answers or keeps quiet about: the platform cannot bind the port."""
    result = one(evidence(outcome, protocol, listener=PYTHON))

    assert (result.verdict, result.reason, result.where) == TAKEN
    assert result.holder == PYTHON.owner
    assert "python3 (pid 9) on 0.0.0.0" in result.because
    assert result.decides


@pytest.mark.parametrize("told", ["other", "tls", "plaintext"])
def test_what_answered_instead_stands_in_the_sentence(told: Any) -> None:
    """It may tell people which program it is, where the row's service was asked for."""
    other = ServiceFinding(told, "HTTP 200 Jenkins")
    some = row(evidence(OPENED, listener=PYTHON, service=other), probe="etcd")

    assert said(some) == TAKEN
    assert "HTTP 200 Jenkins" in one(some).because


def test_the_service_of_the_row_has_not_taken_its_own_port() -> None:
    """It is recognised by its answer, by its program file, or by the kernel's 15 characters."""
    cut = replace(PYTHON, processes=("kube-controller",))

    etcd = ServiceFinding("service", "etcd")
    answer = evidence(OPENED, listener=PYTHON, service=etcd)
    assert one(row(answer, probe="etcd")).proof == "service"
    assert one(row(evidence(OPENED, listener=PYTHON), process=("python3.11",))).verdict == "pass"
    assert one(row(evidence(OPENED, listener=PYTHON), process=("python3",))).verdict == "pass"
    assert (
        one(row(evidence(OPENED, listener=cut), process=("kube-controller-manager",))).verdict
        == "pass"
    )
    assert said(row(evidence(OPENED, listener=PYTHON), process=("etcd",))) == TAKEN


def test_where_the_platform_runs_or_everything_must_run_nothing_is_taken() -> None:
    """A kubelet runs there, or --live, or a row that exists before the installation."""
    some = evidence(OPENED, listener=PYTHON)

    assert one(replace(some, platform_runs=True)).verdict == "pass"
    assert one(some, live=True).verdict == "pass"
    assert one(row(some, existing=True)).verdict == "pass"
    assert said(some) == TAKEN


UNWATCHED = [Listener("unknown"), Listener("lost")]
UNKNOWN_HOLDER = ("inconclusive", "unknown-holder", ("service",))
A_TLS_SERVER = ServiceFinding("service", "TLS with a certificate of CN=x")


@pytest.mark.parametrize("listener", UNWATCHED, ids=["no-agent", "lost-agent"])
@pytest.mark.parametrize(
    ("some", "shown"),
    [
        (evidence(OPENED), "it was not asked for banner and certificate"),
        (evidence(OPENED, greeting="220 mail"), "it showed: 220 mail"),
        (evidence(replace(OPENED, answer="tunnel", said="CONNECT b:6443: 200")), "b:6443: 200"),
        (row(evidence(OPENED, service=A_TLS_SERVER), probe="tls"), "a certificate of CN=x"),
        (evidence(ANSWERED, "udp"), "tells which program it is"),
        (row(evidence(OPENED, greeting="220 mail"), process=("sshd",)), "220 mail"),
        (row(evidence(OPENED, greeting="SSH-2.0-x"), process=("etcd",)), "SSH-2.0-x"),
    ],
)
def test_without_an_agent_nobody_knows_who_holds_an_open_port(
    some: Evidence, shown: str, listener: Listener
) -> None:
    """An agent would call it taken: that nobody looks is no better answer, and exit 0 is none."""
    result = one(replace(some, listener=listener))

    assert (result.verdict, result.reason, result.where) == UNKNOWN_HOLDER
    assert result.proof == "handshake"
    assert result.decides
    assert shown in result.because


def test_what_answers_with_another_ttl_may_be_on_the_path() -> None:
    """A translation gives it the destination's address; a walk that shows none leaves the host."""
    far = evidence(OPENED, listener=UNWATCHED[0], maker=RefusalMaker(False, "its TTL differs"))
    near = evidence(OPENED, listener=UNWATCHED[0], maker=RefusalMaker(True, "its TTL differs"))

    assert one(far).where == ("path", "service")
    assert one(far).because.endswith("; and its TTL differs")
    assert one(near).where == ("service",)


@pytest.mark.parametrize("listener", UNWATCHED, ids=["no-agent", "lost-agent"])
def test_without_an_agent_an_open_port_passes_where_it_should_be_open(listener: Listener) -> None:
    """The platform runs, the row exists, or what came shows that it is the row's own service."""
    some = evidence(OPENED, listener=listener)
    etcd = ServiceFinding("service", "etcd")
    ssh = row(replace(some, greeting="SSH-2.0-OpenSSH_9.2"), process=("sshd", "dropbear"))

    assert one(replace(some, platform_runs=True)).verdict == "pass"
    assert one(some, live=True).verdict == "pass"
    assert one(row(some, existing=True)).verdict == "pass"
    for known in (row(replace(some, service=etcd), probe="etcd"), ssh):
        assert (one(known).verdict, one(known).proof) == ("pass", "service")
    assert "SSH-2.0-OpenSSH_9.2" in one(ssh).because
    assert said(some) == UNKNOWN_HOLDER


def test_a_failing_path_is_told_before_its_port() -> None:
    """A firewall in front of the holder needs mending, too, and its owner is another."""
    silent = Outcome("connect", "no-answer", left_host=True, packets=6)
    lost = evidence(QUIET, "udp", listener=PYTHON, story=story(destination_in="no"))

    assert said(evidence(silent, listener=PYTHON))[:2] == ("blocked", "no-response")
    assert said(lost) == ("blocked", "no-response", ("path",))
    assert said(evidence(RESET, listener=PYTHON))[:2] == ("blocked", "reset")


def test_a_denied_port_is_exposed_and_not_taken() -> None:
    """It must not answer: nobody wants to bind it."""
    assert said(evidence(OPENED, expect="denied", listener=PYTHON))[:2] == ("exposed", "syn-ack")


def test_raw_sockets_take_nothing_from_others() -> None:
    """Any number of processes may have one for the same IP protocol."""
    result = one(evidence(Outcome("send", None), "ipproto/4", listener=PYTHON))

    assert result.reason != "port-taken"


def test_a_holder_that_cannot_be_seen_is_in_doubt_only_where_processes_are_listed() -> None:
    """Without a list no process is the right one, whatever it is called."""
    listed = row(evidence(OPENED, listener=HIDDEN), process=("sshd",))
    quiet = row(evidence(QUIET, "udp", listener=HIDDEN), process=("kernel",))

    assert said(listed) == ("inconclusive", "holder-hidden", ("service",))
    assert said(quiet) == ("inconclusive", "holder-hidden", ("service",))
    assert "give it root (become: sudo)" in one(listed).because
    denied = one(replace(listed, sudo_failed=("b",))).because
    assert "mend sudo on b, which failed when the agent was started" in denied
    assert "become" not in denied
    assert said(evidence(OPENED, listener=HIDDEN)) == TAKEN


@pytest.mark.parametrize(("outcome", "protocol"), [(OPENED, "tcp"), (QUIET, "udp")])
def test_another_run_of_netprobe_is_named_as_such(outcome: Outcome, protocol: str) -> None:
    """It says nothing of the port: nobody could look. Its finding says what to wait for."""
    result = one(evidence(outcome, protocol, listener=OTHER_RUN))

    assert (result.verdict, result.reason) == ("not-tested", "other-run")
    assert "another netprobe run is active on b" in result.because
    (finding,) = fold([result])
    words = f"another netprobe run is active on b: it holds {protocol} 6443"
    assert finding.title == f"{words} (1 flow)"


def test_of_another_run_nobody_expects_the_service() -> None:
    """That netprobe's own listener is no etcd is no news."""
    silent = ServiceFinding("silent", "")
    other = row(evidence(OPENED, listener=OTHER_RUN, service=silent), probe="etcd")

    assert one(other).reason == "other-run"
    assert one(other).warnings == ()
    assert one(replace(other, listener=PYTHON)).warnings


def test_a_service_that_must_run_and_does_not_is_missing() -> None:
    """With --live nothing stops the packets: the title does not speak of a block on the way."""
    refused = evidence(RESET, listener=Listener("closed"))

    (finding,) = fold([one(refused, live=True)])

    assert (finding.kind, finding.title) == ("missing", "nothing listens on tcp 6443 of b (1 flow)")


def test_a_taken_port_is_one_finding_for_all_who_ask_for_it() -> None:
    """Two sources and two ports of one holder; another holder is a finding of its own."""
    first = one(evidence(OPENED, listener=PYTHON))
    second = replace(first, source="c", port=4222, end_port=4222)
    other = replace(first, holder="nginx (pid 3) on 0.0.0.0", port=80, end_port=80)

    found = fold([first, second, other])

    assert [(one.kind, one.title) for one in found] == [
        ("taken", "port taken: python3 (pid 9) on 0.0.0.0 holds tcp 4222, 6443 of b (2 flows)"),
        ("taken", "port taken: nginx (pid 3) on 0.0.0.0 holds tcp 80 of b (1 flow)"),
    ]
    assert "On b, stop python3 (pid 9) on 0.0.0.0, or move it" in found[0].advice


@pytest.mark.parametrize("reset", [ResetOrigin(), ResetOrigin(forged=False)])
def test_a_refusal_of_what_exists_is_a_missing_service(reset: ResetOrigin) -> None:
    """Elsewhere it passes, because nothing needs to listen yet."""
    some = evidence(RESET, reset=reset)
    result = one(row(some, existing=True))

    assert (result.verdict, result.reason, result.where) == (
        "blocked", "nothing-listens", ("service",),
    )  # fmt: skip
    assert result.proof == "none"
    assert "runs before the installation" in result.because
    assert one(some).verdict == "pass"
    (finding,) = fold([result])
    assert finding.title == "nothing listens on tcp 6443 of b (1 flow)"


def test_what_exists_on_loopback_only_is_missing_where_it_is_asked_for() -> None:
    """A refused port that a process holds for its own host alone."""
    some = evidence(RESET, listener=LOOPBACK)

    assert said(row(some, existing=True)) == ("blocked", "nothing-listens", ("service",))
    assert one(some).verdict == "inconclusive"


def test_existing_changes_nothing_that_must_not_answer() -> None:
    """A denied port of a role that exists is refused, as it must be."""
    assert one(row(evidence(RESET, expect="denied"), existing=True)).verdict == "pass"


def test_what_check_hosts_says_of_holders() -> None:
    """Taken, another run's, and in doubt; optional and waived rows never decide."""
    taken = evidence(None, listener=PYTHON)
    block = taken.flow.block
    waived = replace(taken, ports=((80, 80),), flow=replace(
        taken.flow, block=replace(block, waiver=Waiver("etcd", "known"))))  # fmt: skip
    optional = replace(row(taken, optional=True), ports=((81, 81),))
    listed = replace(row(taken, process=("python3",)), ports=((22, 22),))
    loopback = replace(taken, listener=LOOPBACK, ports=((2379, 2379),))
    other = replace(taken, listener=OTHER_RUN, ports=((9, 9),))

    facts = say_held([taken, taken, waived, optional, listed, loopback, other])

    assert facts["taken"] == (f"tcp 6443: {PYTHON.owner}",)
    assert facts["other_run"] == (f"tcp 9: {OTHER_RUN.owner}",)
    assert facts["doubtful"] == (f"tcp 2379: {LOOPBACK.owner}",)
    assert len(facts["held"]) == 4
    assert f"tcp 22, 80-81: {PYTHON.owner}" in facts["held"]


def test_a_holder_of_many_ports_is_one_phrase() -> None:
    """Another run holds every port that a host needs: one line says so."""
    some = [
        replace(evidence(None, protocol, listener=OTHER_RUN), ports=((port, port),))
        for protocol, port in (("udp", 8472), ("tcp", 2380), ("tcp", 6443), ("tcp", 2379))
    ]

    assert say_held(some)["other_run"] == (f"tcp 2379-2380, 6443; udp 8472: {OTHER_RUN.owner}",)


@pytest.mark.parametrize(
    ("listener", "keys", "expected"),
    [
        (BESIDE_LOOPBACK, {}, ("inconclusive", "loopback-holder", ("service",))),
        (BESIDE_LOOPBACK, {"binds": "all"}, TAKEN),
        (BESIDE_LOOPBACK, {"binds": "address"}, PASS),
        # The row's own program is in nobody's way, but whether it serves others is not known.
        (BESIDE_LOOPBACK, {"binds": "all", "process": ("etcd",)},
         ("inconclusive", "loopback-holder", ("service",))),
        (BESIDE, {}, PASS),
        (BESIDE, {"binds": "all"}, TAKEN),
        (BESIDE, {"binds": "address"}, PASS),
    ],
)  # fmt: skip
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_an_open_way_to_a_port_that_is_held_beside_it(
    listener: Listener, keys: dict[str, Any], expected: tuple[str, str, tuple[str, ...]],
    protocol: str,
) -> None:  # fmt: skip
    """The matrix says whether the row's program could start beside the holder."""
    result = one(row(evidence(NONCE, protocol, listener=listener), **keys))

    assert (result.verdict, result.reason, result.where) == expected
    if expected is PASS:
        assert result.holder is None
        assert len(result.warnings) == (listener is BESIDE_LOOPBACK)
    else:
        assert result.holder == listener.beside
        assert str(listener.beside) in result.because
        assert result.proof == "none"


@pytest.mark.parametrize("binds", ["all", "address", None])
def test_a_stopped_way_to_a_port_that_is_held_beside_it(binds: str | None) -> None:
    """What stops the packets comes first, whoever holds the port."""
    silent = Outcome("connect", "no-answer", attempts=2)
    result = one(row(evidence(silent, listener=BESIDE_LOOPBACK), binds=binds))

    assert (result.verdict, result.reason) == ("blocked", "no-response")


@pytest.mark.parametrize(
    ("binds", "fact"), [("all", "taken"), ("address", None), (None, "doubtful")]
)
def test_a_port_held_on_loopback_before_the_run(binds: str | None, fact: str | None) -> None:
    """``check --hosts`` says of it what a run would say, where a run can ask nobody else."""
    some = row(replace(evidence(RESET, listener=LOOPBACK), ports=((2379, 2379),)), binds=binds)
    facts = say_held([replace(some, outcome=None)])

    told = {name for name, phrases in facts.items() if phrases} - {"held"}
    assert told == ({fact} if fact else set())


def test_what_accepts_for_a_host_that_a_router_gives_up_may_be_on_the_way() -> None:
    """Nobody there can tell, and a router says that nobody is there."""
    some = evidence(OPENED, given_up_by="10.0.0.254")
    result = one(some)

    assert said(some) == ("inconclusive", "unknown-holder", ("host", "path", "service"))
    assert "10.0.0.254, a router on the way, says that nobody answers" in result.because


@pytest.mark.parametrize("existing", [False, True])
def test_a_service_on_loopback_only_and_no_service_are_two_causes(existing: bool) -> None:
    """The first host's service needs another address, the second one's a start."""
    held = row(evidence(RESET, listener=LOOPBACK), existing=existing)
    free = replace(held, listener=Listener("closed"), flow=replace(held.flow, destination=C))
    live = not existing

    first, second = fold([one(held, live=live), one(free, live=live)])

    assert first.title == "etcd (pid 8) on 127.0.0.1 holds tcp 6443 of b on loopback only (1 flow)"
    assert first.advice == (
        "If etcd (pid 8) on 127.0.0.1 is the service, let it listen on 10.0.0.2 of b, too; if it "
        "is not, start the service there."
    )
    assert second.title == "nothing listens on tcp 6443 of c (1 flow)"
