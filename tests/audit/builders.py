"""Hosts, sockets and pods for tests of the audit, in few words."""

from __future__ import annotations

from pathlib import Path

from netprobe.agent.wire.host_messages import Sockets
from netprobe.agent.wire.parts import HeldSocket, SocketOwner
from netprobe.audit.compare import find_violations, ports_of
from netprobe.audit.declared import find_undeclared, find_unheld
from netprobe.audit.registry import Registry, registries
from netprobe.audit.sightings import HostView, read_view
from netprobe.load.matrix.chosen_settings import choose
from netprobe.load.matrix.file import load_matrices
from netprobe.model.audit import AuditFinding
from netprobe.model.inventory import Host, Inventory, Vantage
from netprobe.model.plan import Pod, PodPort

UID = "0f3c1d2e-0000-4000-8000-00000000000a"
POD_GROUP = f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/crio-{'c' * 64}.scope\n"
CLIENTS = (32768, 60999)

# A socket: ``tcp 0.0.0.0:9100``, and who has it; two names are two processes, "" is nobody.
Held = tuple[str, str]


def told(*held: Held, sees_all: bool = True, groups: str = "") -> Sockets:
    """What an agent says of these sockets; a process is called as it is and runs that program."""
    sockets: list[HeldSocket] = []
    owners: list[SocketOwner] = []
    for words, names in held:
        protocol, _, place = words.partition(" ")
        address, _, port = place.rpartition(":")
        mine = [name for name in names.split("+") if name]
        first = len(owners)
        owners += [
            SocketOwner(1 if name == "systemd" else 100 + first + at, name[:15], name, groups)
            for at, name in enumerate(mine)
        ]
        places = list(range(first, len(owners)))
        sockets.append(HeldSocket(protocol, address.strip("[]"), int(port), places))
    return Sockets(1, sockets, owners, sees_all, CLIENTS)


def registry_of(
    *matrices: str, roles: tuple[str, ...] = ("node",), sets: tuple[str, ...] = ()
) -> Registry:
    """What the matrices say about a host of these roles."""
    inventory = Inventory((Host("n0", (), roles, Vantage("local")),))
    chosen, _ = choose(load_matrices(matrices), inventory, sets)
    return registries(chosen, inventory)["n0"]


def site(folder: Path, rows: str, more: str = "") -> str:
    """A matrix file with one role ``node`` and these requirements."""
    path = folder / "site.yaml"
    path.write_text(
        "schema: netprobe.matrix/1\nname: site\ntitle: Site\nroles: {node: {}, db: {}}\n"
        "settings:\n  cni: {values: [a, b], default: a}\n"
        f'  version: {{type: version, default: "4.16"}}\n{more}requirements:\n{rows}'
    )
    return str(path)


def view_of(answer: Sockets, pods: tuple[Pod, ...] = ()) -> HostView:
    """The sockets of host n0."""
    return read_view("n0", answer, pods)


def findings(registry: Registry, answer: Sockets) -> list[AuditFinding]:
    """What the audit finds on a host with these sockets."""
    view = view_of(answer)
    return list(find_violations(view, registry, ports_of(view, registry)))


def kinds(registry: Registry, answer: Sockets) -> list[str]:
    """The kinds of what it finds, in order."""
    return [one.kind for one in findings(registry, answer)]


def pod(*ports: tuple[str, int], host_network: bool = True, running: bool = True) -> Pod:
    """The pod ``ns/web`` on node n0 that declares these ports."""
    declared = tuple(PodPort(protocol, number, "main") for protocol, number in ports)
    return Pod("ns/web", (UID,), "n0", (), host_network, running, declared)


def pod_findings(registry: Registry, answer: Sockets, *pods: Pod) -> list[AuditFinding]:
    """What the audit finds of pods."""
    view = view_of(answer, pods)
    given = (view, registry, ports_of(view, registry), pods)
    return [*find_undeclared(*given), *find_unheld(*given, pods)]
