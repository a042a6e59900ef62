"""docs/wire.md, printed from the definitions of the messages by `make docs`."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union, get_args, get_origin

from netprobe.agent.wire import batch, frames
from netprobe.agent.wire.batch_pages import PAGE_FORMAT, PAGE_PREFIX, PageHeader
from netprobe.agent.wire.codec import MOST_KEYS, MOST_VALUES
from netprobe.agent.wire.failures import FAILURES, UNKNOWN_PREFIX
from netprobe.agent.wire.frames import encode_message
from netprobe.agent.wire.host_messages import (
    ResolveOrder,
)
from netprobe.agent.wire.messages import ANSWERS, ORDERS
from netprobe.agent.wire.numbers import MOST
from netprobe.agent.wire.result_lines import MAC_LENGTH, RESULT_PREFIX
from netprobe.batch.limits import BYTES_A_MESSAGE, MESSAGES_A_FLOW, SPARE_FLOWS, VALUES_A_MESSAGE
from netprobe.batch.script import KEY_BYTES
from netprobe.vantage.runtime.script import (
    SEND_LINE,
    USELESS_RUNTIME_LINE,
    USELESS_RUNTIME_STATUS,
)
from netprobe.vantage.script import SUDO_LINE, pythons

MIB = 1024 * 1024
_PHASES = ", ".join(f"`{phase}`" for phase in batch.PHASES)
_FOLDER = batch.FOLDER_NAME.replace("%s", "RUN").replace("%d", "INDEX")
_FILES = f"`{batch.RESULTS_FILE}`, `{batch.PID_FILE}`, `{batch.STARTED_FILE}`, `{batch.WORDS_FILE}`"
_EXAMPLE = encode_message(ResolveOrder(7, "node-1")).decode()

PROSE = f"""\
# The wire between coordinator and agent

<!-- Printed from netprobe/agent/wire/ by `make docs`; change the definitions, not this page. -->

This is version {frames.WIRE_VERSION}. [Decision 0002](decisions/0002-the-wire.md) has its reasons.

A message is a JSON array: its name, then its fields in the order of the tables below, all of them.
Records inside a message are arrays of their fields too. Bytes are base64. A field without a value
is `null` (None in the descriptions). The order `{_EXAMPLE}` asks for the addresses of a name.

Each end checks every message against its definition. An agent that is sent anything else reports a
`Fault` and ends. The coordinator gives up an agent that sends anything else, and its error names
the field that was wrong. Every number is from 0 to the most that its field can mean, which the
tables below have; a message has at most {MOST_VALUES:,} values, an object {MOST_KEYS} keys.

## What an answer must be

The coordinator holds an answer against its order: blocks as many as were asked, ports and
destinations that were asked, each once and none left out, kinds that there are, words and names of
failures that are listed here, literal addresses. Of a stream it takes no more bytes, credit and
events than there can be. An agent that breaks a rule is lost and its process ended. What it said of
flows that have no result yet is not believed: they are `not-tested`, and its host's report says
which rule it was. All other flows go on.

## Start

