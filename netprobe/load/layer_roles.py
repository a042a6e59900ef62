"""Layers beside a platform whose control planes are no nodes: they are none for the layers, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from netprobe.load.yaml.wording import listed
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import CommonPart, Matrix, Role
from netprobe.model.names import names_text

NAMES_SHOWN = 5


def follow_platform(matrices: Sequence[Matrix]) -> tuple[Matrix, ...]:
    """Give the matrices, in which a layer's control plane implies a node only if the platform's is.

    Of a platform without control planes, or without workers, it is not known what they are.
    """
    if _find_apart(matrices) is None:
        return tuple(matrices)
    return tuple(_free_control_planes(one) if one.layer else one for one in matrices)


def note_apart(given: Sequence[Matrix], inventory: Inventory) -> Iterator[str]:
    """Note the control planes that a layer, as it was given, would take for nodes."""
    platform = _find_apart(given)
    if platform is None:
        return
    freed = [(one, _free_control_planes(one)) for one in given if one.layer]
    hosts: dict[str, None] = {}
    layers: dict[str, None] = {}
    for layer, followed in freed:
        for host in inventory.hosts:
            if layer.roles_of(host.roles) != followed.roles_of(host.roles):
                hosts[host.name] = layers[layer.name] = None
    if hosts:
        worker = next(one.name for one in platform.roles.values() if one.common == "worker")
        yield (
            f"control planes of {platform.name} are no nodes: rows of {listed(layers)} between "
            f"nodes leave out {names_text([*hosts], NAMES_SHOWN)}; a control plane that runs pods, "
            f"too, needs the role {worker} beside its own"
        )


def _find_apart(matrices: Sequence[Matrix]) -> Matrix | None:
    """Find the platform whose control planes are no nodes; None where those of another one are."""
    known = [(one, _parts_of_control_planes(one)) for one in matrices if not one.layer]
    if any({"node", "worker"} & parts for _, parts in known):
        return None
    apart = (one for one, parts in known if parts and _has_workers(one))
    return next(apart, None)


def _parts_of_control_planes(matrix: Matrix) -> set[CommonPart]:
    """Give the common parts that a control plane plays; none where there is no control plane."""
    names = [one.name for one in matrix.roles.values() if one.common == "control-plane"]
    parts = {matrix.roles[name].common for name in matrix.with_implied(names)}
    return {part for part in parts if part}


def _has_workers(matrix: Matrix) -> bool:
    return any(one.common == "worker" for one in matrix.roles.values())


def _free_control_planes(layer: Matrix) -> Matrix:
    return replace(
        layer, roles={name: _free_role(layer, role) for name, role in layer.roles.items()}
    )


def _free_role(layer: Matrix, role: Role) -> Role:
    """Give the role as it is beside such a platform.

    Words for all hosts of a cluster (``k8s_cluster``) mean no node there: control planes have them.
    """
    if role.common == "node":
        return replace(role, common=None)
    if role.common != "control-plane":
        return role
    kept = tuple(name for name in role.implies if layer.roles[name].common != "node")
    return replace(role, implies=kept)
