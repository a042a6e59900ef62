"""The nodes of a cluster as an inventory: what ``kubectl get nodes -o json`` printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType, convert
from msgspec import ValidationError as WrongShape

from netprobe.errors import Problem
from netprobe.load.inventory.addresses import parse_ip
from netprobe.load.yaml.wording import quoted, what_it_is
from netprobe.model.inventory import Address, Host, Inventory, NodeState, Ssh, Vantage
from netprobe.model.json_text import MAX_CHARACTERS, WrongJson, parse_json
from netprobe.model.matrix import COMMON_WORDS, fold_role
from netprobe.model.names import names_text
from netprobe.model.printable import clean
from netprobe.model.shapes import LINE

EXPECTED = "expected what `kubectl get nodes -o json` prints"
MOST_NODES_BYTES = MAX_CHARACTERS
NAMES_SHOWN = 5
MOST_WORDS = 200

# node-role.kubernetes.io/worker, and other vendors' (node-role.deckhouse.io/frontend).
_ROLE_PREFIX = "node-role."
_OLD_ROLE = "kubernetes.io/role"
_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
# Installers label control planes always, and workers often not.
_CONTROL_PLANE = frozenset(COMMON_WORDS["control-plane"])
_ETCD, _WORKER, _NODE = "etcd", "worker", "node"
# An operating system that netprobe's agent has been written for.
LINUX = "linux"


class _Meta(Struct, frozen=True):
    """``metadata`` of a Node."""

    name: str
    labels: dict[str, str] = {}


class _Spec(Struct, frozen=True):
    """``spec`` of a Node."""

    unschedulable: bool = False


class _NodeAddress(Struct, frozen=True):
    """One of the addresses that the kubelet, or the cloud, has given it."""

    type: str
    address: str


class _Condition(Struct, frozen=True):
    """One of the conditions: ``Ready`` is the one that counts."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class _NodeInfo(Struct, frozen=True, rename="camel"):
    """``status.nodeInfo``."""

    operating_system: str = ""
    architecture: str = ""


class _Status(Struct, frozen=True, rename="camel"):
    """``status`` of a Node."""

    addresses: list[_NodeAddress] | None = None
    conditions: list[_Condition] | None = None
    node_info: _NodeInfo | UnsetType = UNSET


class _Node(Struct, frozen=True):
    """The fields of the API's Node that say something here; it has many more."""

    metadata: _Meta
    spec: _Spec = _Spec()
    status: _Status = _Status()


def find_objects(raw: bytes) -> Mapping[str, Any] | None:
    """Give an object, or a list of objects, of the Kubernetes API; None where it is no JSON of
    any."""
    if not raw.lstrip().startswith(b"{") or b'"apiVersion"' not in raw:
        return None
    try:
        found = parse_json(raw)
    except WrongJson:
        return None
    return found if isinstance(found, dict) and {"apiVersion", "kind"} <= found.keys() else None


def read_nodes(path: str, found: Mapping[str, Any], problems: list[Problem]) -> Inventory | None:
    """Read nodes; None after a problem was noted."""
    before = len(problems)
    items = found.get("items") if str(found["kind"]).endswith("List") else [found]
    if not isinstance(items, list) or not items:
        problems.append(Problem(path, 0, 0, f"there is no node in it, {EXPECTED}"))
        return None
    nodes = [_convert_node(path, item, problems) for item in items]
    if len(problems) > before:
        return None
    notes: list[str] = []
    hosts = [_make_host(path, node, notes, problems) for node in nodes if node is not None]
    kept = tuple(host for host in hosts if host is not None)
    return None if len(problems) > before else Inventory(kept, notes=(*notes, *_note_states(kept)))


