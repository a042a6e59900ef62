"""Parts of messages: records that stand inside orders and answers."""

from typing import List, NamedTuple, Optional, Tuple

# First and last port, both included.
Ranges = List[Tuple[int, int]]


class IcmpFact(NamedTuple):
    """An ICMP error as the error queue gave it: ``offender`` sent it, ``ttl`` is its own on
    arrival."""

    type: int
    code: int
    offender: str
    ttl: Optional[int]


class AnswerShape(NamedTuple):
    """The answer to a template: its bytes, where nonce, host index and MAC go, and which bytes
    it copies from the request: (to, from, length)."""

    content: bytes
    copies: List[Tuple[int, int, int]]
    nonce_at: int
    host_at: int
    mac_at: int


class NumberedTemplate(NamedTuple):
    """A request under the number that orders name it by. ``nonce_at`` None: the bytes go out as
    they are, to a real service. ``answer`` None: one-way, a listener logs it without an answer."""

    number: int
    request: bytes
    nonce_at: Optional[int]
    mac_at: Optional[int]
    answer: Optional[AnswerShape]


class ListenBlock(NamedTuple):
    """Ports to listen on. ``proto`` is ``tcp``, ``udp`` or ``ipproto``; the latter has no ports but
    a protocol ``number``. ``template`` is what a listener recognises (0: nothing)."""

    proto: str
    address: str
    ports: Ranges
    number: Optional[int]
    template: int


class HeldPorts(NamedTuple):
    """Ports that a process holds. ``loopback``: bound to loopback only. ``process`` is the kernel's
    name for it (15 characters), ``kernel`` where the kernel itself holds them, None where it cannot
    be seen; ``program`` is the base name of its program file."""

    first: int
    last: int
    process: Optional[str]
    program: Optional[str]
    pid: Optional[int]
    bind: str
    loopback: bool


class HeldSocket(NamedTuple):
    """A TCP socket that listens, or a UDP socket without a peer. ``owners``: places in the list of
    processes; none where nobody that can be seen has it open."""

    protocol: str
    address: str
    port: int
    owners: List[int]


class SocketOwner(NamedTuple):
    """A process: the kernel's name for it, the base name of its program file, and the text of its
    /proc/PID/cgroup, which names its unit or pod."""

    pid: int
    process: str
    program: Optional[str]
    cgroups: str


class FailedPorts(NamedTuple):
    """Ports that could not be bound, with the failure's name."""

    first: int
    last: int
    failure: str


class ListeningBlock(NamedTuple):
    """What became of a ``ListenBlock``. ``up``: bound. ``held``: somebody has them. ``beside``:
    somebody has them on another address of this host, where they are free. ``denied``: no right
    to bind them. ``skipped``: node ports on a host where a kubelet runs; these live in NAT rules.
    ``nat``: this host does not have the address, so the wildcard address is bound. An IP protocol
    is ``[[0, 0]]``."""

    up: Ranges
    held: List[HeldPorts]
    beside: List[HeldPorts]
    denied: Ranges
    failed: List[FailedPorts]
    skipped: Ranges
    nat: bool


class OrderArrivals(NamedTuple):
    """What listeners saw of one probe order: ports, senders' addresses, and the failure of their
    own answer, if it had one."""

    order: int
    ports: Ranges
    senders: List[str]
    reply: Optional[str]


class HalfOpen(NamedTuple):
    """A connection in state SYN_RECV: the SYN arrived, and nobody acknowledged the SYN-ACK."""

    port: int
    remote: str
    remote_port: int
    address: str


class UnreachedPorts(NamedTuple):
    """Ports of one address at whose listeners nothing arrived, not even the agent's own connection.
    ``number``: of an IP protocol, which is ``[[0, 0]]``."""

    proto: str
    address: str
    number: Optional[int]
    ports: Ranges


class Stranger(NamedTuple):
    """A connection or datagram without a valid nonce: the port that it came to, and who sent it."""

    port: int
    address: str


class SeenPackets(NamedTuple):
    """Packets of one kind that a recorder saw: the least and the most of one port, when the first
    came (ns of the host's own clock), its TTL, and the outermost device that it passed."""

    least: int
    most: int
    first_ns: int
    ttl: int
    device: str


class SeenRun(NamedTuple):
    """Ports of one range of which a recorder saw the same: requests, answers, and resets (TCP).
    ``numbers``: the first sequence numbers of some of the SYNs, which address translation leaves
    as they are."""

    ports: Ranges
    requests: Optional[SeenPackets]
    answers: Optional[SeenPackets]
    resets: Optional[SeenPackets]
    numbers: List[int]


class SeenError(NamedTuple):
    """ICMP errors about the ports: who sent them, and whether they left this host (``outgoing``).
    ``local``: they never left it."""

    ports: Ranges
    sender: str
    type: int
    code: int
    ttl: int
    outgoing: bool
    local: bool
    packets: int
    first_ns: int


