"""Samples with any value replaced by any other: problems or notes, never a failure of netprobe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from netprobe.errors import FileErrors
from tests.load.manifest.estate import SAMPLES, WORKERS, Desk

Path = tuple[str | int, ...]
DOCUMENTS = [
    (path.name, index, json.dumps(document, default=str))
    for path in sorted(SAMPLES.iterdir())
    for index, document in enumerate(yaml.safe_load_all(path.read_text().replace("\t", " ")))
    if document
]
JUNK: list[Any] = [
    *(None, "", 0, -1, 70000, True, [], {}, [None], [{}], {"a": None}, 3.5, "a b", "é", "x" * 300),
    *("http://[", "https://u:secret@h:99999", "ldap://x:y", "::1", "fe80::1", "127.0.0.1"),
    *("10.0.0.0/8", "1.2.3.4/33", "0.0.0.0/0", "*", "-", "$(x)", "\x1b[31m"),
]
INVENTORY = WORKERS.replace("[worker]", "[worker, node, hcp]")


def paths_of(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every value."""
    yield path
    plain = dict(enumerate(value)) if isinstance(value, list) else value
    for key, item in plain.items() if isinstance(plain, dict) else ():
        yield from paths_of(item, (*path, key))


def replace_at(value: Any, path: Path, junk: Any) -> Any:
    """The value with that of a path replaced."""
    if not path:
        return junk
    parent = value
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = junk
    return value


@pytest.mark.slow
@given(
    st.sampled_from(DOCUMENTS),
    st.integers(0, 10_000),
    st.sampled_from(JUNK),
    st.sampled_from(("okd-hcp", "openshift-host-ports", "dce", "deckhouse-nodes")),
)
@example(("kubean-vars.yaml", 0, '{"metallb_enabled": true}'), 1, "https://u:secret@h:99999", "dce")
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_value_makes_it_fail(
    desk: Desk, document: tuple[str, int, str], place: int, junk: Any, matrix: str
) -> None:
    """Every file is read or has problems; no problem has a password."""
    whole = json.loads(document[2])
    paths = list(paths_of(whole))
    hurt = replace_at(whole, paths[place % len(paths)], junk)
    desk.write("hurt.yaml", yaml.safe_dump(hurt))
    said = ""
    try:
        loaded = desk.load(matrix, "hurt.yaml", inventory=INVENTORY)
        said = f"{loaded.notes} {loaded.inventory.taken}"
    except FileErrors as error:
        said = str(error)
    assert "secret" not in said
    assert "\x1b" not in said


def test_there_are_values_to_hurt() -> None:
    """The samples are found."""
    assert len(DOCUMENTS) > 20
    with pytest.raises(IndexError):
        replace_at([], (0,), 1)
