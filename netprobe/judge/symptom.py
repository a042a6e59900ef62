"""The symptom: what the source saw, in one word; the first key of the verdict tables."""

from __future__ import annotations

from typing import Final, cast

from netprobe.agent.wire.failures import (
    ACCESS_DENIED,
    ADDRESS_NOT_AVAILABLE,
    HOST_UNREACHABLE,
    HUNG_UP,
    INVALID_ROUTE,
    NETWORK_UNREACHABLE,
    NO_BUFFERS,
    NO_PERMISSION,
    NOT_PERMITTED,
    STOOD_STILL,
)
from netprobe.judge.rows import Symptom
from netprobe.model.evidence import (
    Answer,
    Evidence,
    Icmp,
    Outcome,
    RefusalMaker,
    ServiceWord,
)
from netprobe.model.icmp import is_late
from netprobe.model.matrix import AnyProbe
from netprobe.model.story import Story
from netprobe.protocols.services.greeting import is_greeting_of
from netprobe.protocols.services.services import service_for

# Failures that the source's own kernel gives at once, before any packet: its routing table.
_LOCAL_ROUTE: Final = frozenset(
    (NETWORK_UNREACHABLE, HOST_UNREACHABLE, ACCESS_DENIED, INVALID_ROUTE)
)

_FAILURES: Final[dict[str, Symptom]] = {
    NOT_PERMITTED: "stuck",
    NO_BUFFERS: "no-room",
    "name-not-resolved": "name-not-resolved",
    NO_PERMISSION: "no-permission",
    STOOD_STILL: "machine-busy",
    ADDRESS_NOT_AVAILABLE: "no-address",
}
# Probes leave with the host's own TTL: on the way to anywhere only a loop uses it up.
_ROUTER_SAYS: Final[dict[str, Symptom]] = {
    "net-unreach": "router-no-route",
    "time-exceeded": "routing-loop",
}
_REFUSED_BY: Final[dict[str, Symptom]] = {
    "source": "rejected-by-source",
    "destination": "rejected-by-destination",
    "router": "rejected-by-router",
}
# An unhurried look waits so long (ns). What answers later was not stopped by anything on the way.
_LONG_NS: Final = 4_000_000_000
_PROXY_ODD: Final = ("not-http", "closed", "silent")
# Words of somebody else than the source, whose packets must have left for it.
_REMOTE: Final = (
    "service", "echo", "foreign", "reflected", "other", "silent", "closed", "unasked",
    "reset-after-open", "port-unreach", "proto-unreach", "rejected-by-destination",
)  # fmt: skip
_SILENT: Final = ("silence", "silence-maybe-stuck", "sent")
# Nothing came back to the source in time.
_UNHEARD: Final = ("silent", "silence", "silence-maybe-stuck")
# What passes as refused by the destination, where nothing gives a reason to doubt that.
_REFUSALS: Final = ("reset", "reset-genuine", "reset-full-ttl", "port-unreach", "proto-unreach")
# "Host unreachable", which a dead neighbour's router says, or a firewall.
_UNREACHABLE: Final = ("rejected-by-router", "rejected-in-its-name")
# Resets of which nothing shows that the destination made them.
_UNPROVED_RESETS: Final = ("reset", "reset-full-ttl", "reset-blind", "reset-unproved")


def name_failure(outcome: Outcome) -> str | None:
    """Give the name of the failure; a proxy's refusal is ``proxy-407``, ``proxy-refused`` ...."""
    return outcome.failure if outcome.refusal is None else f"proxy-{outcome.refusal}"


