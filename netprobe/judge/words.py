"""The words that the sentences of the tables are filled with."""

from __future__ import annotations

from collections.abc import Sequence

from netprobe.judge.stopped import word_stopped
from netprobe.judge.symptom import name_failure, reply_failure
from netprobe.model.evidence import NO_NEIGHBOUR, OWN_ADDRESS, Evidence, Outcome, Witness
from netprobe.model.plan import PATH_MTU
from netprobe.model.story import Story
from netprobe.protocols.services.services import service_for

MOST_SHOWN = 4
# What a reader gets to know beside the verdict, where it was not the service that answered.
_TOLD = {
    **dict.fromkeys(("other", "tls", "plaintext"), ", and something else answered"),
    "closed": "; when it was asked who it is, it closed the connection",
    "reset": "; when it was asked who it is, the connection was reset",
    "silent": "; when it was asked who it is, it said nothing",
}


def join_some(names: Sequence[str]) -> str:
    """List a few names, and how many more there are."""
    more = len(names) - MOST_SHOWN
    return ", ".join(names[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def fill(template: str, evidence: Evidence, outcome: Outcome) -> str:
    """Fill a table's sentence with the evidence, and add words of witness, counters and walk."""
    return (
        template.format_map(_words_of_evidence(evidence, outcome))
        + _word_reply(evidence)
        + word_stopped(evidence)
        + _word_trace(evidence)
    )


def fill_reason(template: str, outcome: Outcome) -> str:
    """Give a table's reason word with the ICMP word or failure name in it."""
    icmp, failure = outcome.icmp, name_failure(outcome) or "unknown"
    return template.format(failure=failure, icmp=icmp.word if icmp else failure)


def warn_of_service(evidence: Evidence) -> list[str]:
    """Give the warning, where what a service told when it was asked who it is needs one."""
    found = evidence.service
    if found is None or (found.told == "service" and found.note is None):
        return []
    service = service_for(evidence.flow.block.requirement.probe)
    title = "a service" if service is None else service.title
    if found.told == "service":
        return [f"{title} answers, but {found.note}"]
    return [f"{title} is expected there{_TOLD[found.told]}"]


def _word_said(evidence: Evidence, outcome: Outcome) -> str:
    """Give what decided the verdict, and of who answers in another's place what it said."""
    conclusion, service = evidence.conclusion, evidence.service
    said = [one.said for one in (conclusion, outcome, service) if one is not None]
    words = next(filter(None, (*said, evidence.greeting)), "no words")
    if conclusion is None or conclusion.name != "intercepted" or service is None:
        return words
    return f"{words}; when it was asked who it is: {service.said}"


def _word_shown(evidence: Evidence, outcome: Outcome) -> str:
    """Word what a holder that nobody knows showed of itself."""
    if evidence.greeting is not None:
        return f"; asked for banner and certificate, it showed: {evidence.greeting}"
    told = evidence.service or outcome
    if told.said:
        return f": {told.said}"
    if evidence.flow.block.protocol == "udp":
        return ""
    return "; it was not asked for banner and certificate"


def word_root(host: str, *, sudo_failed: bool) -> str:
    """Word how an agent gets the rights that it lacks."""
    if sudo_failed:
        return f"mend sudo on {host}, which failed when the agent was started"
    return "give it root (become: sudo)"


def _words_of_evidence(evidence: Evidence, outcome: Outcome) -> dict[str, str]:
    icmp, listener = outcome.icmp, evidence.listener
    said = _word_said(evidence, outcome)
    return {
        "source": evidence.flow.source.name,
        "destination": evidence.flow.destination.name,
        "address": evidence.address,
        "protocol": evidence.flow.block.protocol,
        "answered_by": outcome.answered_by or "another host",
        "said": said,
        "neighbours": evidence.conclusion.said if evidence.conclusion else "",
        "router": evidence.given_up_by or "a router",
        "asker": evidence.host_down or evidence.flow.source.name,
        "next_hop": next_hop(evidence) or "an unknown host",
        "icmp": icmp.word if icmp else (name_failure(outcome) or "no ICMP"),
        "offender": icmp.offender if icmp else "an unknown host",
        "failure": name_failure(outcome) or "no failure",
        "elapsed": f"{(outcome.elapsed_ms or 0) / 1000:.1f} s",
        "look": look(evidence.flow.block.protocol, outcome),
        "owner": listener.owner or "a process",
        "holder": f" ({listener.owner} holds the port)" if listener.owner else "",
        "shown": _word_shown(evidence, outcome),
        "listening": _word_listener(evidence),
        "get_root_here": _word_root_of(evidence.flow.source.name, evidence),
        "get_root_there": _word_root_of(evidence.flow.destination.name, evidence),
        "doubt": (evidence.maker and evidence.maker.doubt) or "nothing proves whose word that is",
        "or_refused": _word_refusal_of_answer(evidence),
        "filtered_at": (evidence.witness and evidence.witness.filtered_at) or "a device",
        "way_out": (evidence.witness and evidence.witness.way_out) or "another one",
        "note": f" ({listener.note})" if listener.note else "",
    }


def _word_root_of(host: str, evidence: Evidence) -> str:
    return word_root(host, sudo_failed=host in evidence.sudo_failed)


def next_hop(evidence: Evidence) -> str | None:
    """Give the source's next hop, where it is at fault."""
    return evidence.conclusion.next_hop if evidence.conclusion is not None else None


def look(protocol: str, outcome: Outcome) -> str:
    """Give the packets that were sent, in words: ``4 SYNs, no answer``."""
    if outcome.operation == PATH_MTU:
        return "no size of packets could be tried"
    count = outcome.packets or outcome.attempts
    noun = {"tcp": "SYN", "udp": "datagram", "icmp": "echo request"}.get(protocol, "packet")
    if protocol == "tcp" and outcome.packets is None:
        noun = "connection attempt"
    end = " sent, no error came back" if outcome.failure is None else ", no answer"
    return f"{count} {noun}{'' if count == 1 else 's'}{end}"


def _word_listener(evidence: Evidence) -> str:
    if evidence.listener.state == "ours":
        return f"our listener on {evidence.flow.destination.name} is up"
    return f"{evidence.listener.owner or 'a live service'} listens there"


def _word_refusal_of_answer(evidence: Evidence) -> str:
    """Give the cause beside the destination's firewall, unless it is seen that no answer left."""
    story = evidence.story or Story()
    if "no" in (story.socket.seen, story.destination_out.seen):
        return ""
    return ", or something on the way back refuses the answer"


def _word_reply(evidence: Evidence) -> str:
    """Word the fate of the destination's answer."""
    witness = evidence.witness or Witness()
    failure = reply_failure(evidence)
    name = evidence.flow.destination.name
    if failure is None:
        return _maybe_filtered(name, evidence, witness)
    if failure == NO_NEIGHBOUR:
        return (
            f"; its next hop for the answer, {witness.next_hop}, does not answer {name}'s ARP or "
            "neighbour requests"
        )
    if failure == OWN_ADDRESS:
        return f"; {name} has the address itself that the packets come from"
    if failure == "not-permitted":
        return f"; {name}'s own firewall does not let the answer out ({failure})"
    return f"; {name} has no way back for the answer ({failure})"


def _maybe_filtered(name: str, evidence: Evidence, witness: Witness) -> str:
    """Give the reverse-path filter, where nobody can tell by which device the request came."""
    came = evidence.story is not None and evidence.story.destination_in.seen == "yes"
    if witness.filtered_at is None or came:
        return ""
    return (
        f"; if it came in by {name}'s {witness.filtered_at}, its reverse-path filter (rp_filter) "
        f"drops it: the route back leaves by {witness.way_out}"
    )


def _word_trace(evidence: Evidence) -> str:
    if evidence.trace is None:
        return ""
    if evidence.trace.last_hop is None:
        return "; no router on the way answered"
    if evidence.trace.refusal is not None and evidence.trace.refusal == evidence.refusal:
        return "; its probes got no answer, a walk with rising TTL got this one"
    return f"; last hop that answered: {evidence.trace.last_hop}"
