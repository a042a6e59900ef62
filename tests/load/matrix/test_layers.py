"""Keys for platforms that are made of layers: claims, either-or, common roles, sources."""

from __future__ import annotations

import io
from pathlib import Path

from netprobe.load.matrix.chosen_settings import choose
from netprobe.load.matrix.file import load_matrices
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import (
    COMMON_WORDS,
    ClaimRef,
    DocumentSource,
    Matrix,
    SettingRef,
    fold_role,
)
from netprobe.report.verbs.matrix import write_matrix_text, write_matrix_yaml

LAYER = (Path(__file__).parents[1] / "good" / "layer.yaml").read_text()


def load(path: Path, text: str = LAYER) -> Matrix:
    """The matrix of a file with this text."""
    path.write_text(text)
    (matrix,) = load_matrices([str(path)])
    return matrix


def test_every_key_arrives(tmp_path: Path) -> None:
    """What the keys say stands in the model, typed; what nobody says is empty."""
    matrix = load(tmp_path / "layer.yaml")

    assert matrix.layer
    assert matrix.claims == {
        "cni": "overlay",
        "port": SettingRef("mode"),
        "way": ClaimRef("mode", "tunnel"),
    }
    assert matrix.document == {"title": "Requirements"}
    first, second = matrix.sources
    assert first == DocumentSource(
        "example/overlay", "docs/ports.md", "00c88111b78b", "0123456789abcdef"
    )
    assert (second.hash, second.note, first.note) == ("", "An old edition.", "")
    assert [one.any_of for one in matrix.requirements] == ["health", "health", None, None]
    assert [one.multicast for one in matrix.requirements] == [None, None, "224.0.0.18", None]
    assert [name for name, role in matrix.roles.items() if role.vantage == "none"] == ["bmc"]


def test_common_roles_have_the_words_of_inventories(tmp_path: Path) -> None:
    """Each word means its part, but for a word that is a role of the matrix, or an alias."""
    matrix = load(tmp_path / "layer.yaml")
    meant = matrix.role_words()

    assert [meant[word] for word in ("masters", "kube-control-plane", "chief")] == ["server"] * 3
    assert [meant[word] for word in ("workers", "kube-node", "k3s-agent")] == ["worker"] * 3
    assert meant["agent"] == "agent"
    assert meant["k8s-cluster"] == "node"
    assert "agent" not in matrix.words_of("worker")
    for words in COMMON_WORDS.values():
        assert all(word == fold_role(word) for word in words)
    every = [word for words in COMMON_WORDS.values() for word in words]
    assert len(every) == len(set(every))


def test_what_extends_keeps_and_changes_them(tmp_path: Path) -> None:
    """Claims are added to, layer and sources are replaced where they are given."""
    load(tmp_path / "layer.yaml")
    head = "schema: netprobe.matrix/1\nextends: ./layer.yaml\n"
    kept = load(tmp_path / "kept.yaml", head)
    changed = load(tmp_path / "changed.yaml", f"{head}layer: false\nclaims: {{cni: other}}\n")
    role = load(tmp_path / "role.yaml", f"{head}roles: {{workers: {{}}}}\n")

    assert kept.layer
    assert len(kept.sources) == 2
    assert not changed.layer
    assert changed.claims == {**kept.claims, "cni": "other"}
    assert role.role_words()["workers"] == "workers"


def test_the_file_that_is_shown_says_the_same(tmp_path: Path) -> None:
    """matrix show -o yaml loads again as the same matrix, and the text names the keys."""
    matrix = load(tmp_path / "layer.yaml")
    ((one,), _) = choose([matrix], Inventory(()), ())
    yaml, text = io.StringIO(), io.StringIO()
    write_matrix_yaml(one, yaml)
    write_matrix_text(one, lambda _: None, text)

    again = load(tmp_path / "again.yaml", yaml.getvalue())

    assert again == matrix
    shown = " ".join(text.getvalue().split())
    assert "overlay: An overlay (a layer, chosen beside the matrix of a platform)" in shown
    assert "claims cni: overlay port: vxlan (setting mode) way: tunnel (setting mode)" in shown
    assert "example/overlay, docs/ports.md at 00c88111b78b" in shown
    assert "bmc (nothing can run there)" in shown
    assert "Also called chief, control-plane, controlplane" in shown
    assert "any of health" in shown
    assert "multicast 224.0.0.18" in shown
