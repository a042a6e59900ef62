"""One verdict from several addresses of one server, one cause from several workers' verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from netprobe.konnectivity.findings import Conclusion, Log, diagnosis
from netprobe.konnectivity.reach import Reach
from netprobe.konnectivity.request import Tunnel
from netprobe.konnectivity.verdicts import VERDICTS
from netprobe.model.konnectivity import ADDRESS_STAGES, CommonCause, Diagnosis
from netprobe.model.trail import Step, TrailStatus

Results = Sequence[tuple[Reach, tuple[Log, Conclusion]]]

_WORST: tuple[TrailStatus, ...] = ("bad", "doubt", "ok", "not-possible", "not-needed")
# grpc.Dial gives its 20 s to the addresses of a family in equal parts (Go's net.Dialer).
DIAL_S = 20
_SILENT = ("silent", "own-firewall")
# Faults first, then unsure ones, then workers that were not tested.
_RANK = {"fault": 0, "unsure": 1, "not-tested": 2, "ok": 3}


def combine(worker: str, via: str, tunnel: Tunnel, names: Log, results: Results) -> Diagnosis:
    """Give one diagnosis of all addresses.

    An address without a route (IPv6 on a host that has none) does not count where another works: no
    program would use it either. One that does not answer TCP is a warning then: the agent's dialler
    goes on to the next. Behind TCP it does not.
    """
    usable = [item for item in results if item[1][1].code != "NO_ROUTE"] or list(results)
    bad = [item for item in usable if VERDICTS[item[1][1].code].outcome != "ok"]
    deaf = [item for item in bad if _is_deaf(item[1][1])]
    warnings: tuple[str, ...] = ()
    if deaf and len(deaf) == len(bad) < len(usable):
        warnings = (_warn_of_deaf(tunnel, usable, deaf),)
        usable, bad = [item for item in usable if item not in deaf], []
        results = [*usable, *(item for item in results if item not in usable)]
    log = Log()
    log.stages = [*names.stages, *_combine_stages(results, "doubt" if warnings else "bad")]
    log.skew_s, log.resolved = names.skew_s, names.resolved
    log.fine = [*names.fine, *_unique_texts(results, "fine")]
    log.open = _unique_texts(results, "open")
    log.warnings = [*names.warnings, *_unique_texts(results, "warnings")]
    codes = {item[1][1].code for item in usable}
    if bad and len(bad) < len(usable):
        return diagnosis(worker, via, log, _some_fail(tunnel, usable, bad))
    what = usable[0][1][1] if not bad else bad[0][1][1]
    if (len(codes) > 1 and bad) or warnings:
        others = {reach.address: one.code for reach, (_, one) in results}
        what = Conclusion(what.code, what.because, {**what.evidence, "addresses": others})
    return diagnosis(worker, via, log, what, warnings)


def _is_deaf(what: Conclusion) -> bool:
    return VERDICTS[what.code].stage == "tcp" and what.code != "PACKET_LOSS"


def _warn_of_deaf(tunnel: Tunnel, usable: Results, deaf: Results) -> str:
    """Say which addresses do not answer, and what they cost."""
    said = "; ".join(f"{reach.address}: {what.because}" for reach, (_, what) in deaf)
    proxy = usable[0][0].proxy
    return (
        f"{len(deaf)} of {len(usable)} addresses of {proxy.host if proxy else tunnel.host} do not "
        f"answer ({said}). The agent connects by the others; {_word_cost(usable, deaf)}, and with "
        "the others down there is nothing to fall back on: repair or withdraw them"
    )


def _word_cost(usable: Results, deaf: Results) -> str:
    """Word what a real agent was seen to lose: it tries a family in turn, then the other one."""
    families = [[_is_v6(item) for item in items] for items in (usable, deaf)]
    count = max(families[0].count(family) for family in families[1])
    if all(families[0].count(family) == families[1].count(family) for family in families[1]):
        return "it turns to the other family after 0.3 s"
    if any(what.evidence.get("sight") in _SILENT for _, (_, what) in deaf):
        return f"a silent address that it tries first costs each connect {DIAL_S / count:.0f} s"
    if any(what.code == "HOST_UNREACHABLE" for _, (_, what) in deaf):
        return "where it tries such a one first, each connect takes about 3 s longer"
    return "a refusal costs next to nothing"


def _is_v6(item: tuple[Reach, tuple[Log, Conclusion]]) -> bool:
    return ":" in item[0].address


def _some_fail(tunnel: Tunnel, usable: Results, bad: Results) -> Conclusion:
    evidence = {
        "host": tunnel.host,
        "count": len(usable),
        "bad": ", ".join(reach.address for reach, _ in bad),
        "addresses": {reach.address: what.code for reach, (_, what) in usable},
        "to": usable[0][0].to,
    }
    said = "; ".join(f"{reach.address}: {what.because}" for reach, (_, what) in bad)
    return Conclusion("FANOUT_ADDRESS_FAILS", said, evidence)


def _combine_stages(results: Results, worst: TrailStatus) -> list[Step]:
    """Give every stage once; where there are several addresses, each says its own.

    ``worst`` is the status of a stage that failed for some of them.
    """
    if len(results) == 1:
        return results[0][1][0].stages
    joined = [_join_entries(name, results) for name in ADDRESS_STAGES]
    return [replace(one, status=worst) if one.status == "bad" else one for one in joined]


def _join_entries(name: str, results: Results) -> Step:
    found = [
        (reach.address, stage)
        for reach, (log, _) in results
        for stage in log.stages
        if stage.name == name
    ]
    statuses = {stage.status for _, stage in found}
    status = next(each for each in _WORST if each in statuses)
    telling = [(address, stage) for address, stage in found if not stage.is_skipped]
    said = _join_words(telling)
    facts = {address: dict(stage.facts) for address, stage in telling}
    elapsed_ms = max(stage.elapsed_ms for _, stage in found)
    words = (said,) if said else found[0][1].words
    return Step(name, status, words, facts, elapsed_ms)


def _join_words(telling: Sequence[tuple[str, Step]]) -> str:
    """Give one sentence for each address; addresses with equal words share one."""
    words: dict[str, list[str]] = {}
    for address, stage in telling:
        words.setdefault(stage.words[0], []).append(address)
    return "; ".join(f"{', '.join(addresses)}: {said}" for said, addresses in words.items())


def _unique_texts(results: Results, which: str) -> list[str]:
    texts = [text for _, (log, _) in results for text in getattr(log, which)]
    return list(dict.fromkeys(texts))


def causes(diagnoses: Sequence[Diagnosis]) -> tuple[CommonCause, ...]:
    """One cause for each verdict and title, the most widespread fault first; none for good ones."""
    groups: dict[tuple[str, str], list[Diagnosis]] = {}
    for one in diagnoses:
        if one.outcome != "ok":
            groups.setdefault((one.code, one.title), []).append(one)
    found = [
        CommonCause(
            code=members[0].code,
            outcome=members[0].outcome,
            where=members[0].where,
            title=members[0].title,
            remedy=members[0].remedy,
            workers=tuple(one.worker for one in members),
            total=len(diagnoses),
        )
        for members in groups.values()
    ]
    return tuple(sorted(found, key=lambda one: (_RANK[one.outcome], -len(one.workers), one.code)))
