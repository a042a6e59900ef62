"""Types of fields in matrix files: ports, protocols, server names, dates, conditions, waivers.

Also values of ``probe: {http: {...}}``: paths, statuses, headers and patterns.
"""

from __future__ import annotations

import datetime
import ipaddress
import posixpath
import re
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

from netprobe.load.yaml.scalars import text_of
from netprobe.load.yaml.validation import (
    REFERENCE_SCHEMA,
    SCALAR_SCHEMA,
    fit,
    list_one,
    list_scalar,
)
from netprobe.load.yaml.wording import quoted, what_it_is
from netprobe.model.matrix import DNS_NAME, ClaimRef, PortEntry, SettingRef
from netprobe.model.ports import MAX_PORT, MIN_PORT, PortRange

_RANGE = re.compile(r"(\d{1,9})\s*-\s*(\d{1,9})\Z", re.ASCII)
_PORT = re.compile(r"\d{1,9}\Z", re.ASCII)

# People look for these by name; the packet has the number.
_PROTOCOLS = {"icmp": 1, "ipip": 4, "tcp": 6, "udp": 17, "gre": 47, "esp": 50, "ah": 51}
_PROTOCOLS |= {"icmpv6": 58, "ospf": 89, "vrrp": 112, "sctp": 132}
# IANA's registry; Linux makes no socket for 0 and takes 255 for "headers included" (raw(7)).
_NO_PROTOCOLS = {0: "IPv6's hop-by-hop option", 255: "reserved"}
_HAVE_KEYS = {1: "icmp: echo", 58: "icmp: echo", 6: "tcp: [PORT]", 17: "udp: [PORT]"}


def port_entry(raw: object) -> PortEntry:
    """``2379``, ``"7000-7999"`` or ``{setting: NAME}``."""
    if isinstance(raw, dict):
        return _read_reference(raw, "port")
    if isinstance(raw, str):
        return _read_range(raw)
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise ValueError(f'{what_it_is(raw)}, expected a port, "FIRST-LAST" or {{setting: NAME}}')
    port = _check_port(raw, text_of(raw))
    return (port, port)


def plain_port(raw: object) -> PortRange:
    """``2379`` or ``"7000-7999"``, without settings."""
    if isinstance(raw, int | str) and not isinstance(raw, bool):
        entry = port_entry(raw)
        assert isinstance(entry, tuple)
        return entry
    raise ValueError(f'{what_it_is(raw)}, expected a port or "FIRST-LAST"')


def ip_protocol(raw: object) -> int:
    """Give the number of an IP protocol that is neither TCP, UDP nor ICMP."""
    if isinstance(raw, str):
        number = _PROTOCOLS.get(raw.lower())
        hint = f" ({raw.lower()} is {number})" if number else ""
        raise ValueError(f"{quoted(raw)} is text, expected the protocol's number{hint}")
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise ValueError(f"{what_it_is(raw)}, expected the number of an IP protocol (1 to 254)")
    if not 0 <= raw <= 255:
        raise ValueError(f"{text_of(raw)} is no IP protocol, expected 1 to 254")
    if raw in _NO_PROTOCOLS:
        raise ValueError(f"{text_of(raw)} is {_NO_PROTOCOLS[raw]}, expected 1 to 254")
    if raw in _HAVE_KEYS:
        raise ValueError(
            f"protocol {text_of(raw)} has a key of its own, expected {_HAVE_KEYS[raw]}"
        )
    return int(raw)


def server_name(raw: object) -> str | SettingRef:
    """``konnectivity.example.com`` or ``{setting: NAME}``."""
    if isinstance(raw, dict):
        return _read_reference(raw, "server name")
    if not isinstance(raw, str):
        raise ValueError(f"{what_it_is(raw)}, expected a DNS name or {{setting: NAME}}")
    if not DNS_NAME.fullmatch(raw):
        raise ValueError(f"{quoted(raw)} is no DNS name, expected one such as api.example.com")
    return raw


