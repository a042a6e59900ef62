"""Results, findings and the run: what reports read. Names are those of ``netprobe.run/1``."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.model.host_key import HostKey
from netprobe.model.matrix import Expect, Weight
from netprobe.model.ports import PortRange, Ports
from netprobe.model.quality import Quality
from netprobe.model.shapes import (
    AddressText,
    LastDay,
    LineText,
    Name,
    ProtocolText,
    ReasonWord,
    RowId,
)
from netprobe.model.story import Story

Verdict = Literal["pass", "blocked", "exposed", "inconclusive", "not-tested", "covered"]
State = Literal["open", "closed", "filtered", "open|filtered", "unreachable", "unknown"]
Proof = Literal["nonce", "witness", "service", "handshake", "refusal", "none"]
Place = Literal["source", "path", "destination", "return-path", "host", "service"]

VERDICTS: tuple[Verdict, ...] = (
    "pass", "blocked", "exposed", "inconclusive", "not-tested", "covered",
)  # fmt: skip
# What a drop or a refusal looks like. Dead hosts and routes are "unreachable", services "open".
FILTERED: tuple[State, ...] = ("filtered", "open|filtered")
# What nobody looked at.
UNPROBED: tuple[Verdict, ...] = ("not-tested", "covered")

# From the strongest to the weakest (docs/design.md, section 2.2). Merged ports carry the weakest of
# their proofs (section 5).
PROOFS: tuple[Proof, ...] = ("nonce", "witness", "service", "handshake", "refusal", "none")

# Stands for the one flow of a protocol that has no ports.
PORTLESS: Ports = ((0, 0),)

# Matrix, requirement, source, destination, address, protocol.
ResultKey = tuple[str, str, str, str, str, str]


class AcceptedBy(Struct, frozen=True):
    """The entry of a file of accepted flows that holds for a result (docs/accepted-format.md)."""

    id: Name
    reason: str
    owner: str
    until: LastDay


class Also(Struct, frozen=True):
    """Another row that demands the same flow, in another matrix of the run."""

    matrix: Name
    requirement: RowId
    purpose: str = ""


class Result(Struct, frozen=True, kw_only=True):
    """The result of one flow, or of a run of neighbouring ports with equal evidence.

    ``order`` is the place in the plan (block, source, destination, address): results are sorted by
    it and by port, so that the same input gives the same report. Fields stand in the order of the
    JSON keys. ``rejected_by`` is the router that refused, ``last_hop`` the last that answered,
    ``next_hop`` the source's own where that is at fault. ``rtt_ms`` is a median over the ports,
    ``attempts`` the maximum. ``path_mtu_bytes`` is the largest packet that the path carries,
    ``needed_mtu_bytes`` the size that the overlay needs; None where no sizes were tried. ``holder``
    is the process that has taken the port, with the address that it is bound to. ``device``
    is the interface whose card is at fault, and ``driver`` its driver. ``accepted``:
    somebody accepted this failure. ``known``: the file of the baseline that has it too, where only
    what is new decides. ``stops``: what does not work while it fails, as its row says, else None.
    ``story``: where its packets were seen, unless it passed or was not probed. ``any_of``: the name
    of rows of which one is enough for the pair, and ``spared`` the one that passes beside this.
    ``also``: the rows of other matrices that demand the same flow. ``name_servers``: those of a
    host that none of them helps; ``next_hop`` is then the one that leads to them.
    ``quality``: what samples of the way show, where its row asks for that. ``sent_from``: of a
    failure, the address that the source sends from, where the inventory does not have it, and
    ``came_from`` the one under which its packets came, where they are translated on the way.
    """

    order: tuple[int, int, int]
    matrix: Name
    requirement: RowId
    purpose: str
    row: str
    optional: bool
    expect: Expect
    waived: str | None
    source: LineText
    destination: LineText
    address: AddressText
    protocol: ProtocolText
    port: int | None
    end_port: int | None
    verdict: Verdict
    state: State
    reason: ReasonWord
    proof: Proof
    where: tuple[Place, ...]
    rejected_by: AddressText | None = None
    last_hop: AddressText | None = None
    next_hop: AddressText | None = None
    because: str
    warnings: tuple[str, ...] = ()
    rtt_ms: float | None = None
    attempts: int = 0
    path_mtu_bytes: int | None = None
    needed_mtu_bytes: int | None = None
    holder: str | None = None
    device: Name | None = None
    driver: Name | None = None
    accepted: AcceptedBy | None = None
    known: str | None = None
    stops: Weight | None = None
    story: Story | None = None
    any_of: Name | None = None
    spared: Name | None = None
    also: tuple[Also, ...] = ()
    name_servers: tuple[AddressText, ...] = ()
    quality: Quality | None = None
    sent_from: AddressText | None = None
    came_from: AddressText | None = None

    @property
    def names(self) -> tuple[tuple[Name, Name], ...]:
        """All names of the flow, each a matrix and a requirement: first the written one."""
        own = (self.matrix, self.requirement)
        return (own, *((one.matrix, one.requirement) for one in self.also)) if self.also else (own,)

    @property
    def decides(self) -> bool:
        """Whether this result counts for the exit status.

        Optional, waived, accepted and known ones never do, nor do those beside which another row is
        enough.
        """
        return not (self.optional or self.is_excused or self.known is not None)

    @property
    def is_excused(self) -> bool:
        """Whether somebody waived or accepted it, or another row is enough."""
        return self.waived is not None or self.accepted is not None or self.spared is not None

    @property
    def got_there(self) -> bool:
        """Whether the request reached a socket of the destination: then only answers are lost."""
        return self.story is not None and self.story.socket.seen == "yes"

    @property
    def ports(self) -> Ports:
        """Its range of ports, or nothing where the protocol has none."""
        if self.port is None or self.end_port is None:
            return ()
        return ((self.port, self.end_port),)

    def cut(self, part: PortRange) -> Result:
        """Give the same of these ports only; of a protocol without ports the result itself."""
        if part in PORTLESS or part == (self.port, self.end_port):
            return self
        return replace(self, port=part[0], end_port=part[1])

    @property
    def port_count(self) -> int:
        """How many flows the result stands for (1 where the protocol has no ports)."""
        if self.port is None or self.end_port is None:
            return 1
        return self.end_port - self.port + 1


class Finding(Struct, frozen=True, kw_only=True):
    """Failures with one likely cause, reported as one.

    ``number`` is the same in every report of the run, from 1. ``kind`` names the common factor
    (``pair``, ``source``, ``destination``, ``zone`` ...), ``title`` is one line for people: cause,
    place and size. ``advice`` says what to do, ``members`` are the results it folds, and ``where``
    are the places that all of them leave possible. ``evidence`` is the file with packets of them,
    ``no_evidence`` says why there is none where packets were to be kept.
    ``stops`` is the most that one of them stops; None where no row says it. ``everything``: nothing
    that was probed gets through between its hosts. ``shown_by``: the member that shows the cause
    best, where that is not the first.
    """

    kind: str
    verdict: Verdict
    title: str
    advice: str
    where: tuple[Place, ...]
    rejected_by: str | None = None
    last_hop: str | None = None
    members: tuple[Result, ...]
    evidence: str | None = None
    number: int = 0
    stops: Weight | None = None
    everything: bool = False
    no_evidence: str | None = None
    shown_by: Result | None = None

    @property
    def speaker(self) -> Result:
        """The member that speaks for all."""
        return self.shown_by or self.members[0]

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that its flows start from or go to."""
        return frozenset(end for one in self.members for end in (one.source, one.destination))


