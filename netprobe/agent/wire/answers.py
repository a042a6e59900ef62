"""Answers of a run, from the agent to the coordinator."""

from typing import List, NamedTuple, Optional, Tuple

from .parts import (
    EchoRun,
    HalfOpen,
    IcmpFact,
    KeptPacket,
    ListeningBlock,
    OrderArrivals,
    OutcomeKind,
    OutcomeRun,
    Ranges,
    SeenError,
    SeenRun,
    Standstill,
    Stranger,
    TranslatedRun,
    UnreachedPorts,
    WalkHop,
)


class HelloLine(NamedTuple):
    """What an agent can do, as its first line. ``wire``: the version of this page. ``net_raw``,
    ``low_ports``, ``sees_owners``: raw sockets, ports below 1024, processes of other users.
    ``nofile``: how many files may be open. ``echo``: by ``datagram``, ``raw`` or ``program``.
    ``kubelet``: one runs here; then ``node_ports`` is its range. ``machine``: equal where two
    agents share one network stack. ``addresses``: the IP addresses of its devices, and ``links``
    their link-layer ones; at most 500 of each. ``wall_s``: its wall clock (s UTC)."""

    wire: int
    python: str
    pid: int
    uid: int
    user: str
    hostname: str
    kernel: str
    net_raw: bool
    low_ports: bool
    sees_owners: bool
    nofile: int
    cores: int
    echo: Optional[str]
    kubelet: bool
    node_ports: Optional[Tuple[int, int]]
    machine: str
    addresses: List[str]
    links: List[str]
    wall_s: float


class Listening(NamedTuple):
    """A round is open, or (of ``held``) looked at; a block each, in the order's own order."""

    id: int
    blocks: List[ListeningBlock]


class Closed(NamedTuple):
    """A round is closed."""

    id: int


class Seen(NamedTuple):
    """What a round has seen; at most 64 strangers and 4,096 connections in SYN_RECV."""

    id: int
    orders: List[OrderArrivals]
    half_open: List[HalfOpen]
    strangers: List[Stranger]
    unreached: List[UnreachedPorts]


class StoryTold(NamedTuple):
    """What the recorder saw. ``running`` False: there is none, and ``failure`` says why. ``heard``:
    it saw a packet of this asker on the interface in question, so what it did not see did not pass.
    ``awake``: it saw somebody's come in there. ``lost``: packets that it missed; ``full``: it has
    stopped, because there were too many."""

    id: int
    running: bool
    failure: Optional[str]
    runs: List[SeenRun]
    errors: List[SeenError]
    translated: List[TranslatedRun]
    heard: bool
    awake: bool
    lost: int
    full: bool


class PacketsKept(NamedTuple):
    """Kept packets, the first and the last of each port; ``numbers`` name their flows, as in the
    order. ``left_out``: how many more packets of the asked flows it has. ``sure``: it lost nothing
    and hears the asker, so others did not come. ``own_ports``: where the connects came from, of an
    agent that may not record."""

    id: int
    packets: List[KeptPacket]
    numbers: List[int]
    left_out: int
    own_ports: List[int]
    sure: bool


class ProbeOutcomes(NamedTuple):
    """Outcomes of a probe order, the same at these destinations (by their places in the order from
    1); every port of every destination is in exactly one run of one such answer. ``own_ports``: the
    UDP ports that each destination's probes were sent from; of other protocols none."""

    id: int
    places: Ranges
    kinds: List[OutcomeKind]
    runs: List[OutcomeRun]
    own_ports: List[int]


class EchoOutcomes(NamedTuple):
    """Outcomes of an echo order; every destination is in exactly one run of one such answer."""

    id: int
    kinds: List[OutcomeKind]
    runs: List[EchoRun]


class Done(NamedTuple):
    """A probe or echo order has ended."""

    id: int
    cancelled: bool


class Walked(NamedTuple):
    """The hops of a walk; ``reached``: the destination itself answered. ``refusal``: the ICMP error
    of the last hop, where that ended the walk before the destination."""

    id: int
    hops: List[WalkHop]
    reached: bool
    failure: Optional[str]
    refusal: Optional[IcmpFact]


class Fault(NamedTuple):
    """A bug of the agent, with its traceback's last lines; ``id`` is the order's, where known.
    ``short_of``: no bug, the host has no more of this."""

    id: Optional[int]
    words: str
    short_of: Optional[str]


class Alive(NamedTuple):
    """The answer to ``Beat``. ``pauses``: in which the agent stood still since its last such
    answer. ``waited_ms``: how long it has waited for a processor since its start, where the kernel
    counts that."""

    pauses: List[Standstill]
    waited_ms: int


class Bye(NamedTuple):
    """The agent ends."""
