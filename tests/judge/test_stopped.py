"""What the counters of both kernels leave of the places of a silent flow."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.model.evidence import (
    NO_NEIGHBOUR,
    OWN_ADDRESS,
    UNDIALLED,
    Listener,
    Outcome,
    StoppedPackets,
    Witness,
)
from netprobe.model.result import Place, Result
from netprobe.model.story import Story, StoryPlace

from .test_verdict import evidence, one

SILENT = Outcome("connect", "no-answer", left_host=True, attempts=5, packets=5)


def judged(stopped: StoppedPackets, *, reached: bool = False, story: Story | None = None) -> Result:
    """The result of a silent TCP flow to a listener of ours, where these counters were read."""
    seen = evidence(
        SILENT, "tcp", listener=Listener("ours"), witness=Witness(socket=reached), story=story
    )
    return one(replace(seen, stopped=stopped))


@pytest.mark.parametrize(
    ("stopped", "reached", "where"),
    [
        (StoppedPackets(), False, ("destination", "path", "return-path")),
        (StoppedPackets(request=True), False, ("destination",)),
        (StoppedPackets(request=False), False, ("path",)),
        (StoppedPackets(answer=True), False, ("source",)),
        (StoppedPackets(answer=False), False, ("destination", "path", "return-path")),
        (StoppedPackets(reply=True), True, ("destination",)),
        (StoppedPackets(reply=False), True, ("return-path", "source")),
        (StoppedPackets(reply=False, answer=False), True, ("return-path",)),
        (StoppedPackets(answer=False), True, ("destination", "return-path")),
        (StoppedPackets(answer=True), True, ("source",)),
        (StoppedPackets(taken=True), False, ("destination", "return-path", "source")),
        (StoppedPackets(reply=True, taken=True), False, ("destination",)),
        (StoppedPackets(reply=False, answer=False, taken=True), False, ("return-path",)),
    ],
)
def test_counters_leave_fewer_places(
    stopped: StoppedPackets, reached: bool, where: tuple[Place, ...]
) -> None:
    """Each of them alone, and together with what the listener noted."""
    result = judged(stopped, reached=reached)

    if stopped == StoppedPackets():
        assert set(where) <= set(result.where)
    else:
        assert result.where == where
    assert result.verdict == "blocked"
    assert ("counters" in result.because) == (stopped != StoppedPackets())


@pytest.mark.parametrize(("at_destination", "warned"), [(True, False), (False, True)])
def test_a_firewall_of_the_destination_says_why_its_agent_heard_nothing(
    *, at_destination: bool, warned: bool
) -> None:
    """That the agent's own connection did not arrive is no news then; elsewhere it is a warning."""
    listener = Listener("ours", note=UNDIALLED)
    seen = evidence(SILENT, "tcp", listener=listener, witness=Witness())
    result = one(replace(seen, stopped=StoppedPackets(request=at_destination)))

    assert result.where == (("destination",) if at_destination else ("path",))
    assert (f"b: {UNDIALLED}" in result.warnings) is warned


@pytest.mark.parametrize(
    ("failure", "where"), [(OWN_ADDRESS, "return-path"), (NO_NEIGHBOUR, "destination")]
)
def test_a_kernel_stops_what_comes_from_its_own_address(failure: str, where: Place) -> None:
    """That is no firewall's doing. A host that only cannot answer stops nothing that comes in."""
    witness = Witness(socket=False, reply_failure=failure)
    seen = evidence(SILENT, "tcp", listener=Listener("ours"), witness=witness)

    result = one(replace(seen, stopped=StoppedPackets(request=True)))

    assert result.where == (where,)


def test_what_a_recorder_saw_stands() -> None:
    """Counters are read where there is none; both never contradict each other in the places."""
    story = Story(source_out=StoryPlace("yes"), destination_in=StoryPlace("yes"))

    result = judged(StoppedPackets(request=False), story=story)

    assert "path" not in result.where


def test_each_host_is_named_with_what_it_does() -> None:
    """A reader who never heard of a counter understands who stops what."""
    because = judged(StoppedPackets(reply=True, answer=False), reached=True).because

    assert "by the kernels' counters" in because
    assert "own firewall stops the answer as it leaves, and no answer came to" in because