class KeptPacket(NamedTuple):
    """A packet that a recorder kept: the port that it is about, when (ns of the host's own clock),
    the device, whether it went out, how long it was, its first bytes from the network header on."""

    port: int
    time_ns: int
    device: str
    outgoing: bool
    length: int
    data: bytes


class TranslatedRun(NamedTuple):
    """Requests of the same nonce or sequence number that came under other addresses or ports."""

    asker: str
    target: str
    ports: Ranges
    packets: int


class ProbeBlock(NamedTuple):
    """Ports that get the same packets. Modes: ``connect`` (TCP: connect, then close by FIN),
    ``nonce`` (send the request, wait for the answer; TCP then resets), ``bytes`` (send the
    request, return up to 4 KiB of what comes), ``send`` (UDP and IP protocols: one-way).
    ``template`` 0: an empty datagram, or nothing. An IP protocol has no ports."""

    ports: Ranges
    mode: str
    template: int


class ProbeDestination(NamedTuple):
    """Another destination of a probe order, which is probed alike: what its nonces carry as their
    order, its address, the index of the host whose answer is ``nonce`` (None: any agent's), and its
    ports (empty: the order's own)."""

    number: int
    dst: str
    host: Optional[int]
    blocks: List[ProbeBlock]


class Pace(NamedTuple):
    """At most ``burst`` packets at once, then one in every interval."""

    burst: int
    interval_ms: int


class OutcomeKind(NamedTuple):
    """What an outcome is, apart from its ports. ``op``: the last step that was taken (``bind``,
    ``connect``, ``send``, ``answer``; errors that came back for datagrams are ``answer``, for
    one-way ones ``send``). ``failure``: a name of wire/failures.py, or None. ``left``: whether
    a packet is known to have left the host (True) or not (False). ``answer``: a word of
    wire/replies.py; ``by``: the index of the host that gave it. ``data``: up to 4 KiB of
    ``bytes``. ``ttl``: of a genuine answer, where the kernel says it. ``elapsed_ms``: of
    host-unreachable, rounded to 100; of a datagram's ``bytes`` after several packets of a look,
    since the first. ``mtu``: of message-too-long, what the network or the own
    interface carries. ``packets``: of silence, sent in all looks (the least of the batch); of a
    connection that a repeated SYN opened, the SYNs of that look. ``clock_us``: of a datagram's
    ``bytes``, when they came, since 1970 by its host's clock."""

    op: str
    failure: Optional[str]
    icmp: Optional[IcmpFact]
    left: Optional[bool]
    answer: Optional[str]
    by: Optional[int]
    data: Optional[bytes]
    ttl: Optional[int]
    elapsed_ms: Optional[int]
    mtu: Optional[int]
    packets: Optional[int]
    clock_us: Optional[int]


class OutcomeRun(NamedTuple):
    """Neighbouring ports of one kind (its place in ``kinds``); for each destination of the answer
    the median of their round trips (None: not measured); and in how many looks they were asked.
    [0, 0] where there are no ports."""

    first: int
    last: int
    kind: int
    rtts_us: List[Optional[int]]
    looks: int


class EchoRun(NamedTuple):
    """Neighbouring destinations of an echo order, by their places in it from 1; every one has its
    own round trip."""

    first: int
    last: int
    kind: int
    rtts_us: List[Optional[int]]
    looks: int


class NextHop(NamedTuple):
    """Where packets to an address go first: a gateway (None: on the same network), by a device
    (None: there is no route)."""

    gateway: Optional[str]
    dev: Optional[str]


class WalkHop(NamedTuple):
    """One TTL of a walk; ``address`` None: nobody answered."""

    ttl: int
    address: Optional[str]


class Standstill(NamedTuple):
    """A pause: it ended so long before the message was sent, and lasted so long."""

    ago_ms: int
    lasted_ms: int


class StreamTimes(NamedTuple):
    """The agent's own clock in ms: since the stream opened (or began to), and since it last sent
    (None: never). Decisions by time rest on these."""

    elapsed_ms: float
    since_sent_ms: Optional[float]


class RouterHeard(NamedTuple):
    """A router that tells others of its virtual addresses: what it ``speaks`` (``VRRPv2``,
    ``VRRPv3``, ``CARP``, ``HSRP``, ``HSRPv2``), the group's id and its own priority in it (of CARP
    the skew), the address and the link-layer address that it sends from, and the device where it
    was heard."""

    speaks: str
    group: int
    priority: int
    sender: str
    link: str
    dev: str


class AddressAnswer(NamedTuple):
    """Who has an address: the link-layer address in the answer."""

    dst: str
    link: str


class DhcpServer(NamedTuple):
    """A DHCP server: the address that it names itself by, the link-layer address of the answer, and
    the address that it offers."""

    server: str
    link: str
    offer: Optional[str]