1. The vantage's command runs a small shell script on the host. The script looks for a Python
   (`python3`, `/usr/libexec/platform-python`, `{pythons()[2]}` ... `{pythons()[-1]}`) and runs it
   with `-I -S -c BOOTSTRAP`. Where it finds none, it prints `{frames.NO_PYTHON_LINE.decode()}`, a
   space and what `uname -m` says, and ends with status {frames.NO_PYTHON_STATUS}.
   The coordinator then starts the host once more, with another script and a Python of its own
   ([a Python that travels](reach.md#a-python-that-travels)). That script finds a folder where
   programs may run and which has room, prints `{SEND_LINE.decode()}`, and reads the compressed
   Python from its stdin; the script has its length. It unpacks it and runs `BOOTSTRAP` with it, and
   all that follows is the same. Where it cannot, it prints a line on stderr that begins with
   `{USELESS_RUNTIME_LINE}:` and ends with status {USELESS_RUNTIME_STATUS}.
2. With `become`, and where it is not root already, the script first prints `{SUDO_LINE.decode()}`
   and runs the Python through `sudo -S -p TOKEN --` (without a password through `sudo -n --`). When
   the command ends after that line and before the next one, sudo ended it.
3. The bootstrap prints `{frames.READY_LINE.decode()}`. The coordinator skips everything before that
   line: banners, and what a shell's profile prints.
4. The coordinator writes the length of the bundle in bytes as a line, then the bundle: zlib of the
   modules' names and sources by turns, with a NUL between them. The bootstrap makes modules of it,
   whose source lines tracebacks show, and runs the agent.
5. The agent prints `{frames.HELLO_PREFIX.decode().strip()}`, a space, its `HelloLine` and a
   newline. The first field of a hello is the version of the wire; the coordinator refuses an agent
   of another version.
6. From then on both ends write frames: four bytes of length (big-endian, at most
   {frames.MAX_FRAME_BYTES // MIB} MiB), then one message. The first order is `StartOrder`.

## Nonce and MAC

* A nonce has 8 bytes, big-endian: the id of the order (32 bits), the port (16), the attempt (16).
  An order that names many destinations has a number for each, which stands in its nonces for the
  id. Of an echo order the port is the destination's place in it; it is 0 where there is none. Ids
  and numbers are unique in a run, so that a nonce is unique to its flow and attempt, and a listener
  logs ranges of ports for each of them instead of packets. Order 0 is the agent's own: it dials its
  own listeners with it, and no listener logs that.
* A request carries the nonce and a MAC: BLAKE2b of `q` and the nonce under the run's key, 16 bytes.
  A listener answers no request whose MAC is wrong.
* An answer's MAC is BLAKE2b of `a`, the nonce, the index of the answering host (16 bits) and the
  port that its listener is bound to (16 bits, 0 where there is none). So the asking side can tell a
  reflector (its own bytes), another host (a true MAC with another index) and noise apart. The
  answer of another port, which something on the way has rewritten, is noise, and the listener does
  not log its arrival.
* An echo request carries its nonce and a token instead of a MAC: 16 bytes of SHAKE128 of the run's
  key, `e`, the order's id (32 bits) and the attempt (16), at 16 times the destination's place in
  the order. Nobody else can make its reply, and one hash serves all destinations of an attempt.

## Wide orders

A probe order names its first destination itself, and `more` of them: where their ports are those of
the first, they are not said again. Each destination has sockets, looks, a pace and deadlines of its
own. What became of it is told as soon as it is known; destinations whose ports had the same
outcomes in the same turn are told together. `Done` ends the order, after all destinations.

## Looks

An order asks a port again only where it was silent, or where a dead host was reported once. It
never asks again after a refusal. `first_ms` null: where the destination has answered this agent
already, the first look takes 1 s + max(300 ms, 4 round trips), and no more than `look_ms`;
elsewhere `look_ms`. Later looks take `look_ms`.

## Streams

A stream is a TCP connection of the agent's host over which the coordinator speaks (TLS, HTTP). The
agent relays bytes and measures, and knows nothing of what is said.

* Ids of streams are unique on a link and count from 2^40, those of requests from 2^32.
* Each end may send 64 KiB more than the other has credited with `StreamCredit`.
* What decides by time is decided by the agent's own clock (`StreamTimes`), whatever lies between
  agent and coordinator.
* `tcp` has numbers of TCP_INFO under these names, as far as the kernel has them: `state`,
  `retransmits`, `snd_mss`, `rcv_mss`, `unacked`, `lost`, `retrans`, `pmtu`, `rtt_us`, `advmss`,
  `total_retrans`, `bytes_acked`, `bytes_received`, `segs_out`, `segs_in`, `rcv_ooopack`.
* An order for a stream that is over is no error: the two crossed. Streams close when the agent
  ends.

## Life

The coordinator sends `Beat` every {frames.BEAT_S:g} s, and the agent answers it with `Alive`, which
has the times in which it stood still. An agent that hears nothing for `silence_s`
({frames.SILENCE_S:g} s), or sees the end of its input, closes everything and ends. A coordinator
that hears nothing for as long gives the agent up. The agent never waits for its output: while more
than {frames.QUEUE_LIMIT_BYTES // MIB} MiB of it is queued, it starts no new probe. A coordinator
that lags stops reading, so that its agents' probes wait for it.

## Failures

`failure` is what an operation of the kernel reported, or null. Another errno than these is
`{UNKNOWN_PREFIX}` and its name:

{", ".join(f"`{name}`" for name in FAILURES)}.
"""

BATCH_WORDS = f"""
## Scripts and results

A run without a live coordinator ([decisions 0010](decisions/0010-batch.md) and
[0015](decisions/0015-a-key-for-each-host.md)) has the same orders and answers, in
files. This is format {batch.BATCH_FORMAT} of both.

* A *script* is what one host does in one round: text, one message a line. It begins with a
  `BatchStart`. Behind each `PhaseMark` stand the orders of that phase, {_PHASES}. Orders of
  streams, `StartOrder`, `Beat` and `StopOrder` need a coordinator and stand in none. Hosts read a
  script as its packed length on a line, then zlib of its text.
* *Results* are text, too, because engines change bytes on their way. A line is
  `{RESULT_PREFIX.strip()} NUMBER MAC CONTENT`. Line 0 has the `ResultHeader` as a JSON object, with
  `\\u0020` for spaces. The content of every other line is base85 of zlib of messages, one a line:
  the `HelloLine`, `PhaseClock`s, every order that has an id, and behind it its answers. An order
  whose id is among the `own_ids` is the host's own idea.
* The MAC of a line is base85 of {MAC_LENGTH} bytes of BLAKE2b under the host's result key: of `r`,
  the MAC of the line before (empty at first), a space, the number, a space, and the content. That
  key is BLAKE2b of `results of host INDEX` under a key of the plan, {KEY_BYTES} bytes.
* A *page* is what one termination message of a pod holds
  ([decision 0042](decisions/0042-in-the-cluster.md)): `{PAGE_PREFIX} PAGE LENGTH MAC CONTENT`, with
  no line end. This is format {PAGE_FORMAT} of it. The content, so many characters, is base85 of
  zlib with a dictionary, of a `PageHeader` and messages, one a line; of orders only the host's own
  ones stand there. The MAC is of `p`, the page, a space and the content. A page is read as a whole
  or refused.
* Whoever reads results skips all text outside of lines, takes a line that came twice once, reads a
  file that is cut off up to the cut, and refuses a line that is not as the host wrote it, a line
  that is missing, another host's file, and another run's. After a second line 0 of the same host
  and run (it was started again) the first start is forgotten. An order is one that a script of the
  run can have, or with an id of the host's own, once; an answer is one to an order before it.
* A file holds at most {MESSAGES_A_FLOW} messages for each planned flow of its host, and as many for
  {SPARE_FLOWS} flows more; {VALUES_A_MESSAGE} values and {BYTES_A_MESSAGE} bytes for each message
  that there may be, and no more bytes in all than its messages have unpacked.
* On a host an engine's run has a folder `{_FOLDER}` of mode 0700 in `/run`, `/dev/shm`, `/tmp` or
  `$HOME`, with {_FILES}: the results; the process id; an empty file once listeners are open; a
  pipe. A command makes a file `WORD.ID` there (`next` fills it with a script), writes its name to
  the pipe as a line, and waits until the agent has removed the file: `next` until its listeners are
  open, `go` until probing has begun, `wait` until it is over, `tell` until everything is told.
  `stop` has no file.
"""
ORDERS_WORDS = """
## Orders

From the coordinator to the agent.
"""
ANSWERS_WORDS = f"""
## Answers

From the agent to the coordinator. An answer repeats the `id` of its order. The message
{" and ".join(f"`{kind}`" for kind in ORDERS if kind in ANSWERS)} is the same both ways.
"""
PARTS_WORDS = """
## Parts

Records inside messages.
"""

BATCH: Mapping[str, Any] = {
    record.__name__: record
    for record in (batch.BatchStart, batch.PhaseMark, batch.ResultHeader, batch.PhaseClock)
}
PAGES: Mapping[str, Any] = {PageHeader.__name__: PageHeader}
ALL: Mapping[str, Any] = {**ORDERS, **ANSWERS, **BATCH, **PAGES}

_SCALARS: Mapping[Any, str] = {
    int: "integer",
    float: "number",
    str: "text",
    bool: "boolean",
    bytes: "base64",
}


_ITEM = re.compile(r"\* |\d\. ")


def page() -> str:
    """The whole page."""
    answers = {kind: record for kind, record in ANSWERS.items() if kind not in ORDERS}
    return "".join(
        [
            _fill(PROSE),
            *(_fill(BATCH_WORDS), *_print_messages({**BATCH, **PAGES})),
            *(ORDERS_WORDS, *_print_messages(ORDERS)),
            *(ANSWERS_WORDS, *_print_messages(answers)),
            *(PARTS_WORDS, *_print_messages({record.__name__: record for record in parts(ALL)})),
        ]
    )


def parts(messages: Mapping[str, Any]) -> list[Any]:
    """The records inside messages, by name."""
    found: dict[str, Any] = {}
    waiting: list[Any] = list(messages.values())
    while waiting:
        inside = list(_records_inside(waiting.pop()))
        waiting += [record for record in inside if record.__name__ not in found]
        found.update((record.__name__, record) for record in inside)
    return [found[name] for name in sorted(found)]


def _records_inside(record: Any) -> Iterator[Any]:
    shapes = list(record.__annotations__.values())
    while shapes:
        shape = shapes.pop()
        if hasattr(shape, "_fields"):
            yield shape
        shapes += get_args(shape)


def _fill(text: str) -> str:
    """Paragraphs and items of lists in lines of 100 characters."""
    blocks: list[list[str]] = []
    for line in text.split("\n"):
        if blocks and line and blocks[-1][-1] and not _ITEM.match(line):
            blocks[-1].append(line.strip())
        else:
            blocks.append([line])
    return "\n".join(_fill_block(" ".join(block)) for block in blocks)


def _fill_block(block: str) -> str:
    item = _ITEM.match(block)
    indent = " " * len(item[0]) if item else ""
    return textwrap.fill(block, 100, subsequent_indent=indent, break_on_hyphens=False)


def _print_messages(messages: Mapping[str, Any]) -> Iterator[str]:
    for name, record in messages.items():
        words = inspect.cleandoc(record.__doc__).replace("``", "`")
        yield f"\n### {name}\n\n{_fill(words)}\n"
        if record._fields:
            yield "\n| field | type |\n|---|---|\n"
        yield from _print_fields(record)


def print_fields(records: Iterable[Any]) -> Iterator[str]:
    """The fields of records with their types, and no other word of them."""
    for record in records:
        yield f"{record.__name__}\n"
        yield from _print_fields(record)


def _print_fields(record: Any) -> Iterator[str]:
    for field in record._fields:
        yield f"| `{field}` | {_name_type(record.__annotations__[field], field)} |\n"


def _name_type(shape: Any, name: str) -> str:
    if shape in (int, float):
        return f"{_SCALARS[shape]} to {MOST[name]}"
    if shape in _SCALARS:
        return _SCALARS[shape]
    if hasattr(shape, "_fields"):
        return f"[{shape.__name__}](#{shape.__name__.lower()})"
    inside = [_name_type(each, name) for each in get_args(shape) if each is not type(None)]
    if get_origin(shape) is Union:
        return f"{inside[0]} or null"
    if get_origin(shape) is list:
        return f"list of ({inside[0]})" if " or " in inside[0] else f"list of {inside[0]}"
    if get_origin(shape) is dict:
        return f"object of {inside[1]}"
    return f"[{', '.join(inside)}]"


if __name__ == "__main__":
    sys.stdout.write(page())
