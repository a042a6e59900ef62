"""Settings of a run: default, inventory, ``--set KEY=``, ``--set MATRIX:KEY=``, in this order."""

from __future__ import annotations

from pathlib import Path

import pytest

from netprobe.errors import FileErrors
from netprobe.load.inventory.file import read_inventory
from netprobe.load.matrix.chosen_settings import choose
from netprobe.load.matrix.file import load_matrices
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import ChosenMatrix, SettingValue

BASE = Path(__file__).parents[1] / "good" / "base.yaml"
HOST = "hosts: {n: {address: 10.0.0.1, roles: [node]}}\n"


def chosen(*sets: str, settings: dict[str, object] | None = None) -> dict[str, SettingValue]:
    """The settings of the base matrix after these."""
    (one,), _ = choose(load_matrices([str(BASE)]), Inventory((), settings or {}), sets)
    return dict(one.settings)


def both(*sets: str) -> tuple[ChosenMatrix, ...]:
    """Two bundled matrices that share settings, with these."""
    return choose(load_matrices(["hypershift-hcp", "okd-hcp"]), Inventory(()), sets)[0]


def test_defaults() -> None:
    """Without a word every setting has the matrix's default."""
    assert chosen() == {
        "cni": "cilium",
        "modules": ("openvpn", "metallb"),
        "version": "4.20",
        "peer-port": 2380,
        "hostname": "",
        "private": False,
        "on": True,
    }


def test_order() -> None:
    """The inventory beats the default, --set beats the inventory, and the last --set wins."""
    inventory: dict[str, object] = {"cni": "flannel", "peer-port": 1}

    assert chosen(settings=inventory)["cni"] == "flannel"
    assert chosen("cni=flannel", "cni=cilium", settings=inventory)["cni"] == "cilium"
    assert chosen("base:cni=cilium", "cni=flannel", settings=inventory)["cni"] == "cilium"
    assert chosen("peer-port=7", settings=inventory)["peer-port"] == 7


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("modules=metallb", "modules", ("metallb",)),
        ("modules= metallb , openvpn ", "modules", ("metallb", "openvpn")),
        ("modules=", "modules", ()),
        ("version=4.10", "version", "4.10"),
        ("hostname=a=b,c:d", "hostname", "a=b,c:d"),
        ("private=true", "private", True),
        ("private=no", "private", False),
        ("base:peer-port=65535", "peer-port", 65535),
    ],
)
def test_texts(text: str, key: str, value: SettingValue) -> None:
    """The text of --set is read by the setting's type."""
    assert chosen(text)[key] == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cni=calico", 'setting "cni" of base: unknown value "calico", '
         "expected one of: cilium, flannel"),
        ("modules=metalb", 'setting "modules" of base: unknown value "metalb", '
         'did you mean "metallb"?'),
        ("modules=openvpn,openvpn", 'setting "modules" of base: "openvpn" stands in the list '
         "twice, expected it once"),
        ("peer-port=0", 'setting "peer-port" of base: 0 is no port, expected 1 to 65535'),
        ("peer-port=x", 'setting "peer-port" of base: "x" is text, expected a port (1 to 65535)'),
        ("private=maybe", 'setting "private" of base: "maybe" is no boolean, '
         "expected true or false"),
        ("version=new", 'setting "version" of base: "new" is no version, '
         "expected numbers and dots such as 4.20"),
        ("cnii=cilium", 'unknown setting "cnii", did you mean "cni"?'),
        ("bas:cni=cilium", 'unknown matrix "bas", did you mean "base"?'),
        ("base:cnii=cilium", 'unknown setting "cnii", did you mean "cni"?'),
        ("cni", "this sets nothing, expected KEY=VALUE or MATRIX:KEY=VALUE"),
        ("=x", "this sets nothing, expected KEY=VALUE or MATRIX:KEY=VALUE"),
    ],
)  # fmt: skip
def test_bad_texts(text: str, words: str) -> None:
    """What --set cannot mean is said, with what it could."""
    with pytest.raises(FileErrors) as caught:
        chosen(text)

    assert str(caught.value) == f"--set {text}: {words}"


def test_several_matrices() -> None:
    """KEY=VALUE reaches every matrix that has the key, MATRIX:KEY=VALUE one."""
    first, second = both("publishing=nodeport", "okd-hcp:phase=post-bootstrap", "platform=kubevirt")

    assert first.settings["publishing"] == second.settings["publishing"] == "nodeport"
    assert first.settings["phase"] == "bootstrap"
    assert second.settings["phase"] == "post-bootstrap"


def test_value_of_one_matrix_only() -> None:
    """A value that only one of two matrices knows is an error, which names the other."""
    with pytest.raises(FileErrors, match='setting "platform" of okd-hcp: unknown value "powervs"'):
        both("platform=powervs")


def test_a_value_of_one_matrix_only_says_how_to_give_it_to_that_one() -> None:
    """The message has the option to type: the key with the name of the matrix that takes it."""
    matrices = load_matrices(["hypershift-hcp", "openshift-host-ports"])
    with pytest.raises(FileErrors) as caught:
        choose(matrices, Inventory(()), ["platform=agent"])

    assert str(caught.value).endswith(
        "; for hypershift-hcp alone: --set hypershift-hcp:platform=agent"
    )


def test_inventory_values_have_places(tmp_path: Path) -> None:
    """Bad values of the inventory are told at their places, with those of --set, at once."""
    path = tmp_path / "inventory.yaml"
    body = (
        "settings:\n  cni: calico\n  peer-port: '80'\n  private: yes\n  version: 4.20\n  odd: 1\n"
    )
    path.write_text("schema: netprobe.inventory/1\n" + body + HOST)
    inventory = read_inventory(str(path), [])
    assert inventory is not None

    with pytest.raises(FileErrors) as caught:
        choose(load_matrices([str(BASE)]), inventory, ["cnii=x"])

    unknown_value = 'unknown value "calico", expected one of: cilium, flannel'
    assert str(caught.value).splitlines() == [
        '--set cnii=x: unknown setting "cnii", did you mean "cni"?',
        f'{path}:3:3: setting "cni" of base: {unknown_value}',
        f'{path}:4:3: setting "peer-port" of base: "80" is text, expected a port (1 to 65535)',
        f'{path}:5:3: setting "private" of base: "yes" is text in YAML 1.2, expected true or false',
    ]


def test_unknown_setting_of_the_inventory(tmp_path: Path) -> None:
    """A setting that no chosen matrix knows is a note: one inventory serves several matrices."""
    path = tmp_path / "inventory.yaml"
    path.write_text(f"schema: netprobe.inventory/1\nsettings: {{cnii: x, zz: [y]}}\n{HOST}")
    inventory = read_inventory(str(path), [])
    assert inventory is not None

    _, notes = choose(load_matrices([str(BASE)]), inventory, [])

    assert notes == (
        f'{path}:2:12: setting "cnii" of the inventory is unknown to base; did you mean cni?',
        f'{path}:2:21: setting "zz" of the inventory is unknown to base',
    )
