"""Dials held against each other: what a source saw of a balancer."""

from __future__ import annotations

from typing import Any

from netprobe.model.balanced import BalancerFacts
from netprobe.probe.rehearsals.back_end import VisitLog
from netprobe.probe.rehearsals.dials import BalancerDial, Dialling, DiallingSource
from netprobe.probe.rehearsals.seen_pool import describe_source
from netprobe.protocols.services.tls import Hello

CERTIFICATES = {"a": b"a", "b": b"b"}
UP_AT = 10.0


def see(*dials: tuple[float, bytes]) -> BalancerFacts:
    """What back end a saw: when its dials began, and the certificates that they were shown. Another
    source reached both when they were up."""
    nothing: Any = None
    one, other = (DiallingSource(name, nothing, nothing) for name in ("a", "client"))
    names = {certificate: name for name, certificate in CERTIFICATES.items()}
    dialling = Dialling(
        [one, other], Hello(None, ()), ("a", "b"), str, lambda dial: names.get(dial.certificate)
    )
    for source, made in ((other, [(UP_AT, b"a"), (UP_AT, b"b")]), (one, dials)):
        for number, (at, certificate) in enumerate(made):
            dial = BalancerDial(number, at, certificate=certificate, heard=bool(certificate))
            dialling.note_dial(source, dial)
    return describe_source(one, dialling, CERTIFICATES, VisitLog(""), None)


def test_what_was_lost_before_a_back_end_was_up_is_no_hairpin() -> None:
    """Only what it loses while others reach it says that it does not reach itself."""
    assert see((1.0, b""), (2.0, b""), (11.0, b"b")).itself is None
    assert see((1.0, b""), (11.0, b"b"), (12.0, b"")).itself is False
    assert see((11.0, b""), (12.0, b"a")).itself is True
