"""The request as JSON (``netprobe.request/1``): for programs, and for ``run --retry``."""

from __future__ import annotations

import json
from collections.abc import Iterator

import netprobe
from netprobe.model.codec import REQUEST_SCHEMA, result_to_json
from netprobe.model.dataclass_json import Json, to_json
from netprobe.model.firewall import FirewallRequest


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give the document: one rule or result a line. All is ASCII, so that nothing damages it."""
    head: Json = {
        "schema": REQUEST_SCHEMA,
        "netprobe_version": netprobe.__version__,
        "id": request.id,
        "of": request.of,
        "started_at": request.started_at,
        "matrices": to_json(request.matrices),
        "ticket": dict(request.ticket),
    }
    before = "{"
    for key, value in head.items():
        yield f'{before}"{key}": {json.dumps(value)},'
        before = " "
    yield from _array_lines(
        "rules", [{**to_json(rule), "who": rule.who} for rule in request.rules], ","
    )
    yield from _array_lines("unmended", [to_json(one) for one in request.unmended], ",")
    yield from _array_lines("results", map(result_to_json, request.asked), "")
    yield "}"


def _array_lines(key: str, items: Iterator[Json] | list[Json], end: str) -> Iterator[str]:
    shown = ",\n  ".join(json.dumps(item) for item in items)
    yield f' "{key}": [{shown and f"{chr(10)}  {shown}"}]{end}'
