"""Every reason means one thing, in findings, requests, reports and diagnoses."""

from __future__ import annotations

import string
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.parts import IcmpFact
from netprobe.judge import balanced, mtu, multicast, name_rows, quality, rehearsed, segments
from netprobe.judge.findings import fold
from netprobe.judge.of_hosts import REASONS_OF_HOSTS
from netprobe.judge.rows import ALLOWED, DENIED
from netprobe.judge.symptom import symptom
from netprobe.konnectivity.symptoms import tcp_symptom
from netprobe.model.evidence import Icmp, Outcome
from netprobe.model.icmp import ICMP_ERRORS, icmp_words
from netprobe.model.konnectivity import Opened
from netprobe.model.reasons import REASONS, find_reason
from netprobe.model.result import Verdict
from netprobe.request.rules import RequestWishes
from tests.judge.test_verdict import evidence
from tests.report.samples import BLOCKED, INFO
from tests.request.flows import ask

# Given by code beside the tables: the clock of a server, names with other addresses, and a live
# service that is missing.
BESIDE_TABLES = (
    "clock-server", "name-other-address", "nothing-listens", "loopback-holder", "row-stopped",
    "no-samples",
)  # fmt: skip


def all_reasons() -> Iterator[str]:
    """The words that the tables may give; ``{failure}`` is a kernel's or a proxy's own word."""
    templates = {row.reason for row in (*ALLOWED, *DENIED)}
    templates |= {row.reason for row in mtu.ROWS.values()}
    templates |= {row.reason for row in rehearsed.ROWS.values()}
    templates |= {row.reason for row in balanced.ROWS.values()}
    templates |= {row.reason for row in segments.ROWS.values()}
    templates |= {row.reason for row in multicast.ROWS.values()}
    templates |= {row.reason for row in quality.ROWS.values()}
    templates |= {row.reason for row in name_rows.ROWS.values() if row.reason is not None}
    templates |= set(REASONS_OF_HOSTS.values())
    for template in templates - {"{failure}"}:
        if template == "{icmp}":
            yield from (words.word for words in ICMP_ERRORS.values())
        else:
            yield template
    yield from BESIDE_TABLES


def test_every_reason_has_a_row_and_each_row_is_reached() -> None:
    """The table of reasons and the verdict tables name the same reasons."""
    assert set(all_reasons()) == set(REASONS)


@pytest.mark.parametrize("word", sorted(REASONS))
def test_titles_and_advice_can_be_filled(word: str) -> None:
    """A finding of every reason has a title and advice in which no word is left open."""
    reason = REASONS[word]
    for where in (*reason.advice, ("path",)):
        verdict: Verdict = "inconclusive" if reason.always_found else "blocked"
        one = replace(
            BLOCKED, verdict=verdict, reason=word, where=where, holder="sshd", next_hop="10.0.0.7",
            rejected_by="10.0.0.2", path_mtu_bytes=1400, needed_mtu_bytes=1450,
        )  # fmt: skip
        (finding,) = fold([one])
        assert not {"{", "}"} & {*finding.title, *finding.advice}
        assert "None" not in finding.title + finding.advice
        if where in reason.advice:
            fixed = [text for text, *_ in string.Formatter().parse(reason.advice[where])]
            assert all(text in finding.advice for text in fixed)


@pytest.mark.parametrize("word", sorted(REASONS))
def test_no_rule_is_asked_for_where_none_can_mend(word: str) -> None:
    """A request has a rule for a filtered flow exactly where the reason says that one mends it."""
    one = replace(BLOCKED, state="filtered", reason=word, where=("path",))
    request = ask([one], RequestWishes(), INFO)

    assert bool(request.rules) == REASONS[word].rule_mends


def test_a_bad_link_needs_no_rule() -> None:
    """A link of a bundle that loses packets is mended by hand: the request asks for no rule."""
    one = replace(BLOCKED, reason="bad-link", where=("path", "return-path"), protocol="udp")
    request = ask([one], RequestWishes(), INFO)
    (finding,) = fold([one])

    assert "each link" in finding.advice
    assert not request.rules
    assert request.unmended


def test_a_reverse_path_filter_is_no_firewall() -> None:
    """The title names the filter that drops the packets, as the advice does."""
    one = replace(BLOCKED, reason="reverse-path-filter", where=("destination",))
    (finding,) = fold([one])

    assert "is dropped by the destination's reverse-path filter" in finding.title
    assert "firewall" not in finding.title
    assert "rp_filter" in finding.advice


@pytest.mark.parametrize("offender", ["10.0.0.1", "fd00::1"])
@pytest.mark.parametrize("elapsed_ms", [300, 800, 2000])
def test_judge_and_diagnosis_agree_on_a_router(offender: str, elapsed_ms: int) -> None:
    """A router's "host unreachable" is late, or not, for both of them."""
    kind, code = (1, 3) if ":" in offender else (3, 1)
    icmp = Icmp(kind, code, offender, "router")
    seen = Outcome("connect", "host-unreachable", icmp, elapsed_ms=elapsed_ms)
    word = symptom(evidence(seen), seen)
    opened = Opened(
        failure="host-unreachable", icmp=IcmpFact(kind, code, offender, 64), elapsed_ms=elapsed_ms
    )

    assert (word == "router-gives-up") == (elapsed_ms == 2000)
    assert (tcp_symptom(opened) == "host-down") == (word == "router-gives-up")


def test_words_of_kernels_and_proxies_are_no_firewall_by_name() -> None:
    """What a table cannot list has a meaning, too: a proxy's refusal is no matter of a rule."""
    assert not find_reason("proxy-407").rule_mends
    assert not find_reason("proxy-407").rule_causes
    assert find_reason("icmp 3/7").rule_mends
    assert icmp_words(3, 7, "10.0.0.1").word == "icmp 3/7"
