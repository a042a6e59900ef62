"""The matrix: what a platform requires of its network, as read from a file and not yet resolved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct, field

from netprobe.model.compared import PartlyCompared
from netprobe.model.inventory import Family
from netprobe.model.ports import PortRange, Ports
from netprobe.model.quality import QualityLimits
from netprobe.model.shapes import Name

SettingType = Literal["choice", "list", "version", "port", "string", "boolean"]
SettingValue = str | bool | int | tuple[str, ...]
Expect = Literal["allowed", "denied"]
# The addresses of its host that a row's program listens on: all of them, or one alone.
Binds = Literal["all", "address"]
# How long a row's balancer may keep a client on one back end: not at all.
Persistence = Literal["none"]
# What does not work while a row fails, from the most to the least: the installation; that nodes
# join, or stay; pods and what they reach; a feature of the platform; its monitoring.
Weight = Literal["installation", "nodes", "pods", "feature", "monitoring"]
WEIGHTS: Final[tuple[Weight, ...]] = get_args(Weight)

# Values of ``claims`` by which a matrix leaves a part of the cluster to another one.
# Of most of them it is there all the same, and another matrix has its rows.
LEFT_TO_ANOTHER: Final = ("none", "custom", "third-party")
CLAIMS_NOTHING: Final = (*LEFT_TO_ANOTHER, "false", "")

# Parts that hosts play in every platform, and the words that inventories of many tools have for
# them, folded.
CommonPart = Literal["control-plane", "worker", "node"]
COMMON_WORDS: Final[Mapping[CommonPart, tuple[str, ...]]] = {
    "control-plane": (
        "control-plane", "controlplane", "kube-control-plane", "kube-master", "master", "masters",
        "server", "servers", "controller", "controllers", "initial-controller", "management",
        "rke2-server", "rke2-servers", "k3s-server", "k3s-servers", "k3s-master", "k3s-masters",
    ),
    "worker": (
        "worker", "workers", "agent", "agents", "compute", "kube-node", "kube-worker",
        "rke2-agent", "rke2-agents", "k3s-agent", "k3s-agents",
    ),
    "node": ("node", "nodes", "cluster", "k8s-cluster", "k3s-cluster", "rke2-cluster"),
}  # fmt: skip

# A host name as it goes into a ClientHello; the last label of a name is never a number.
DNS_NAME = re.compile(
    r"(?=.{1,253}\Z)([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*"
    r"(?!\d+\Z)[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
)


class Role(Struct, frozen=True):
    """A part that hosts play; ``implies`` names further roles that such a host has too.

    ``existing``: its services run before the installation. ``aliases`` are the names that
    inventories of other tools give it; of a ``common`` part these are the words of all such tools,
    too, unless something else in the matrix has them. ``vantage`` none: nothing can run there,
    unless the inventory says of a host how a probe starts on it.
    """

    name: str
    description: str = ""
    implies: tuple[str, ...] = ()
    existing: bool = False
    aliases: tuple[str, ...] = ()
    common: CommonPart | None = None
    vantage: Literal["none"] | None = None


def fold_role(name: str) -> str:
    """Give the form in which names of roles are compared: Ansible allows no ``-`` in groups."""
    return name.replace("_", "-")


class SettingRef(Struct, frozen=True):
    """A port, name or default that is the value of a setting: ``{setting: konnectivity-port}``."""

    setting: str


class ClaimRef(SettingRef, frozen=True):
    """``{setting: flannel-backend, says: flannel}``: what every value but ``none`` comes to."""

    says: str


class Setting(Struct, frozen=True):
    """Something the user says of the installation.

    ``values`` limits a ``choice`` or the elements of a ``list``. The default is typed: ``str`` for
    choice, string and version, ``tuple[str, ...]`` for list, ``int`` for port, else ``bool``; or
    it is the value of another setting, whose own default is none of another. ``resolves_to``: the
    value is a DNS name that name servers are asked for, and these are the roles whose addresses it
    has (none: any addresses); None: it is no such name.
    """

    name: str
    type: SettingType
    default: SettingValue | SettingRef
    values: tuple[str, ...] = ()
    description: str = ""
    resolves_to: tuple[str, ...] | None = None


PortEntry = PortRange | SettingRef


class Condition(Struct, frozen=True):
    """Keys AND, listed values OR. ``terms`` maps a setting to the values that satisfy it.

    For a ``version`` setting a value is a range such as ``>=4.10,<4.16``. No terms: always holds
    (for ``when``) or never (for ``unless``).
    """

    terms: tuple[tuple[str, tuple[str | bool | int, ...]], ...] = ()


class Warn(Struct, frozen=True):
    """A sentence on the results while ``when`` holds. It never changes a verdict."""

    text: str
    when: Condition = Condition()


class HttpProbe(Struct, frozen=True):
    """An HTTP request that a matrix describes, and the answer that is right.

    ``status`` are ranges of right statuses; ``header`` and ``body`` are regular expressions that
    must match somewhere, or texts that must occur. ``tls`` None: with TLS and without are both
    right. ``http2``: the answer must come over HTTP/2.
    """

    path: str = "/"
    status: Ports = ((200, 299),)
    header: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    tls: bool | None = None
    http2: bool = False

    def __str__(self) -> str:
        return f"GET {self.path}"

    def to_file(self) -> dict[str, Any]:
        """Give the words of a matrix file."""
        found = {
            "path": self.path,
            "status": [low if low == high else f"{low}-{high}" for low, high in self.status],
            "header": dict(self.header),
            "body": self.body,
            "tls": self.tls,
            "http2": self.http2,
        }
        return {"http": {key: value for key, value in found.items() if value not in (None, {})}}


# What ``probe:`` says: a name of ``netprobe.protocols``, or a request of the matrix's own.
AnyProbe = str | HttpProbe


def probe_to_file(probe: AnyProbe | None) -> str | dict[str, Any] | None:
    """Give the value of ``probe:`` in a matrix file."""
    return probe.to_file() if isinstance(probe, HttpProbe) else probe


class Keepalive(Struct, frozen=True):
    """After how many seconds a row's programs send something over a silent connection; at least one
    is known. ``tcp_s``: keepalives of the kernel, which a proxy that ends TCP does not count."""

    data_s: int | None = None
    tcp_s: int | None = None

    @property
    def times_s(self) -> tuple[int, ...]:
        """All times that are known."""
        return tuple(one for one in (self.data_s, self.tcp_s) if one is not None)

    def to_file(self) -> str | dict[str, str]:
        """Give the value of ``keepalive:`` in a matrix file."""
        if self.tcp_s is None:
            return write_time(self.data_s or 0)
        known = {"data": self.data_s, "tcp": self.tcp_s}
        return {key: write_time(one) for key, one in known.items() if one is not None}


def write_time(seconds: int) -> str:
    """Write a time as matrix files have it: ``90s``, ``1m``, ``1h``."""
    for unit, length_s in (("h", 3600), ("m", 60)):
        if seconds % length_s == 0:
            return f"{seconds // length_s}{unit}"
    return f"{seconds}s"


def rank_weight(weight: Weight | None) -> int:
    """Give the place of what is stopped, from 0 for the most; last of what nobody says."""
    return len(WEIGHTS) if weight is None else WEIGHTS.index(weight)


class Stops(Struct, frozen=True):
    """What a failing row stops; ``reason`` is empty where the platform's document says it."""

    weight: Weight
    reason: str = ""


