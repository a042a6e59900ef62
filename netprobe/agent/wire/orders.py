"""Orders of a run, from the coordinator to the agent.

Orders that have an answer carry an ``id``, which the answer repeats.
"""

from typing import List, NamedTuple, Optional

from .parts import ListenBlock, NumberedTemplate, Pace, ProbeBlock, ProbeDestination, Ranges


class StartOrder(NamedTuple):
    """The first order: the run's key, the agent's own index, and how long silence may last."""

    key: bytes
    host: int
    silence_s: float


class Beat(NamedTuple):
    """A sign of life, every 5 s, and where the agent's pauses are asked for; ``Alive`` answers it.
    An agent that hears nothing for ``silence_s`` ends."""


class RateOrder(NamedTuple):
    """At most so many new probes a second; None: no limit."""

    per_s: Optional[float]


class TemplatesOrder(NamedTuple):
    """Templates that later orders name by their numbers."""

    items: List[NumberedTemplate]


class ListenOrder(NamedTuple):
    """Open a round of listeners; its id names the round."""

    id: int
    blocks: List[ListenBlock]


class HeldOrder(NamedTuple):
    """Say who holds these ports; nothing is bound. The "port" of an IP protocol is its number."""

    id: int
    blocks: List[ListenBlock]


class CloseOrder(NamedTuple):
    """Close a round. What it saw can still be asked."""

    id: int


class SeenOrder(NamedTuple):
    """What a round's listeners have seen of these probe orders; none named: of all. ``rest``: also
    what says why the rest did not come, connections in SYN_RECV and the agent's own dials."""

    id: int
    round: int
    orders: List[int]
    rest: bool


class RecordOrder(NamedTuple):
    """Start the packet recorder, where packet sockets are permitted; another such order lets it
    forget everything and start anew. ``datagrams``: the run's UDP ports; ``numbers``: its IP
    protocols. ``keep``: the run's TCP ports, where some packets of its flows are kept for
    ``KeptOrder``; None: nobody will ask for any."""

    datagrams: Ranges
    numbers: List[int]
    keep: Optional[Ranges]


class StoryOrder(NamedTuple):
    """What the recorder saw of probes from ``asker`` to these ports of ``target``, each range by
    itself. ``sent``: told at the source, whose requests go out; else at the destination. ``proto``
    ``tcp-nonce``: of the nonces on TCP connections that opened. ``numbers``: order ids of nonces,
    or first sequence numbers of SYNs, which find requests with translated addresses.
    ``own_ports``: where datagrams without a nonce came from."""

    id: int
    proto: str
    number: Optional[int]
    asker: str
    target: str
    ports: Ranges
    sent: bool
    numbers: List[int]
    own_ports: List[int]


class KeptOrder(NamedTuple):
    """The kept packets of probes from ``asker`` to these ports of ``target``. ``sent``: told at the
    source, whose own they are; else at the destination, where ``numbers`` name them: order ids of
    nonces, or first sequence numbers of SYNs. ``own_ports``: names for connects of a source that
    knows no numbers."""

    id: int
    proto: str
    asker: str
    target: str
    ports: Ranges
    sent: bool
    numbers: List[int]
    own_ports: List[int]


class ProbeOrder(NamedTuple):
    """Probe ports of one destination, and of ``more`` of its family and interface, by ``tcp``,
    ``udp`` or ``ipproto`` (with ``number``). Pace, looks and sockets are each destination's own.

    ``first_ms``: how long the first look waits (None: learned from the host's answers, else
    ``look_ms``); ``looks``: how often silence is asked in all. ``pace``: of UDP without a listener.
    ``min_ttl``: TCP ignores answers with a smaller TTL; ``ttl``: TCP packets start with it.
    ``size``: the length of the whole IP packet, which is never fragmented; TCP sends packets of at
    most so many bytes both ways once the nonce is answered. ``host``: the index of the host whose
    answer is ``nonce``; another's is ``foreign``; None: any agent's.
    ``sport``: the port that all packets leave from (of one port to probe); None: any.
    """

    id: int
    proto: str
    number: Optional[int]
    dst: str
    src: Optional[str]
    blocks: List[ProbeBlock]
    first_ms: Optional[int]
    look_ms: int
    looks: int
    pace: Optional[Pace]
    min_ttl: Optional[int]
    ttl: Optional[int]
    size: Optional[int]
    host: Optional[int]
    sport: Optional[int]
    more: List[ProbeDestination]


class EchoOrder(NamedTuple):
    """Send ICMP echo requests to 1 to 65,535 addresses of one family and interface. All are asked
    once before any is asked again, and outcomes are reported as they come. ``numbers``: what the
    nonces of each destination's requests carry as their order; empty: the order's own id."""

    id: int
    dsts: List[str]
    src: Optional[str]
    first_ms: Optional[int]
    look_ms: int
    looks: int
    size: Optional[int]
    numbers: List[int]


class WalkOrder(NamedTuple):
    """Send probes of a flow with TTL 1, 2, 3 ... and tell which hops answer. ``port`` 0: echo."""

    id: int
    proto: str
    dst: str
    port: int
    src: Optional[str]
    max_ttl: int
    template: int


class StopOrder(NamedTuple):
    """Say goodbye and end."""


def list_singles(order: ProbeOrder) -> List[ProbeOrder]:
    """List a probe order's destinations as orders of their own, by their places."""
    return [order._replace(more=[])] + [
        order._replace(
            id=more.number, dst=more.dst, host=more.host, blocks=more.blocks or order.blocks,
            more=[],
        )
        for more in order.more
    ]  # fmt: skip
