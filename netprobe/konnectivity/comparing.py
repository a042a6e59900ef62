"""What one worker alone cannot tell: it resolves the server's name differently from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from netprobe.model.konnectivity import Diagnosis

# The addresses of the name; none where it was not found.
AddressSet = frozenset[str]


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
