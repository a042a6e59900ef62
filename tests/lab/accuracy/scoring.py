"""Scores: each answer of netprobe held against what can be known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tests.lab.accuracy.cases import ROUTES, Case
from tests.lab.accuracy.expected import Expectation, Question, expected

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
        """One line for people."""
        case = f"{self.score:5} {self.question.protocol:4} {self.question.case.name}"
        return f"{case}: {self.because}; got {_short(self.got)}; rule {self.expectation.words}"


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


def scores(answers: Answers, address: Callable[[Case], str], captures: bool) -> list[Scored]:
    """Every answer with its score, in the order of the cases."""
    return [
        judge(question_of(case, protocol, address(case), captures), got)
        for (case, protocol), got in sorted(answers.items(), key=lambda item: item[0])
    ]


def judge(question: Question, got: dict[str, Any] | None) -> Scored:
    """Score one answer."""
    want = expected(question)
    score, because = _score(want, question.truth, got)
    return Scored(question, want, got, score, because)


def _score(want: Expectation, truth: str | None, got: dict[str, Any] | None) -> tuple[Score, str]:
    if got is None:
        return "less", "no result"
    for check in (_verdict, _place, _rejecter, _hop):
        found = check(want, truth, got)
        if found is not None:
            return found
    for key, allowed in (
        ("state", want.states), ("reason", want.reasons), ("proof", want.proofs)
    ):  # fmt: skip
        if got[key] not in allowed:
            return "less", f"{key} {got[key]}, not {' or '.join(sorted(allowed))}"
    return "right", ""


Verdict = tuple[Score, str] | None


def _verdict(want: Expectation, truth: str | None, got: dict[str, Any]) -> Verdict:
    verdict = got["verdict"]
    if verdict == want.verdict:
        return None
    unsure = verdict in ("inconclusive", "not-tested")
    if unsure and (truth is None or truth in got["where"]):
        return "less", f"{verdict}, not {want.verdict}"
    return "wrong", f"{verdict}, not {want.verdict}"


def _place(want: Expectation, truth: str | None, got: dict[str, Any]) -> Verdict:
    where = frozenset(got["where"])
    if want.verdict == "pass":
        return None if not where else ("less", f"a pass with places {sorted(where)}")
    if truth not in where:
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
    return "wrong", f"{hop} is not the last hop that answers"


def _short(got: dict[str, Any] | None) -> str:
    if got is None:
        return "nothing"
    words = [got["verdict"], got["state"], got["reason"], got["proof"], ",".join(got["where"])]
    named = [f"{key}={got[key]}" for key in ("rejected_by", "last_hop") if got[key]]
    return " ".join((*words, *named))


def table(scored: Iterable[Scored]) -> Iterator[str]:
    """The score table: a row for each protocol, family and place, then the sum."""
    rows: dict[str, Counter[Score]] = {}
    total: Counter[Score] = Counter()
    for one in scored:
        case = one.question.case
        place = f"lan {case.place}" if case.lan else case.place
        key = f"{one.question.protocol:5} v{case.family}  {place}"
        rows.setdefault(key, Counter())[one.score] += 1
        total[one.score] += 1
    yield from _lines(rows, total)


def _lines(rows: dict[str, Counter[Score]], total: Counter[Score]) -> Iterator[str]:
    yield f"{'':36}" + "".join(f"{score:>7}" for score in SCORES)
    for key, counts in sorted(rows.items()):
        yield f"{key:36}" + "".join(f"{counts[score]:7}" for score in SCORES)
    yield f"{'all':36}" + "".join(f"{total[score]:7}" for score in SCORES)
    share = 100 * total["right"] / max(1, total.total())
    yield f"{total.total()} cases: {share:.1f} % right, {total['wrong']} wrong"

