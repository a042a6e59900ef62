"""Whether matrices go together: notes name both sides of each contradiction."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from netprobe.model.matrix import (
    ChosenMatrix,
    ClaimRef,
    Matrix,
    Requirement,
    Role,
    Setting,
    SettingRef,
    SettingValue,
    choose_settings,
)
from tests.plan.conftest import requirement
from tests.plan.test_merge import HOSTS, KUBELET, layer, plan

VALUES = ("canal", "cilium", "none")
CNI = Setting("cni", "choice", "canal", VALUES)


def claiming(name: str, claims: Any, cni: SettingValue = "canal", **extra: Any) -> ChosenMatrix:
    """A matrix with these claims, and a setting ``cni``."""
    rows: tuple[Requirement, ...] = extra.pop("rows", (KUBELET,))
    roles = {"cp": Role("cp"), "wk": Role("wk"), "node": Role("node")}
    matrix = Matrix(name, name, roles, {"cni": CNI}, rows, claims=claims, **extra)
    return choose_settings(matrix, {"cni": cni})


def notes(*chosen: ChosenMatrix) -> list[str]:
    """The notes of the plan of these matrices."""
    return list(plan(*chosen).notes)


def test_claims_of_two_values_are_a_note_with_both() -> None:
    """It says which setting leaves it to the other; order does not matter."""
    platform = claiming("rke2", {"cni": SettingRef("cni")})
    cilium = claiming("cni-cilium", {"cni": "cilium"}, layer=True)

    assert notes(platform, cilium) == [
        "contradiction: rke2 says cni canal (setting cni), and cni-cilium says cni cilium, and a "
        "cluster has one cni: --set rke2:cni=none leaves it to the other"
    ]
    assert "--set rke2:cni=none" in notes(cilium, platform)[0]


def test_where_no_setting_leaves_it_to_the_other() -> None:
    """Both can be given the same value only where one of them has a setting for it."""
    calico, cilium = claiming("calico", {"cni": "calico"}), claiming("cilium", {"cni": "cilium"})
    port = Setting("port", "port", 443, ())
    matrix = replace(calico.matrix, claims={"port": SettingRef("port")}, settings={"port": port})
    by_setting, fixed = choose_settings(matrix, {"port": 443}), claiming("rke2", {"port": "6443"})

    assert notes(calico, cilium)[0].endswith("one cni: leave one of the matrices out")
    assert notes(by_setting, fixed)[0].endswith("of the matrices out, or give both the same")


def test_claims_that_agree_or_claim_nothing_go_together() -> None:
    """``none`` leaves the network to a layer, and false says that there is none."""
    cilium = claiming("cni-cilium", {"cni": "cilium"}, layer=True)
    for other in (
        claiming("rke2", {"cni": SettingRef("cni")}, "none"),
        claiming("rke2", {"cni": SettingRef("cni")}, "cilium"),
        claiming("rke2", {"cni": "custom"}),
        claiming("rke2", {"lb": "metallb"}),
        claiming("rke2", {}),
    ):
        assert notes(other, cilium) == []


def test_a_layer_alone_is_told_what_it_lacks() -> None:
    """One, or several, without any platform."""
    cni = claiming("cni-cilium", {}, layer=True)
    balancer = claiming("balancer", {}, layer=True)

    assert notes(cni) == [
        "cni-cilium is a layer: the rows of the platform are missing; give its matrix too "
        "(`netprobe matrix list` has the platforms)"
    ]
    assert "cni-cilium and balancer are layers: the rows" in notes(cni, balancer)[0]
    assert notes(cni, claiming("rke2", {})) == []


def test_what_is_left_to_another_matrix_is_missed_where_none_has_it() -> None:
    """A platform that leaves its network to a layer, without one; false needs no layer."""
    by_setting = claiming("rke2", {"cni": SettingRef("cni")}, "none")
    always = claiming("kubeadm", {"cni": "none"})
    cilium = claiming("cni-cilium", {"cni": "cilium"}, layer=True)

    assert notes(by_setting) == [
        "rke2 leaves the cni to another matrix (setting cni), and no chosen one claims it: without "
        "a layer its rows are missing (`netprobe matrix list` has the layers)"
    ]
    assert notes(always)[0].startswith("kubeadm leaves the cni to another matrix, and no chosen")
    assert len(notes(by_setting, always)) == 1
    for chosen in ((by_setting, cilium), (cilium, always), (claiming("x", {"lb": "false"}),)):
        assert notes(*chosen) == []


def test_two_ports_of_one_overlay_are_said_with_both_rows() -> None:
    """4789 beside 8472 on one pair: a cluster has one VXLAN."""
    rows = {
        port: requirement("vxlan", "node", "node", udp=((port, port),), probe="vxlan")
        for port in (4789, 8472)
    }
    both = [layer("cni-calico", rows[4789]), layer("cni-cilium", rows[8472])]

    assert notes(*both) == [
        "contradiction: cni-calico (vxlan) on udp 4789 and cni-cilium (vxlan) on udp 8472 are both "
        "vxlan from c1 to c2: a cluster has it on one port; see the settings of both"
    ]
    assert notes(both[0], layer("k3s", rows[4789])) == []
    apart = requirement("vxlan", "cp", "cp", udp=((8472, 8472),), probe="vxlan")
    workers = requirement("vxlan", "wk", "wk", udp=((4789, 4789),), probe="vxlan")
    assert notes(layer("a", apart), layer("b", workers)) == []
    assert notes(layer("a", rows[4789], rows[8472]), layer("b", KUBELET)) == []


def test_two_kinds_of_overlay_are_said_with_both_rows() -> None:
    """Of two matrices: IPIP here and VXLAN there. One matrix may have both."""
    vxlan = requirement("vxlan", "node", "node", udp=((4789, 4789),), probe="vxlan")
    ipip = requirement("ipip", "node", "node", ipproto=(4,), probe="ipip")

    assert notes(layer("rke2", vxlan), layer("cni-calico", ipip)) == [
        "contradiction: rke2 (vxlan) on udp 4789 and cni-calico (ipip) on ipproto/4 are vxlan and "
        "ipip from c1 to c2: a cluster has one of them, as a rule; see the settings of both"
    ]
    assert notes(layer("cni-calico", vxlan, ipip), layer("rke2", vxlan)) != []
    assert notes(layer("cni-calico", vxlan, ipip), layer("rke2", KUBELET)) == []


def test_a_setting_says_what_its_values_come_to() -> None:
    """Flannel's backends are Flannel, and none leaves it to the other."""
    for value, said in (("canal", "flannel"), ("none", None)):
        k3s = claiming("k3s", {"cni": ClaimRef("cni", "flannel")}, value)
        cilium = claiming("cni-cilium", {"cni": "cilium"}, layer=True)
        found = notes(k3s, cilium)
        assert bool(found) == bool(said)
        assert all(
            "k3s says cni flannel (setting cni), and cni-cilium says" in one for one in found
        )
        assert notes(k3s, claiming("talos", {"cni": "flannel"}, layer=True)) == []


