"""The JSON codec of results and runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from msgspec.structs import replace

from netprobe.model.codec import (
    info_from_json,
    info_to_json,
    result_from_json,
    result_to_json,
)
from netprobe.model.result import HostFacts, Result
from netprobe.model.story import Story, StoryError, StoryPlace
from netprobe.model.struct_json import Nanoseconds, from_json, to_json
from tests.report.samples import BLOCKED, INFO, everything
from tests.report.strategies import results

OLD = Path(__file__).parents[1] / "golden" / "0.1.0"


@pytest.mark.slow
@given(results())
def test_result_round_trip(result: Result) -> None:
    """Any result survives JSON, to the last field."""
    text = json.dumps(result_to_json(result))

    assert result_from_json(json.loads(text), result.order) == result


def test_facts_of_a_host_are_written_as_0_1_0_wrote_them() -> None:
    """What nobody said has no key, what was said to be nothing is null, and the order is theirs."""
    texts = [json.loads(path.read_text("utf-8")) for path in sorted(OLD.glob("*.json"))]
    found = [host["facts"] for text in texts for host in text.get("hosts", ())]
    assert {} in found
    assert any(facts.get("node_ports", "") is None for facts in found)
    for facts in [*found, {"taken": [], "strange": ["x"], "python_sent": True}]:
        again = to_json(from_json(HostFacts, facts))
        assert again == facts
        assert not found.count(facts) or list(again) == list(facts)


@pytest.mark.parametrize("interrupted", [False, True])
def test_info_round_trip(interrupted: bool) -> None:
    """What is known of a run survives JSON, to the last field."""
    info = replace(everything().info, interrupted=interrupted, complete=not interrupted)
    text = json.dumps(info_to_json(info))

    assert info_from_json(json.loads(text)) == info


def test_unknown_and_missing_keys() -> None:
    """A reader ignores keys that it does not know, and defaults those that may be missing."""
    needed = "matrix requirement source destination address protocol port verdict state reason"
    data = result_to_json(BLOCKED)
    small = {key: data[key] for key in needed.split()}
    read = result_from_json({**small, "path_mtu_bytes": 1400}, (0, 0, 0))

    assert read.end_port == BLOCKED.port
    assert (read.proof, read.where, read.because, read.optional) == ("none", (), "", False)
    assert info_from_json({"started_at": "", "matrices": [], "brand": "new"}).hosts == ()
    with pytest.raises(ValueError, match='the key "started_at" is missing'):
        info_from_json({"matrices": []})


def test_a_result_without_its_keys_is_none() -> None:
    """What lacks a key that names the flow or its fate is refused."""
    with pytest.raises(ValueError, match='the key "requirement" is missing'):
        result_from_json({"matrix": "m"}, (0, 0, 0))


def test_info_has_no_secrets() -> None:
    """The run's own keys are exactly those of docs/result-json.md."""
    assert sorted(info_to_json(INFO)) == sorted(
        [
            *("started_at", "elapsed_s", "complete", "interrupted", "planned_flows"),
            *("phases", "selection", "earlier", "sample", "matrices", "hosts", "requirements"),
            *("notes", "skipped", "accepted", "baseline", "coverage", "trust"),
        ]
    )


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("port", "6443", "port: text, expected a whole number or null"),
        ("optional", 1, "optional: a whole number, expected true or false"),
        ("where", "path", "where: text, expected a list"),
        ("verdict", "fine", "verdict: 'fine', expected one of pass, blocked"),
        ("order", [1, 2], "order: 2 items, expected 3"),
        ("order", [1, 2, None], r"order\[2\]: null, expected a whole number"),
        ("attempts", 2**60, "attempts: a number that is too large, expected one below"),
        ("rtt_ms", float("inf"), "rtt_ms: a number that is too large"),
        ("rtt_ms", float("nan"), "rtt_ms: a number that is too large"),
    ],
)
def test_a_value_of_another_type_is_named(key: str, value: object, words: str) -> None:
    """The error names the key, what it holds and what was expected."""
    data = {**to_json(BLOCKED), key: value}
    with pytest.raises(ValueError, match=f"^{words}"):
        from_json(Result, data)


def test_an_error_inside_an_element_names_both_keys() -> None:
    """A wrong value deep in a file is found by the keys that lead to it."""
    hosts = [{"name": "a", "state": "agent", "privileged": None}]
    with pytest.raises(ValueError, match=r"^hosts\[0\]\.privileged: null, expected true"):
        info_from_json({"started_at": "", "matrices": [], "hosts": hosts})


def test_a_story_stands_in_json_place_by_place() -> None:
    """Six places, then errors and resets; times have more digits than other numbers may."""
    place = StoryPlace("yes", 5, Nanoseconds(1_763_800_000_123_456_789), "eth0", 64)
    reset = StoryError("10.0.0.9", None, None, 63, 1, "tcp 443", left="b")
    told = replace(BLOCKED, story=Story(source_out=place, errors=(reset,)))

    data = json.loads(json.dumps(result_to_json(told)))

    first, *others = data["story"]["places"]
    assert first == {
        "place": "source-out", "seen": "yes", "count": 5, "first_ns": 1_763_800_000_123_456_789,
        "interface": "eth0", "ttl": 64,
    }  # fmt: skip
    assert [one["place"] for one in others] == [
        "destination-in", "socket", "destination-out", "source-in", "prober"
    ]  # fmt: skip
    assert data["story"]["errors"][0] == {
        "sender": "10.0.0.9", "type": None, "code": None, "ttl": 63, "count": 1,
        "quoted": "tcp 443", "left": "b", "not_left": None, "arrived": True,
    }  # fmt: skip
    assert result_from_json(data, told.order) == told
    assert "story" not in result_to_json(BLOCKED)


@pytest.mark.parametrize(
    ("story", "words"),
    [
        ([], "story: a list, expected an object"),
        ({"places": [{"place": "prober", "seen": "maybe"}]}, r"story.places\[0\].seen: 'maybe'"),
        ({"places": [{"first_ns": -1}]}, r"story.places\[0\].first_ns: no time"),
        ({"errors": [{"sender": "x"}]}, r'story.errors\[0\]: the key "type" is missing'),
    ],
)
def test_a_wrong_story_is_refused(story: object, words: str) -> None:
    """The error names the place; later versions may add keys and places."""
    data = result_to_json(BLOCKED)
    later = {**data, "story": {"places": [{"place": "middle", "new": 1}], "more": 2}}

    assert result_from_json(later, BLOCKED.order).story == Story()
    with pytest.raises(ValueError, match=words):
        result_from_json({**data, "story": story}, BLOCKED.order)


class Word(str):
    """A text that knows more than its letters."""

    __slots__ = ("option",)


class Count(int):
    """A number that knows how it was written."""


def test_texts_and_numbers_of_subclasses_are_written_as_what_they_are() -> None:
    """Command lines and YAML give such values."""
    data = result_to_json(replace(BLOCKED, source=Word("a"), attempts=Count(3)))

    assert (type(data["source"]), type(data["attempts"])) == (str, int)
    assert data == result_to_json(replace(BLOCKED, source="a", attempts=3))
