"""A plan that somebody has changed: it is refused by name, or merged; it is never a bug."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netprobe.batch.bundle import open_bundle, pack_plan
from netprobe.batch.request import read_request, write_request
from netprobe.errors import RequestError
from tests.batch.merging import WEB, World, make_world, merge_files
from tests.batch.world import plan_of

ODD: list[Any] = [
    None, 0, -1, 10**12, 2**53 - 1, 2**63, 1e308, float("nan"), "x", "", [], {}, True, [[]],
]  # fmt: skip
# Steps to a value inside of the plan.
Steps = tuple[str | int, ...]


@pytest.fixture(scope="module")
def world() -> World:
    """Flows of three protocols, by the clocks of hosts."""
    return make_world(plan_of(WEB, ("dns", "udp", ((53, 53),)), ("ping", "icmp", ())), "clock")


def list_places(value: Any, path: Steps = ()) -> Iterator[Steps]:
    """Where plain values stand."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from list_places(value[key], (*path, key))
    else:
        yield path


def list_kinds(document: Any) -> list[Steps]:
    """The first place of each kind: what stands in lists is alike."""
    kinds: dict[Steps, Steps] = {}
    for path in list_places(document):
        kinds.setdefault(tuple("*" if isinstance(step, int) else step for step in path), path)
    return list(kinds.values())


def put(value: Any, path: Steps, new: Any) -> Any:
    """The same with another value at a place."""
    if not path:
        return new
    changed: Any = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = put(value[path[0]], path[1:], new)
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.full)])
def test_every_value_of_a_plan_may_be_odd(world: World, tmp_path: Path, step: int) -> None:
    """Of another type, too small, too large, empty: one line with the file's name, or a report."""
    document = json.loads(write_request(world.request))
    tries = [(path, value) for path in list_kinds(document) for value in ODD]
    assert len(tries) > 900
    refused, merged = [], 0
    plan = tmp_path / "plan.pyz"
    for path, value in tries[::step]:
        plan.write_bytes(pack_plan({}, json.dumps(put(document, path, value)).encode()))
        try:
            merge_files(plan, tmp_path, world.files())
            merged += 1
        except RequestError as error:
            refused.append(str(error))
    assert len(refused) > merged > 0
    assert all(words.startswith(f"{plan}: ") for words in refused)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("settings", "forks"), 0, "forks: 0, expected a number from 1"),
        (("settings", "looks"), 10**9, "looks: 1000000000, expected a number from 1 to 21"),
        (("settings", "timeout_s"), "x", "settings.timeout_s: text, expected"),
        (("round",), 10**12, "round: 1000000000000, expected a number from 1 to"),
        (("starts_at",), 1e15, "starts_at: "),
        (("window_s",), -1, "window_s: -1, expected"),
        (("barrier",), "hope", "barrier: "),
        (("run",), "../../etc", "run: expected 16 hexadecimal digits"),
        (("key",), "AAAA", "key: expected 32 bytes"),
        (("order",), ["a", "a"], "order: a host is there twice"),
        (("plan", "selection"), 1, "selection: a whole number, expected"),
        (("plan", "notes"), [1], "notes[0]: a whole number, expected text"),
        (("plan", "limited_to"), [[]], "limited_to[0]: a list, expected text"),
        (("plan", "roles"), {"a": [1]}, "roles.a[0]: a whole number, expected text"),
        (("plan", "blocks", 0, "ports"), [[9, 1]], "ports: 9-1, expected ranges"),
        (("plan", "blocks", 0, "ports"), [[1, 10**12]], "expected ranges of 1 to 65535"),
    ],
)
def test_an_odd_value_is_named(world: World, path: Steps, value: Any, words: str) -> None:
    """In the one line that refuses the file."""
    document = json.loads(write_request(world.request))
    with pytest.raises(RequestError) as caught:
        read_request(json.dumps(put(document, path, value)).encode(), "plan.pyz")
    assert str(caught.value).startswith("plan.pyz: is not what `netprobe bundle` wrote: ")
    assert words in str(caught.value)


def test_a_flipped_bit_is_no_bug(world: World, tmp_path: Path) -> None:
    """Anywhere in the file: it is refused by name, or the bit was of no matter."""
    whole = world.write_plan(tmp_path / "run").read_bytes()
    dice = random.Random(3)
    plan = tmp_path / "plan.pyz"
    refused = []
    for _ in range(150):
        at = dice.randrange(len(whole))
        changed = bytes([whole[at] ^ 1 << dice.randrange(8)])
        plan.write_bytes(whole[:at] + changed + whole[at + 1 :])
        try:
            found = read_plan(plan)
        except RequestError as error:
            refused.append(str(error))
        else:
            assert found == world.request.run
    assert len(refused) > 50
    assert all(words.startswith(f"{plan}: ") for words in refused)


def read_plan(path: Path) -> str:
    """The id of the run in a file."""
    return read_request(open_bundle(path).plan, str(path)).run