class Summary(Struct, frozen=True):
    """How many flows (ports, not results) have each verdict; ``refusals``: passes that rest on one.

    ``accepted``, ``waived``, ``spared``, ``optional`` and ``known`` count the flows that did not
    pass and do not decide, each once; they are in ``counts`` too. ``deciding`` holds the counts of
    the flows that decide the exit status.
    """

    counts: dict[str, int]
    skipped: int
    refusals: int = 0
    deciding: dict[str, int] = field(default_factory=dict)
    waived: int = 0
    optional: int = 0
    accepted: int = 0
    known: int = 0
    spared: int = 0


class HostFacts(Struct, frozen=True):
    """What an agent said of its host: first the fields of its ``HelloLine``.

    ``python_sent``: it runs with a Python that travelled. ``sudo_failed``: it runs without the
    rights that the inventory asks for. ``held`` has a phrase for each holder of a port that the
    host needs; ``taken``, ``other_run``, ``unasked`` and ``doubtful`` those of ports that are in
    the way, or may be. ``strange``: a sentence for each address that is not as it should be;
    ``heard``: one for each router with virtual addresses that is none of the hosts. JSON leaves out
    what nobody said, which has its default.
    """

    SPARSE: ClassVar = True

    wire: int | None = None
    python: str | None = None
    pid: int | None = None
    uid: int | None = None
    user: str | None = None
    hostname: str | None = None
    kernel: str | None = None
    net_raw: bool | None = None
    low_ports: bool | None = None
    sees_owners: bool | None = None
    nofile: int | None = None
    cores: int | None = None
    echo: str | None = ""
    kubelet: bool | None = None
    node_ports: tuple[int, ...] | None = ()
    wall_s: float | None = None
    python_sent: bool = False
    sudo_failed: bool = False
    held: tuple[str, ...] | None = None
    unasked: tuple[str, ...] | None = None
    taken: tuple[str, ...] | None = None
    other_run: tuple[str, ...] | None = None
    doubtful: tuple[str, ...] | None = None
    strange: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()


NOTHING_SAID = HostFacts()


class HostReport(Struct, frozen=True, kw_only=True):
    """One host and its agent; ``cost`` has a sentence for each capability that missing rights cost.

    ``state``: ``agent``, ``none`` (declared destination only), ``failed``, ``lost``, ``unknown``
    (the run ended before); ``words`` has ssh's own words and the fix where it failed. ``roles`` are
    those of the matrices: its own first, then what they imply. ``addresses`` are those that its
    probes start from, as far as the inventory tells: of several of one family the kernel chooses.
    ``host_key``: ssh does not trust the key of a host whose start failed.
    ``zone`` is what the inventory says. ``named``: it gives names, which sources resolve; None:
    files of 0.1.0 do not say. ``start_s`` is how long its start took, successful or not; None where
    nothing was started.
    """

    name: LineText
    roles: tuple[LineText, ...] = field(default=())
    addresses: tuple[AddressText, ...] = field(default=())
    zone: LineText | None = None
    state: Literal["agent", "none", "failed", "lost", "unknown"]
    words: str = ""
    python: str | None = None
    user: str | None = None
    privileged: bool = False
    cost: tuple[str, ...] = ()
    facts: HostFacts = NOTHING_SAID
    start_s: float | None = None
    named: bool | None = None
    host_key: HostKey | None = None
