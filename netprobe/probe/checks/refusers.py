"""Who refused a flow, where the errors that the recorders saw say more than the source's errno."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from netprobe.agent.wire.answers import StoryTold
from netprobe.model.evidence import Icmp
from netprobe.model.story import Story, StoryError
from netprobe.probe.flows.prober import Observation


def with_refusal(seen: Observation) -> Observation:
    """Give the flow with who refused the data of a connection that opened: no errno says that."""
    outcome, story = seen.outcome, seen.story or Story()
    here = seen.task.source.name
    came = [error for error in story.errors if error.arrived or error.left == here]
    if outcome is None or outcome.failure is None or outcome.icmp is not None or not came:
        return seen
    if seen.task.protocol != "tcp" or outcome.operation != "answer":
        return seen
    first = came[0]
    if first.type is None or first.code is None:
        return seen  # a reset
    by: Literal["source", "destination", "router"] = (
        "source" if first.left == here
        else "destination" if first.sender == seen.task.address
        else "router"
    )  # fmt: skip
    return replace(seen, refusal=Icmp(first.type, first.code, first.sender, by, first.ttl))


def is_in_its_name(
    seen: Observation, there: StoryTold | None, errors: tuple[StoryError, ...]
) -> bool:
    """Tell whether an ICMP error has the destination's address, whose recorder saw none leave."""
    icmp = seen.heard.icmp if seen.heard is not None else None
    if icmp is None or icmp.origin != "destination" or there is None or there.lost or there.full:
        return False
    return all(error.left in (None, seen.task.source.name) for error in errors)
