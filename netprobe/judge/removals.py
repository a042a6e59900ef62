"""What came of back ends that failed on purpose: which faults that shows, and their words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from netprobe.model.balanced import BalancerFacts, Removal

RemovalFate = Literal["never-removes", "never-returns", "slow"]
# So long a back end that fails may get connections (OpenShift's number), and from here on it is
# never out, or never in again; both in docs/rehearsal.md.
REMOVED_S, WATCHED_S = 30, 45
NOT_TRIED = "no time was left, no source reached it without loss, or no other back end was there"


def _is_late(one: Removal) -> bool:
    return one.kept_ms > REMOVED_S * 1000


def _is_kept(one: Removal) -> bool:
    return not one.is_out and _is_late(one)


def _is_never_back(one: Removal) -> bool:
    return one.is_out and one.back_ms is None and one.back_watched_s >= WATCHED_S


def _sort_removals(facts: BalancerFacts) -> dict[RemovalFate, dict[str, str]]:
    """Sort those that show a fault, with their words. What was not out when the time was up is
    like others that were never out."""
    some = [one for one in facts.removals if _is_kept(one)]
    kept = {one.back_end: f"in {one.kept_ms // 1000} s" for one in some}
    is_never = any(one.kept_ms >= WATCHED_S * 1000 for one in some)
    longer = {} if is_never else {name: f"not {words}" for name, words in kept.items()}
    late = {
        one.back_end: f"{one.kept_ms / 1000:.1f} s"
        for one in facts.removals
        if one.is_out and _is_late(one)
    }
    gone = {
        one.back_end: f"in {one.back_watched_s} s" for one in facts.removals if _is_never_back(one)
    }
    return {
        "never-removes": kept if is_never else {},
        "never-returns": gone,
        "slow": {**late, **longer},
    }


def find_removal_fates(facts: BalancerFacts) -> Iterator[RemovalFate]:
    """Give the faults that they show."""
    return (fate for fate, about in _sort_removals(facts).items() if about)


def word_removals(facts: BalancerFacts) -> dict[str, str]:
    """Give the words of the table: whom each fault is about, what was measured, and what not."""
    about = {
        fate.replace("-", "_"): ", ".join(f"{name} {words}" for name, words in some.items())
        for fate, some in _sort_removals(facts).items()
    }
    return {
        **about,
        "failing": facts.failing,
        "measured": _word_measured(facts),
        "unmeasured": _word_unmeasured(facts),
    }


def _word_measured(facts: BalancerFacts) -> str:
    out = [one for one in facts.removals if one.is_out]
    back = [one.back_ms for one in out if one.back_ms is not None]
    if not out:
        return ""
    removed = _word_span([one.kept_ms for one in out])
    again = f", and the first again {_word_span(back)} after they were well" if back else ""
    names = ", ".join(one.back_end for one in out)
    return (
        f"; made to fail one after the other ({facts.failing}), {names} got the last connection "
        f"after {removed}{again}"
    )


def _word_span(times: list[int]) -> str:
    least, most = (f"{one / 1000:.1f}" for one in (min(times), max(times)))
    return f"{least} s" if least == most else f"{least} to {most} s"


def _word_unmeasured(facts: BalancerFacts) -> str:
    if not facts.failing:
        why = "the inventory does not say what the balancer asks (`health:`)"
        return f"; removal of a back end that fails was not measured: {why}"
    missing: dict[str, list[str]] = {}
    for what, name, why in _list_unmeasured(facts):
        missing.setdefault(f"{what} was not measured ({why})", []).append(name)
    return "".join(f"; {words}: {', '.join(names)}" for words, names in missing.items())


def _list_unmeasured(facts: BalancerFacts) -> Iterator[tuple[str, str, str]]:
    """List what is not known of a back end: the thing, the name and why."""
    tried = {one.back_end: one for one in facts.removals}
    for name in facts.back_ends:
        one = tried.get(name)
        if name in facts.missing:
            yield "removal", name, "no connection reached it before"
        elif one is None:
            yield "removal", name, NOT_TRIED
        elif not (one.is_out or _is_kept(one)):
            yield "removal", name, "the time was up"
        elif one.is_out and one.back_ms is None and not _is_never_back(one):
            yield "return", name, "the time was up" if one.back_watched_s else "clients stick"
