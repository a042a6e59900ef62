"""Reads what the recorders of both ends saw of a flow into its story.

Who refused a flow, where the errors that the recorders saw say more than the source's errno.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from msgspec.structs import replace

from netprobe.agent.wire.answers import StoryTold
from netprobe.agent.wire.parts import SeenError, SeenPackets, SeenRun
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Icmp, Witness
from netprobe.model.ports import LabelledPorts, Ports
from netprobe.model.story import UNKNOWN, Story, StoryError, StoryPlace
from netprobe.model.struct_json import Nanoseconds
from netprobe.probe.flows.prober import Observation

NO = StoryPlace("no")
PLAIN = "plain"
# The port that agents give for a protocol without ports.
NO_PORT: Ports = ((0, 0),)


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


class Told(NamedTuple):
    """What both recorders told of a pair and protocol; None: there is none, or it was lost.

    ``translated``: the address that the packets of the source come from, where it is another one.
    ``may_move``: the rest of what it sends may come from another address, too.
    ``sees_waiting``: the destination's kernel was asked while half-open connections wait in it.
    ``connected``: ports of connections whose SYN left the source, if this is about their data.
    ``tied``, ``untied``: ports to which several sources may have sent from that address, and
    whether a number shows that this one did. ``is_shared``: this is about such ports alone.
    """

    source: StoryTold | None
    destination: StoryTold | None
    translated: str | None = None
    connected: Ports = ()
    tied: Ports = ()
    untied: Ports = ()
    is_shared: bool = False
    may_move: bool = False
    sees_waiting: bool = True


def share_out(group: Iterable[Observation], told: Told) -> Iterator[tuple[list[Observation], Told]]:
    """Give the flows with what was seen of them, and not of others behind the same address."""
    untied, others = _divide_flows(group, told.untied)
    tied, alone = _divide_flows(others, told.tied)
    if untied:
        yield untied, told._replace(destination=None)
    if tied:
        yield tied, told._replace(is_shared=True)
    if alone:
        yield alone, told


def _divide_flows(
    group: Iterable[Observation], ports: Ports
) -> tuple[list[Observation], list[Observation]]:
    """Divide flows into what is of these ports and what is not."""
    pieces = [
        piece
        for seen in group
        for piece in (seen.cut(ports) if seen.ports else ((ports == NO_PORT, seen),))
    ]
    return [one for among, one in pieces if among], [one for among, one in pieces if not among]


def cut_by_story(group: Iterable[Observation], told: Told) -> Iterator[Observation]:
    """Give flows of one pair and protocol, cut into ports of which both recorders saw the same."""
    source, destination = map(_label_runs, (told.source, told.destination))
    for seen in group:
        if not seen.ports:
            yield _with_story(seen, told, _find_run(told.source), _find_run(told.destination))
            continue
        for ports, at_source in _split_ports(seen.ports, told.source, source):
            for some, at_destination in _split_ports(ports, told.destination, destination):
                yield _with_story(replace(seen, ports=some), told, at_source, at_destination)


def _label_runs(told: StoryTold | None) -> LabelledPorts[int]:
    """Give the ports that a recorder saw by the place of their run."""
    runs = told.runs if told is not None else ()
    return LabelledPorts((ports, at) for at, run in enumerate(runs) for ports in run.ports)


def _split_ports(
    ports: Ports, told: StoryTold | None, places: LabelledPorts[int]
) -> Iterator[tuple[Ports, SeenRun | None]]:
    """Give the ports by the run that tells of them; the last ones nobody saw anything of."""
    parts = port_sets.union_by_key((at, (part,)) for at, part in places.split(ports))
    for at, some in parts.items():
        yield some, told.runs[at] if told is not None and at is not None else None


def _find_run(told: StoryTold | None) -> SeenRun | None:
    return told.runs[0] if told is not None and told.runs else None


def _with_story(
    seen: Observation, told: Told, at_source: SeenRun | None, at_destination: SeenRun | None
) -> Observation:
    errors = tuple(_list_errors(seen, told))
    sure = _find_sureness(seen, told, errors)
    if told.is_shared and at_destination is not None:
        own = _leave_own(at_destination, at_source)
        is_all = (own.answers, own.resets) == (at_destination.answers, at_destination.resets)
        sure = sure._replace(destination=sure.destination and is_all)
        at_destination = own
    came = _place_of(at_destination and at_destination.requests, sure.destination)
    if came == UNKNOWN and is_in_its_name(seen, told.destination, errors):
        came = NO
    story = Story(
        source_out=_place_of(at_source and at_source.requests, sure.left),
        destination_in=came,
        socket=_socket_place(seen, at_destination, sure.destination and told.sees_waiting),
        destination_out=_place_of(_answer_of(seen, at_destination), sure.destination),
        source_in=_place_of(_answer_of(seen, at_source), sure.answer),
        prober=_prober_place(seen),
        errors=(*errors, *_list_resets(seen, at_source, at_destination, sure=sure.destination)),
    ).settled()
    witness = seen.witness
    moved = told.translated is not None and came.seen == "yes"
    if moved and (witness is None or witness.seen_from is None):
        witness = replace(witness or Witness(), seen_from=told.translated)
    return with_refusal(replace(seen, story=story, witness=witness))


def _leave_own(seen: SeenRun, at_source: SeenRun | None) -> SeenRun:
    """Leave what one of several sources has sent at most, and what came back to it."""
    if at_source is None:
        return seen._replace(answers=None, resets=None)
    came, left = seen.requests, at_source.requests
    if came is not None and left is not None:
        came = came._replace(most=min(came.most, left.most))
    return seen._replace(
        requests=came,
        answers=seen.answers if at_source.answers else None,
        resets=seen.resets if at_source.resets else None,
    )


class Sureness(NamedTuple):
    """Whether what a recorder did not see was not there: a request that left the source, anything
    at the destination, and an answer that came back to the source."""

    left: bool
    destination: bool
    answer: bool


def _find_sureness(seen: Observation, told: Told, errors: Iterable[StoryError]) -> Sureness:
    protocol, ours = seen.task.protocol, seen.part.ours
    # Datagrams without a nonce are known by the source's own address and port only, and nonces on
    # connections by what plain ones begin with.
    is_plain = seen.part.protocol.name == PLAIN or not seen.unanswered
    has_name = (protocol in ("tcp", "icmp") or ours) and is_plain
    is_known = has_name or seen.sport is not None
    at_source = is_known and _is_sure(told.source, named=True)
    # A translation may hide where SYNs come from whose numbers nobody at the source recorded.
    has_number = told.source is not None or (ours and protocol == "udp")
    held_back = seen.unanswered and bool(port_sets.intersect(seen.ports, told.connected))
    # Of answers to empty datagrams the recorder does not know how they begin.
    knows_answer = has_name or seen.part.mode == "bytes"
    # An error that came to the interface is an answer, too, whatever the own firewall did with it.
    has_error = any(error.arrived for error in errors)
    # A device that translates the address may translate the own port as well.
    keeps_name = has_name or (is_known and not told.may_move)
    return Sureness(
        left=at_source and not held_back,
        destination=keeps_name and _is_sure(told.destination, named=has_name and has_number),
        answer=at_source and knows_answer and not has_error,
    )


def _prober_place(seen: Observation) -> StoryPlace:
    """Tell whether an answer reached the prober; a refusal may be this host's own."""
    answer = seen.outcome and seen.outcome.answer
    if seen.silent or (seen.unanswered and answer == "silent"):
        return NO
    return StoryPlace("yes") if answer is not None and not seen.unanswered else UNKNOWN


