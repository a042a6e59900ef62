"""docs/verdicts.md, printed from the tables: ``python -m pages.verdicts``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from netprobe.judge.balanced import ROWS as BALANCER_ROWS
from netprobe.judge.multicast import ROWS as MULTICAST_ROWS
from netprobe.judge.quality import ROWS as QUALITY_ROWS
from netprobe.judge.rehearsed import ROWS, RehearsedRow
from netprobe.judge.rows import ALLOWED, DENIED, VerdictRow
from netprobe.judge.segments import ROWS as SEGMENT_ROWS

INTRODUCTION = """\
# Verdicts

<!-- Printed from netprobe/judge/rows.py by `make docs`; change the tables, not this page. -->

A result is what the source saw (*symptom*), held against what was at the destination's port
(*listener*) and what the destination's agent noticed (*witness*). The first row that matches wins;
`*` matches everything. Words in braces are filled with the evidence.

| verdict | means |
|---|---|
| `pass` | it gets through, or the destination refused it and nothing is known to listen there |
| `blocked` | it is required and does not get through |
| `exposed` | it must not answer (`expect: denied`), and it does |
| `inconclusive` | the evidence allows both, or the wrong thing answers |
| `not-tested` | netprobe could not look |
| `covered` | not probed itself; a flow that was stands for it ([reach](reach.md#coverage)) |

A `pass` has one of these proofs, from the strongest to the weakest.

| proof | means |
|---|---|
| `nonce` | our listener on the right host answered the nonce, as no other program can |
| `witness` | a packet that has no answer reached a socket of the destination's agent |
| `service` | the right service answered a question that shows who it is; also an ICMP echo reply |
| `handshake` | a TCP accept, any UDP answer, or a proxy's tunnel: nothing says of whom |
| `refusal` | the destination itself refused, so packets reach it, and nothing is known to listen |
| `none` | a denied port that is silent passes so; other verdicts have it, or what they rest on |

`where` is the sorted list of places that are still possible; one element is proven. A `pass` has
none.

| place | the failure is |
|---|---|
| `source` | the source's firewall (either direction), routes, resolver, or full queues and tables |
| `path` | between the hosts; `rejected_by`: who refused, `last_hop`: the last that answered |
| `destination` | in the destination's own firewall or its reverse-path filter |
| `return-path` | on the way back; also a missing or wrong route back on the destination |
| `host` | the destination is down, or the address is not on its network |
| `service` | packets arrive, but the wrong service answers, or only loopback is bound |

| listener | means |
|---|---|
| `ours` | our listener was bound |
| `live` | a service held the port, so it was left alone and probed; by all that is known, rightly |
| `taken` | before the installation (no kubelet runs), a program that is not the row's held it |
| `hidden` | so, but the agent may not see whether it is a process that the matrix lists |
| `other-run` | an agent of another run of netprobe held the port |
| `loopback` | a service holds the port on loopback only |
| `bound` | nothing listens, and the kernel gives the port to nobody: a process has bound it |
| `free` | an agent looked: nothing listens (no permission, `--no-listen`), and nothing should yet |
| `closed` | nothing listens, and a translation may answer (NodePorts, `--live`, `existing`) |
| `unwatched` | before the installation: no agent is there that could say who holds the port |
| `unknown` | no agent is there, or it was lost meanwhile |

| witness | means |
|---|---|
| `socket` | the probe reached a socket of our agent (a connection in `SYN_RECV` counts) |
| `captured` | a packet recorder there, before the firewall, saw it; no socket did |
| `not-captured` | the recorder never saw it |
| `unseen` | our listener never saw it, and no recorder ran |
| `no-way-back` | the destination cannot answer: no route back, or nobody answers for its next hop |
| `reverse-path` | a recorder saw it on a device whose strict `rp_filter` drops it |
| `answer-arrived` | (silence only) a recorder at the source, before its firewall, saw the answer |
| `answered` | (denied ports only) the same address answered the same source on other ports |
| `stopped` | (denied ports only) by its kernel's counters the destination's own firewall drops it |
| `let-in` | (denied ports only) a recorder there saw it; by the counters its IP layer drops none |

Before the installation netprobe listens beside a program on loopback only, on the flow's own
address for this look: what stops the way is `blocked` with its place. If it is open, the row's
[`binds`](matrix-format.md#requirements) decides: `all`: `blocked`, `[service]`, `port-taken`;
`address`: a warning; no key: `inconclusive`, `[service]`, `loopback-holder`. A program on another
address of the host is `port-taken` for `binds: all`, else a warning. A path that fails comes before
`port-taken`. `unwatched` with a port that opens, where nothing needs to run yet and nothing shows
the row's service: `inconclusive`, `[service]`, `unknown-holder`.

With `--strict` a pass by `handshake` or `refusal` is `inconclusive`; with `--live` a refusal is
`blocked`, `[service]`; so it is for a row that is `existing`, reason `nothing-listens`. Denied
ports are not touched. Further facts narrow `where`: an address that answered anything in the run is
not down (`host` falls away), and the errno of our listener's own answer names its own firewall
(`destination`) or its route back (`return-path`).
"""

HEAD = """
| symptom | protocol | listener | witness | verdict | state | reason | proof | where | because |
|---|---|---|---|---|---|---|---|---|---|
"""

REHEARSED_HEAD = """
What passes a tunnel that both kernels play ([rehearsals](rehearsal.md)).

| what passed | verdict | state | reason | proof | where | because |
|---|---|---|---|---|---|---|
"""

BALANCER_HEAD = """
What sources see of a balancer whose back ends agents play; of several the first is the reason, and
the others are warnings. `sticks`: only where the row has
[`persistence: none`](matrix-format.md#requirements); elsewhere it is a warning, too.

| what was seen | verdict | state | reason | proof | where | because |
|---|---|---|---|---|---|---|
"""

MULTICAST_HEAD = """
Whether VRRP's multicast passes between two hosts (`ROW/segment` of rows of IP protocol 112).

| what was seen | verdict | state | reason | proof | where | because |
|---|---|---|---|---|---|---|
"""

SEGMENT_HEAD = """
Who answers on the segment of an address; what is beside it is a warning.

| what was seen | verdict | state | reason | proof | where | because |
|---|---|---|---|---|---|---|
"""

QUALITY_HEAD = """
What samples of a way show (`--quality`). `measured`: also where a limit is passed or undecided that
is not `required`; then a warning says so. The proof is `handshake` of TCP, `nonce` of UDP and
`service` of echo requests.

| what was seen | verdict | state | reason | where | because |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, "\n## Required flows\n", HEAD, *_print_rows(ALLOWED)]
    parts += ["\n## Ports that must not answer (`expect: denied`)\n", HEAD, *_print_rows(DENIED)]
    parts += ["\n## Rehearsals (`--rehearse`)\n", REHEARSED_HEAD, *_print_rehearsed(ROWS)]
    parts += [BALANCER_HEAD, *_print_balancers(), SEGMENT_HEAD, *_print_rehearsed(SEGMENT_ROWS)]
    parts += [MULTICAST_HEAD, *_print_rehearsed(MULTICAST_ROWS)]
    parts += [QUALITY_HEAD, *_print_qualities()]
    return "".join(parts)


def _print_balancers() -> Iterator[str]:
    for fate, row in BALANCER_ROWS.items():
        cells = (fate, row.verdict, "open", row.reason, row.proof, ", ".join(row.where))
        yield f"| {' | '.join(cells)} | {row.because} |\n"


def _print_rehearsed(rows: Mapping[Any, RehearsedRow]) -> Iterator[str]:
    for fate, row in rows.items():
        cells = (fate, row.verdict, row.state, row.reason, row.proof, ", ".join(row.where))
        yield f"| {' | '.join(cells)} | {row.because} |\n"


def _print_qualities() -> Iterator[str]:
    for fate, row in QUALITY_ROWS.items():
        cells = (fate, row.verdict, "open", row.reason, ", ".join(row.where))
        yield f"| {' | '.join(cells)} | {row.because} |\n"


def _print_rows(rows: Iterable[VerdictRow]) -> Iterator[str]:
    for row in rows:
        ends = (row.verdict, row.state.replace("|", "\\|"), row.reason, row.proof)
        cells = [", ".join(words) for words in row.patterns] + list(ends)
        yield f"| {' | '.join(cells)} | {', '.join(row.where)} | {row.because} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
