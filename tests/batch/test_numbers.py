"""Whatever numbers a host writes, its own flows bear it: nothing else of a merge changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from netprobe.agent.wire.batch import IN_RESULTS
from netprobe.agent.wire.numbers import MOST
from netprobe.probe.agents.rules import ANSWERS_TO
from tests.agent.wire.values import fullest, numbers_in, put
from tests.batch.merging import (
    WEB,
    Message,
    World,
    list_messages,
    make_world,
    merge_each,
    merge_messages,
)
from tests.batch.world import plan_of

DNS = ("dns", "udp", ((53, 53),))
PING = ("ping", "icmp", ())
LARGEST = "the largest of the field"
# In range and out of it; what is no number JSON tells apart by itself.
VALUES: list[Any] = [LARGEST, 0, 1, -1, 2**31, 2**63, 2**64 - 1, 2**64, 10**12, 10**30, 1e308]


@pytest.fixture(scope="module", params=["clock", pytest.param("engine", marks=pytest.mark.full)])
def world(request: pytest.FixtureRequest) -> World:
    """Flows of three protocols, told apart by an engine's words, or by the clocks of hosts."""
    return make_world(plan_of(WEB, DNS, PING), request.param)


@pytest.fixture(scope="module")
def plan(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan that stayed at home."""
    return world.write_plan(tmp_path_factory.mktemp("home") / "run")


def list_full_answers() -> Iterator[tuple[str, list[Message]]]:
    """Each order with an answer in which everything is there, and as large as it may be."""
    first = (1 << 31) + 1
    for number, (order, kinds) in enumerate(ANSWERS_TO.items(), first):
        for answer in kinds:
            question = [order.__name__, number, *fullest(order)[1:]]
            yield answer.__name__, [question, [answer.__name__, number, *fullest(answer)[1:]]]


def bend(message: Message, value: Any, paths: Sequence[Any] | None = None) -> Message:
    """The same with this value for its numbers (those at these places), but not for its id."""
    record = IN_RESULTS[message[0]]
    values = message[1:]
    for path, name, _ in list(numbers_in(record, values)):
        if path != (0,) and (paths is None or path in paths):
            values = put(values, path, MOST[name] if value == LARGEST else value)
    return [message[0], *values]


def list_bent(world: World, values: Sequence[Any]) -> Iterator[tuple[Any, list[Message]]]:
    """All numbers of one message at once: of the first message of each kind, and of all."""
    messages = list_messages(world)
    kinds = {message[0] for message in messages}
    for value in values:
        for kind in sorted(kinds):
            yield (kind, value), [bend(one, value) if one[0] == kind else one for one in messages]
    for value in values:
        for kind, full in list_full_answers():
            bent = [bend(one, value) for one in full]
            yield (kind, value, "full"), [*messages[:-1], *bent, messages[-1]]


def list_each(world: World, values: Sequence[Any]) -> Iterator[tuple[Any, list[Message]]]:
    """One number of one message after the other."""
    messages = list_messages(world)
    seen: set[tuple[str, str]] = set()
    for at, message in enumerate(messages):
        for path, name, _ in numbers_in(IN_RESULTS[message[0]], message[1:]):
            place = message[0], ".".join("*" if len(path) > 1 and each == path[-1] else str(each)
                                         for each in path)  # fmt: skip
            if path == (0,) or place in seen:
                continue
            seen.add(place)
            for value in values:
                bent = bend(message, value, [path])
                yield (message[0], path, name, value), [*messages[:at], bent, *messages[at + 1 :]]


@pytest.mark.slow
def test_all_numbers_of_a_message_at_once(world: World, plan: Path, tmp_path: Path) -> None:
    """The largest that there may be, in every kind of message that a host writes."""
    assert merge_each(world, plan, tmp_path, list_bent(world, [LARGEST])) > 25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("PhaseClock", "wall_s", 1_000_000_000_000),  # the year 33658
        ("HelloLine", "wall_s", 1_000_000_000_000),
        ("ProbeOutcomes", "rtts_us", 2**64 - 1),
        ("EchoOutcomes", "rtts_us", 2**64 - 1),
        ("StoryTold", "first_ns", 2**64 - 1),
        ("Listening", "up", 65536),
    ],
)
def test_a_number_that_cannot_be_is_the_reason_of_its_host(
    world: World, plan: Path, tmp_path: Path, kind: str, name: str, value: int
) -> None:
    """A clock in the far future, a round trip of a thousand years: that host has failed alone."""
    messages = list_messages(world)
    found = [one for message in messages if message[0] == kind
             for one in numbers_in(IN_RESULTS[kind], message[1:])]  # fmt: skip
    places = [path for path, field, _ in found if field == name]
    bent = [bend(one, value, places) if one[0] == kind else one for one in messages]
    assert bent != messages
    merge_each(world, plan, tmp_path, iter([(name, bent)]))
    failed = merge_messages(world, plan, tmp_path, bent).hosts["a"]
    assert failed.state == "failed"
    assert f"{name}: expected a number from 0 to {MOST[name]}, not {value}" in failed.words


@pytest.mark.full
def test_every_number_by_itself(world: World, plan: Path, tmp_path: Path) -> None:
    """Of every message and each of its parts, in range and out of it."""
    done = merge_each(world, plan, tmp_path, list_bent(world, VALUES))
    done += merge_each(world, plan, tmp_path, list_each(world, VALUES))
    assert done > 1000
