"""Names, judged: what each answer means, before the installation and after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.judge.name_rows import ROWS, SAID
from netprobe.judge.name_troubles import find_troubles
from netprobe.model.evidence import Evidence, Outcome
from netprobe.model.names import NameFacts, NameTold, ServerTold
from netprobe.model.plan import AskedName

from .test_verdict import evidence, one

PAGE = Path(__file__).parents[2] / "docs/dns-and-time.md"
NAME = "api.x.test"
ASKED = AskedName("api-hostname", NAME, ("10.0.0.5",))
RIGHT = NameTold(NAME, "NOERROR", ("10.0.0.5",), 44)
OTHER = NameTold(NAME, "NOERROR", ("10.0.0.6",), 44)
SIX = NameTold(NAME, "NOERROR", ("fd00::5",), 44)
BOTH = NameTold(NAME, "NOERROR", ("10.0.0.5", "fd00::5"), 44)
ASKED_SIX = AskedName("api-hostname", NAME, ("fd00::5",))
NOBODY = NameTold("*.x.test", "NXDOMAIN")


def server(told: NameTold, name: str = "10.0.0.2", **more: Any) -> ServerTold:
    """What a server told of the one name."""
    return ServerTold(more.pop("source", "a"), name, (told,), **{"strangers": (NOBODY,), **more})


def seen(own: ServerTold, asked: AskedName = ASKED, **more: Any) -> Evidence:
    """A name server that answered the probe."""
    outcome = Outcome("answer", None, answer="service", said="REFUSED")
    return evidence(outcome, "udp", names=NameFacts((asked,), own, **more))


def kinds(some: Evidence) -> list[str]:
    """The troubles that are found."""
    assert some.names is not None
    return [kind for kind, _ in find_troubles(some, some.names)]


CASES: list[tuple[Evidence, list[str]]] = [
    (seen(server(RIGHT)), []),
    *((seen(server(NameTold(NAME, said))), [kind]) for said, kind in SAID.items()),
    (seen(server(NameTold(NAME, "FORMERR"))), ["odd-answer"]),
    (seen(server(NameTold(NAME, "NOERROR", (), 512, "cut"))), ["cut"]),
    (seen(server(NameTold(NAME, "NOERROR", ("fd00::5",), 512, "cut"))), ["cut"]),
    (seen(server(OTHER)), ["other-address"]),
    (seen(server(OTHER), AskedName("api-hostname", NAME)), []),
    # Of families that the inventory does not have nothing is known.
    (seen(server(SIX), AskedName("api-hostname", NAME)), []),
    (seen(server(BOTH)), []),
    (seen(server(BOTH), ASKED_SIX), []),
    (seen(server(SIX)), ["other-address"]),
    (seen(server(RIGHT), ASKED_SIX), ["other-address"]),
    (
        seen(server(RIGHT, strangers=(NameTold("*.x.test", "NOERROR", ("10.0.0.9",)),))),
        ["wildcard"],
    ),
    (seen(server(NameTold(NAME, "NOERROR", ("10.0.0.5",), 1700, "lost"))), ["lost"]),
    (seen(server(NameTold(NAME, "NOERROR", ("10.0.0.5",), 44, "edns"))), ["edns"]),
    (
        seen(
            server(RIGHT, serials=(("x.test", 7),)),
            others=(server(OTHER, "10.0.0.3", serials=(("x.test", 6),)),),
        ),
        ["stale"],
    ),
    (seen(server(RIGHT), others=(server(OTHER, "10.0.0.3"),)), ["servers-differ"]),
    (seen(server(RIGHT), others=(server(NameTold(NAME, "no answer"), "10.0.0.3"),)), []),
    (seen(server(RIGHT), elsewhere=(server(OTHER, source="c"),)), ["split"]),
    (seen(server(RIGHT), others=(server(RIGHT, "10.0.0.3", resolver=True),)), ["other-resolver"]),
    (seen(server(RIGHT), others=(server(RIGHT, "127.0.0.53", resolver=True),)), []),
    (
        seen(
            server(RIGHT),
            others=(server(NameTold(NAME, "no answer"), "10.0.0.3", resolver=True, alive=False),),
        ),
        ["dead-resolver"],
    ),
    (
        seen(
            server(RIGHT), others=(server(NameTold(NAME, "no answer"), "10.0.0.3", resolver=True),)
        ),
        ["mute-resolver"],
    ),
    # Who answers otherwise each time has no view of its own, and a failure is none.
    (seen(server(RIGHT, varying=(NAME,)), elsewhere=(server(OTHER, source="c"),)), []),
    (seen(server(RIGHT), others=(server(OTHER, "10.0.0.3", varying=(NAME,)),)), []),
    (seen(server(RIGHT), elsewhere=(server(NameTold(NAME, "SERVFAIL"), source="c"),)), []),
    (seen(server(RIGHT), others=(server(NameTold(NAME, "REFUSED"), "10.0.0.3"),)), []),
    (seen(server(RIGHT), others=(server(NameTold(NAME, "NXDOMAIN"), "10.0.0.3"),)),
     ["servers-differ"]),
]  # fmt: skip


@pytest.mark.parametrize(("some", "expected"), CASES)
def test_troubles(some: Evidence, expected: list[str]) -> None:
    """What is found, and that a run before the installation says it and passes."""
    assert kinds(some) == expected
    result = one(some)
    assert (result.verdict, len(result.warnings)) == ("pass", len(expected))
    assert all("; to do: " in text and "{" not in text for text in result.warnings)


@pytest.mark.parametrize(("some", "expected"), CASES)
def test_troubles_of_a_live_run(some: Evidence, expected: list[str]) -> None:
    """What the matrix needs is a failure of the service then; the rest stays a warning."""
    result = one(some, live=True)
    reasons = [ROWS[kind].reason for kind in expected]

    if not any(reasons):
        assert (result.verdict, len(result.warnings)) == ("pass", len(expected))
        return
    assert (result.verdict, result.reason) == ("blocked", reasons[0])
    assert (result.where, result.proof) == (("service",), "none")
    assert "; to do: " in result.because
    (finding,) = fold([result])
    assert (finding.kind, "names of the installation" in finding.title) == ("names", True)
    assert "dig @10.0.0.2 NAME on a" in finding.advice


@pytest.mark.parametrize(
    ("meant", "expected"), [("*.test", []), ("*.x.test", []), ("*.y.test", ["wildcard"])]
)
def test_a_wildcard_that_is_meant_stands_for_all_below_it(meant: str, expected: list[str]) -> None:
    """However deep: DNS answers ``a.b.x.test`` by ``*.x.test``."""
    everything = (NameTold("*.x.test", "NOERROR", ("10.0.0.9",)),)
    some = seen(server(RIGHT, strangers=everything))
    assert some.names is not None
    asked = (ASKED, AskedName("apps-hostname", meant))

    assert kinds(replace(some, names=replace(some.names, asked=asked))) == expected


def test_every_row_is_reached() -> None:
    """No row stands there for nothing."""
    assert {kind for _, found in CASES for kind in found} == set(ROWS)


def test_what_did_not_pass_is_left_alone() -> None:
    """A flow that is dropped is dropped, whatever was told earlier."""
    dropped = evidence(
        Outcome("answer", "no-answer"), "udp", names=NameFacts((ASKED,), server(OTHER))
    )
    assert one(dropped, live=True).reason == "no-response"


def test_a_wildcard_that_is_meant() -> None:
    """A setting names it: then any name there is answered, rightly."""
    wild = AskedName("apps-hostname", "*.x.test")
    told = NameTold("*.x.test", "NOERROR", ("10.0.0.5",))
    own = ServerTold("a", "10.0.0.2", (RIGHT, told), (told,))
    facts = NameFacts((ASKED, wild), own)

    assert kinds(evidence(Outcome("answer", None, answer="service"), "udp", names=facts)) == []


def test_many_addresses_are_not_all_listed() -> None:
    """Four of them, and how many more there are."""
    many = tuple(f"10.1.0.{number}" for number in range(10, 40))
    (text,) = one(seen(server(NameTold(NAME, "NOERROR", many)))).warnings

    assert "10.1.0.10, 10.1.0.11, 10.1.0.12, 10.1.0.13 and 26 more for api.x.test" in text


def test_the_page_has_every_reason() -> None:
    """Whoever reads a reason in a report finds it in the page."""
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{row.reason}`" in page for row in ROWS.values() if row.reason is not None)
