"""JSON Schemas of the files that people write, for editors; made from the pydantic models."""

from __future__ import annotations

import json
from typing import Any

from netprobe.errors import RequestError
from netprobe.load.accepted import AcceptedFile
from netprobe.load.inventory.models import InventoryFile
from netprobe.load.matrix.models import MatrixFile
from netprobe.load.yaml.document import VERSION
from netprobe.load.yaml.validation import FileModel
from netprobe.load.yaml.wording import unknown

MODELS: dict[str, type[FileModel]] = {
    "matrix": MatrixFile,
    "inventory": InventoryFile,
    "accepted": AcceptedFile,
}

Schema = dict[str, Any]  # Any: JSON


def json_schema(kind: str) -> Schema:
    """Give the schema of a kind of ``MODELS``; RequestError for another kind."""
    if kind not in MODELS:
        raise RequestError(unknown("kind of file", kind, MODELS))
    made = MODELS[kind].model_json_schema(by_alias=True, mode="validation")
    _tidy_schema(made)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:netprobe:schema:{kind}:{VERSION}",
        **made,
        "title": f"netprobe {kind} file",
    }


def schema_text(kind: str) -> str:
    """Give the schema as it is checked in under ``schemas/`` and printed by ``netprobe schema``."""
    return json.dumps(json_schema(kind), indent=2) + "\n"


def _tidy_schema(part: object) -> None:
    """Drop what only pydantic needs: titles that repeat the key, null for keys left out."""
    if isinstance(part, dict):
        _tidy_mapping(part)
        part = list(part.values())
    for item in part if isinstance(part, list) else ():
        _tidy_schema(item)


def _tidy_mapping(part: Schema) -> None:
    if isinstance(part.get("title"), str):
        del part["title"]
    if part.get("default", "") is None:
        del part["default"]
    choices = part.get("anyOf")
    if isinstance(choices, list):
        kept = [choice for choice in choices if choice != {"type": "null"}]
        part["anyOf"] = kept
        if len(kept) == 1:
            del part["anyOf"]
            part.update({**kept[0], **part})
