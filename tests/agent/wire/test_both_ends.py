"""The agent's codec under the oldest and the newest Python that is here, against this one."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode, b64encode
from typing import Any

import pytest

from netprobe.agent.wire.codec import decode_message
from netprobe.agent.wire.frames import encode_message
from netprobe.agent.wire.messages import ANSWERS, ORDERS
from netprobe.agent.wire.numbers import MOST
from netprobe.vantage.pack import sources
from tests.agent.interpreters import INTERPRETERS

# Values of a type: a full one, and an empty one. Full numbers are the largest of their field.
SCALARS: dict[type[Any], tuple[Any, Any]] = {
    str: ('"\\é\n\u2028😀\0', ""),
    bool: (True, False),
    bytes: (bytes(range(256)), b""),
}

# Reads every message as the agent would, and writes it again.
REPEAT = """
import base64, json, sys
asked = json.load(sys.stdin)
names = {"__name__": "netprobe_agent.boot"}
exec(asked["sources"]["boot"], names)
sys.meta_path.insert(0, names["BundleFinder"](asked["sources"]))
from netprobe_agent.wire.codec import decode_message
from netprobe_agent.wire.frames import encode_message
from netprobe_agent.wire.messages import ANSWERS, ORDERS
repeated = []
for table, body in asked["messages"]:
    message = decode_message(base64.b64decode(body), {"ORDERS": ORDERS, "ANSWERS": ANSWERS}[table])
    repeated.append(base64.b64encode(encode_message(message)).decode())
print(json.dumps(repeated))
"""


def example(shape: Any, full: bool, name: str = "") -> Any:
    """A value of a field's annotation, with everything that it may have or with nothing."""
    if shape in SCALARS:
        return SCALARS[shape][0 if full else 1]
    if shape in (int, float):
        return shape(MOST[name] - (0.433 if shape is float else 0)) if full else shape(0)
    if hasattr(shape, "_fields"):
        return shape(*(example(shape.__annotations__[each], full, each) for each in shape._fields))
    arguments = shape.__args__
    if type(None) in arguments:
        return example(arguments[0], full, name) if full else None
    if shape.__origin__ is list:
        some = [example(arguments[0], full, name), example(arguments[0], False, name)]
        return some if full else []
    if shape.__origin__ is dict:
        return {"é": example(arguments[1], full, name)} if full else {}
    return tuple(example(argument, full, name) for argument in arguments)


def bodies() -> list[tuple[str, bytes]]:
    """Two of every message, with the table that it is in."""
    tables = (("ORDERS", ORDERS), ("ANSWERS", ANSWERS))
    return [
        (name, encode_message(example(record, full)))
        for name, table in tables
        for record in table.values()
        for full in (True, False)
    ]


def test_examples_are_messages() -> None:
    """What is sent to the other interpreters is right by this one's codec."""
    for name, body in bodies():
        known = ORDERS if name == "ORDERS" else ANSWERS
        assert encode_message(decode_message(body, known)) == body


@pytest.mark.slow
@pytest.mark.parametrize("version", sorted({*list(INTERPRETERS)[:1], *list(INTERPRETERS)[-1:]}))
def test_every_message_goes_both_ways(version: str) -> None:
    """The packed agent reads what this end writes, and writes the same bytes."""
    messages = [(name, b64encode(body).decode()) for name, body in bodies()]
    done = subprocess.run(
        [INTERPRETERS[version], "-I", "-S", "-c", REPEAT],
        input=json.dumps({"sources": sources(), "messages": messages}),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [b64decode(body) for body in json.loads(done.stdout)] == [body for _, body in bodies()]
