"""Entries of ``tcp:``, ``udp:`` and ``ipproto:`` lists, as they are written."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from netprobe.load.yaml.scalars import text_of
from netprobe.load.yaml.validation import refuse
from netprobe.load.yaml.wording import quoted, what_it_is
from netprobe.model.matrix import PortEntry, SettingRef
from netprobe.model.ports import MAX_PORT, MIN_PORT

_RANGE = re.compile(r"(\d{1,9})\s*-\s*(\d{1,9})\Z", re.ASCII)
_PORT = re.compile(r"\d{1,9}\Z", re.ASCII)

# People look for these by name; the number is what stands in the packet.
_PROTOCOLS = {"icmp": 1, "ipip": 4, "tcp": 6, "udp": 17, "gre": 47, "esp": 50, "ah": 51}
_PROTOCOLS |= {"icmpv6": 58, "ospf": 89, "vrrp": 112, "sctp": 132}
# IANA's registry; Linux makes no socket for 0 and takes 255 for "headers included" (raw(7)).
_NO_PROTOCOLS = {0: "IPv6's hop-by-hop option", 255: "reserved"}
_HAVE_KEYS = {1: "icmp: echo", 58: "icmp: echo", 6: "tcp: [PORT]", 17: "udp: [PORT]"}


def port_entry(raw: object) -> PortEntry:
    """``2379``, ``"7000-7999"`` or ``{setting: NAME}``."""
    if isinstance(raw, dict):
        return _reference(raw)
    if isinstance(raw, str):
        return _range(raw)
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise refuse(f'{what_it_is(raw)}, expected a port, "FIRST-LAST" or {{setting: NAME}}')
    port = _port(raw, text_of(raw))
    return (port, port)


def ip_protocol(raw: object) -> int:
    """The number of an IP protocol that is neither TCP, UDP nor ICMP."""
    if isinstance(raw, str):
        number = _PROTOCOLS.get(raw.lower())
        hint = f" ({raw.lower()} is {number})" if number else ""
        raise refuse(f"{quoted(raw)} is text, expected the protocol's number{hint}")
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise refuse(f"{what_it_is(raw)}, expected the number of an IP protocol (1 to 254)")
    if not 0 <= raw <= 255:
        raise refuse(f"{text_of(raw)} is no IP protocol, expected 1 to 254")
    if raw in _NO_PROTOCOLS:
        raise refuse(f"{text_of(raw)} is {_NO_PROTOCOLS[raw]}, expected 1 to 254")
    if raw in _HAVE_KEYS:
        raise refuse(f"protocol {text_of(raw)} has a key of its own, expected {_HAVE_KEYS[raw]}")
    return int(raw)


def _reference(raw: dict[str, object]) -> SettingRef:
    name = raw.get("setting")
    if set(raw) != {"setting"} or not isinstance(name, str):
        raise refuse("this mapping is no port, expected {setting: NAME}")
    return SettingRef(name)


def _range(text: str) -> PortEntry:
    if _PORT.match(text):
        port = _port(int(text), text)
        return (port, port)
    match = _RANGE.match(text)
    if match is None:
        raise refuse(f'{quoted(text)} is no port, expected a number or "FIRST-LAST"')
    first, last = (_port(int(number), number) for number in match.groups())
    if first > last:
        raise refuse(f'{quoted(text)} runs backwards, expected "{last}-{first}"')
    return (first, last)


def _port(number: int, text: str) -> int:
    if not MIN_PORT <= number <= MAX_PORT:
        raise refuse(f"{text} is no port, expected {MIN_PORT} to {MAX_PORT}")
    return int(number)


def _listed_number(value: object) -> object:
    return [value] if isinstance(value, int | str) else value


_PORT_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "integer", "minimum": MIN_PORT, "maximum": MAX_PORT},
        {"type": "string", "pattern": r"^\d{1,5}(\s*-\s*\d{1,5})?$"},
        {
            "type": "object",
            "properties": {"setting": {"type": "string"}},
            "required": ["setting"],
            "additionalProperties": False,
        },
    ]
}
_PROTOCOL_SCHEMA = {"type": "integer", "minimum": 1, "maximum": 254}

# Any: the validators above take whatever stands in the file.
PortField = Annotated[Any, PlainValidator(port_entry), WithJsonSchema(_PORT_SCHEMA)]
ProtocolField = Annotated[Any, PlainValidator(ip_protocol), WithJsonSchema(_PROTOCOL_SCHEMA)]
ProtocolsField = Annotated[
    list[ProtocolField],
    BeforeValidator(_listed_number, json_schema_input_type=ProtocolField | list[ProtocolField]),
]
