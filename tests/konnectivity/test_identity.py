"""Who answered, in words that do not contradict the certificate."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from netprobe.konnectivity.identity import Who, evidence_of
from netprobe.konnectivity.reach import Reach
from netprobe.konnectivity.request import Tunnel
from netprobe.konnectivity.tables import IDENTITY, fill
from netprobe.model.decision import first_match
from netprobe.protocols.services.tls import Hello, SeenHandshake
from netprobe.protocols.services.tls_certificates import Certificate
from netprobe.protocols.services.tls_talk import Attempt

NAME = "web.lab.test"


class Agent:
    """All that the words ask of an agent."""

    skew_s = 0.0


def sentence(names: tuple[str, ...], alpn: str, request: str = "none") -> str:
    """What is said of a self-signed certificate for these names."""
    certificate = Certificate(
        f"CN={NAME}", NAME, f"CN={NAME}", NAME, names,
        "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "ab",
    )  # fmt: skip
    who = Who(
        "stranger", request, alpn, "not-asked", certificate, Attempt(Hello(NAME), SeenHandshake())
    )

    async def fill_evidence() -> dict[str, Any]:
        reach = Reach(cast(Any, Agent()), Tunnel(NAME, 443, "route", sni=NAME), "127.0.0.1", 443)
        return evidence_of(who, reach) | reach.where()

    row = first_match(IDENTITY, (who.who, who.request, who.alpn, who.reply))
    assert row.verdict == "WRONG_SERVICE"
    return fill(row.because, asyncio.run(fill_evidence()))


@pytest.mark.parametrize(
    ("alpn", "asked", "told"),
    [
        ("none", "none", ", no client certificate is asked for, HTTP/2 is not agreed;"),
        ("h2", "none", ", no client certificate is asked for;"),
        ("h2", "other", "and not by konnectivity-signer;"),
    ],
)
def test_a_certificate_for_the_name_is_not_said_to_be_for_others(
    alpn: str, asked: str, told: str
) -> None:
    """The name is right, so something else tells that it is another service."""
    said = sentence((NAME,), alpn, asked)
    assert "not made for" not in said
    assert f"covers {NAME}; what tells that it is another service: it is signed by itself" in said
    assert told in said


def test_a_certificate_for_other_names_says_so() -> None:
    """There the names are what tells."""
    assert f"is valid for a.test and not made for {NAME};" in sentence(("a.test",), "none")
    assert "is valid for no name at all and" in sentence((), "none")
