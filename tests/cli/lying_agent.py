"""A real agent behind a liar: ``lying_agent.py KIND HOW COMMAND...`` bends what the command says.

Every message of the kind is bent in one way (``BENDS``); everything else passes as it is. Run by
itself, with the standard library only: it is the command of a host's vantage.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

HELLO = b"NETPROBE-HELLO "
LENGTH = struct.Struct(">I")
HUGE = "HUGE"
# The largest numbers of a kind: of bytes, of ports, of ids, of times since 1970.
EDGES = (255, 65535, 2**32 - 1, 2**37, 2**64 - 1)

# Gives what is said instead of a message: whole messages (lists), or the bytes of a frame's body.
Bend = Callable[[list[Any]], list[Any]]


def change(value: Any, kind: type, to: Callable[[Any], Any]) -> Any:
    """Change every value of a kind, however deep it stands."""
    if type(value) is kind:
        value = to(value)
    if isinstance(value, list):
        return [change(each, kind, to) for each in value]
    if isinstance(value, dict):
        return {key: change(each, kind, to) for key, each in value.items()}
    return value


def all_of(kind: type, to: Callable[[Any], Any]) -> Bend:
    """Bend every value of a kind, apart from the message's name and id."""
    return lambda message: [message[:2] + change(message[2:], kind, to)]


def turn(value: Any) -> Any:
    """Turn lists round, so that last stands before first."""
    return [turn(each) for each in reversed(value)] if isinstance(value, list) else value


def change_round_trips(message: list[Any], rtt_us: int) -> list[Any]:
    """Bend the round trips of outcomes, which stand in lists of their own in the message's runs."""
    if message[0] != "ProbeOutcomes":
        return message
    return [
        [[*run[:3], [rtt_us] * len(run[3]), run[4]] for run in part] if at == 4 else part
        for at, part in enumerate(message)
    ]


def claim_answers(message: list[Any]) -> list[list[Any]]:
    """Bend outcomes: everything was answered by our listener on the second host."""
    if message[0] == "ProbeOutcomes":
        for kind in message[3]:
            kind[:] = ["answer", None, None, None, "nonce", 1, *[None] * 6]
    return [message]


def spell_out(message: list[Any]) -> bytes:
    """JSON with whole numbers of 400 digits, which are longer than a float can be."""
    return json.dumps(message).replace(f'"{HUGE}"', "1" + "0" * 400).encode()


BENDS: dict[str, Bend] = {
    "truth": lambda message: [message],
    "missing": lambda message: [],
    "twice": lambda message: [message, message],
    "other-order": lambda message: [[message[0], 999_999_999, *message[2:]]],
    "backwards": lambda message: [message[:2] + [turn(each) for each in message[2:]]],
    "huge": lambda message: [spell_out(message[:2] + change(message[2:], int, lambda _: HUGE))],
    "large": all_of(int, lambda _: 2**62),
    "edge": all_of(int, lambda number: next(one for one in EDGES if one >= number)),
    "slow": lambda message: [change_round_trips(message, 2**64 - 1)],
    "negative": all_of(int, lambda number: -1 - number),
    "off-by-99": all_of(int, lambda number: number + 99),
    "zero": all_of(int, lambda _: 0),
    "odd-text": all_of(str, lambda _: "\x1b[31m\ud800\x00?"),
    "no-text": all_of(str, lambda _: ""),
    "nothing": lambda message: [
        message[:2] + [change(each, list, lambda _: []) for each in message[2:]]
    ],
    "doubled-lists": lambda message: [
        message[:2] + [each + each if isinstance(each, list) else each for each in message[2:]]
    ],
    "nulls": lambda message: [message[:2] + [None] * len(message[2:])],
    "short": lambda message: [message[:-1]],
    "long": lambda message: [[*message, 0]],
    "nested": lambda message: [b"[" * 100_000],
    "wide": lambda message: [b'["' + message[0].encode() + b'",1' + b",[]" * 5_000_000 + b"]"],
    "no-json": lambda message: [b"\xff\xfe"],
    "endless": lambda message: [message] * 50_000,
    "claims": claim_answers,
}  # fmt: skip


def relay(kind: str, how: str, source: BinaryIO, sink: BinaryIO) -> None:
    """Pass an agent's output on, and bend its messages of one kind."""
    for line in source:
        if line.startswith(HELLO):
            hello = json.loads(line[len(HELLO) :])
            said = BENDS[how](hello) if kind == "HelloLine" else [hello]
            sink.write(b"".join(HELLO + encode(each) + b"\n" for each in said))
            sink.flush()
            break
        sink.write(line)
        sink.flush()
    while len(head := source.read(4)) == 4:
        body = source.read(*LENGTH.unpack(head))
        message = json.loads(body)
        said = BENDS[how](message) if message[0] == kind else [body]
        for each in said:
            data = encode(each)
            sink.write(LENGTH.pack(len(data)) + data)
        sink.flush()


def encode(said: Any) -> bytes:
    """Give the body of a frame."""
    return said if isinstance(said, bytes) else json.dumps(said).encode()


def main(kind: str, how: str, *command: str) -> int:
    """Run the command with this process's own input, and bend its output."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        relaying = threading.Thread(
            target=relay, args=(kind, how, process.stdout, sys.stdout.buffer), daemon=True
        )
        relaying.start()
        status = process.wait()
        relaying.join(2)
        return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
