"""Workers that share a cause make one finding."""

from __future__ import annotations

from collections.abc import Sequence

from netprobe.model.konnectivity import CommonCause, Diagnosis

# Faults first, then what could not be said, then what nobody could look at.
_RANK = {"fault": 0, "unsure": 1, "not-tested": 2, "ok": 3}


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
            title=members[0].title,
            remedy=members[0].remedy,
            workers=tuple(one.worker for one in members),
            total=len(diagnoses),
        )
        for members in groups.values()
    ]
    return tuple(sorted(found, key=lambda one: (_RANK[one.outcome], -len(one.workers), one.code)))
