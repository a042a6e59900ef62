"""On which nodes pods start: a label selector of kubectl, and names, as a pod's affinity."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from netprobe.errors import RequestError

_KEY = r"(?P<key>[A-Za-z0-9](?:[\w./-]*[A-Za-z0-9])?)"
_VALUE = r"[\w.-]*"
# What kubectl takes with -l, each with the operator of an affinity.
_FORMS = (
    (re.compile(rf"{_KEY}\s*==?\s*(?P<values>{_VALUE})", re.ASCII), "In"),
    (re.compile(rf"{_KEY}\s*!=\s*(?P<values>{_VALUE})", re.ASCII), "NotIn"),
    (re.compile(rf"{_KEY}\s+in\s*\((?P<values>[^()]*)\)", re.ASCII), "In"),
    (re.compile(rf"{_KEY}\s+notin\s*\((?P<values>[^()]*)\)", re.ASCII), "NotIn"),
    (re.compile(_KEY, re.ASCII), "Exists"),
    (re.compile(rf"!\s*{_KEY}", re.ASCII), "DoesNotExist"),
)
_COMMA = re.compile(r",(?![^(]*\))")


def read_selector(text: str) -> list[dict[str, Any]]:
    """Read ``--nodes`` as the expressions of an affinity. Raises RequestError."""
    return [_read_part(text, part.strip()) for part in _COMMA.split(text)] if text else []


def _read_part(text: str, part: str) -> dict[str, Any]:
    for form, operator in _FORMS:
        found = form.fullmatch(part)
        if found is None:
            continue
        read: dict[str, Any] = {"key": found["key"], "operator": operator}
        if operator in ("In", "NotIn"):
            read["values"] = [one.strip() for one in found["values"].split(",")]
        return read
    raise RequestError(
        f"--nodes {text}: expected a label selector as kubectl's -l takes it, such as zone=a, "
        "zone!=a, 'zone in (a,b)', zone, '!zone', with commas between several"
    )


def choose_terms(
    selector: str, chosen: Collection[str], others: Collection[str]
) -> tuple[dict[str, Any], ...]:
    """Give the terms by which pods start on the chosen nodes, and not on the others: by the shorter
    list of names. Raises RequestError."""
    labels = read_selector(selector)
    by_labels: dict[str, Any] = {"matchExpressions": labels} if labels else {}
    if not others:
        return (by_labels,) if labels else ()
    if len(others) < len(chosen):
        fields = list(_name_fields(others, "NotIn"))
        return ({**by_labels, "matchFields": fields},)
    return tuple({**by_labels, "matchFields": [one]} for one in _name_fields(chosen, "In"))


def _name_fields(names: Collection[str], operator: str) -> Iterator[dict[str, Any]]:
    # The API takes one value for each field.
    for name in sorted(names):
        yield {"key": "metadata.name", "operator": operator, "values": [name]}
