"""What is wrong with the answers of a name server: against the inventory, and against others'."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from msgspec.structs import replace

from netprobe.judge.holder import must_run
from netprobe.judge.name_rows import ROWS, SAID
from netprobe.model.evidence import Evidence
from netprobe.model.names import NO_ANSWERS, NameFacts, NameTold, ServerTold
from netprobe.model.plan import AskedName
from netprobe.model.result import Result

MOST_ADDRESSES = 4

# A kind of ``ROWS``, and the words for its sentences.
NamedTrouble = tuple[str, dict[str, str]]


def judge_names(result: Result, evidence: Evidence, live: bool) -> Result:
    """Say on a flow that passes what is wrong with the names; with ``live`` that may be a failure.

    That the server can be reached stays true: what fails is the service.
    """
    facts = evidence.names
    if facts is None or result.verdict != "pass":
        return result
    fails_by_name = live and facts.asked
    if must_run(evidence, live) and not fails_by_name and _fails_for_all(facts.own):
        return _doubt_server(result, evidence)
    failures: list[str] = []
    warnings: list[str] = []
    reason = ""
    for kind, words in find_troubles(evidence, facts):
        row = ROWS[kind]
        fails = live and row.reason is not None
        early = f" ({row.early})" if row.early and not live else ""
        sentence = f"{row.said}{early}; to do: {row.to_do}".format_map(words)
        (failures if fails else warnings).append(sentence)
        reason = reason or (row.reason if fails and row.reason else "")
    result = replace(result, warnings=result.warnings + tuple(dict.fromkeys(warnings)))
    if not failures:
        return result
    because = "; ".join(dict.fromkeys(failures))
    return replace(
        result, verdict="blocked", reason=reason, proof="none", where=("service",), because=because
    )


def _fails_for_all(own: ServerTold) -> bool:
    """Tell whether a server says SERVFAIL to everything that it was asked, of the root too."""
    asked = [one.said for one in (*own.told, *own.strangers)]
    return not own.resolves and all(one == "SERVFAIL" for one in asked or [own.root or ""])


def _doubt_server(result: Result, evidence: Evidence) -> Result:
    """What answers is a name server, and of no use so far."""
    server = f"{evidence.flow.destination.name} ({evidence.address})"
    because = (
        f"{server} answers, and says SERVFAIL to everything that it was asked, while name servers "
        f"run before the installation; to do: {ROWS['server-failure'].to_do}"
    )
    return replace(
        result, verdict="inconclusive", reason="name-server-failure", proof="none",
        where=("service",), because=because,
    )  # fmt: skip


def find_troubles(evidence: Evidence, facts: NameFacts) -> Iterator[NamedTrouble]:
    """Find everything that is wrong, in the order in which people should read it."""
    server = f"{evidence.flow.destination.name} ({evidence.address})"
    common = {
        "server": server,
        "protocol": evidence.flow.block.protocol,
    }
    for one in facts.asked:
        told = facts.own.of(one.name)
        if told is not None:
            words = common | _words_of(one, told)
            yield from ((kind, words) for kind in _find_own(one, told))
            yield from _find_wildcard(facts, one, words)
            yield from _compare_servers(facts, one.name, words)
            yield from _compare_sources(facts, one.name, words)
    yield from _find_resolvers(facts, common)


def _words_of(asked: AskedName, told: NameTold) -> dict[str, str]:
    return {
        "name": asked.name,
        "setting": asked.setting,
        "said": told.said,
        "size": f"{told.size:,}",
        "addresses": word_addresses(told.addresses),
        "expected": word_addresses(asked.addresses),
        "answer": word_answer(told),
        "domain": asked.name.partition(".")[2],
    }


def word_answer(told: NameTold) -> str:
    """Give the addresses, or what the server said instead."""
    return word_addresses(told.addresses) or told.said


def word_addresses(addresses: Sequence[str]) -> str:
    """List a few addresses; a name may have hundreds."""
    more = len(addresses) - MOST_ADDRESSES
    return ", ".join(addresses[:MOST_ADDRESSES]) + (f" and {more} more" if more > 0 else "")


def _find_own(asked: AskedName, told: NameTold) -> Iterator[str]:
    if told.trouble:
        yield told.trouble
    if told.trouble == "cut":
        # What came is no whole answer.
        return
    if not told.addresses:
        yield SAID.get(told.said, "odd-answer")
    elif asked.addresses and not _are_expected(told.addresses, asked.addresses):
        yield "other-address"


def _are_expected(addresses: Sequence[str], expected: Sequence[str]) -> bool:
    """Compare the families that the inventory has; an answer with none of these is another."""
    families = {":" in one for one in expected}
    some = {one for one in addresses if (":" in one) in families}
    return bool(some) and some <= set(expected)


def _find_wildcard(
    facts: NameFacts, asked: AskedName, words: dict[str, str]
) -> Iterator[NamedTrouble]:
    """A name that nobody made is answered too, where no setting names a wildcard."""
    # A wildcard stands for all that is below its domain, however deep.
    meant = [one.name.removeprefix("*") for one in facts.asked if one.name.startswith("*.")]
    own = facts.own.of(asked.name)
    for stranger in facts.own.strangers:
        same_domain = stranger.name == f"*.{words['domain']}"
        answers = own is not None and own.addresses and stranger.addresses
        if same_domain and not any(map(stranger.name.endswith, meant)) and answers:
            yield "wildcard", words | {"addresses": word_addresses(stranger.addresses)}


def _compare_servers(facts: NameFacts, name: str, words: dict[str, str]) -> Iterator[NamedTrouble]:
    own = facts.own.of(name)
    serial = dict(facts.own.serials).get(words["domain"])
    for other in facts.others:
        told = other.of(name)
        if not _is_other_answer(told, own) or _answers_in_turn(name, facts.own, other):
            continue
        more = words | {"other": _word_server(other), "other_answer": word_answer(told)}
        theirs = dict(other.serials).get(words["domain"])
        if serial is None or theirs is None or serial == theirs:
            yield "servers-differ", more
        else:
            yield "stale", more | {"serial": str(serial), "other_serial": str(theirs)}


def _compare_sources(facts: NameFacts, name: str, words: dict[str, str]) -> Iterator[NamedTrouble]:
    own = facts.own.of(name)
    for other in facts.elsewhere:
        told = other.of(name)
        if _is_other_answer(told, own) and not _answers_in_turn(name, facts.own, other):
            yield "split", words | {"other": other.source, "other_answer": word_answer(told)}
            return


def _is_other_answer(told: NameTold | None, own: NameTold | None) -> TypeGuard[NameTold]:
    """Tell whether two views of a name differ."""
    if own is None or told is None or own.answer is None or told.answer is None:
        return False
    return own.answer != told.answer


def _answers_in_turn(name: str, *servers: ServerTold) -> bool:
    """Tell whether one of them answers otherwise each time: nothing can be compared then."""
    return any(name in one.varying for one in servers)


def _find_resolvers(facts: NameFacts, common: dict[str, str]) -> Iterator[NamedTrouble]:
    """A resolver on the source itself is no other server: it forwards to one."""
    for other in facts.others:
        if not other.resolver:
            continue
        words = common | {"other": other.server}
        if _is_silent(other):
            yield "mute-resolver" if other.alive else "dead-resolver", words
        elif not ipaddress.ip_address(other.server.partition("%")[0]).is_loopback:
            yield "other-resolver", words


def _is_silent(server: ServerTold) -> bool:
    return all(one.said in NO_ANSWERS for one in server.told)


def _word_server(server: ServerTold) -> str:
    return f"{server.server} of its resolv.conf" if server.resolver else server.server
