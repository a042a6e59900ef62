"""What must not answer: for UDP and IP protocols silence alone shows no firewall."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.judge.findings import fold
from netprobe.model.evidence import Listener, Outcome, StoppedPackets
from tests.judge.test_verdict import OPEN, RESET, SILENT, evidence, one, story

SENT = Outcome("send", None, attempts=3, packets=9)
SYSLOG = Listener("live", "rsyslogd (pid 7) on 0.0.0.0", processes=("rsyslogd",))
OTHER_RUN = Listener("live", "netprobe-agent on 0.0.0.0", processes=("netprobe-agent",))
CAME, LOST = {"story": story(destination_in="yes")}, {"story": story(destination_in="no")}
LET_IN = {**CAME, "stopped": StoppedPackets(request=False)}
STOPPED = {"stopped": StoppedPackets(request=True)}
ANSWERED: dict[str, Any] = {"control_answered": True, "host_up": True}


@pytest.mark.parametrize(
    ("facts", "verdict", "where"),
    [
        # It came, the port has a holder, and no firewall behind the recorder drops it.
        ({**LET_IN, "listener": SYSLOG}, "exposed", ("destination",)),
        ({**LET_IN, **ANSWERED, "listener": SYSLOG}, "exposed", ("destination",)),
        # Also where its answer got lost.
        ({"story": story(destination_in="yes", destination_out="yes"), "listener": SYSLOG,
          "stopped": StoppedPackets(request=False)}, "exposed", ("destination",)),
        # A recorder sees packets before the firewall.
        ({**CAME, **ANSWERED, "listener": SYSLOG}, "inconclusive", ("destination",)),
        ({**CAME, **STOPPED, "listener": SYSLOG}, "pass", ()),
        ({**STOPPED, "listener": SYSLOG}, "pass", ()),
        ({**LOST, **ANSWERED, "listener": SYSLOG}, "pass", ()),
        # Where nothing gets to the address the recorder's word is not that of a firewall.
        ({**LOST, "listener": SYSLOG}, "inconclusive", ("host", "path", "source")),
        ({**CAME, "listener": Listener("closed")}, "pass", ()),
        ({**ANSWERED, "listener": Listener("closed")}, "pass", ()),
        ({"listener": Listener("closed")}, "inconclusive", None),
        # A translation (NodePort, hostPort) may take it.
        ({**CAME, "listener": Listener("closed"), "platform_runs": True}, "inconclusive",
         ("destination",)),
        ({**CAME, **ANSWERED}, "inconclusive", ("destination",)),
        # Nobody knows more than that nothing came back.
        (ANSWERED, "inconclusive", ("destination", "path", "return-path", "source")),
        ({**ANSWERED, "listener": SYSLOG}, "inconclusive",
         ("destination", "path", "return-path", "source")),
        ({**LET_IN, "listener": OTHER_RUN}, "inconclusive", ("destination",)),
    ],
)  # fmt: skip
def test_silence_to_datagrams_needs_more_than_an_answer_of_another_port(
    facts: dict[str, Any], verdict: str, where: tuple[str, ...] | None
) -> None:
    """A quiet service and a drop look the same."""
    found = one(evidence(SENT, "udp", expect="denied", **facts))

    assert (found.verdict, found.reason) == (verdict, "no-response")
    assert where is None or found.where == where


def test_what_came_and_was_not_stopped_is_said() -> None:
    """Not that it did not come, which the same counters say where no recorder saw it."""
    found = one(evidence(SENT, "udp", expect="denied", listener=SYSLOG, **LET_IN))

    assert "saw it arrive (rsyslogd (pid 7) on 0.0.0.0 holds the port)" in found.because
    assert "no rule of b's IP layer stops it" in found.because
    assert "did not come" not in found.because


def test_a_kernel_may_handle_an_ip_protocol_without_a_socket() -> None:
    """That no program has a raw socket shows nothing."""
    facts: dict[str, Any] = {**CAME, **ANSWERED, "listener": Listener("closed")}

    assert one(evidence(SENT, "ipproto/4", expect="denied", **facts)).verdict == "inconclusive"
    assert one(evidence(SENT, "ipproto/4", expect="denied", **LOST, **ANSWERED)).verdict == "pass"


def test_silence_to_a_syn_is_a_drop() -> None:
    """A port that listens answers, and so does one that does not."""
    assert one(evidence(SILENT, expect="denied", **ANSWERED)).verdict == "pass"


@pytest.mark.parametrize("facts", [{"host_down": "c"}, {"given_up_by": "10.0.0.254"}])
def test_a_reset_of_a_host_that_is_down_is_somebody_elses(facts: dict[str, Any]) -> None:
    """It says nothing of the port; of a host that is up it is a refusal."""
    found = one(evidence(RESET, expect="denied", **facts))

    assert (found.verdict, found.reason, found.where) == ("inconclusive", "reset", ("host", "path"))
    assert one(evidence(RESET, expect="denied", host_up=True, **facts)).verdict == "pass"


def test_that_a_denied_port_is_held_on_loopback_is_as_it_must_be() -> None:
    """No warning."""
    on_loopback = Listener("loopback", "dnsmasq (pid 9) on 127.0.0.1")
    found = one(evidence(SENT, "udp", expect="denied", listener=on_loopback, **CAME))

    assert (found.verdict, found.warnings) == ("pass", ())


def test_the_finding_does_not_say_that_a_quiet_service_answers() -> None:
    """It takes what comes."""
    found = one(evidence(SENT, "udp", expect="denied", listener=SYSLOG, **LET_IN))

    (finding,) = fold([found])
    assert finding.title.startswith("udp 6443 of b must be closed to others, and takes what they")


def test_what_answers_on_the_way_is_not_closed_on_the_destination() -> None:
    """Its service is not the one that answers."""
    found = one(evidence(OPEN, expect="denied", story=story(destination_in="no")))
    assert (found.verdict, found.reason, found.where) == ("exposed", "false-open", ("path",))

    (finding,) = fold([found])
    assert finding.advice == (
        "Find what answers tcp 6443 for 10.0.0.2 on the way, a proxy or an address translation, "
        "and let it refuse or drop that from a to b."
    )