def symptom(evidence: Evidence, outcome: Outcome) -> Symptom:
    """Give one word for the outcome. Total: every outcome has one.

    What checks concluded says more than what was measured, and what a service told more than that
    the connection opened.
    """
    concluded = evidence.concluded
    word = _read_timely(evidence, outcome)
    if concluded == "refusing-host" and outcome.icmp is not None:
        return _REFUSED_BY[outcome.icmp.origin]
    # A reset that arrived counts more than an agent that asked for the host in vain.
    is_reset = concluded == "host-down" and word in _UNPROVED_RESETS
    if concluded not in (None, "refusing-host") and not is_reset:
        word = cast(Symptom, concluded)
    elif word in _REMOTE and evidence.has_left is False:
        return "answered-here"
    elif word == "rejected-by-destination" and evidence.listener.nat:
        word = "rejected-in-its-name"
    elif word in _UNREACHABLE and _may_be_dead(evidence, outcome):
        word = "router-gives-up"
    elif evidence.maker is not None:
        word = _read_maker(word, evidence.maker)
    if evidence.host_up:
        return _read_of_living(word, outcome, concluded)
    return _read_of_dead(evidence, word)


def is_down(evidence: Evidence) -> bool:
    """Tell whether others know that nobody answers for the address, and nobody the contrary."""
    return not evidence.host_up and bool(evidence.host_down or evidence.given_up_by)


def _read_timely(evidence: Evidence, outcome: Outcome) -> Symptom:
    word = _read_outcome(evidence, outcome)
    return "served-late" if word in _UNHEARD and _was_served_late(evidence) else word


def _was_served_late(evidence: Evidence) -> bool:
    """Tell whether our listener had its answer ready when the source had given up.

    Either its kernel had no connection any more to send it on: a firewall lets that send succeed.
    Or the source's recorder saw it come later than an unhurried look waits. Ports are told of
    together, so that the first answer is compared with the first request.
    """
    if evidence.listener.state != "ours" or evidence.flow.block.requirement.expect == "denied":
        return False
    if reply_failure(evidence) in HUNG_UP:
        return True
    story = evidence.story or Story()
    asked_ns, answered_ns = story.source_out.first_ns, story.source_in.first_ns
    return asked_ns is not None and answered_ns is not None and answered_ns - asked_ns > _LONG_NS


def _read_maker(word: Symptom, maker: RefusalMaker) -> Symptom:
    """Read what a look at who refuses in the destination's name has shown."""
    if maker.own:
        return "rejected-there" if word == "rejected-by-destination" else word
    return "refusal-unproved" if maker.doubt and word in _REFUSALS else word


def _may_be_dead(evidence: Evidence, outcome: Outcome) -> bool:
    """Tell whether an early "host unreachable", which no check looked at, is that of a host of
    which others know more."""
    unreachable = outcome.icmp is not None and outcome.icmp.word == "host-unreach"
    known = evidence.given_up_by or evidence.host_down
    return unreachable and evidence.concluded is None and known is not None


def _read_of_living(word: Symptom, outcome: Outcome, concluded: str | None) -> Symptom:
    """Read "nobody answers for it" of a host that is up: of its neighbour, or of a router, whose
    rate limit may have delayed a refusal."""
    origin = outcome.icmp.origin if outcome.icmp is not None else "source"
    if word not in ("host-down", "router-gives-up"):
        return word
    if origin == "source":
        return "no-neighbour"
    return _REFUSED_BY[origin] if concluded is None else "router-gives-up"


def _read_of_dead(evidence: Evidence, word: Symptom) -> Symptom:
    """Read what is heard of a host of which others may know that it is down."""
    if evidence.host_down is not None:
        if word in _SILENT:
            return "host-known-down"
        if word in _UNPROVED_RESETS:
            return "reset-of-dead-host"
        return "host-down" if word == "router-gives-up" else word
    if evidence.given_up_by is not None:
        if word in _SILENT:
            return "router-gave-up"
        if word in _UNPROVED_RESETS:
            return "reset-of-lost-host"
    return word


