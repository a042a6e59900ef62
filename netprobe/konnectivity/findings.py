"""The log of a diagnosis: an entry for each stage, and the conclusion of the one that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from netprobe.agent.wire.parts import IcmpFact
from netprobe.konnectivity.tables import fill, names_words
from netprobe.konnectivity.verdicts import VARIANTS, VERDICTS
from netprobe.model.icmp import icmp_words
from netprobe.model.konnectivity import STAGES, Diagnosis, ResolvedName, TunnelPlace
from netprobe.model.story import Step, TrailStatus
from netprobe.protocols.services.tls_talk import Attempt

_TCP_SHOWN = (
    "snd_mss", "advmss", "pmtu", "unacked", "bytes_acked", "bytes_received", "total_retrans",
    "rcv_ooopack", "segs_out", "segs_in",
)  # fmt: skip


class Conclusion(Struct, frozen=True):
    """A verdict with its evidence, which sentences and programs read; ``because`` is filled.

    ``where`` and ``variant`` are known where the verdict's own place and words are not the best.
    ``flow``: the address and the port that were looked at, as ``explain`` takes them; ``silent``:
    nobody answered there, whatever the verdict is.
    """

    code: str
    because: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    where: TunnelPlace | None = None
    variant: str | None = None
    flow: tuple[str, str] | None = None
    silent: bool = False

    @property
    def is_silent(self) -> bool:
        """Whether nobody answered."""
        return self.silent or VERDICTS[self.code].silent


def found(code: str, because: str, evidence: Mapping[str, Any]) -> Conclusion:
    """Give a verdict whose sentence still has its words in braces."""
    return Conclusion(code, fill(because, evidence), evidence)


class Log:
    """The trail of one address in order, and the sentences that it proves."""

    def __init__(self) -> None:
        self.stages: list[Step] = []
        self.fine: list[str] = []
        self.open: list[str] = []
        self.warnings: list[str] = []
        self.skew_s: float | None = None
        self.resolved: ResolvedName | None = None
        self.is_local = False
        self._began = _now_s()

    def add(
        self,
        name: str,
        status: TrailStatus,
        said: str,
        facts: Mapping[str, Any] | None = None,
        fine: str = "",
    ) -> None:
        """Add a stage to the trail; ``fine`` is a sentence about what it proves."""
        elapsed_ms = round((_now_s() - self._began) * 1000)
        self.stages.append(Step(name, status, (said,), dict(facts or {}), elapsed_ms))
        self._began = _now_s()
        if fine:
            self.fine.append(fine)

    def prove(self, name: str, said: str, facts: Mapping[str, Any]) -> None:
        """Add a stage that went well; what was seen is what it proves."""
        self.add(name, "ok", said, facts, said)

    def fail(self, name: str, what: Conclusion) -> Conclusion:
        """Add the stage that failed; its words and facts are those of the verdict."""
        self.add(name, "bad", what.because, what.evidence)
        return what

    def until(self, name: str) -> Log:
        """Give a log with the stages before this one, and none of its sentences."""
        log = Log()
        names = STAGES[: STAGES.index(name)]
        log.stages = [stage for stage in self.stages if stage.name in names]
        return log

    def skip(self, status: TrailStatus, why: str, *names: str) -> None:
        """Add stages that were skipped, with the reason."""
        done = {stage.name for stage in self.stages}
        self.stages += [Step(name, status, (why,)) for name in names if name not in done]


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def diagnosis(worker: str, via: str, log: Log, what: Conclusion) -> Diagnosis:
    """Give the verdict with all its words filled."""
    words = what.evidence
    verdict = VARIANTS.get((what.code, what.variant or ""), VERDICTS[what.code])
    failed = next((one.name for one in log.stages if one.status == "bad"), None)
    # A line whose words nobody measured was never seen.
    logs = fill(verdict.logs, words) if names_words(verdict.logs) <= words.keys() else ""
    return Diagnosis(
        worker=worker,
        code=what.code,
        outcome=verdict.outcome,
        kind=verdict.kind,
        stage=failed or verdict.stage,
        title=fill(verdict.title, words),
        because=what.because,
        remedy=fill(verdict.remedy, words),
        logs=logs,
        where=what.where or verdict.where,
        warnings=tuple(log.warnings),
        flow=what.flow if what.is_silent else None,
        via=via,
        skew_s=log.skew_s,
        resolved=log.resolved,
        evidence=words,
        fine=tuple(log.fine),
        open=tuple(log.open),
        stages=tuple(log.stages),
    )


def icmp_evidence(fact: IcmpFact | None) -> dict[str, Any]:
    """Give an ICMP error for a sentence: ``icmp`` and ``offender``."""
    if fact is None:
        return {}
    kind, code, offender, ttl = fact
    phrase = icmp_words(kind, code, offender).phrase
    return {"icmp": f"ICMP {kind}/{code} ({phrase})", "offender": offender, "icmp_ttl": ttl}


def facts_of(attempt: Attempt) -> dict[str, Any]:
    """One try for programs: what was sent, what came first and when, and the kernel's numbers."""
    seen = attempt.seen
    facts: dict[str, Any] = {
        "server_name": attempt.hello.server_name,
        "alpn_offered": list(attempt.hello.alpn),
        "hello_bytes": seen.hello_bytes,
        "first": attempt.first,
        "first_ms": round(attempt.first_ms, 1),
        "handshake": seen.done,
        "version": seen.version,
        "alpn": seen.alpn,
        "alert": seen.alert,
        "certificate_request": None if seen.authorities is None else list(seen.authorities),
        "end": attempt.end,
        "failure": attempt.failure or attempt.soft,
        "tcp": {name: attempt.tcp[name] for name in _TCP_SHOWN if name in attempt.tcp},
    }
    return facts | icmp_evidence(attempt.icmp)
