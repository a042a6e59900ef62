"""Roles of the inventory against those of the chosen matrices, and everything of a run at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from netprobe.errors import FileErrors, Problem
from netprobe.load.matrix.chosen_settings import choose
from netprobe.load.matrix.file import load_matrices
from netprobe.load.request import check_roles, load_request
from netprobe.model.inventory import Address, Host, Inventory, Vantage
from netprobe.model.matrix import ChosenMatrix

GOOD = Path(__file__).parent / "good"
BASE = str(GOOD / "base.yaml")


def chosen() -> tuple[ChosenMatrix, ...]:
    """The base matrix with its defaults."""
    return choose(load_matrices([BASE]), Inventory(()), [])[0]


def host(name: str, *roles: str, place: str = "") -> Host:
    """A host with these roles; with a place it stands in a file of ours."""
    return Host(name, (Address("10.0.0.1", 4),), roles, Vantage("none"), place=place)


def test_known_roles() -> None:
    """Roles that the matrix has need no word."""
    inventory = Inventory((host("a", "node", "master", place="f:1:1"),))

    assert check_roles(chosen(), inventory, []) == ()


def test_unknown_role_beside_a_known_one() -> None:
    """A role that no matrix knows is a note with the nearest names, once for all its hosts."""
    hosts = (
        host("a", "node", "nodes", "ldap", place="f:1:1"),
        host("b", "node", "nodes", "dns", place="f:2:1"),
    )

    assert check_roles(chosen(), Inventory(hosts, notes=("before",)), []) == (
        "before",
        'role "nodes" of 2 hosts is unknown to base; did you mean "node"?',
        "roles of the inventory that base does not know: ldap, dns",
    )


@pytest.mark.slow
def test_a_slip_among_several_unknown_roles() -> None:
    """Of several unknown roles, one that looks like a known role is told as a slip."""
    problems: list[Problem] = []
    check_roles(chosen(), Inventory((host("a", "x", "mastr", place="f:3:5"),)), problems)

    assert [str(one) for one in problems] == [
        'f:3:5: host "a" has no role of base: none of its roles "x", "mastr" is known, did you '
        'mean "master"? (`roles_map:` or --role says what another name stands for)'
    ]


def test_host_without_known_role() -> None:
    """A host of our own inventory none of whose roles is known is an error at its place."""
    hosts = (
        host("a", "mastr", place="f:3:5"),
        host("b", "x", "y", place="f:4:5"),
        host("c", "node"),
    )

    problems: list[Problem] = []
    check_roles(chosen(), Inventory(hosts), problems)

    assert [str(problem) for problem in problems] == [
        'f:3:5: host "a" has no role of base: unknown role "mastr", did you mean "master"? '
        "(`roles_map:` or --role says what another name stands for)",
        'f:4:5: host "b" has no role of base: none of its roles "x", "y" is known, '
        "expected one of: master, node "
        "(`roles_map:` or --role says what another name stands for)",
    ]


def test_a_role_of_a_layer_names_the_layer() -> None:
    """It may have been forgotten; a part that every platform has names none."""
    problems: list[Problem] = []
    hosts = (host("a", "api_lb", place="f:3:5"), host("b", "workers", place="f:4:5"))
    check_roles(chosen(), Inventory(hosts), problems)

    first, second = map(str, problems)
    assert first.endswith("; the layer openshift-load-balancer has it: choose that matrix, too")
    assert "layer" not in second


def test_an_unknown_role_of_the_map_is_told_at_its_line() -> None:
    """One line is wrong, however many hosts have the role; what they say themselves is not."""
    hosts = (
        host("a", "nod", place="f:3:5"),
        host("b", "nod", place="f:4:5"),
        host("c", "mastr", place="f:5:5"),
    )
    inventory = Inventory(
        hosts, roles_map={"kube-node": ("nod",)}, map_places={"kube-node": "f:1:5"}
    )

    problems: list[Problem] = []
    check_roles(chosen(), inventory, problems)

    assert [str(problem) for problem in problems] == [
        'f:1:5: roles_map gives "a" no role of base: unknown role "nod", did you mean "node"?',
        'f:5:5: host "c" has no role of base: unknown role "mastr", did you mean "master"? '
        "(`roles_map:` or --role says what another name stands for)",
    ]


def test_ansible_host_without_known_role() -> None:
    """Ansible inventories hold hosts that are none of our business: a note, no error."""
    problems: list[Problem] = []
    notes = check_roles(chosen(), Inventory((host("a", "webservers"), host("b"))), problems)

    assert problems == []
    assert notes == ("roles of the inventory that base does not know: webservers",)


def test_request() -> None:
    """Matrix, inventory and settings of a run come together."""
    matrices, inventory, notes = load_request(
        [BASE], [str(GOOD / "inventory.yaml")], ["cni=flannel"]
    )

    assert matrices[0].settings["cni"] == "flannel"
    assert matrices[0].settings["modules"] == ("openvpn",)
    assert len(inventory.hosts) == 5
    assert notes == ()


def test_problems_of_a_request_at_once(tmp_path: Path) -> None:
    """Matrix, inventory, roles and --set are judged in one go."""
    inventory = tmp_path / "i.yaml"
    inventory.write_text(
        "schema: netprobe.inventory/1\nsettings: {cni: calico}\nhosts:\n"
        "  a: {address: 10.0.0.1, roles: [nod]}\n"
    )

    with pytest.raises(FileErrors) as caught:
        load_request([BASE], [str(inventory)], ["x=y"])
    assert [(p.file, p.line) for p in caught.value.problems] == [
        ("--set x=y", 0),
        (str(inventory), 2),
        (str(inventory), 4),
    ]

    with pytest.raises(FileErrors) as caught:
        load_request(["./no.yaml"], [str(tmp_path / "no.yaml")], [])
    assert len(caught.value.problems) == 2


def test_no_inventory_and_a_broken_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That there is no inventory does not hide what is wrong with the matrix."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NETPROBE_INVENTORY", raising=False)

    with pytest.raises(FileErrors, match=r"there is no such file(.|\n)*no inventory: give one"):
        load_request(["./no.yaml"], [], [])
