"""Values of ``probe: {http: {...}}``: paths, statuses, headers and patterns."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from netprobe.load.yaml.scalars import text_of
from netprobe.load.yaml.validation import fit
from netprobe.load.yaml.wording import quoted, what_it_is
from netprobe.model.ports import PortRange

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
