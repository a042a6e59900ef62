"""One verdict from several addresses of one server, and what several workers have in common.

One worker alone cannot tell that it resolves the server's name differently from the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from netprobe.konnectivity.findings import Conclusion, Log
from netprobe.konnectivity.reach import Reach
from netprobe.konnectivity.request import Tunnel
from netprobe.konnectivity.verdicts import VERDICTS
from netprobe.model.konnectivity import ADDRESS_STAGES, CommonCause, Diagnosis
from netprobe.model.story import Step, TrailStatus

_WORST: tuple[TrailStatus, ...] = ("bad", "doubt", "ok", "not-possible", "not-needed")
# grpc.Dial gives its 20 s to the addresses of a family in equal parts (Go's net.Dialer).
DIAL_S = 20
# Faults first, then unsure ones, then workers that were not tested.
_RANK = {"fault": 0, "unsure": 1, "not-tested": 2, "ok": 3}
# The addresses of the name; none where it was not found.
AddressSet = frozenset[str]


class AddressLook(NamedTuple):
    """What was seen at one address of the server."""

    reach: Reach
    log: Log
    what: Conclusion

    @property
    def address(self) -> str:
        """The address."""
        return self.reach.address


Looks = Sequence[AddressLook]


def combine(tunnel: Tunnel, log: Log, looks: Looks) -> Conclusion:
    """Give one conclusion of all addresses, and to the log their stages and sentences.

    An address without a route (IPv6 on a host that has none) does not count where another works: no
    program would use it either. One that does not answer TCP is a warning then: the agent's dialler
    goes on to the next. Behind TCP it does not.
    """
    usable = [one for one in looks if one.what.code != "NO_ROUTE"] or list(looks)
    bad = [one for one in usable if VERDICTS[one.what.code].outcome != "ok"]
    deaf = [one for one in bad if _is_deaf(one.what)]
    warnings = []
    if deaf and len(deaf) == len(bad) < len(usable):
        warnings = [_warn_of_deaf(tunnel, usable, deaf)]
        usable, bad = [one for one in usable if one not in deaf], []
        looks = [*usable, *(one for one in looks if one not in usable)]
    log.stages += _combine_stages(looks, "doubt" if warnings else "bad")
    log.fine += _unique_texts(one.log.fine for one in looks)
    log.open += _unique_texts(one.log.open for one in looks)
    log.warnings += [*_unique_texts(one.log.warnings for one in looks), *warnings]
    if bad and len(bad) < len(usable):
        return _some_fail(tunnel, usable, bad)
    what = (bad or usable)[0].what
    if warnings or (bad and len({one.what.code for one in usable}) > 1):
        others = {one.address: one.what.code for one in looks}
        return replace(what, evidence={**what.evidence, "addresses": others})
    return what


def _is_deaf(what: Conclusion) -> bool:
    return VERDICTS[what.code].stage == "tcp" and what.code != "PACKET_LOSS"


def _warn_of_deaf(tunnel: Tunnel, usable: Looks, deaf: Looks) -> str:
    """Say which addresses do not answer, and what they cost."""
    proxy = usable[0].reach.proxy
    return (
        f"{len(deaf)} of {len(usable)} addresses of {proxy.host if proxy else tunnel.host} do not "
        f"answer ({_word_each(deaf)}). The agent connects by the others; "
        f"{_word_cost(usable, deaf)}, and with the others down there is nothing to fall back on: "
        "repair or withdraw them"
    )


def _word_each(looks: Looks) -> str:
    return "; ".join(f"{one.address}: {one.what.because}" for one in looks)


def _word_cost(usable: Looks, deaf: Looks) -> str:
    """Word what a real agent was seen to lose: it tries a family in turn, then the other one."""
    ours, lost = (Counter(":" in one.address for one in looks) for looks in (usable, deaf))
    if all(ours[family] == lost[family] for family in lost):
        return "it turns to the other family after 0.3 s"
    if any(one.what.is_silent for one in deaf):
        each_s = DIAL_S / max(ours[family] for family in lost)
        return f"a silent address that it tries first costs each connect {each_s:.0f} s"
    if any(one.what.code == "HOST_UNREACHABLE" for one in deaf):
        return "where it tries such a one first, each connect takes about 3 s longer"
    return "a refusal costs next to nothing"


def _some_fail(tunnel: Tunnel, usable: Looks, bad: Looks) -> Conclusion:
    evidence = {
        "host": tunnel.host,
        "count": len(usable),
        "bad": ", ".join(one.address for one in bad),
        "addresses": {one.address: one.what.code for one in usable},
        "to": usable[0].reach.to,
    }
    return Conclusion("FANOUT_ADDRESS_FAILS", _word_each(bad), evidence)


def _combine_stages(looks: Looks, worst: TrailStatus) -> list[Step]:
    """Give every stage once; where there are several addresses, each says its own.

    ``worst`` is the status of a stage that failed for some of them.
    """
    if len(looks) == 1:
        return looks[0].log.stages
    return [_join_entries(name, looks, worst) for name in ADDRESS_STAGES]


def _join_entries(name: str, looks: Looks, worst: TrailStatus) -> Step:
    found = [
        (one.address, stage) for one in looks for stage in one.log.stages if stage.name == name
    ]
    statuses = {stage.status for _, stage in found}
    status = next(each for each in _WORST if each in statuses)
    telling = [(address, stage) for address, stage in found if not stage.is_skipped]
    said = _join_words(telling)
    facts = {address: dict(stage.facts) for address, stage in telling}
    elapsed_ms = max(stage.elapsed_ms for _, stage in found)
    words = (said,) if said else found[0][1].words
    return Step(name, worst if status == "bad" else status, words, facts, elapsed_ms)


def _join_words(telling: Sequence[tuple[str, Step]]) -> str:
    """Give one sentence for each address; addresses with equal words share one."""
    words: dict[str, list[str]] = {}
    for address, stage in telling:
        words.setdefault(stage.words[0], []).append(address)
    return "; ".join(f"{', '.join(addresses)}: {said}" for said, addresses in words.items())


def _unique_texts(texts: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(texts)))


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


def compare_names(host: str, diagnoses: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Warn each worker whose answer has no address in common with what most others get.

    Of a worker with a fault the remedy begins with it: the fault may be one of a wrong address.
    Answers that overlap are no difference: some servers give a part of a pool.
    """
    answers = [_read_answer(one, host) for one in diagnoses]
    counts = Counter(each for each in answers if each is not None)
    return tuple(
        one if own is None else _warn_worker(one, host, own, counts)
        for one, own in zip(diagnoses, answers, strict=True)
    )


def _read_answer(one: Diagnosis, host: str) -> AddressSet | None:
    """Give None where the worker did not ask for this name."""
    asked = one.resolved
    return frozenset(asked.addresses) if asked is not None and asked.host == host else None


def _warn_worker(
    one: Diagnosis, host: str, own: AddressSet, counts: Counter[AddressSet]
) -> Diagnosis:
    others = [(count, sorted(each)) for each, count in counts.items() if each and not each & own]
    count, usual = max(others, default=(0, []))
    if count < counts[own] or not usual:
        return one
    differs = (
        f"{host} is {', '.join(sorted(own)) or 'not found'} here, and {', '.join(usual)} for "
        f"{count} other worker{'s' if count > 1 else ''}"
    )
    remedy = one.remedy
    if one.outcome != "ok":
        remedy = f"correct the name first ({differs}): /etc/hosts, resolver, view; then {remedy}"
    return replace(one, warnings=(*one.warnings, differs), remedy=remedy)
