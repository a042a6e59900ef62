"""``sni:`` of a requirement, as it is written: a name, or the setting that holds it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from netprobe.load.yaml.validation import refuse
from netprobe.load.yaml.wording import quoted, what_it_is
from netprobe.model.matrix import DNS_NAME, SettingRef


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


_SCHEMA: dict[str, Any] = {
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
ServerName = Annotated[Any, PlainValidator(server_name), WithJsonSchema(_SCHEMA)]
