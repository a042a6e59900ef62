"""docs/konnectivity-verdicts.md, printed from the tables by `make docs`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from netprobe.konnectivity.guide import NOTES
from netprobe.konnectivity.tables import CALLS, HELLO, IDENTITY, TCP, TunnelRow
from netprobe.konnectivity.verdicts import VARIANTS, VERDICTS, TunnelVerdict

INTRODUCTION = """\
# Verdicts about Konnectivity tunnels

<!-- Printed from netprobe/konnectivity/ by `make docs`; change the tables, not this page. -->

How to read a diagnosis is in [konnectivity.md](konnectivity.md). Words in braces are filled with
what was measured.

A line that *the agent logs* stands only where a real agent (konnectivity-agent 0.36, grpc-go 1.83)
wrote it in that situation of the lab; [its words](../tests/lab/konnectivity/agent_lines.txt) are
kept. `...` leaves out what is the agent's own.

## What each verdict means
"""
TCP_WORDS = """
## Connects

What was seen is said in the words of [explain](explain.md)'s `probe`.

| connects | verdict |
|---|---|
"""
HELLO_WORDS = """
## ClientHellos

A hello is `answered` (TLS came back), `reset` or `closed` at once, closed `late-3s` or `late`,
`lost` (our bytes are not acknowledged), `gap` (later bytes of the answer came, earlier ones did
not), `mute` (acknowledged, and nothing), `rejected` by ICMP, or `foreign` (no TLS). The first row
that matches wins. *Segmented* repeats the one that failed in segments of 536 bytes.

| small | of the agent's size | segmented | verdict | because |
|---|---|---|---|---|
"""
IDENTITY_WORDS = """
## Who answered

| certificate | asks for certificates of | ALPN | then | verdict | because |
|---|---|---|---|---|---|
"""
CALL_WORDS = """
## The call with a client certificate

| the unknown method got | verdict | because |
|---|---|---|
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, *_print_verdicts(), TCP_WORDS]
    parts += [
        *(f"| {symptom} | {_link(code)} |\n" for symptom, code in TCP.items()),
        HELLO_WORDS,
        *map(_print_row, HELLO),
        IDENTITY_WORDS,
        *map(_print_row, IDENTITY),
    ]
    return "".join([*parts, CALL_WORDS, *map(_print_row, CALLS)])


def _print_verdicts() -> Iterator[str]:
    for code, verdict in VERDICTS.items():
        yield f"\n### {code}\n\n"
        yield from _print_verdict(verdict)
        for (of, _), variant in VARIANTS.items():
            if of == code:
                yield "\nOr "
                yield from _print_verdict(variant)
        if code in NOTES:
            yield f"\nNote: {NOTES[code]}\n"


def _print_verdict(verdict: TunnelVerdict) -> Iterator[str]:
    yield f"{_drop_formats(verdict.title)}.\n\n"
    yield f"* outcome: {verdict.outcome}, kind: {verdict.kind}"
    yield f", where: {verdict.where}" if verdict.where else ""
    yield f", stage: {verdict.stage}\n" if verdict.stage else "\n"
    yield f"* to do: {_drop_formats(verdict.remedy)}\n"
    if verdict.logs:
        yield f"* the agent logs: `{_drop_formats(verdict.logs)}`\n"


def _print_row(row: TunnelRow) -> str:
    keys = " | ".join(", ".join(words) for words in row.patterns)
    return f"| {keys} | {_link(row.verdict)} | {_drop_formats(row.because)} |\n"


def _link(code: str | None) -> str:
    return f"[{code}](#{code.lower()})" if code else "(goes on)"


def _drop_formats(text: str) -> str:
    """The words in braces without their format; a table's bars would end a cell."""
    return re.sub(r"{(\w+)[^}]*}", r"{\1}", text).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
