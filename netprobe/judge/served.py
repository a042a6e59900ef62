"""A name or time server that keeps quiet towards one source, and what it tells others."""

from __future__ import annotations

from msgspec.structs import replace

from netprobe.judge.words import join_some
from netprobe.model.evidence import ANSWERING, Evidence
from netprobe.model.result import Result

_IGNORED = (
    "; in this run it answered {others}: something on the way stops {source}, or the server itself "
    "ignores it (chronyd's allow, BIND's blackhole, dnsmasq's local-service)"
)
_NOBODY = "; in this run it answered nobody"


def judge_served(result: Result, evidence: Evidence) -> Result:
    """Say of silence that others are answered, which makes it a failure, or that nobody is.

    A server may ignore a client wherever the recorders leave it possible that its host got the
    request; that it runs is known.
    """
    block = evidence.flow.block
    unsure = result.verdict == "inconclusive" and result.reason == "no-response"
    if (
        not unsure
        or evidence.limited
        or result.expect == "denied"
        or block.requirement.probe not in ANSWERING
    ):
        return result
    others = [name for name in evidence.served if name != result.source]
    if not others:
        return replace(result, because=result.because + _NOBODY)
    places = {*result.where} - {"host"}
    if "destination" in places:
        places.add("service")
    words = _IGNORED.format(others=join_some(others), source=result.source)
    return replace(
        result, verdict="blocked", where=tuple(sorted(places)), because=result.because + words
    )
