"""Scores: each answer of netprobe held against what can be known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.lab.accuracy.cases import ROUTES, Case
from tests.lab.accuracy.expected import Expectation, Question, expected
from tests.lab.accuracy.running import Answers
from tests.lab.accuracy.topology import ROUTER_1

Score = Literal["right", "less", "wrong"]
SCORES: tuple[Score, ...] = ("right", "less", "wrong")

# Places whose rules stop every packet of the address, so that nothing of it answers.
_ALL_STOPPED = (
    *ROUTES, "source-out", "router-1", "router-2", "destination-out", "back-router-2",
    "back-router-1", "source-in", "down",
)  # fmt: skip


@dataclass(frozen=True)
class Scored:
    """One question with what was expected, what was got, and how good that is."""

    question: Question
    expectation: Expectation
    got: Any
    score: Score
    because: str

    def line(self) -> str:
        """One line for people; of what is wrong with the whole result."""
        case = f"{self.score:5} {self.question.protocol:4} {self.question.case.name}"
        whole = f"; {self.got}" if self.score == "wrong" else ""
        got = f"{_short(self.got)}{whole}"
        return f"{case}: {self.because}; got {got}; rule {self.expectation.words}"


def answers_anything(case: Case) -> bool:
    """Whether the address of a case without an agent answers the source on anything in its run."""
    if case.listener == "closed" and case.place not in (*ROUTES, "down"):
        return True  # the control port
    if case.action == "tcp-reset":
        # Reset rules touch TCP only; the datagrams and echoes of the same address get through.
        return False
    return case.place == "open" or (case.place == "destination-in" and case.action != "drop")


def question_of(case: Case, protocol: str, address: str, captures: bool) -> Question:
    """The question of a case."""
    return Question(case, protocol, address, captures, answers_anything(case))


Verdict = tuple[Score, str] | None
Check = Callable[[Expectation, str | None, dict[str, Any]], Verdict]


def scores(answers: Answers, captures: bool, *, words: bool = True) -> list[Scored]:
    """Every answer with its score, in the order of the cases.

    ``words``: the words for state, reason, proof and last hop count too.
    """
    return [
        _judge(question_of(case, protocol, address, captures), got, words)
        for (case, protocol), (address, got) in sorted(answers.items(), key=lambda item: item[0])
    ]


def _judge(question: Question, got: dict[str, Any] | None, words: bool) -> Scored:
    want = expected(question)
    score, because = _score(want, question.truth, got, words)
    return Scored(question, want, got, score, because)


def _score(
    want: Expectation, truth: str | None, got: dict[str, Any] | None, words: bool
) -> tuple[Score, str]:
    if got is None:
        return "less", "no result"
    checks: list[Check] = [_verdict, _place, _rejecter]
    if words:
        checks += [_hop, _words]
    for check in checks:
        found = check(want, truth, got)
        if found is not None:
            return found
    return "right", ""


def _words(want: Expectation, truth: str | None, got: dict[str, Any]) -> Verdict:
    for key, allowed in (
        ("state", want.states), ("reason", want.reasons), ("proof", want.proofs)
    ):  # fmt: skip
        if got[key] not in allowed:
            return "less", f"{key} {got[key]}, not {' or '.join(sorted(allowed))}"
    return None


def _verdict(want: Expectation, truth: str | None, got: dict[str, Any]) -> Verdict:
    verdict = got["verdict"]
    if verdict == want.verdict or verdict in want.also:
        return None
    unsure = verdict in ("inconclusive", "not-tested")
    if unsure and (truth is None or truth in got["where"]):
        return "less", f"{verdict}, not {want.verdict}"
    return "wrong", f"{verdict}, not {want.verdict}"


def _place(want: Expectation, truth: str | None, got: dict[str, Any]) -> Verdict:
    where = frozenset(got["where"])
    if want.verdict == "pass":
        return None if not where else ("less", f"a pass with places {sorted(where)}")
    if truth is not None and truth not in where:
        return "wrong", f"{truth} is not in {sorted(where)}"
    if where - want.may:
        return "less", f"{sorted(where - want.may)} can be excluded"
    if want.must - where:
        return "less", f"{sorted(want.must - where)} cannot be excluded"
    return None


def _rejecter(want: Expectation, truth: str | None, got: dict[str, Any]) -> Verdict:
    name = got["rejected_by"]
    if name in want.rejecters:
        return None
    if name is None:
        return "less", "the one who rejects is not named"
    return "wrong", f"{name} does not reject"


def _hop(want: Expectation, truth: str | None, got: dict[str, Any]) -> Verdict:
    hop = got["last_hop"]
    if want.hops is None or hop in want.hops:
        return None
    if hop is None:
        return "less", "the last hop is not named"
    if hop in ROUTER_1:
        # It did answer; the one behind it was not heard, which is less and not false.
        return "less", f"{hop} is not the last hop that can answer"
    return "wrong", f"{hop} is not the last hop that answers"


def _short(got: dict[str, Any] | None) -> str:
    if got is None:
        return "nothing"
    words = [got["verdict"], got["state"], got["reason"], got["proof"], ",".join(got["where"])]
    named = [f"{key}={got[key]}" for key in ("rejected_by", "last_hop") if got[key]]
    return " ".join((*words, *named))


def table(scored: Sequence[Scored], *, brief: bool = False) -> Iterator[str]:
    """A row for each protocol, family and (unless ``brief``) place, then the sum."""
    rows: dict[str, Counter[Score]] = {}
    for one in scored:
        case = one.question.case
        place = "" if brief else f"  {'lan ' if case.lan else ''}{case.place}"
        key = f"{one.question.protocol:5} v{case.family}{place}"
        rows.setdefault(key, Counter())[one.score] += 1
    rows = dict(sorted(rows.items())) | {"all": Counter(one.score for one in scored)}
    yield f"{'':36}" + "".join(f"{score:>7}" for score in SCORES)
    for key, counts in rows.items():
        yield f"{key:36}" + "".join(f"{counts[score]:7}" for score in SCORES)
    yield summary(scored)


def summary(scored: Sequence[Scored]) -> str:
    """One line: how many cases, how many exactly right, how many with the right verdict, wrong."""
    verdicts = sum(
        one.got is not None
        and one.got["verdict"] in {one.expectation.verdict, *one.expectation.also}
        for one in scored
    )
    counts = Counter(one.score for one in scored)
    share = 100 * counts["right"] / max(1, len(scored))
    return (
        f"{len(scored)} cases: {counts['right']} exactly right ({share:.1f} %), "
        f"{counts['less']} less, {counts['wrong']} wrong; {verdicts} with the right verdict"
    )


def false_blocks(scored: Iterable[Scored]) -> list[Scored]:
    """Ways that are open and were called blocked."""
    return [
        one
        for one in scored
        if one.expectation.verdict == "pass" and one.got and one.got["verdict"] == "blocked"
    ]


def share_right(scored: Sequence[Scored]) -> float:
    """How many are exactly right, from 0 to 1."""
    return sum(one.score == "right" for one in scored) / max(1, len(scored))


def expectations(cases: Iterable[Case], captures: bool) -> Iterator[str]:
    """Every case with what can be known of it, and the rule that says so."""
    for case in cases:
        for protocol in case.protocols:
            want = expected(question_of(case, protocol, "ADDRESS", captures))
            must, may = (",".join(sorted(some)) or "-" for some in (want.must, want.may))
            yield f"{protocol:4} {case.name}: {want.verdict} {must} .. {may}; {want.words}"
