"""Dials and visits of one balancer, held against each other: what each source saw."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import pairwise
from statistics import median

from netprobe.model.balanced import BalancerFacts, CheckSeen
from netprobe.model.inventory import Health
from netprobe.probe.rehearsals.back_end import FAILED, Visit, VisitLog
from netprobe.probe.rehearsals.dials import (
    DIALS_EACH,
    BalancerDial,
    Dialling,
    DiallingSource,
    name_certificate,
)
from netprobe.probe.rehearsals.rehearsal import NotPlayedError

Certificates = Mapping[str, bytes]
WORDS_SHOWN = 3


def find_back_end(dial: BalancerDial, certificates: Certificates, log: VisitLog) -> str | None:
    """Tell which back end a dial reached: where it arrived, or whose certificate it saw."""
    visit = log.by_number.get(dial.number)
    if visit is not None:
        return visit.back_end
    return next((n for n, one in certificates.items() if one == dial.certificate), None)


def _is_own(dial: BalancerDial, certificates: Certificates) -> bool:
    return dial.certificate in certificates.values()


def describe_source(
    source: DiallingSource, dialling: Dialling, certificates: Certificates, log: VisitLog,
    health: Health | None,
) -> BalancerFacts:  # fmt: skip
    """Give what a source saw."""
    back_ends = tuple(certificates)
    own = [dial for dial in source.dials if find_back_end(dial, certificates, log) is not None]
    ended = [dial for dial in own if not _is_own(dial, certificates)]
    # Those of a balancer that ends TLS, while it hands nothing over, are its own, not another's.
    balancers = {
        dial.certificate
        for one in dialling.sources
        for dial in one.dials
        if dial.number in log.by_number and not _is_own(dial, certificates)
    }
    rest = [dial for dial in source.dials if dial not in own]
    foreign = [dial for dial in rest if dial.heard and dial.certificate not in balancers]
    lost = [dial for dial in rest if dial not in foreign]
    visits = [log.by_number[dial.number] for dial in source.dials if dial.number in log.by_number]
    unreflected = tuple(_list_unreflected(dialling, back_ends))
    return BalancerFacts(
        back_ends,
        _sort_names(source.reached, back_ends),
        _sort_names(dialling.pool, back_ends),
        dials=len(source.dials),
        lost=len(lost),
        lost_words=_list_words(dial.words for dial in lost),
        ended=len(ended),
        foreign=len(foreign),
        shown=_list_words(map(_word_shown, foreign or ended)),
        headers=sum(visit.header is not None for visit in visits),
        sticks=always_reaches_one(source, back_ends) and len(dialling.pool) > 1,
        all_stick=all(always_reaches_one(one, back_ends) for one in dialling.sources),
        itself=_reaches_itself(source, unreflected),
        unreflected=unreflected,
        checks=tuple(_list_checks(log, health)),
        seen_as=tuple(dict.fromkeys(visit.peer for visit in visits)),
        waited_s=round(dialling.waited_s),
        since=source.since_known,
        unanswered=source.lost_since,
    )


def _sort_names(names: Container[str], back_ends: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in back_ends if name in names)


def _list_words(words: Iterable[str]) -> str:
    return ", ".join([*dict.fromkeys(filter(None, words))][:WORDS_SHOWN])


def _word_shown(dial: BalancerDial) -> str:
    if not dial.certificate:
        return dial.words
    answer = f", then {dial.words}" if dial.words else ""
    return f"the certificate of {name_certificate(dial.certificate)}{answer}"


def always_reaches_one(source: DiallingSource, back_ends: tuple[str, ...]) -> bool:
    """Tell whether chance cannot explain that a source always got the same back end."""
    if len(back_ends) < 2 or len(source.reached) != 1:
        return False
    return sum(source.reached.values()) >= DIALS_EACH * len(back_ends)


def _reaches_itself(source: DiallingSource, unreflected: tuple[str, ...]) -> bool | None:
    """Tell whether a back end reaches itself; None: it is none, or never had to."""
    if source.name in unreflected:
        return False
    return True if source.name in source.reached else None


def _list_unreflected(dialling: Dialling, back_ends: tuple[str, ...]) -> Iterator[str]:
    """List the back ends that reach others and not themselves, although others reach them."""
    for one in dialling.sources:
        if one.name in back_ends and _loses_own_share(one, dialling, len(back_ends)):
            yield one.name


def _loses_own_share(one: DiallingSource, dialling: Dialling, back_ends: int) -> bool:
    """Tell whether a back end loses as many dials as are its own, and reaches another one: who
    reaches none is stopped, or not reflected. What it lost before it was up says nothing."""
    if one.name not in dialling.pool or one.name in one.reached or not one.reached:
        return False
    since = [dial for dial in one.dials if dial.at > dialling.pool[one.name]]
    lost = sum(map(dialling.is_lost, since))
    # A pool hands every back end the same share; half of it is more than a bad line loses.
    return lost > 0 and lost * 2 * back_ends >= len(since)


def _list_checks(log: VisitLog, health: Health | None) -> Iterator[CheckSeen]:
    """List what came to back ends and is no dial, by what it asked."""
    kinds: dict[tuple[str, str, bool], list[float]] = {}
    for visit in log.visits:
        if visit.number is None:
            key = (visit.back_end, _word_check(visit), _is_passed(visit, health))
            kinds.setdefault(key, []).append(visit.at)
    for (back_end, asked, passes), times in kinds.items():
        gaps = [after - before for before, after in pairwise(times)]
        # A port that was closed for a while makes one long gap.
        every_ms = round(median(gaps) * 1000) if gaps else None
        yield CheckSeen(back_end, asked, passes, len(times), every_ms)


def _word_check(visit: Visit) -> str:
    at = f"TCP port {visit.port}"
    words = {
        "connection": f"a connection to {at}",
        "handshake": f"a TLS handshake at {at}",
        "alert": f"a TLS handshake at {at}, which it breaks off ({visit.words or 'by its end'})",
        "http": f"{visit.path} over HTTP at {at}",
        "https": f"{visit.path} over HTTPS at {at}",
        "else": f"something that is neither TLS nor HTTP at {at}",
    }
    return words[visit.asked]


def _is_passed(visit: Visit, health: Health | None) -> bool:
    """Tell whether a check got what it asked for, be it the answer of one that is to fail. A path
    that nobody named may want another answer."""
    if visit.asked in ("alert", "else"):
        return False
    if visit.asked in ("connection", "handshake"):
        return True
    return visit.status in (200, FAILED) and health is not None and visit.path == health.path


def refuse_stopped(facts: BalancerFacts, source: DiallingSource) -> NotPlayedError | None:
    """Give why a source shows nothing: it opens no connection."""
    if any(dial.opened for dial in source.dials):
        return None
    words = source.dials[-1].words if source.dials else "nothing was dialled"
    at = f"TCP port {source.target.port} of the balancer"
    found = f"{at} opens no connection ({words}): first that"
    if source.name in facts.pool:
        found += "; or it hands this back end always to itself, which it does not reach through it"
    return NotPlayedError("row-stopped", found)