def _read_outcome(evidence: Evidence, outcome: Outcome) -> Symptom:
    answer: Answer | ServiceWord | None = outcome.answer
    protocol = evidence.flow.block.protocol
    if answer == "unasked" and evidence.service is not None:
        return _read_told(evidence.service.told, evidence.flow.block.requirement.probe)
    if answer == "unasked" and evidence.greeting is not None:
        listed = evidence.flow.block.requirement.process
        return "service" if is_greeting_of(evidence.greeting, listed) else "unasked"
    if answer is not None:
        return "reset-after-open" if answer == "reset" else answer
    if outcome.failure is None:
        return "sent" if outcome.refusal is None else _read_refusal(outcome.refusal)
    if outcome.icmp is not None:
        return _read_icmp(outcome, outcome.icmp, protocol)
    if outcome.failure == "no-answer":
        return _read_silence(evidence.has_left, protocol)
    missed = outcome.failure == STOOD_STILL
    if protocol == "tcp" and outcome.operation == "answer" and not missed:
        return "data-rejected"  # a reset would have been an answer
    return _read_failure(evidence, outcome, outcome.failure)


def _read_failure(evidence: Evidence, outcome: Outcome, failure: str) -> Symptom:
    """Read an errno without an ICMP error."""
    if failure == "refused":
        return _read_reset(evidence, outcome)
    if failure in _LOCAL_ROUTE:
        return _read_unreachable(outcome)
    # A bind that finds no room sent no packet.
    sent = outcome.operation != "bind" or failure != NO_BUFFERS
    return _FAILURES.get(failure, "unknown-failure") if sent else "unknown-failure"


def _read_told(told: ServiceWord, probe: AnyProbe | None) -> Symptom:
    if told == "service":
        service = service_for(probe)
        return "some-service" if service is not None and service.vague else "service"
    return "reset-after-open" if told == "reset" else told


def _read_refusal(refusal: int | str) -> Symptom:
    if isinstance(refusal, int):
        return "proxy-fails" if refusal >= 500 else "proxy-denies"
    return "proxy-odd" if refusal in _PROXY_ODD else "proxy-unreached"


def reply_failure(evidence: Evidence) -> str | None:
    """Give why the destination could not answer; a listener says it of all ports of an order.

    What the recorder there saw leave had no such failure.
    """
    left = evidence.story is not None and evidence.story.destination_out.seen == "yes"
    return None if left or evidence.witness is None else evidence.witness.reply_failure


def _read_reset(evidence: Evidence, outcome: Outcome) -> Symptom:
    forged, full_ttl, own = evidence.reset
    if own or evidence.has_left is False:
        return "reset-here"
    if outcome.blind:
        return "reset-blind"
    if forged is None:
        return "reset-full-ttl" if full_ttl else "reset"
    return "reset-forged" if forged else "reset-genuine"


def _read_silence(left: bool | None, protocol: str) -> Symptom:
    if left is False:
        return "stuck"
    if protocol == "tcp" and left is None:
        return "silence-maybe-stuck"
    return "silence"


def _read_unreachable(outcome: Outcome) -> Symptom:
    """Read an errno without ICMP: the own routing table at once, or a kernel before 5.8 later."""
    if outcome.failure == HOST_UNREACHABLE and is_late(outcome.elapsed_ms):
        return "host-down"
    if outcome.blind:
        return "rejected-by-somebody"
    return "no-route"


def _read_icmp(outcome: Outcome, icmp: Icmp, protocol: str) -> Symptom:
    word = icmp.word
    if icmp.origin == "destination":
        # An echo request needs no listener, so every kind of refusal comes from a firewall.
        if word == "port-unreach" and protocol not in ("tcp", "icmp"):
            return "port-unreach"
        if word == "proto-unreach" and protocol.startswith("ipproto"):
            return "proto-unreach"
        return "rejected-in-its-name" if word == "host-unreach" else "rejected-by-destination"
    if word == "host-unreach" and is_late(outcome.elapsed_ms):
        return "host-down" if icmp.origin == "source" else "router-gives-up"
    if icmp.origin == "source":
        return "rejected-by-source"
    return _ROUTER_SAYS.get(word, "rejected-by-router")
