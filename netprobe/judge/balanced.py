"""What the rehearsal of a balancer saw → verdict: the gravest fault, the others as warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from netprobe.judge.removals import REMOVED_S, find_removal_fates, word_removals
from netprobe.model.balanced import BalancerFacts, CheckSeen, HeldPool
from netprobe.model.matrix import Persistence
from netprobe.model.result import Place, Proof, Result, Verdict

BalancerFate = Literal[
    "hands-on", "foreign", "ends-tls", "proxy-header", "lacks", "loses", "lacks-by-check",
    "lacks-or-sticks", "lacks-all", "lacks-favour", "no-reflection", "own-reflection",
    "never-removes", "never-returns", "slow", "sticks", "shows-other", "lacks-unready", "looks-on",
]  # fmt: skip
ADDRESSES_SHOWN = 3
ONLY_LOOKED = (
    "nothing was played or stopped: {why}. Not rehearsed: health checks, removal and return of a "
    "back end, the PROXY protocol"
)
# Three connections without an answer, and one in twelve, are a fault; fewer may be chance.
LOST, LOST_SHARE = 3, 12
LOSES = (
    "{unanswered} of {since} connections from here had no answer ({lost_words}), when connections "
    "had reached every back end"
)
STICKS = (
    "all {dials} connections of this source were handed on to {reached_here}, while other sources "
    "got others: the balancer keeps clients on one back end"
)


class BalancedRow(Struct, frozen=True):
    """One line of the table; ``because`` may use the words of ``_word_facts``."""

    verdict: Verdict
    reason: str
    proof: Proof
    where: tuple[Place, ...]
    because: str


def _make_fault(reason: str, because: str, where: tuple[Place, ...] = ("service",)) -> BalancedRow:
    return BalancedRow("blocked", reason, "none", where, because)


def _make_doubt(because: str) -> BalancedRow:
    return BalancedRow("inconclusive", "balancer-lacks", "none", ("service",), because)


# From the gravest to the least; what may come of clients that stick is less than that they do.
ROWS: Final[Mapping[BalancerFate, BalancedRow]] = {
    "foreign": _make_fault(
        "balancer-foreign",
        "{foreign} of {dials} connections were answered by something that is none of the back ends "
        "{back_ends}: {shown}; either a stranger is in the pool, or the balancer answers itself",
    ),
    "ends-tls": _make_fault(
        "balancer-ends-tls",
        "the balancer does not pass TLS through: {ended} of {dials} connections arrived at a back "
        "end, and {shown} was shown instead of the back end's",
    ),
    "shows-other": _make_fault(
        "balancer-ends-tls",
        "all {foreign} connections that were answered showed {shown}, which none of the back ends "
        "{back_ends} shows itself: the balancer ends TLS, or hands on to something else",
    ),
    "proxy-header": _make_fault(
        "balancer-proxy-header",
        "the balancer sends a header of the PROXY protocol before TLS ({headers} of {dials} "
        "connections): a back end that does not expect it closes them",
    ),
    "lacks": _make_fault(
        "balancer-lacks",
        "no connection through the balancer reached {missing} in {waited} s, from any source: "
        "{reached}{checks}",
    ),
    "loses": _make_fault(
        "balancer-loses",
        f"{LOSES}: something in its pool does not answer, or what is on the way from here does not "
        "let them through",
        ("service", "path"),
    ),
    "no-reflection": _make_fault(
        "balancer-hairpin",
        "back ends do not reach themselves through the balancer, and others reach them: "
        "{unreflected} ({lost} of {dials} connections from here had no answer: {lost_words})",
    ),
    "own-reflection": _make_fault(
        "balancer-hairpin",
        "this back end does not reach itself through the balancer ({lost} of {dials} connections "
        "had no answer: {lost_words}); others reach it, and the other back ends reach themselves",
        ("source", "service"),
    ),
    "never-removes": _make_fault(
        "balancer-never-removes",
        "the balancer does not take out a back end that fails: {never_removes} (it {failing})"
        "{checks}{unmeasured}",
    ),
    "never-returns": _make_fault(
        "balancer-never-returns",
        "a back end that failed and is well again gets no connections through the balancer: "
        "{never_returns} (it {failing} before){checks}{unmeasured}",
    ),
    "slow": _make_fault(
        "balancer-slow",
        f"the balancer takes longer than {REMOVED_S} s to take out a back end that fails: {{slow}} "
        "(it {failing}){checks}{unmeasured}",
    ),
    "sticks": _make_fault(
        "balancer-sticks",
        f"{STICKS}, and the row's document forbids that (`persistence: none`)",
    ),
    "lacks-by-check": _make_doubt(
        "no connection through the balancer reached {missing} in {waited} s, and the balancer "
        "asked there what netprobe does not answer as the platform will: {failed}; give its "
        "`health:` in the inventory, or let it check no certificate",
    ),
    "lacks-unready": _make_doubt(
        "no connection through the balancer reached {missing} in {waited} s, and whether these are "
        "ready is not known: one that is not is rightly out of the pool",
    ),
    "lacks-all": _make_doubt(
        "no connection through the balancer reached any of {missing} in {waited} s, and nothing "
        "else of it came there: it hands on to other ports or hosts, checks a port that is not "
        "played (`health:` names it), or has none of them in its pool",
    ),
    "lacks-favour": _make_doubt(
        "no connection through the balancer reached {missing} in {waited} s, although its checks "
        "there passed{checks}: it may have a small weight, or the balancer prefers others",
    ),
    "lacks-or-sticks": _make_doubt(
        "no connection through the balancer reached {missing} in {waited} s, and each source "
        "always got one and the same back end: whether {missing} would get other clients or is "
        "not in the pool cannot be told{checks}",
    ),
    "looks-on": BalancedRow(
        "pass", "balancer-pool", "handshake", (),
        "connections through the balancer were shown the own certificate of each back end: "
        "{answered}",
    ),
    "hands-on": BalancedRow(
        "pass", "balancer-pool", "nonce", (),
        "{answered}, played by agents, answered through the balancer with their own certificates"
        "{seen_as}{checks}{measured}{unmeasured}",
    ),
}  # fmt: skip


def judge_balancer(base: Result, facts: BalancerFacts, persistence: Persistence | None) -> Result:
    """Give the result of one source and a balancer. ``persistence``: that of the row."""
    fates = list_fates(facts, persistence)
    words = _word_facts(facts)
    row, *others = (ROWS[fate] for fate in fates)
    further = (
        f"{one.reason}, too: {one.because.format_map(words)}"
        for one in others
        if one.reason != "balancer-pool"
    )
    allowed = (f"{STICKS.format_map(words)}; no document of this row forbids it",)
    sticks = allowed if facts.sticks and "sticks" not in fates else ()
    few = facts.unanswered and facts.itself is not False and "loses" not in fates
    losses = (LOSES.format_map(words),) if few else ()
    looked = () if facts.held is None else (ONLY_LOOKED.format(why=facts.held.why),)
    return replace(
        base,
        verdict=row.verdict,
        state="open",
        reason=row.reason,
        proof=row.proof,
        where=row.where,
        because=row.because.format_map(words),
        attempts=facts.dials,
        warnings=(*base.warnings, *further, *losses, *sticks, *looked),
    )


def list_fates(facts: BalancerFacts, persistence: Persistence | None) -> list[BalancerFate]:
    """Give the keys of the table that hold, the gravest first; at least one. To stick is a fault
    only where ``persistence`` says so."""
    found = {*_find_faults(facts)} if facts.held is None else {*_find_looked(facts, facts.held)}
    if persistence is None:
        found.discard("sticks")
    none: BalancerFate = "hands-on" if facts.held is None else "looks-on"
    return [fate for fate in ROWS if fate in found] or [none]


def _find_faults(facts: BalancerFacts) -> Iterator[BalancerFate]:
    if facts.foreign:
        yield "foreign"
    if facts.ended:
        yield "ends-tls"
    if facts.headers:
        yield "proxy-header"
    if facts.missing:
        yield _find_lack(facts)
    if _loses_many(facts):
        yield "loses"
    yield from _find_reflection(facts)
    yield from find_removal_fates(facts)
    if facts.sticks:
        yield "sticks"


def _loses_many(facts: BalancerFacts) -> bool:
    """Tell whether the balancer leaves more connections unanswered than chance does; those of a
    back end to itself have a reason of their own."""
    many = facts.unanswered >= LOST and facts.unanswered * LOST_SHARE >= facts.since
    return many and facts.itself is not False


def _find_reflection(facts: BalancerFacts) -> Iterator[BalancerFate]:
    if facts.itself is False:
        alone = len(facts.unreflected) == 1 and len(facts.back_ends) > 1
        yield "own-reflection" if alone else "no-reflection"


def _find_looked(facts: BalancerFacts, held: HeldPool) -> Iterator[BalancerFate]:
    """Give what looking shows; certificates that are alike tell no back end from another."""
    if facts.foreign:
        yield "shows-other" if facts.foreign + facts.lost == facts.dials else "foreign"
    if held.alike or not facts.pool:
        return
    if facts.missing:
        yield "lacks" if {*facts.missing} <= {*held.ready} else "lacks-unready"
    if _loses_many(facts):
        yield "loses"
    yield from _find_reflection(facts)
    if facts.sticks:
        yield "sticks"


def _find_lack(facts: BalancerFacts) -> BalancerFate:
    if _list_failed(facts):
        return "lacks-by-check"
    if facts.all_stick:
        return "lacks-or-sticks"
    checked = {one.back_end for one in facts.checks if one.passes}
    if {*facts.missing} <= checked:
        return "lacks-favour"
    return "lacks" if facts.pool or facts.checks else "lacks-all"


def _list_failed(facts: BalancerFacts) -> list[CheckSeen]:
    return [one for one in facts.checks if one.back_end in facts.missing and not one.passes]


def _word_facts(facts: BalancerFacts) -> dict[str, str]:
    numbers = {
        name: str(getattr(facts, name))
        for name in ("foreign", "dials", "ended", "headers", "lost", "since", "unanswered")
    }
    reached = f"they reach {', '.join(facts.pool)}" if facts.pool else "they reach no back end"
    return {
        **numbers,
        "back_ends": ", ".join(facts.back_ends),
        "answered": _word_answered(facts),
        "shown": facts.shown,
        "missing": ", ".join(facts.missing),
        "waited": str(facts.waited_s),
        "reached": reached,
        "reached_here": ", ".join(facts.reached),
        "unreflected": ", ".join(facts.unreflected),
        "lost_words": facts.lost_words,
        "failed": "; ".join(dict.fromkeys(one.asked for one in _list_failed(facts))),
        "checks": _word_checks(facts),
        **word_removals(facts),
        "seen_as": _word_seen(facts.seen_as),
    }


def _word_answered(facts: BalancerFacts) -> str:
    """Name the back ends, apart those that only other sources reached."""
    rest = [name for name in facts.back_ends if name not in facts.reached]
    here = ", ".join(facts.reached)
    return f"{here} (and {', '.join(rest)}, to other sources)" if rest else here


def _word_checks(facts: BalancerFacts) -> str:
    """Say what the balancer asks, of the back ends that are in doubt if there are any."""
    if facts.held is not None:
        return ""
    about = facts.missing or facts.back_ends
    asked: dict[str, list[int | None]] = {}
    for one in facts.checks:
        if one.back_end in about:
            asked.setdefault(one.asked, []).append(one.every_ms)
    if not asked:
        to_them = " to them" if facts.missing else ""
        return f"; no health checks came{to_them} that did more than connect"
    words = [f"{text}{_word_interval(times)}" for text, times in asked.items()]
    return f"; health checks: {', '.join(words)}"


def _word_interval(times: list[int | None]) -> str:
    known = [one for one in times if one is not None]
    return f", every {min(known) / 1000:.1f} s" if known else ""


def _word_seen(addresses: tuple[str, ...]) -> str:
    if not addresses:
        return ""
    more = " and others" if len(addresses) > ADDRESSES_SHOWN else ""
    return f", which saw connections from {', '.join(addresses[:ADDRESSES_SHOWN])}{more}"
