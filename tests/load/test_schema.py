"""The JSON Schemas that editors use: fresh, and in agreement with what netprobe accepts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has no stubs

from netprobe.errors import RequestError
from netprobe.load.matrix.bundled import bundled_names, bundled_path
from netprobe.load.matrix.file import load_matrices
from netprobe.load.schema import json_schema, schema_text
from netprobe.load.starter import starter_inventory
from netprobe.load.yaml.source import parse, read_document

ROOT = Path(__file__).parents[2]
GOOD = Path(__file__).parent / "good"


def complaints(kind: str, value: object) -> list[str]:
    """What a JSON Schema validator says of a file's values."""
    return [error.message for error in Draft202012Validator(json_schema(kind)).iter_errors(value)]


def values(path: Path) -> Any:  # Any: what a JSON Schema validator takes
    """The plain values of a file without problems."""
    document = read_document(str(path), [])
    assert document is not None
    return document.value


@pytest.mark.parametrize("kind", ["matrix", "inventory", "accepted"])
def test_checked_in_schema_is_fresh(kind: str) -> None:
    """The files under ``schemas/`` are what ``netprobe schema`` prints."""
    file = ROOT / "schemas" / f"{kind}.schema.json"
    if os.environ.get("NETPROBE_REWRITE") == "docs":
        file.write_text(schema_text(kind), encoding="utf-8")

    Draft202012Validator.check_schema(json_schema(kind))
    assert file.read_text(encoding="utf-8") == schema_text(kind), "make docs"


@pytest.mark.slow
@pytest.mark.parametrize("name", bundled_names())
def test_bundled_matrices_fit(name: str) -> None:
    """Every bundled matrix satisfies the schema."""
    assert complaints("matrix", values(bundled_path(name))) == []


def test_examples_fit() -> None:
    """The files of the other tests, which use every key, satisfy the schemas."""
    assert complaints("matrix", values(GOOD / "base.yaml")) == []
    assert complaints("matrix", values(GOOD / "layer.yaml")) == []
    assert complaints("inventory", values(GOOD / "inventory.yaml")) == []
    assert complaints("accepted", values(GOOD / "accepted.yaml")) == []


@pytest.mark.parametrize("name", bundled_names())
def test_starters_fit(name: str) -> None:
    """What init prints satisfies the schema."""
    document = parse(starter_inventory(load_matrices([name])).encode(), [], "f")

    assert document is not None
    assert complaints("inventory", document.value) == []


def properties(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every property anywhere in a schema."""
    for key, value in part.items() if isinstance(part, dict) else ():
        if key == "properties":
            yield from ((f"{path}.{name}", body) for name, body in value.items())
        yield from properties(value, f"{path}.{key}")


@pytest.mark.parametrize("kind", ["matrix", "inventory", "accepted"])
def test_every_key_is_described(kind: str) -> None:
    """An editor can show a sentence for every key."""
    bare = [path for path, body in properties(json_schema(kind)) if "description" not in body]

    # {setting: NAME} stands inside the description of tcp and udp.
    assert [path for path in bare if not path.endswith(".setting")] == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("matrix", {"schema": "netprobe.matrix/2"}),
        ("matrix", {"schema": "netprobe.matrix/1", "rolls": {}}),
        ("matrix", {"schema": "netprobe.matrix/1", "requirements": [{"id": "a"}]}),
        ("matrix", {"schema": "netprobe.matrix/1", "override": {"a": {"tcp": [0]}}}),
        ("matrix", {"schema": "netprobe.matrix/1", "override": {"a": {"expect": "deny"}}}),
        ("accepted", {"schema": "netprobe.accepted/1", "accepted": {}}),
        ("accepted", {"schema": "netprobe.accepted/1", "accepted": [{"id": "a"}]}),
        ("inventory", {"schema": "netprobe.inventory/1"}),
        ("inventory", {"schema": "netprobe.inventory/1", "hosts": {"a": {"roles": 5}}}),
        ("inventory", {"schema": "netprobe.inventory/1", "hosts": {"a": {"vantage": "x"}}}),
    ],
)
def test_bad_files_do_not_fit(kind: str, value: object) -> None:
    """An editor underlines what netprobe refuses."""
    assert complaints(kind, value)


def test_other_kinds() -> None:
    """No other kind of file has a schema here."""
    with pytest.raises(
        RequestError, match=r'unknown kind of file "matrx", did you mean "matrix"\?'
    ):
        json_schema("matrx")
