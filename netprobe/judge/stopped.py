"""What the counters of both kernels tell of a silent flow, where no recorder saw its packets."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from netprobe.model.evidence import NOT_COUNTED, Evidence
from netprobe.model.story import UNKNOWN, Sight, Story, StoryPlace

# What a place saw of a packet that is stopped behind it, and of one that is not: it did not come.
_CAME: dict[bool | None, Sight] = {True: "yes", False: "no", None: "unknown"}


def fill_counted(story: Story, evidence: Evidence) -> Story:
    """Give the story with what the counters tell; what a recorder or a socket saw stands.

    What is stopped at a host had come there. What is neither stopped there nor got through had not.
    A reply that was made and is not held back has left.
    """
    stopped, outcome = evidence.stopped, evidence.outcome
    if stopped == NOT_COUNTED or outcome is None:
        return story
    told: dict[str, Sight] = {
        "source_out": "yes" if evidence.has_left else "unknown",
        "destination_in": "yes" if stopped.taken else _CAME[stopped.request],
        "socket": "yes" if stopped.taken else "no" if stopped.request else "unknown",
        "source_in": _CAME[stopped.answer],
    }
    if "yes" in (story.socket.seen, told["socket"]) and stopped.reply is not None:
        told["destination_out"] = "no" if stopped.reply else "yes"
    changes: dict[str, Any] = {
        place: StoryPlace(seen) for place, seen in told.items() if getattr(story, place) == UNKNOWN
    }
    return replace(story, **changes)


def word_stopped(evidence: Evidence) -> str:
    """Word what the counters tell; empty where nobody looked."""
    source, destination = evidence.flow.source.name, evidence.flow.destination.name
    stopped, story = evidence.stopped, evidence.story or Story()
    came = story.destination_in.seen == "yes"
    is_free = stopped.request is False
    words = {
        f"{destination}'s own firewall or kernel stops the request as it comes in": stopped.request,
        f"no rule of {destination}'s IP layer stops it as it comes in": is_free and came,
        f"the request did not come to {destination}": is_free and not came,
        f"TCP on {destination} got the request": stopped.taken,
        f"{destination}'s own firewall stops the answer as it leaves": stopped.reply,
        f"the answer left {destination}": stopped.reply is False,
        f"{source}'s own firewall or kernel stops the answer as it comes in": stopped.answer,
        f"no answer came to {source}": stopped.answer is False,
    }
    told = ", and ".join(one for one, is_so in words.items() if is_so)
    return f"; by the kernels' counters {told}" if told else ""