def _is_sure(told: StoryTold | None, *, named: bool) -> bool:
    """Tell whether what this recorder did not see did not come.

    It must have seen something of the asker; of anybody where packets are ``named`` by more than
    addresses. What is harmless did not come either then.
    """
    if told is None or told.lost or told.full:
        return False
    return told.heard or (named and told.awake)


def _place_of(packets: SeenPackets | None, sure: bool) -> StoryPlace:
    if packets is None:
        return NO if sure else UNKNOWN
    first_ns = Nanoseconds(packets.first_ns)
    return StoryPlace("yes", packets.most, first_ns, packets.device, packets.ttl)


def _answer_of(seen: Observation, run: SeenRun | None) -> SeenPackets | None:
    """Give the answers, or the resets where nothing else was there and our listener is not."""
    if run is None or seen.listener.state == "ours":
        return run and run.answers
    return run.answers or run.resets


def _socket_place(seen: Observation, at_destination: SeenRun | None, sure: bool) -> StoryPlace:
    """Tell whether the request reached a socket: the listener's word, or a SYN-ACK that left.

    A connection whose SYN-ACK gets lost is never accepted: the listener does not know of it. Data
    that another port's listener answered, because a translation took it there, is no such case.
    """
    witness = seen.witness
    answers = at_destination.answers if at_destination is not None else None
    if seen.task.protocol == "tcp" and answers is not None and not seen.unanswered:
        return StoryPlace("yes")  # how often is not known: the kernel repeats SYN-ACKs
    if witness is None or seen.listener.state != "ours":
        return UNKNOWN
    if witness.socket:
        return StoryPlace("yes")
    return NO if sure or seen.task.protocol != "tcp" else UNKNOWN


