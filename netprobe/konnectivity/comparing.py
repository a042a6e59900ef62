"""What one worker alone cannot tell: it resolves the server's name differently from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from netprobe.model.konnectivity import Diagnosis


def compare_names(host: str, diagnoses: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Warn each worker whose addresses have none in common with those that most workers get.

    Of a worker with a fault the remedy begins with it: the fault may be one of a wrong address.
    Answers that overlap are no difference: some servers give a part of a pool.
    """
    addresses = {one.worker: _read_addresses(one, host) for one in diagnoses}
    answers = Counter(each for each in addresses.values() if each)
    if len(answers) < 2:
        return tuple(diagnoses)
    usual, count = answers.most_common(1)[0]
    return tuple(
        _warn_worker(one, host, addresses[one.worker], usual, count)
        if addresses[one.worker] and not addresses[one.worker] & usual
        else one
        for one in diagnoses
    )


def _read_addresses(one: Diagnosis, host: str) -> frozenset[str]:
    stage = next((stage for stage in one.stages if stage.name == "names"), None)
    facts = {} if stage is None else stage.facts
    return frozenset(facts.get("addresses", ())) if facts.get("host") == host else frozenset()


def _warn_worker(
    one: Diagnosis, host: str, here: frozenset[str], usual: frozenset[str], count: int
) -> Diagnosis:
    differs = (
        f"{host} is {', '.join(sorted(here))} here, and {', '.join(sorted(usual))} for {count} "
        f"other worker{'s' if count > 1 else ''}"
    )
    remedy = one.remedy
    if one.outcome != "ok":
        remedy = (
            f"first correct the name ({differs}): /etc/hosts, the resolver, its view; then {remedy}"
        )
    return replace(one, warnings=(*one.warnings, differs), remedy=remedy)
