"""The inventory: which machines there are, what they are for, and how to get onto them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from netprobe.model.compared import PartlyCompared
from netprobe.model.shapes import AddressText, LineText

Family = Literal[4, 6]
VantageKind = Literal["local", "ssh", "command", "none"]


class Address(Struct, frozen=True):
    """An IP address (``family`` 4 or 6, text in its canonical form) or a name (``family`` None)."""

    text: AddressText
    family: Family | None


class Ssh(Struct, frozen=True):
    """How OpenSSH reaches a host; the user's own ssh configuration decides what is None here."""

    host: str
    user: str | None = None
    port: int | None = None
    options: tuple[str, ...] = ()


class Vantage(Struct, frozen=True):
    """A command that gives a Python on the host. ``command`` is the prefix for kind ``command``."""

    kind: VantageKind
    ssh: Ssh | None = None
    command: tuple[str, ...] = ()


class Proxy(Struct, frozen=True):
    """The proxy settings of the host's software: URLs, and the exceptions (Go's NO_PROXY)."""

    https_proxy: str | None = None
    http_proxy: str | None = None
    no_proxy: tuple[str, ...] = ()


class Health(Struct, frozen=True):
    """What a balancer asks its back ends: a path over HTTPS or HTTP, or only a connection.

    ``port``: where, if that is not the port that it balances. ``of``: the port that it balances;
    None: all of them.
    """

    kind: Literal["https", "http", "tcp"]
    path: LineText = ""
    port: int | None = None
    of: int | None = None


class NodeState(Struct, frozen=True):
    """What a cluster says of its node. ``system``, ``machine``: Go's words for the operating system
    and the processor (``linux``, ``amd64``), empty where it does not say. ``unready``: why it is
    not ready, empty where it is.
    """

    system: LineText = ""
    machine: LineText = ""
    unready: LineText = ""
    is_cordoned: bool = False


class Host(PartlyCompared, frozen=True):
    """One machine. ``source_addresses`` are the addresses its probes start from, one a family.

    ``place`` is its ``file:line:column`` in a YAML inventory, and empty for other sources.
    ``zone`` names the hosts that firewalls are supposed to treat alike.
    ``proxies`` are those of single services (``ignition``), which count before ``proxy``.
    ``own_vantage``: its vantage is said of itself, not of every host.
    ``balances``: the roles that it hands connections on to; ``health``: what it asks
    them. ``node``: what a cluster says of it, where its list of nodes is the inventory. ``closed``:
    why nothing can be started there, so that what its probes would show is not tested. ``free``:
    nobody has its addresses yet; ``vrid``: the id that its virtual router will have.
    """

    UNCOMPARED = ("own_vantage",)

    name: LineText
    addresses: tuple[Address, ...]
    roles: tuple[LineText, ...]
    vantage: Vantage
    become: Literal["sudo"] | None = None
    source_addresses: tuple[Address, ...] = ()
    proxy: Proxy | None = None
    place: str = ""
    zone: LineText | None = None
    proxies: tuple[tuple[str, Proxy], ...] = ()
    own_vantage: bool = False
    balances: tuple[LineText, ...] = ()
    health: tuple[Health, ...] = ()
    node: NodeState | None = None
    closed: LineText | None = None
    free: bool = False
    vrid: int | None = None

    @property
    def is_probed(self) -> bool:
        """Whether rows lead to it: not where nobody has its addresses, unless agents play those
        that stand behind it."""
        return not self.free or bool(self.balances)

    @property
    def may_start(self) -> bool:
        """Whether there is a way to start an agent on it."""
        return self.vantage.kind != "none" and self.closed is None

    def proxy_for(self, service: object) -> Proxy | None:
        """Give the proxy that software asks a service through; the service is a ``probe:``."""
        return next((proxy for name, proxy in self.proxies if name == service), self.proxy)

    def health_at(self, port: int) -> Health | None:
        """Give what it asks the back ends of a port that it balances; None: nobody says."""
        known = {one.of: one for one in self.health}
        return known.get(port, known.get(None))

    def list_back_ports(self, port: int) -> tuple[int, ...]:
        """List the ports of a back end: one that it balances, and that of the check."""
        health = self.health_at(port)
        if health is None or health.port in (None, port):
            return (port,)
        return (port, health.port or port)

    def balances_port(self, port: int) -> bool:
        """Tell whether it balances a port: where ``health`` names ports, those alone."""
        named = [one.of for one in self.health if one.of is not None]
        return bool(self.balances) and (not named or port in named)

    @property
    def probing_addresses(self) -> tuple[str, ...]:
        """The addresses that probes start from; a chosen one replaces its whole family."""
        chosen = {address.family for address in self.source_addresses}
        own = [one for one in self.addresses if one.family and one.family not in chosen]
        return tuple(address.text for address in (*self.source_addresses, *own))

    @property
    def listed_addresses(self) -> set[str]:
        """The IP addresses that the inventory gives it, as text."""
        known = (*self.addresses, *self.source_addresses)
        return {address.text for address in known if address.family is not None}


# The roles that a role of the inventory stands for, by its folded name.
RolesMap = Mapping[str, tuple[str, ...]]


class Taken(Struct, frozen=True):
    """Something that a manifest says, and what the run makes of it (``gives``).

    ``place`` is file:line:column, ``path`` such as spec.platform.type. No text holds a password.
    """

    place: str
    path: str
    value: str
    gives: str


class Inventory(Struct, frozen=True):
    """All hosts in file order, and the settings of the file (raw, checked by each matrix).

    ``taken`` is what manifests gave it. ``no_dhcp``: its networks should have no DHCP server.
    ``setting_places`` says where each setting stands, ``notes`` what a reader should know.
    ``roles_map`` is what the files say, and ``map_places`` where; once loaded, the hosts have the
    roles that it gives.
    """

    hosts: tuple[Host, ...]
    settings: Mapping[str, object] = field(default_factory=dict)
    setting_places: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    roles_map: RolesMap = field(default_factory=dict)
    map_places: Mapping[str, str] = field(default_factory=dict)
    taken: tuple[Taken, ...] = ()
    no_dhcp: bool = False