def claim(raw: object) -> str | SettingRef:
    """``cilium``, ``{setting: NAME}`` or ``{setting: NAME, says: WORD}``."""
    if isinstance(raw, dict) and isinstance(says := raw.get("says"), str) and says.strip():
        given = {key: value for key, value in raw.items() if key != "says"}
        return ClaimRef(_read_reference(given, "claim").setting, says)
    if isinstance(raw, dict):
        return _read_reference(raw, "claim")
    if not isinstance(raw, str) or not raw.strip():
        raise ValueError(f"{what_it_is(raw)}, expected a word or {{setting: NAME}}")
    return raw


def multicast_group(text: str) -> str:
    """Check an address of a group, and give its usual spelling."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        address = None
    if address is None or not address.is_multicast:
        raise ValueError(f"{quoted(text)} is no multicast address, expected one as 224.0.0.18")
    return str(address)


def _read_reference(raw: dict[str, object], kind: str) -> SettingRef:
    name = raw.get("setting")
    if set(raw) != {"setting"} or not isinstance(name, str):
        raise ValueError(f"this mapping is no {kind}, expected {{setting: NAME}}")
    return SettingRef(name)


def _read_range(text: str) -> PortEntry:
    if _PORT.match(text):
        port = _check_port(int(text), text)
        return (port, port)
    match = _RANGE.match(text)
    if match is None:
        raise ValueError(f'{quoted(text)} is no port, expected a number or "FIRST-LAST"')
    first, last = (_check_port(int(number), number) for number in match.groups())
    if first > last:
        raise ValueError(f'{quoted(text)} runs backwards, expected "{last}-{first}"')
    return (first, last)


def _check_port(number: int, text: str) -> int:
    if not MIN_PORT <= number <= MAX_PORT:
        raise ValueError(f"{text} is no port, expected {MIN_PORT} to {MAX_PORT}")
    return int(number)


def _check_not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("the text is empty, expected some words")
    return text


def check_date(text: str) -> str:
    """Check a date such as 2027-01-31, and no other spelling of one."""
    try:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            raise ValueError(text)
        datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{quoted(text)} is no date, expected one such as 2027-01-31") from None
    return text


def _check_mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{what_it_is(value)}, expected a mapping such as {{SETTING: VALUE}}")
    return value


_UNTIL = re.compile(
    r"^(?P<reason>.*?)(?P<comma>,?)\s*[(]?\b(?:un)?till?\s+(?P<until>[^\s)]+?)[.)]*\s*$",
    re.DOTALL | re.IGNORECASE,
)
_SOME_END = re.compile(r"\b(?:un)?till?\b.*?\d", re.DOTALL | re.IGNORECASE)
_WAIVER = '"REASON, until 2027-01-31"'


def split_waiver(value: object) -> object:
    """``"reason, until 2027-01-31"`` as reason and date.

    "until" before a word without digits ("until Monday we wait") stays a reason, unless a comma
    shows that it was meant as the end of the waiver. A date elsewhere behind "until"
    is refused: read as a part of the reason it would make a waiver that never ends.
    """
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        raise ValueError(f'{what_it_is(value)}, expected "REASON, until DATE"')
    match = _UNTIL.match(value)
    if match and (match["comma"] or any(letter.isdigit() for letter in match["until"])):
        return {"reason": match["reason"], "until": match["until"]}
    if _SOME_END.search(value):
        words = f"{quoted(value)} does not end with its last day"
        raise ValueError(f"{words}, expected {_WAIVER} or {{reason: ..., until: 2027-01-31}}")
    return {"reason": value}


PLAIN_PORT_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "integer", "minimum": MIN_PORT, "maximum": MAX_PORT},
        {"type": "string", "pattern": r"^\d{1,5}(\s*-\s*\d{1,5})?$"},
    ]
}
_PORT_SCHEMA = {"anyOf": [*PLAIN_PORT_SCHEMA["anyOf"], REFERENCE_SCHEMA]}
_PROTOCOL_SCHEMA = {"type": "integer", "minimum": 1, "maximum": 254}
_SERVER_NAME_SCHEMA = {"anyOf": [{"type": "string", "minLength": 1}, REFERENCE_SCHEMA]}
_CLAIM_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "properties": {
                "setting": {"type": "string"},
                "says": {"type": "string", "minLength": 1},
            },
            "required": ["setting"],
            "additionalProperties": False,
        },
    ]
}
_CONDITION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [SCALAR_SCHEMA, {"type": "array", "items": SCALAR_SCHEMA, "minItems": 1}]
    },
}

FilledText = Annotated[str, AfterValidator(_check_not_empty)]
Date = Annotated[str, AfterValidator(check_date), Field(json_schema_extra={"format": "date"})]
Commit = Annotated[
    str,
    fit(
        re.compile(r"[0-9a-f]{7,40}").fullmatch,
        "is no commit, expected 7 to 40 hexadecimal digits",
    ),
    Field(json_schema_extra={"pattern": "^[0-9a-f]{7,40}$"}),
]
Hash = Annotated[
    str,
    fit(re.compile(r"[0-9a-f]{8,128}").fullmatch, "is no hash, expected its hexadecimal digits"),
    Field(json_schema_extra={"pattern": "^[0-9a-f]{8,128}$"}),
]
MulticastGroup = Annotated[str, AfterValidator(multicast_group)]
# Any: the validators above take whatever stands in the file.
PortField = Annotated[Any, PlainValidator(port_entry), WithJsonSchema(_PORT_SCHEMA)]
ClaimField = Annotated[Any, PlainValidator(claim), WithJsonSchema(_CLAIM_SCHEMA)]
ProtocolField = Annotated[Any, PlainValidator(ip_protocol), WithJsonSchema(_PROTOCOL_SCHEMA)]
ProtocolsField = Annotated[
    list[ProtocolField],
    BeforeValidator(list_scalar, json_schema_input_type=ProtocolField | list[ProtocolField]),
]
# The name of a program: ``etcd``, not a path and not a command line.
ProcessName = Annotated[
    str,
    fit(re.compile(r"[^/\s]+").fullmatch, "is no name of a program, expected one such as etcd"),
    Field(json_schema_extra={"pattern": r"^[^/\s]+$"}),
]
Processes = Annotated[
    list[ProcessName],
    BeforeValidator(list_one, json_schema_input_type=ProcessName | list[ProcessName]),
]
ServerName = Annotated[Any, PlainValidator(server_name), WithJsonSchema(_SERVER_NAME_SCHEMA)]
# Any: conditions are typed by their settings, see matrix/checks.py.
ConditionField = Annotated[Any, PlainValidator(_check_mapping), WithJsonSchema(_CONDITION_SCHEMA)]

MAX_PATH = 2000
MAX_PATTERN = 1000
_STATUS = re.compile(r"(?P<class>[1-5])xx|(?P<low>[1-5]\d\d)(?:\s*-\s*(?P<high>[1-5]\d\d))?", re.I)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_PATH = re.compile(r"/[!-~]*")
_STATUS_WORDS = 'expected 200, "2xx", "200-204" or a list of these'
# What hands out secrets, leaves a warning behind or tells what a platform is made of, and what to
# ask instead (docs/services.md). Of any path below /config a server of machine configs reads the
# last part.
_UNSAFE = (
    (re.compile(r"/config/"), "a machine-config-server gives its secrets for it"),
    (re.compile(r"/ignition(?:[?]|$)"), "an ignition server raises a warning for it"),
    (re.compile(r"/(?:healthz|livez|readyz)\b.*[?&]verbose\b"), "it lists a platform's parts"),
)


def split_probe(value: object) -> object:
    """A name stands for a probe of netprobe's own, a mapping for a request of the matrix's."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, dict) and set(value) == {"http"} and value["http"] is not None:
        return value
    raise ValueError(
        f"{what_it_is(value)}, expected a name such as https, or {{http: {{path: /healthz}}}}"
    )


