"""A balancer with a silent back end: what nobody answered tells nothing of who answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from netprobe.konnectivity import identity
from netprobe.konnectivity.answers import look_at_answers
from netprobe.konnectivity.findings import Conclusion, Log
from netprobe.konnectivity.reach import Reach
from netprobe.konnectivity.request import Tunnel
from netprobe.model.konnectivity import Event, Opened
from netprobe.probe.jumping_loop import JumpingLoop
from netprobe.protocols.services.http2 import CallFacts
from netprobe.protocols.services.tls import Hello, SeenHandshake
from netprobe.protocols.services.tls_talk import Attempt
from tests.lab.konnectivity import pki

NAME = "k.lab.test"
TUNNEL = Tunnel(NAME, 8132, "loadbalancer", sni=NAME)


class SilentPipe:
    """A connection that opens, on which nothing comes back."""

    opened = Opened(None, rtt_ms=1.0)

    def __init__(self) -> None:
        self._silent_ms = 0.0

    async def send(self, data: bytes) -> None:
        """Take bytes."""

    async def receive(self, limit_s: float) -> Event:
        """Wait in vain."""
        await asyncio.sleep(limit_s)
        self._silent_ms += limit_s * 1000
        return Event("timeout", b"", self._silent_ms, self._silent_ms)


class SilentAgent:
    """An agent whose connections all meet the silent back end."""

    skew_s = 0.0

    @asynccontextmanager
    async def open_stream(self, _target: Any) -> AsyncIterator[SilentPipe]:
        """Open one more."""
        yield SilentPipe()


@pytest.fixture
def answered(tmp_path: Path) -> Attempt:
    """A handshake that was answered: no certificate was asked for, and the chain is k0s's."""
    pki.issue(tmp_path, "k0s.pem", pki.authority(CN="kubernetes-ca"), (NAME,), CN="konnectivity")
    leaf = x509.load_pem_x509_certificate((tmp_path / "k0s.pem").read_bytes())
    seen = SeenHandshake(done=True, alpn="h2", chain=(leaf.public_bytes(Encoding.DER),))
    return Attempt(Hello(NAME), seen, "bytes")


@pytest.mark.slow
def test_silence_makes_nobody_an_interceptor(answered: Attempt) -> None:
    """TLS was answered, and every call of the unknown method met silence: it is a back end's."""

    async def look() -> Conclusion:
        reach = Reach(cast(Any, SilentAgent()), TUNNEL, "127.0.0.1", 8132)
        return await look_at_answers(reach, Log(), answered, answered)

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        found = runner.run(look())

    assert found.code == "FANOUT_SOME_FAIL", found.because
    assert (found.evidence["tries"], found.evidence["failed"]) == (11, 10)


@pytest.mark.parametrize(
    ("words", "expected", "after_s"),
    [
        # Answered at once: it is asked once.
        ([("agent-service", 0.2)], "agent-service", 0.2),
        # A late server, or one of several back ends: what others answer counts.
        ([("withheld", 10.0), ("withheld", 10.0), ("agent-service", 0.2)], "agent-service", 1.7),
        ([("unheard", 12.0), ("agent-service", 3.0), ("withheld", 10.0)], "agent-service", 4.5),
        ([("agent-service", 2.0), ("withheld", 10.0), ("withheld", 10.0)], "agent-service", 2.0),
        # All alike: what the first met.
        ([("withheld", 10.0)] * 3, "withheld", 11.5),
        ([("withheld", 10.0), ("unheard", 12.0), ("unheard", 12.0)], "withheld", 13.5),
    ],
)
def test_a_call_that_is_not_answered_soon_is_made_again(
    words: list[tuple[str, float]], expected: str, after_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call that meets silence tells nothing of the service."""
    left = iter(words)

    async def call_once(_reach: Reach, _identity: object) -> identity.UnknownCall:
        word, later_s = next(left)
        await asyncio.sleep(later_s)
        return identity.UnknownCall(CallFacts(), word)

    async def call() -> tuple[str, float]:
        reach = Reach(cast(Any, SilentAgent()), TUNNEL, "127.0.0.1", 8132)
        begun_s = asyncio.get_running_loop().time()
        found = await identity.call_unknown(reach)
        return found.word, asyncio.get_running_loop().time() - begun_s

    monkeypatch.setattr(identity, "_call_once", call_once)
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        found, took_s = runner.run(call())

    assert (found, round(took_s, 1)) == (expected, after_s)
    assert next(left, None) is None
