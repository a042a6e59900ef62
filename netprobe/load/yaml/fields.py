"""Types of fields in matrix and inventory files: names, lists, dates, server names, values."""

from __future__ import annotations

import datetime
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

from netprobe.load.yaml.validation import refuse
from netprobe.load.yaml.wording import quoted, what_it_is
from netprobe.model.matrix import DNS_NAME, SettingRef

# No "=" and ":" (--set MATRIX:KEY=VALUE), no "," (lists), nothing that a shell would take apart.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")
NAME_SCHEMA = {"pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"}
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z")


def check_name(text: str) -> str:
    """A name that can be given on the command line as it is."""
    if not _NAME.match(text):
        expected = 'expected letters, digits, "-", "_" and "."'
        raise refuse(f"{quoted(text)} is no name, {expected}")
    return text


def check_not_empty(text: str) -> str:
    """A text that says something."""
    if not text.strip():
        raise refuse("the text is empty, expected some words")
    return text


def check_date(text: str) -> str:
    """A date such as 2027-01-31, and no other spelling of one."""
    try:
        if not _DATE.match(text):
            raise ValueError(text)
        datetime.date.fromisoformat(text)
    except ValueError:
        raise refuse(f"{quoted(text)} is no date, expected one such as 2027-01-31") from None
    return text


def one_or_many(value: object) -> object:
    """A single text stands for a list of one."""
    return [value] if isinstance(value, str) else value


def server_name(raw: object) -> str | SettingRef:
    """``konnectivity.example.com`` or ``{setting: NAME}``."""
    if isinstance(raw, dict):
        name = raw.get("setting")
        if set(raw) != {"setting"} or not isinstance(name, str):
            raise refuse("this mapping is no server name, expected {setting: NAME}")
        return SettingRef(name)
    if not isinstance(raw, str):
        raise refuse(f"{what_it_is(raw)}, expected a DNS name or {{setting: NAME}}")
    if not DNS_NAME.fullmatch(raw):
        raise refuse(f"{quoted(raw)} is no DNS name, expected one such as api.example.com")
    return raw


NameField = Annotated[str, AfterValidator(check_name), Field(json_schema_extra=dict(NAME_SCHEMA))]
Words = Annotated[str, AfterValidator(check_not_empty)]
Date = Annotated[str, AfterValidator(check_date), Field(json_schema_extra={"format": "date"})]
Names = Annotated[
    list[NameField],
    BeforeValidator(one_or_many, json_schema_input_type=NameField | list[NameField]),
]

_SERVER_NAME_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "properties": {"setting": {"type": "string"}},
            "required": ["setting"],
            "additionalProperties": False,
        },
    ]
}
# Any: the validator takes whatever stands in the file.
ServerName = Annotated[Any, PlainValidator(server_name), WithJsonSchema(_SERVER_NAME_SCHEMA)]

# The value of a setting, or of a condition on one: typed by the setting.
SCALAR_SCHEMA = {"type": ["string", "number", "boolean"]}
_VALUE_SCHEMA = {"anyOf": [SCALAR_SCHEMA, {"type": "array", "items": SCALAR_SCHEMA}]}
Value = Annotated[Any, WithJsonSchema(_VALUE_SCHEMA)]
