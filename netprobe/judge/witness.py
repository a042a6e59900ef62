"""The witness column of the tables: what the agents at both ends noticed of a flow."""

from __future__ import annotations

from typing import Final

from netprobe.judge.rows import Symptom
from netprobe.judge.symptom import reply_failure
from netprobe.model.evidence import NO_NEIGHBOUR, OWN_ADDRESS, Evidence, Outcome, Witness
from netprobe.model.story import Story

# What the errno of the listener's own answer proves (docs/network-facts.md, section 6).
RETURN_ROUTE: Final = frozenset(
    (
        "invalid-route",
        "access-denied",
        "network-unreachable",
        "host-unreachable",
        NO_NEIGHBOUR,
        OWN_ADDRESS,
    )
)
# Symptoms that an answer on the source's wire explains; one-way packets have no answer.
_UNANSWERED: Final = frozenset(("silence", "silence-maybe-stuck", "silent"))
_SILENT: Final = frozenset(("silence", "silence-maybe-stuck", "sent"))
# These words say something only where packets of the source get to the address.
_NEED_ANSWERS: Final = ("not-captured", "unseen", "none")


def witness_word(evidence: Evidence, word: Symptom) -> str:
    """Give the witness column of the table of what is required."""
    witness, story = evidence.witness or Witness(), evidence.story or Story()
    came = story.destination_in.seen
    if story.source_in.seen == "yes" and word in _UNANSWERED:
        return "answer-arrived"
    if witness.filtered_at is not None and came == "yes":
        return "reverse-path"
    if reply_failure(evidence) in RETURN_ROUTE:
        return "no-way-back"
    if witness.socket or story.socket.seen == "yes":
        return "socket"
    if came != "unknown":
        return "captured" if came == "yes" else "not-captured"
    return "none" if evidence.witness is None else "unseen"


def denied_witness_word(evidence: Evidence, outcome: Outcome, word: Symptom) -> str:
    """Give the witness column of the table of what must not answer.

    A free port answers TCP and echo by itself. Where silence is usual, the other end tells more.
    """
    if outcome.answer is not None:
        return witness_word(evidence, word)
    answered = "answered" if evidence.control_answered else "none"
    protocol = evidence.flow.block.protocol.partition("/")[0]
    if protocol not in ("udp", "ipproto") or word not in _SILENT:
        return answered
    if evidence.stopped.request:
        return "stopped"
    seen = witness_word(evidence, word)
    if seen == "captured" and evidence.stopped.request is False:
        return "let-in"
    if seen in _NEED_ANSWERS and (seen != "not-captured" or answered == "none"):
        return answered
    return seen
