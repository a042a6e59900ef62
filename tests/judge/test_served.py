"""Name and time servers that keep quiet towards one source, judged."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.model.evidence import Evidence, Listener, Outcome
from netprobe.model.names import NameFacts, NameTold, ServerTold
from netprobe.model.plan import AskedName
from netprobe.report.record.contradictions import check_alone
from netprobe.request.rules import RequestWishes
from tests.report.samples import BLOCKED, INFO
from tests.request.flows import ask

from .test_verdict import evidence, one, story

SILENT = Outcome("answer", "no-answer", left_host=True, attempts=2, packets=4)
ANSWERED = Outcome("answer", None, answer="service", said="SERVFAIL")
NAME = "api.x.test"
FAILS = ServerTold("a", "10.0.0.2", (NameTold(NAME, "SERVFAIL"),), resolves=False)


def of_server(outcome: Outcome, probe: Any = "ntp", **facts: Any) -> Evidence:
    """What is seen of a server that runs before the installation."""
    some = evidence(outcome, "udp", **facts)
    block = some.flow.block
    block = replace(block, requirement=replace(block.requirement, probe=probe), existing=True)
    return replace(some, flow=replace(some.flow, block=block))


@pytest.mark.parametrize("probe", ["dns", "ntp"])
def test_silence_while_others_are_answered(probe: str) -> None:
    """The source is stopped, or the server ignores it; the sentence says whom it answered."""
    result = one(of_server(SILENT, probe, served=("a", "c", "d")))

    assert (result.verdict, result.reason) == ("blocked", "no-response")
    assert result.where == ("destination", "path", "return-path", "service", "source")
    assert "in this run it answered c, d: something on the way stops a, or the server" in (
        result.because
    )
    check_alone(result)


def test_a_request_asks_for_the_rule_with_the_remark() -> None:
    """A rule may mend it; that the server may ignore the source stands beside it."""
    result = one(of_server(SILENT, served=("c",)))
    result = replace(
        result, source=BLOCKED.source, destination=BLOCKED.destination, address=BLOCKED.address
    )
    request = ask([result], RequestWishes(), INFO)

    (rule,) = request.rules
    text = repr(rule)
    assert "or the service keeps quiet" in text
    assert "chronyd's allow, BIND's blackhole, dnsmasq's local-service" in text
    assert fold([result])[0].verdict == "blocked"


@pytest.mark.parametrize(
    ("seen", "where"),
    [
        ({"destination_in": "yes"}, ("destination", "return-path", "service", "source")),
        ({"destination_in": "yes", "destination_out": "yes"}, ("return-path", "source")),
        ({"destination_in": "no"}, ("path",)),
    ],
)
def test_recorders_place_the_loss(seen: Any, where: tuple[str, ...]) -> None:
    """Only where the request may have come to the server, the server may have ignored it."""
    result = one(of_server(SILENT, served=("c",), story=story(**seen)))

    assert (result.verdict, result.where) == ("blocked", where)
    check_alone(result)


@pytest.mark.parametrize(
    "some",
    [
        of_server(SILENT),
        of_server(SILENT, served=("a",)),
        of_server(SILENT, listener=Listener("live", "chronyd")),
    ],
)
def test_silence_towards_all_stays_open(some: Evidence) -> None:
    """Nobody knows whether such a server runs: the sentence says that nobody was answered."""
    result = one(some)

    assert (result.verdict, result.reason) == ("inconclusive", "no-response")
    assert "; in this run it answered nobody" in result.because


def test_other_services_are_not_compared() -> None:
    """Only of name and time servers it is known that who runs answers."""
    assert one(of_server(SILENT, "memberlist", served=("c",))).verdict == "inconclusive"
    assert one(of_server(SILENT, served=("c",), limited=True)).verdict == "inconclusive"


def test_a_server_that_fails_for_everything() -> None:
    """It runs before the installation, and nobody gets a name there: no pass; live: a failure."""
    facts = NameFacts((AskedName("api-hostname", NAME),), FAILS)
    some = of_server(ANSWERED, "dns", names=facts)
    result = one(some)

    assert (result.verdict, result.reason, result.where) == (
        "inconclusive", "name-server-failure", ("service",),
    )  # fmt: skip
    assert "says SERVFAIL to everything that it was asked" in result.because
    check_alone(result)
    assert one(some, live=True).verdict == "blocked"


@pytest.mark.parametrize("live", [True, False])
def test_a_server_that_fails_for_the_root(live: bool) -> None:
    """No name is set, so it was asked for nothing else than what the probe asks."""
    for root, verdict in (("SERVFAIL", "inconclusive"), ("REFUSED", "pass"), (None, "pass")):
        own = replace(FAILS, told=(), strangers=(), root=root)
        some = of_server(ANSWERED, "dns", names=NameFacts((), own))

        assert one(some, live=live).verdict == verdict


@pytest.mark.parametrize(
    "own",
    [
        replace(FAILS, resolves=True),
        replace(FAILS, told=(NameTold(NAME, "REFUSED"),)),
        replace(FAILS, told=(NameTold(NAME, "NXDOMAIN"),), resolves=True),
    ],
)
def test_a_server_that_knows_anything_passes(own: ServerTold) -> None:
    """A domain of the installation may fail alone, and not be there yet."""
    facts = NameFacts((AskedName("api-hostname", NAME),), own)

    assert one(of_server(ANSWERED, "dns", names=facts)).verdict == "pass"