def split_stops(value: object) -> object:
    """``nodes`` where the document says it, else ``{nodes: REASON}``."""
    if isinstance(value, str):
        return {"weight": value}
    if isinstance(value, dict) and len(value) == 1:
        ((weight, reason),) = value.items()
        if isinstance(reason, str) and reason.strip():
            return {"weight": weight, "reason": reason}
    raise ValueError(f"{what_it_is(value)}, expected a word such as nodes, or {{nodes: REASON}}")


def http_path(text: str) -> str:
    """Check a path as it is sent; one that must never be asked for is refused."""
    if not _PATH.fullmatch(text) or "#" in text or len(text) > MAX_PATH:
        expected = "expected one such as /healthz, without spaces"
        raise ValueError(f"{quoted(text)} is no path, {expected}")
    plain = _plain_path(text)
    for unsafe, why in _UNSAFE:
        if unsafe.match(plain):
            raise ValueError(f"{quoted(text)} must not be asked for: {why}; expected /healthz")
    return text


def _plain_path(text: str) -> str:
    """Give a path as the most willing server reads it: decoded, without dots and spare slashes."""
    while (decoded := unquote(text)) != text:
        text = decoded
    path, mark, query = text.partition("?")
    return posixpath.normpath(re.sub("//+", "/", path)) + mark + query