def _list_errors(seen: Observation, told: Told) -> Iterator[StoryError]:
    """List the errors about the flow; one that left the destination and arrived is one error."""
    destination = seen.task.wants[0].flow.destination.name
    left = [error for error in _errors_about(seen, told.destination) if error.outgoing]
    at_source = list(_errors_about(seen, told.source))
    arrived = [error for error in at_source if not (error.outgoing or error.local)]
    for error in left:
        is_known = any(_is_same(error, other, seen.task.address) for other in arrived)
        if not is_known and not told.is_shared:
            yield _make_error(seen, error, destination, arrived=False)
    for error in arrived:
        known = any(_is_same(other, error, seen.task.address) for other in left)
        forged = (
            not known
            and error.sender == seen.task.address
            and _is_sure(told.destination, named=True)
        )
        made = _make_error(seen, error, destination if known else None)
        yield replace(made, not_left=destination) if forged else made
    for error in at_source:
        if error.local:
            yield _make_error(seen, error, seen.task.source.name, arrived=False)


def _is_same(left: SeenError, arrived: SeenError, address: str) -> bool:
    """Tell whether an error that left is the one that arrived; translation gives it our address."""
    same = (left.type, left.code) == (arrived.type, arrived.code)
    return same and arrived.sender in (left.sender, address)


def _errors_about(seen: Observation, told: StoryTold | None) -> Iterator[SeenError]:
    for error in told.errors if told is not None else ():
        if not seen.ports or _common_ports(seen, error):
            yield error


def _common_ports(seen: Observation, error: SeenError) -> Ports:
    return port_sets.intersect(seen.ports, port_sets.normalise(error.ports))


def _make_error(
    seen: Observation, error: SeenError, left: str | None, *, arrived: bool = True
) -> StoryError:
    quoted = _name_packet(seen, _common_ports(seen, error) if seen.ports else ())
    return StoryError(
        error.sender, error.type, error.code, error.ttl, error.packets, quoted, left,
        arrived=arrived,
    )  # fmt: skip


def _name_packet(seen: Observation, ports: Ports) -> str:
    return f"{seen.task.protocol} {port_sets.text(ports)}".strip()


def _list_resets(
    seen: Observation, at_source: SeenRun | None, at_destination: SeenRun | None, *, sure: bool
) -> Iterator[StoryError]:
    """Tell of the resets: where they arrived, whether the destination's recorder saw them leave."""
    came = at_source and at_source.resets
    left = at_destination and at_destination.resets
    first = came or left
    if first is not None:
        name = seen.task.wants[0].flow.destination.name
        yield StoryError(
            seen.task.address, None, None, first.ttl, first.most, _name_packet(seen, seen.ports),
            left=name if left is not None else None,
            not_left=name if left is None and sure else None,
            arrived=came is not None,
        )  # fmt: skip
