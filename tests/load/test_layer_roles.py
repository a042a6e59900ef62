"""Beside a platform whose control planes are no nodes they are none for its layers."""

from __future__ import annotations

from netprobe.load.layer_roles import follow_platform, note_apart
from netprobe.model.inventory import Address, Host, Inventory, Vantage
from netprobe.model.matrix import CommonPart, Matrix, Role

CONTROLLER = Role("controller", common="control-plane")
WORKER = Role("worker", common="worker")
APART = (CONTROLLER, WORKER)
NODE = Role("node", common="node")
AS_NODES = (
    Role("server", common="control-plane", implies=("node",)),
    Role("agent", common="worker", implies=("node",)),
    NODE,
)
HOSTS = {
    "c1": ("controller",),
    "c2": ("controller", "k8s_cluster"),
    "c3": ("controller", "worker"),
    "c4": ("controller", "node"),
    "w1": ("worker", "k8s_cluster"),
}


def matrix(name: str, *roles: Role, layer: bool = False) -> Matrix:
    """A matrix with these roles."""
    return Matrix(name, name, {one.name: one for one in roles}, {}, (), layer=layer)


def implying(part: CommonPart) -> tuple[Role, ...]:
    """Roles of a layer, in which this part implies a node; of any name."""
    return (Role("chief", common=part, implies=("all",)), Role("all", common="node"))


LAYER = matrix(
    "cni",
    Role("control-plane", common="control-plane", implies=("node",)),
    Role("worker", common="worker", implies=("node",)),
    NODE,
    layer=True,
)


def nodes_beside(*platforms: Matrix) -> list[str]:
    """The hosts that are nodes for the layer."""
    layer = follow_platform([*platforms, LAYER])[-1]
    return [name for name, words in HOSTS.items() if "node" in layer.roles_of(words)]


def inventory() -> Inventory:
    """The hosts, as an inventory has them."""
    return Inventory(
        tuple(
            Host(name, (Address("10.0.0.1", 4),), roles, Vantage("local"))
            for name, roles in HOSTS.items()
        )
    )


def test_control_planes_that_are_no_nodes_are_none_for_a_layer() -> None:
    """But with the role worker or node of their own; a group of all hosts makes no node."""
    assert nodes_beside(matrix("k0s", *APART)) == ["c3", "c4", "w1"]


def test_what_says_nothing_of_it_changes_nothing() -> None:
    """Control planes that are nodes in one matrix, or of which no matrix says what they are."""
    own = matrix("own", CONTROLLER)  # rows of a site, for control planes alone
    for platforms in (
        [],
        [matrix("rke2", *AS_NODES)],
        [matrix("rke2", *AS_NODES), own],
        [own],
        [matrix("old", Role("master", implies=("node",)), Role("node"))],
        [matrix("k0s", *APART), matrix("site", *AS_NODES)],
        [matrix("compact", Role("boss", common="control-plane", implies=("worker",)), WORKER)],
    ):
        assert nodes_beside(*platforms) == list(HOSTS), [one.name for one in platforms]


def test_only_layers_follow_and_only_their_control_planes() -> None:
    """By the common part, whatever a role is called."""
    by_part = {
        part: follow_platform([matrix("k0s", *APART), matrix("l", *implying(part), layer=True)])[1]
        for part in ("control-plane", "worker")
    }
    assert by_part["control-plane"].roles["chief"].implies == ()
    assert by_part["worker"].roles["chief"].implies == ("all",)
    platforms = (matrix("k0s", *APART), matrix("own", *implying("worker")))
    assert follow_platform(platforms) == platforms


def test_a_note_names_whom_it_leaves_out() -> None:
    """And how a control plane that runs pods becomes one; no note where all are nodes."""
    given = [matrix("k0s", *APART), LAYER]

    assert list(note_apart(given, inventory())) == [
        "control planes of k0s are no nodes: rows of cni between nodes leave out c1, c2; a control "
        "plane that runs pods, too, needs the role worker beside its own"
    ]
    assert list(note_apart([matrix("rke2", *AS_NODES), LAYER], inventory())) == []
    assert list(note_apart(given[:1], inventory())) == []