def statuses(raw: object) -> tuple[PortRange, ...]:
    """``200``, ``"2xx"``, ``"200-204"`` or a list of these, as ranges."""
    items = raw if isinstance(raw, list) else [raw]
    if not items:
        raise ValueError(f"the list is empty, {_STATUS_WORDS}")
    return tuple(_read_status(item) for item in items)


def _read_status(raw: object) -> PortRange:
    if isinstance(raw, bool) or not isinstance(raw, int | str):
        raise ValueError(f"{what_it_is(raw)}, {_STATUS_WORDS}")
    found = _STATUS.fullmatch(str(raw))
    if found is None:
        raise ValueError(f"{text_of(raw)} is no status, {_STATUS_WORDS}")
    if found["class"]:
        return (int(found["class"]) * 100, int(found["class"]) * 100 + 99)
    low, high = int(found["low"]), int(found["high"] or found["low"])
    if low > high:
        raise ValueError(f'{quoted(str(raw))} runs backwards, expected "{high}-{low}"')
    return (low, high)


def _check_pattern(text: str) -> str:
    if not text or len(text) > MAX_PATTERN:
        length = f"the text has {len(text):,} characters" if text else "the text is empty"
        raise ValueError(f"{length}, expected 1 to {MAX_PATTERN:,}")
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        words = f"{quoted(text)} is no regular expression ({error})"
        raise ValueError(
            f'{words}, expected a text with "\\" before its special characters'
        ) from None
    return text


_STATUS_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "integer", "minimum": 100, "maximum": 599},
        {"type": "string", "pattern": r"^([1-5][xX]{2}|[1-5]\d\d(\s*-\s*[1-5]\d\d)?)$"},
    ]
}

HttpPath = Annotated[
    str, AfterValidator(http_path), Field(json_schema_extra={"pattern": r"^/[!-~]*$"})
]
StatusesField = Annotated[
    Any,
    PlainValidator(statuses),
    WithJsonSchema(
        {"anyOf": [*_STATUS_SCHEMA["anyOf"], {"type": "array", "items": _STATUS_SCHEMA}]}
    ),
]
HeaderName = Annotated[
    str, fit(_HEADER.fullmatch, "is no name of a header, expected one as Content-Type")
]
Pattern = Annotated[
    str,
    AfterValidator(_check_pattern),
    Field(json_schema_extra={"minLength": 1, "maxLength": MAX_PATTERN}),
]
