"""Dials held against each other: what a source saw of a balancer."""

from __future__ import annotations

from typing import Any

from netprobe.model.balanced import BalancerFacts
from netprobe.probe.rehearsals.back_end import VisitLog
from netprobe.probe.rehearsals.dials import BalancerDial, Dialling, DiallingSource
from netprobe.probe.rehearsals.seen_pool import describe_source, refuse_stopped
from netprobe.protocols.services.tls import Hello
from netprobe.vantage.stream import Target

CERTIFICATES = {"a": b"a", "b": b"b"}
UP_AT = 10.0


def see(*dials: tuple[float, bytes]) -> BalancerFacts:
    """What back end a saw: when its dials began, and the certificates that they were shown. Another
    source reached both when they were up."""
    return see_all(*dials)[0]


def see_all(*dials: tuple[float, bytes]) -> tuple[BalancerFacts, DiallingSource]:
    """The same, with the back end's dials."""
    nothing: Any = None
    balancer = Target("10.0.0.9", 6443, None)
    one, other = (DiallingSource(name, nothing, balancer) for name in ("a", "client"))
    names = {certificate: name for name, certificate in CERTIFICATES.items()}
    dialling = Dialling(
        [one, other], Hello(None, ()), ("a", "b"), str, lambda dial: names.get(dial.certificate)
    )
    for source, made in ((other, [(UP_AT, b"a"), (UP_AT, b"b")]), (one, dials)):
        for number, (at, certificate) in enumerate(made):
            dial = BalancerDial(number, at, certificate=certificate, heard=bool(certificate))
            dialling.note_dial(source, dial)
    return describe_source(one, dialling, CERTIFICATES, VisitLog(""), None), one


def test_what_was_lost_before_a_back_end_was_up_is_no_hairpin() -> None:
    """Only what it loses while others reach it says that it does not reach itself."""
    assert see((1.0, b""), (2.0, b""), (11.0, b"b")).itself is None
    assert see((1.0, b""), (11.0, b"b"), (12.0, b"")).itself is False
    assert see((11.0, b""), (12.0, b"a")).itself is True


def test_a_source_that_reaches_nobody_is_stopped() -> None:
    """A firewall may stop it: that is no hairpin, and both causes are said."""
    facts, source = see_all((11.0, b""), (12.0, b""))
    assert facts.itself is None
    assert facts.unreflected == ()
    stopped = refuse_stopped(facts, source)
    assert stopped is not None
    assert "opens no connection" in str(stopped)
    assert "or it hands this back end always to itself" in str(stopped)


def test_one_connection_that_gets_lost_is_no_hairpin() -> None:
    """A balancer that sticks sends it always to another one."""
    reached = [(11.0 + at, b"b") for at in range(23)]
    assert see(*reached, (40.0, b"")).itself is None