def test_an_optional_row_does_not_decide() -> None:
    """Whichever of the two it is: the note names it, and asks nobody to waive it."""
    local = requirement("local", "node", "node", tcp=((10250, 10250),), expect="denied")
    for allowed, denied in ((True, False), (False, True)):
        rows = [
            replace(KUBELET, optional=allowed),
            replace(local, optional=denied),
        ]
        (note,) = notes(layer("base", rows[0]), layer("k3s", rows[1]))
        named = "base: kubelet" if allowed else "k3s: local"
        assert note.endswith(f"must not answer: {named} is optional, which decides nothing")


def test_required_here_and_denied_there_is_said_with_both_rows() -> None:
    """With the ports and hosts that both have, and both are probed."""
    denied = requirement("local", "node", "node", tcp=((10248, 10250),), expect="denied")
    both = [layer("base", KUBELET), layer("k3s", denied)]
    expected = [
        "contradiction: base: kubelet needs tcp 10250 of w1, w2, which k3s: local says must not "
        "answer: one of the two fails whatever is done; waive one of them, or correct a setting"
    ]

    assert notes(*both) == expected
    assert notes(*reversed(both)) == expected
    assert plan(*both).flow_count() == 4 + 3 * 4 * (len(HOSTS) - 1)
    other = requirement("local", "node", "node", tcp=((10248, 10249),), expect="denied")
    assert notes(layer("base", KUBELET), layer("k3s", other)) == []
