"""Evidence: what the agents saw of one flow, without judgement and without raw bytes."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from netprobe.agent.wire import failures
from netprobe.model.balanced import BalancerFacts
from netprobe.model.icmp import icmp_words
from netprobe.model.multicast import MulticastFacts
from netprobe.model.names import NameFacts
from netprobe.model.plan import Flow
from netprobe.model.ports import Ports
from netprobe.model.quality import WaySamples
from netprobe.model.rehearsed import OverlayFacts
from netprobe.model.result import Proof
from netprobe.model.segment import SegmentFacts
from netprobe.model.story import Story, TrailEntry

# What agents saw that played something.
RehearsedFacts = OverlayFacts | BalancerFacts | SegmentFacts | MulticastFacts | WaySamples

N = TypeVar("N")

# What a listener's note may be.
UNDIALLED = "the agent's own connection to its listener did not arrive"

# The answer on a connection or socket that worked:
#   nonce      our listener's genuine answer          foreign    a genuine answer of another agent
#   reflected  our own bytes came back                service    what ``probe:`` asks for answered
#   other      something answered, not that service   silent     it opened, then said nothing
#   closed     it opened, then was closed             reset      it opened, then was reset
#   echo       an ICMP echo reply                     unasked    it opened and nothing was sent;
#              UDP: it answered, and ``probe:`` asks for nothing
#   tunnel     a proxy says that it opened a tunnel, and nothing came through it
Answer = Literal[
    "nonce", "foreign", "reflected", "service", "other", "silent", "closed", "reset", "echo",
    "unasked", "tunnel",
]  # fmt: skip
# What a live service told when it was asked who it is: as above, ``tls`` where plaintext is
# expected, or ``plaintext`` where TLS is. The last three: the question got no answer.
ServiceWord = Literal["service", "other", "tls", "plaintext", "silent", "closed", "reset"]


_ORIGINS = {
    "source": "the source's own kernel",
    "destination": "the destination itself",
    "router": "a router on the way",
}


class Icmp(Struct, frozen=True):
    """An ICMP error from the source's error queue; ``offender`` is the address that sent it.

    ``origin`` says who the offender is: the source's own kernel, the destination, or another host
    (a router). ``ttl`` is the error's own TTL on arrival, None where the kernel did not say.
    """

    type: int
    code: int
    offender: str
    origin: Literal["source", "destination", "router"]
    ttl: int | None = None

    @property
    def word(self) -> str:
        """The word that nmap uses for the error; where nmap has none, its numbers: ``icmp 3/7``."""
        return icmp_words(self.type, self.code, self.offender).word

    def words(self) -> str:
        """``ICMP 3/13 (admin-prohibited) in the error queue from 10.0.0.1, a router ...``."""
        ttl = f", TTL {self.ttl}" if self.ttl is not None else ""
        name = f"ICMP {self.type}/{self.code} ({self.word})"
        return f"{name} in the error queue from {self.offender}, {_ORIGINS[self.origin]}{ttl}"

    def facts(self) -> dict[str, Any]:
        """Give the same for programs."""
        return {
            "type": self.type, "code": self.code, "word": self.word,
            "offender": self.offender, "origin": self.origin, "ttl": self.ttl,
        }  # fmt: skip


class ServerClock(NamedTuple):
    """What a time server says of its clock, and how far the source's clock is from it.

    ``good``: it says that it is synchronised. ``kiss``: the code with which it turns the source
    away. ``distance_ms``: how wrong it may be by its own word (half the root delay, and the root
    dispersion). ``offset_ms``: the source's clock less the server's, wrong by ``error_ms`` at most;
    None where the agent did not say when the answer came.
    """

    stratum: int
    good: bool
    kiss: str | None = None
    distance_ms: float = 0.0
    offset_ms: float | None = None
    error_ms: float = 0.0


class Outcome(Struct, frozen=True):
    """What the source saw. ``failure`` is a name of ``agent/wire/failures.py``, or None.

    Through a proxy (operation ``proxy``) ``answered_by`` is the proxy, and ``refusal`` is why it
    opened no way: the status of its answer, else what it did (``not-http``, ``closed``, ``silent``)
    or why it was not reached (``no-response``, ``not-resolved``, the failure of the connect).

    ``left_host``: False where the kernel proves that no packet left the host (TCP_INFO: retransmits
    without retransmissions), True where it proves that one did, None where it cannot say.
    ``blind``: a TCP errno of a kernel before 5.8, whose error queue says nothing of TCP.
    ``attempts`` counts looks, ``packets`` what was sent in them where the kernel said.
    ``clock``: of a time server.
    """

    operation: str
    failure: str | None
    icmp: Icmp | None = None
    left_host: bool | None = None
    answer: Answer | None = None
    answered_by: str | None = None
    said: str | None = None
    ttl: int | None = None
    attempts: int = 1
    packets: int | None = None
    rtt_ms: float | None = None
    elapsed_ms: int | None = None
    blind: bool = False
    refusal: int | str | None = None
    clock: ServerClock | None = None

    def count_looks_of(self, before: Outcome) -> Outcome:
        """Give the same with the looks, and packets, of an outcome before counted.

        Only a look that waits for the kernel's second SYN tells whether a silent connect left the
        host: it left where any look says so, and did not where the others do not know.
        """
        left_host = self.left_host
        if self.failure == before.failure == failures.NO_ANSWER:
            known = {before.left_host, left_host} - {None}
            left_host = any(known) if known else None
        sent = (before.packets or 0) + (self.packets or 0) or None
        attempts = before.attempts + self.attempts
        return replace(self, left_host=left_host, attempts=attempts, packets=sent)


class Listener(Struct, frozen=True):
    """What is known of the destination's port while it was probed.

    ``ours`` our listener was bound · ``live`` a service held the port on the
    probed address · ``loopback`` on loopback only · ``closed`` an agent looked and nothing
    listens · ``bound`` nothing listens, and yet the kernel lets nobody bind it · ``lost`` our
    listener was there but its agent died meanwhile · ``unknown`` no agent. ``owner`` is a phrase;
    ``processes`` are the names of the process that holds the port, that of its program file and the
    kernel's; none where it cannot be seen. ``beside`` is a phrase for who holds the port of
    ``ours`` on another address of the same family: on loopback only where ``beside_loopback``.
    """

    state: Literal["ours", "live", "loopback", "bound", "closed", "lost", "unknown"]
    owner: str | None = None
    nat: bool = False
    note: str | None = None
    processes: tuple[str, ...] = ()
    beside: str | None = None
    beside_loopback: bool = False


# Probes whose servers answer whoever they let ask: their silence to one source is held against whom
# they answer in the same run, and their time against the hosts' clocks.
ANSWERING: Final = frozenset(("dns", "ntp"))
# The source's kernel had no room for the packet (ENOBUFS).
NO_BUFFERS = failures.NO_BUFFERS
# A failure of the way back without an errno: no neighbour answers for the route's next hop.
NO_NEIGHBOUR = "no-neighbour"
# Another one: the destination has the address that the packets come from.
OWN_ADDRESS = "own-address"


class Witness(Struct, frozen=True):
    """What the destination's agent knows of the packets, beside what its recorder saw.

    ``socket``: it reached a socket of ours (datagram received, connection in SYN_RECV or accepted).
    ``seen_from`` the source address that arrived where it differs from the one that was sent (NAT).
    ``reply_failure`` the errno name of the listener's own answer, or of its host's route back;
    ``no-neighbour`` where the route's ``next_hop`` does not answer.
    ``filtered_at``: the device where the request came in (or, where no recorder saw it, the one
    that has the address) with a strict reverse-path filter, while the route back leaves by
    ``way_out``.
    """

    socket: bool = False
    seen_from: str | None = None
    reply_failure: str | None = None
    next_hop: str | None = None
    filtered_at: str | None = None
    way_out: str | None = None


class Trace(Struct, frozen=True):
    """The TTL walk: ``last_hop`` the last router that still answered, ``hops`` how many did.

    ``refusal``: what that router said which ended the walk.
    """

    last_hop: str | None
    hops: int
    reached: bool = False
    refusal: Icmp | None = None


class PathMtu(Struct, frozen=True):
    """What a path carries, in bytes of the whole IP packet.

    ``path`` is None where nothing could be measured. ``needed``: the source interface's MTU, which
    the overlay is built on. ``limited_by``: the router that said ``limit``; None: a black hole.
    ``lost_back``: such packets arrive, and those of the answer do not.
    """

    path: int | None
    needed: int | None
    proof: Proof = "none"
    how: str = ""
    limited_by: str | None = None
    limit: int | None = None
    lost_back: bool = False


class CheckConclusion(NamedTuple):
    """What a follow-up check found out beyond the measurement; ``said`` is the reason in words.

    The judge has a symptom of the same ``name``, as ``host-down``, ``intercepted`` (something
    nearer than the destination opened the connection) or ``no-room`` (in the source's kernel).
    ``refusing-host``: a "host unreachable" refuses the flow, as a firewall does. ``host-down``:
    ``said`` is the host on that network that asked in vain. ``next_hop``: the source's own, where
    that is at fault.
    """

    name: str
    said: str = ""
    next_hop: str | None = None


class ResetOrigin(NamedTuple):
    """Whose a reset is, as further looks tell.

    ``forged``: it came from nearer than the destination; None where nobody could say.
    ``full_ttl``: through a gateway it arrived with a TTL that no router has lowered; None where
    nobody looked, or (where ``forged`` is known) it did.
    ``own``: the source's own firewall made it.
    """

    forged: bool | None = None
    full_ttl: bool | None = None
    own: bool = False


NOT_ASKED = ResetOrigin()


class StoppedPackets(NamedTuple):
    """Whether a host's own firewall or kernel stops a silent flow's packets, as its kernel's
    counters tell.

    ``request``: at the destination, as it comes in. ``reply``: there, as it goes out. ``answer``:
    at the source, as it comes in. False: it is not stopped there; None: nobody looked, or the
    counters do not tell. ``taken``: TCP at the destination got the request.
    """

    request: bool | None = None
    reply: bool | None = None
    answer: bool | None = None
    taken: bool = False


NOT_COUNTED = StoppedPackets()


class RefusalMaker(NamedTuple):
    """Who made a refusal that has the destination's address, as a further look tells.

    ``own``: the destination itself. ``doubt``: why another one may have made it, in words; empty
    where the place was asked for without any doubt.
    """

    own: bool
    doubt: str = ""


class ServiceFinding(NamedTuple):
    """What a live service told; ``said`` is one plain phrase, ``status`` that of an HTTP answer.

    ``note``: a problem that the service's own clients may have.
    """

    told: ServiceWord
    said: str
    status: int | None = None
    note: str | None = None


class FlowFacts(Struct, frozen=True, kw_only=True):
    """What the agents saw of one flow, and what follow-up checks concluded from further looks.

    No check changes what was measured (``outcome``, ``listener``): conclusions are fields of their
    own. ``untested`` is (reason, words) where nobody could look; then there is no outcome.
    ``limited``: new connections are limited a second, and these ports were not asked slowly enough
    to tell. ``conclusion``: what a check found out. ``reset``: whose a reset is. ``maker``: who
    made a refusal in the destination's name; None: nobody looked. ``stopped``: where a silent
    flow's packets are stopped. ``refusal``: the ICMP error that only recorders saw, about the data
    of a connection, or that only a walk heard; no errno says that. ``service``: what the service
    told that was asked who it is, where a connection opened. ``greeting``: what a port said of
    itself of which nobody knows who holds it; None: not asked. ``names``: what a name server told
    of the names of the installation. ``rehearsed``: what agents saw that played a part of the
    platform. ``slow_start``: connections open by a repeated SYN only, each time. ``trail``: every
    look, in order.
    """

    outcome: Outcome | None
    listener: Listener = Listener("unknown")
    witness: Witness | None = None
    story: Story | None = None
    trace: Trace | None = None
    mtu: PathMtu | None = None
    rehearsed: RehearsedFacts | None = None
    untested: tuple[str, str] | None = None
    warnings: tuple[str, ...] = ()
    limited: bool = False
    conclusion: CheckConclusion | None = None
    reset: ResetOrigin = NOT_ASKED
    maker: RefusalMaker | None = None
    stopped: StoppedPackets = NOT_COUNTED
    refusal: Icmp | None = None
    service: ServiceFinding | None = None
    greeting: str | None = None
    names: NameFacts | None = None
    slow_start: bool = False
    trail: tuple[TrailEntry, ...] = ()

    @property
    def heard(self) -> Outcome | None:
        """The outcome, with the ICMP error that only recorders or a walk heard."""
        if self.outcome is None or self.refusal is None:
            return self.outcome
        return replace(self.outcome, icmp=self.refusal)

    @property
    def has_left(self) -> bool | None:
        """Whether a packet left the source, by its recorder, else by its kernel; None: unknown."""
        # The kernel takes a packet that a full queue drops for one that stays.
        seen = self.story.source_out.seen if self.story is not None else "unknown"
        if seen != "unknown":
            return seen == "yes"
        return None if self.outcome is None else self.outcome.left_host

    def notes(self, kind: type[N]) -> list[N]:
        """Give the notes of this kind in the trail, in order."""
        return [entry.note for entry in self.trail if isinstance(entry.note, kind)]

    @property
    def concluded(self) -> str | None:
        """The name of the conclusion; None without one."""
        return None if self.conclusion is None else self.conclusion.name


_FACTS = FlowFacts.__struct_fields__


def facts_of(flow: FlowFacts) -> dict[str, Any]:
    """Give the facts alone, as keyword arguments of another class that has them."""
    return {name: getattr(flow, name) for name in _FACTS}


class Evidence(FlowFacts, frozen=True):
    """Everything seen of one flow on these ports; all of them share it.

    ``ports`` is empty where the protocol has none. ``address`` is the address that was probed (a
    name resolved). ``control_answered``: the address answered this source something in this run;
    ``host_down``: a host on its network, where the source's packets lead, that got no answer to ARP
    requests for it, while nobody in this run was answered; ``given_up_by``: a router that told this
    source, or any source where something answers for the address, that its next hop there does not
    answer; ``host_up``: it answered somebody, or its agent has the address, or "host unreachable"
    is a refusal there. ``platform_runs``: the destination's agent says that a kubelet runs there.
    ``served``: the sources that the service, which the flow asks for, has answered in this run.
    ``sudo_failed``: those ends of the flow whose agents run without root because sudo failed.
    ``sent_from``: the source's own address, where the inventory lacks it.
    """

    flow: Flow
    address: str
    ports: Ports
    control_answered: bool = False
    host_down: str | None = None
    given_up_by: str | None = None
    host_up: bool = False
    platform_runs: bool = False
    served: tuple[str, ...] = ()
    sudo_failed: tuple[str, ...] = ()
    sent_from: str | None = None