class Requirement(PartlyCompared, frozen=True):
    """One line of a matrix: every source role must (or must not) reach every destination role.

    ``sni`` is the name that TLS asks for, where the service shares its address with others.
    ``existing``: the service runs before the installation (None: as the role to reach says).
    ``process`` names the programs that may hold the port before the installation, ``owner`` those
    that hold it once the platform runs. ``binds``: the addresses of its host that its program
    listens on; None where nobody says it. ``family``: it is about addresses of this family alone.
    ``stops``: what does not work while it fails; None where nobody says it. ``any_of``: of all
    rows of this name one that passes is enough for a pair of hosts. ``multicast``: the group that
    its packets go to in truth, which no probe proves. ``quality``: how good the way
    must be. ``keepalive``: how often its programs send something over a connection that is
    silent. ``persistence``: whether its document forbids that the balancer that it leads to keeps
    clients on one back end. ``place`` is its ``file:line:column``.
    """

    UNCOMPARED = ("place",)

    id: Name
    sources: tuple[Name, ...]
    destinations: tuple[Name, ...]
    tcp: tuple[PortEntry, ...] = ()
    udp: tuple[PortEntry, ...] = ()
    icmp: bool = False
    ipproto: tuple[int, ...] = ()
    purpose: str = ""
    row: str = ""
    when: Condition = Condition()
    unless: Condition = Condition()
    optional: bool = False
    expect: Expect = "allowed"
    probe: AnyProbe | None = None
    warnings: tuple[Warn, ...] = ()
    sni: str | SettingRef | None = None
    existing: bool | None = None
    process: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    binds: Binds | None = None
    family: Family | None = None
    stops: Stops | None = None
    any_of: Name | None = None
    multicast: str | None = None
    quality: QualityLimits | None = None
    keepalive: Keepalive | None = None
    persistence: Persistence | None = None
    place: str = ""

    @property
    def weight(self) -> Weight | None:
        """What it stops, without the reason."""
        return self.stops.weight if self.stops else None


