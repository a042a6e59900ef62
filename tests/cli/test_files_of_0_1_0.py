"""Records, reports and requests that version 0.1.0 left are read as it read them itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from netprobe.cli.main import status_of

FOLDER = Path(__file__).parents[1] / "golden" / "0.1.0"
STATUSES: Mapping[str, Mapping[str, int]] = json.loads((FOLDER / "statuses.json").read_bytes())
CONSENT = ("--reason", "r", "--owner", "o", "--ticket", "t", "--until", "never")
# Nobody gets onto its hosts: what is not kept is not tested.
PLAN = ("-m", "./kinds.yaml", "-i", "inventory.yaml")
WORDS: Mapping[str, tuple[str, ...]] = {
    "report": ("report", "{file}"),
    "request": ("request", "{file}"),
    "accept": ("accept", "{file}", "--finding", "1", "--renumbered", *CONSENT),
    "diff": ("diff", "{file}", "full.jsonl"),
    "resume": ("run", *PLAN, "--resume", "{file}"),
    "retry": ("run", *PLAN, "--retry", "{file}"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STATUSES)
def test_the_exit_status_is_that_of_0_1_0(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every verb that reads such a file ends as that version did."""
    monkeypatch.chdir(FOLDER)
    found = {
        verb: status_of([word.format(file=name) for word in WORDS[verb]]) for verb in STATUSES[name]
    }

    assert found == STATUSES[name], capsys.readouterr().err


def test_numbers_of_a_record_without_findings_are_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody accepts another finding than he means: exit 2, with the numbers and titles of now.

    A JSON report of that version has numbers, and they count.
    """
    monkeypatch.chdir(FOLDER)
    words = ("accept", "named.jsonl", "--finding", "1", *CONSENT)

    assert status_of(words) == 2
    out, said = capsys.readouterr()
    assert (out, said.count("netprobe:   ")) == ("", 1)
    assert "--renumbered" in said
    assert (
        "netprobe:   1. 10.10.0.1 has no route for tcp 6443; udp 6444; icmp echo from a to down"
        in said
    )
    assert status_of([*words, "--renumbered"]) == 0
    assert status_of(["accept", "named.json", "--finding", "1", *CONSENT]) == 0
