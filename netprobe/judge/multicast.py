"""What the rehearsal of VRRP's multicast saw of a way → verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from netprobe.judge.rehearsed import RehearsedRow
from netprobe.judge.words import join_some
from netprobe.model.multicast import MulticastFacts
from netprobe.model.result import Result

MulticastFate = Literal["arrives", "filtered"]

ROWS: Final[Mapping[MulticastFate, RehearsedRow]] = {
    "arrives": RehearsedRow(
        "pass", "open", "multicast-arrives", "witness", (),
        "a packet like VRRP's to the group {group}, with the id 0 that no router has, arrived from "
        "{source} ({device})",
    ),
    "filtered": RehearsedRow(
        "blocked", "filtered", "multicast-filtered", "none", ("path",),
        "three packets like VRRP's to the group {group} left {source} ({device}), and none arrived"
        "{others}",
    ),
}  # fmt: skip
GROUPS: Final = {4: "224.0.0.18", 6: "ff02::12"}


def judge_multicast(base: Result, facts: MulticastFacts) -> Result:
    """Give the result of one way."""
    row = ROWS["arrives" if facts.arrived else "filtered"]
    words = {
        "group": GROUPS[6 if ":" in facts.source else 4],
        "source": facts.source,
        "device": facts.device,
        "others": _word_others(base, facts),
    }
    return row.make_result(base, words)


def _word_others(base: Result, facts: MulticastFacts) -> str:
    """Say what tells the one end from the other."""
    heard = f"{join_some(facts.heard_by)} heard them" if facts.heard_by else ""
    hears = f"{base.destination} heard those of others" if facts.hears else ""
    told = " and ".join(one for one in (heard, hears) if one)
    return f"; {told}" if told else ""