class DocumentedPorts(Struct, frozen=True):
    """Ports that the document sets apart (a range to use, ports given up), while ``when`` holds."""

    tcp: tuple[PortEntry, ...] = ()
    udp: tuple[PortEntry, ...] = ()
    purpose: str = ""
    when: Condition = Condition()


class DocumentSource(Struct, frozen=True):
    """A file that the rows of a matrix come from, as it stood at a commit of a repository.

    ``hash`` is that of the cells of its tables; empty where nobody says it. ``note`` is what else
    a reader should know of it.
    """

    repository: str
    path: str
    commit: str
    hash: str = ""
    note: str = ""


class Waiver(Struct, frozen=True):
    """A requirement that the user accepts as it is: reported, does not decide the exit status.

    ``until`` is an ISO date, the last day on which it holds; None: it does not expire.
    """

    requirement: str
    reason: str
    until: str | None = None


class Matrix(Struct, frozen=True):
    """A named list of requirements for one platform.

    ``local``: a host is tested against its own address where it is source and destination.
    ``document`` holds title, publisher and the ISO date ``retrieved``, as the file says.
    ``sources`` are the files of the document.
    ``ranges`` are documented as open between nodes, ``retired`` ports belong to nobody any more.
    ``overlay_mtu``: that of the pods' network; None: what the interface sends less the headers.
    ``layer``: it is a part of a platform, whose other rows are those of another matrix. ``claims``
    are what the cluster has one of (its CNI), and which one it is here.
    """

    name: str
    title: str
    roles: Mapping[str, Role]
    settings: Mapping[str, Setting]
    requirements: tuple[Requirement, ...]
    document: Mapping[str, str] = field(default_factory=dict)
    local: bool = False
    waivers: Mapping[str, Waiver] = field(default_factory=dict)
    ranges: tuple[DocumentedPorts, ...] = ()
    retired: tuple[DocumentedPorts, ...] = ()
    overlay_mtu: int | None = None
    sources: tuple[DocumentSource, ...] = ()
    layer: bool = False
    claims: Mapping[str, str | SettingRef] = field(default_factory=dict)

    def with_implied(self, roles: Iterable[str]) -> tuple[str, ...]:
        """Give these roles and all that they imply, transitively; unknown ones are left out."""
        found: dict[str, None] = {}
        todo = list(roles)
        for role in todo:  # it grows meanwhile
            if role in self.roles and role not in found:
                found[role] = None
                todo.extend(self.roles[role].implies)
        return tuple(found)

    def roles_of(self, words: Iterable[str]) -> tuple[str, ...]:
        """Give the roles that these words of an inventory mean, and all that they imply."""
        meant = self.role_words()
        return self.with_implied(meant.get(fold_role(word), "") for word in words)

    def role_words(self) -> dict[str, str]:
        """Give the role that each word of an inventory means, by the folded word."""
        roles = self.roles.values()
        common = ((word, one.name) for one in roles for word in _common_words(one))
        aliases = ((word, role.name) for role in roles for word in role.aliases)
        return {
            fold_role(word): name
            for word, name in (*common, *aliases, *((name, name) for name in self.roles))
        }

    def words_of(self, role: str) -> tuple[str, ...]:
        """Give the other words of inventories that mean a role."""
        one, meant = self.roles[role], self.role_words()
        common = [word for word in _common_words(one) if meant[word] == role]
        words = dict.fromkeys((*one.aliases, *common))
        return tuple(word for word in words if fold_role(word) != fold_role(role))


def _common_words(role: Role) -> tuple[str, ...]:
    return () if role.common is None else COMMON_WORDS[role.common]


class ChosenMatrix(Struct, frozen=True):
    """A matrix with the value of every one of its settings, as one run uses it."""

    matrix: Matrix
    settings: Mapping[str, SettingValue]

    def read_claim(self, name: str) -> str:
        """Give what the matrix says of what a cluster has one of; empty where it says nothing."""
        claim = self.matrix.claims.get(name, "")
        if not isinstance(claim, SettingRef):
            return claim
        value = self.settings[claim.setting]
        if isinstance(value, bool):
            text = str(value).lower()
        else:
            text = ",".join(value) if isinstance(value, tuple) else str(value)
        return claim.says if isinstance(claim, ClaimRef) and text not in CLAIMS_NOTHING else text


def choose_settings(matrix: Matrix, given: Mapping[str, SettingValue]) -> ChosenMatrix:
    """Give the matrix with these values; a setting that is not among them has its default."""
    values = {name: given.get(name, setting.default) for name, setting in matrix.settings.items()}
    plain = {name: value for name, value in values.items() if not isinstance(value, SettingRef)}
    return ChosenMatrix(
        matrix,
        {
            name: plain[value.setting] if isinstance(value, SettingRef) else value
            for name, value in values.items()
        },
    )
