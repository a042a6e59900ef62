"""docs/konnectivity-verdicts.md, printed from the tables by `make docs`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

from netprobe.konnectivity.answers import CALLS
from netprobe.konnectivity.tables import HELLO, IDENTITY, TCP
from netprobe.konnectivity.verdicts import VERDICTS

INTRODUCTION = """\
# Verdicts about Konnectivity tunnels

<!-- Printed from netprobe/diagnose/ by `make docs`; change the tables, not this page. -->

How to read a diagnosis is in [konnectivity.md](konnectivity.md). Words in braces are filled with
what was measured.

## What each verdict means
"""
TCP_WORDS = """
## Connects

| connects | verdict | because |
|---|---|---|
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
    parts = [INTRODUCTION, *_verdicts(), TCP_WORDS]
    parts += [_row([row.sight], row.verdict, row.because) for row in TCP]
    parts.append(HELLO_WORDS)
    parts += [
        _row([_any(row.small), _any(row.large), _any(row.segmented)], row.verdict, row.because)
        for row in HELLO
    ]
    parts.append(IDENTITY_WORDS)
    parts += [
        _row([_any(each) for each in (row.who, row.request, row.alpn, row.reply)], row.verdict,
             row.because)
        for row in IDENTITY
    ]  # fmt: skip
    parts.append(CALL_WORDS)
    parts += [_row([word], code, because) for word, (code, because) in CALLS.items()]
    return "".join(parts)


def _verdicts() -> Iterator[str]:
    for code, verdict in VERDICTS.items():
        yield f"\n### {code}\n\n{_plain(verdict.title)}.\n\n"
        yield f"* outcome: {verdict.outcome}, kind: {verdict.kind}"
        yield f", stage: {verdict.stage}\n" if verdict.stage else "\n"
        yield f"* to do: {_plain(verdict.remedy)}\n"
        if verdict.logs:
            yield f"* the agent logs: `{_plain(verdict.logs)}`\n"


def _row(keys: list[str], verdict: str | None, because: str) -> str:
    end = f"[{verdict}](#{verdict.lower()})" if verdict else "(goes on)"
    return f"| {' | '.join(keys)} | {end} | {_plain(because)} |\n"


def _any(words: Iterable[str]) -> str:
    return ", ".join(words)


def _plain(text: str) -> str:
    """The words in braces without their format; a table's bars would end a cell."""
    return re.sub(r"{(\w+)[^}]*}", r"{\1}", text).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
