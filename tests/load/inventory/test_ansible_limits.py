"""Whatever Ansible prints, reading it takes bounded memory and time, and one clean line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from netprobe.errors import FileErrors
from netprobe.load.inventory import ansible
from netprobe.load.inventory.discover import load_inventory

Say = Callable[[str], None]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Let a script stand for ansible-inventory; ``hosts`` is a file for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    Path("hosts").write_text("[node]\na\n")

    def write(script: str) -> None:
        program = tmp_path / "ansible-inventory"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return write


def refusal() -> str:
    """What is wrong with the inventory."""
    with pytest.raises(FileErrors) as caught:
        load_inventory(["hosts"])
    return str(caught.value)


@pytest.mark.parametrize("depth", [3, 5000])
def test_deep_groups(depth: int, say: Say) -> None:
    """Groups of groups of groups are roles, however deep; a circle of them ends too."""
    groups: dict[str, object] = {f"g{n}": {"children": [f"g{n + 1}"]} for n in range(depth)}
    groups[f"g{depth}"] = {"hosts": ["a", "b"], "children": ["g0"]}
    listing = {"_meta": {}, "all": {"children": ["g0", "ungrouped"]}, **groups}
    Path("listing").write_text(json.dumps(listing))
    say("exec cat listing")

    inventory = load_inventory(["hosts"])
    assert [one.name for one in inventory.hosts] == ["a", "b"]
    assert {one.roles for one in inventory.hosts} == {tuple(groups)}


def test_output_without_end(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """What prints without end is stopped, and told in one short line."""
    monkeypatch.setattr(ansible, "MAX_CHARACTERS", 100_000)
    say("exec yes '[1, 2]'")

    assert refusal().startswith("hosts: ansible-inventory refuses it: ")
    assert len(refusal()) < 1200


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("[" * 50_000, "printed what is nested too deeply: ...["),
        ('{"a": %s}' % ("9" * 10_000), "printed what has a number of too many digits: "),
        ('{"a": NaN}', "printed what has the number NaN, which is none of JSON's: "),
        ("{", "printed no JSON: {"),
    ],
    ids=["deep", "digits", "nan", "torn"],
)
def test_odd_json(say: Say, printed: str, words: str) -> None:
    """JSON that cannot be read is one line."""
    Path("listing").write_text(printed)
    say("exec cat listing")

    assert words.replace("...", "") in refusal()
    assert len(refusal()) < 1200


def test_no_escapes(say: Say) -> None:
    """Its words may hold anything, and go to a terminal."""
    say("printf 'no \\033[31mred\\033]0;x\\007 hosts\\r\\n' >&2; exit 1")

    assert refusal() == "hosts: ansible-inventory refuses it: no red hosts"


def test_names_of_hosts_are_lines(say: Say) -> None:
    """A name becomes a part of reports and rules: it has no control characters."""
    names = ["a", "web server [1]", "b\nreboot", "c\u202e"]
    Path("listing").write_text(json.dumps({"node": {"hosts": names}, "_meta": {}}))
    say("exec cat listing")

    expected = "expected one line of text without control characters"
    for quoted in ('"b\\nreboot"', '"c\\u202e"'):
        assert f"hosts: {quoted} is no name of a host, {expected}" in refusal()
    assert refusal().count("is no name of a host") == 2