def _convert_node(path: str, item: object, problems: list[Problem]) -> _Node | None:
    """Read one object; None after a problem was noted."""
    try:
        if not isinstance(item, dict):
            raise WrongShape(f"{what_it_is(item)} and no Node")
        if item.get("kind", "Node") != "Node":
            raise WrongShape(f"{quoted(item['kind'])} is another kind of object than Node")
        node = convert(item, _Node)
    except WrongShape as error:
        problems.append(Problem(path, 0, 0, f"{error}, {EXPECTED}"))
        return None
    if not node.metadata.name or not LINE.fits(node.metadata.name):
        words = f"{quoted(node.metadata.name)} is no name of a node, {EXPECTED}"
        problems.append(Problem(path, 0, 0, words))
        return None
    return node


def _make_host(path: str, node: _Node, notes: list[str], problems: list[Problem]) -> Host | None:
    """Give a node's host; None where it has no address to probe, which a note or a problem says."""
    name, labels = node.metadata.name, node.metadata.labels
    addresses: dict[Address, None] = {}
    for one in node.status.addresses or ():
        if one.type == "InternalIP":
            try:
                addresses[parse_ip(one.address)] = None
            except ValueError as error:
                problems.append(Problem(path, 0, 0, f"node {name}: its InternalIP {error}"))
    if not addresses:
        notes.append(f"node {name} has no InternalIP, so that no flow starts or ends there")
        return None
    state = _read_state(node)
    closed = None
    if state.system not in ("", LINUX):
        closed = f"{name} runs {state.system}, and netprobe's agent needs Linux"
    first = next(iter(addresses))
    zone = next((labels[key] for key in _ZONES if labels.get(key)), None)
    return Host(
        name, tuple(addresses), tuple(dict.fromkeys(_list_roles(labels))),
        Vantage("ssh", ssh=Ssh(first.text)), zone=zone and clean(zone), node=state, closed=closed,
    )  # fmt: skip


def _list_roles(labels: Mapping[str, str]) -> Iterator[str]:
    """List the roles that its labels name; the matrix's words and aliases say what they mean.

    What no label calls a control plane is a worker, too, and what is etcd's alone is a node.
    """
    roles = [key.partition("/")[2] for key in labels if key.startswith(_ROLE_PREFIX)]
    roles += [labels[_OLD_ROLE]] if labels.get(_OLD_ROLE) else []
    roles = [clean(role) for role in roles if role]
    yield from roles
    if _CONTROL_PLANE.isdisjoint(map(fold_role, roles)):
        yield _NODE if roles == [_ETCD] else _WORKER


def _read_state(node: _Node) -> NodeState:
    info, labels = node.status.node_info, node.metadata.labels
    known = info if isinstance(info, _NodeInfo) else _NodeInfo()
    return NodeState(
        system=clean(known.operating_system or labels.get("kubernetes.io/os", "")),
        machine=clean(known.architecture or labels.get("kubernetes.io/arch", "")),
        unready=_word_unready(node.status.conditions or ()),
        is_cordoned=node.spec.unschedulable,
    )


def _word_unready(conditions: Sequence[_Condition]) -> str:
    """Say why a node is not ready; nothing where it is."""
    ready = next((one for one in conditions if one.type == "Ready"), None)
    if ready is None:
        return "no kubelet has reported"
    if ready.status == "True":
        return ""
    said = ready.message or ready.reason or f"Ready is {ready.status}"
    return clean(" ".join(said.split()))[:MOST_WORDS].removesuffix(".")


def _note_states(hosts: Iterable[Host]) -> Iterator[str]:
    """Note which nodes the cluster itself does not use: what fails there may be known already."""
    states = [(host.name, host.node) for host in hosts if host.node is not None]
    unready: dict[str, list[str]] = {}
    for name, state in states:
        if state.unready:
            unready.setdefault(state.unready, []).append(name)
    for why, names in unready.items():
        yield f"the cluster calls {names_text(names, NAMES_SHOWN)} not ready: {why}"
    cordoned = [name for name, state in states if state.is_cordoned]
    if cordoned:
        yield f"cordoned in the cluster: {names_text(cordoned, NAMES_SHOWN)}"
