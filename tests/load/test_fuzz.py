"""Whatever people, editors and disks do to a file, the answer is problems, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netprobe.errors import FileErrors, Problem
from netprobe.load.accepted import read_accepted
from netprobe.load.inventory.file import read_inventory
from netprobe.load.matrix.bundled import bundled_path
from netprobe.load.matrix.chosen_settings import choose
from netprobe.load.matrix.file import load_matrices, read_matrices
from netprobe.load.request import check_roles, load_request
from netprobe.model.inventory import Inventory
from netprobe.plan.conditions import holds, why_not

GOOD = Path(__file__).parent / "good"
SEEDS = [(GOOD / name).read_bytes() for name in ("base.yaml", "inventory.yaml")]
SEEDS.append(bundled_path("dce").read_bytes()[:3000])

# One folder serves all examples of a test: each writes its file anew.
in_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

WORDS = st.sampled_from(
    ["node", "master", "etcd", "cni", "cilium", "a b", "", "on", "0", "-1", "80-70", "1-65535",
     ">=4.10", "fd00::1", "10.0.0.1", "ssh", "none", "echo", "allowed", "netprobe.matrix/1"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["schema", "name", "title", "document", "roles", "settings", "requirements", "override",
     "waive", "local", "implies", "description", "type", "values", "default", "id", "from", "to",
     "tcp", "udp", "icmp", "ipproto", "when", "unless", "optional", "expect", "probe",
     "warnings", "text", "setting", "reason", "until", "hosts", "defaults", "address",
     "addresses", "vantage", "command", "ssh", "host", "user", "port", "options", "become",
     "source_addresses", "proxy", "no_proxy", "node", "master", "cni", "etcd", "zzz", "<<"]
)  # fmt: skip
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers(-5, 70000) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=15,
)


def survives(path: Path) -> None:
    """Reading a file as any kind gives a value or problems, each on one printable line."""
    for read in (read_as_matrix, read_as_inventory, read_as_accepted):
        problems: list[Problem] = []
        made = read(str(path), problems)
        assert made or problems
        for problem in problems:
            assert str(problem).isprintable()
            assert problem.text


def read_as_matrix(path: str, problems: list[Problem]) -> object:
    """As ``--matrix`` does, with all that follows where the file is fine."""
    matrices = read_matrices([path], problems)
    if problems:
        return None
    chosen, _ = choose(matrices, Inventory(()), [])
    check_roles(chosen, Inventory(()), [])
    for one in chosen:
        for requirement in one.matrix.requirements:
            why_not(requirement, one)
            assert all(isinstance(holds(warn.when, one), bool) for warn in requirement.warnings)
    return chosen


def read_as_inventory(path: str, problems: list[Problem]) -> object:
    """As ``-i`` does for a file of ours, up to the chosen settings."""
    inventory = read_inventory(path, problems)
    if inventory is not None:
        matrices = load_matrices([str(GOOD / "base.yaml")])
        quietly(lambda: choose(matrices, inventory, []))
        check_roles(choose(matrices, Inventory(()), [])[0], inventory, [])
    return inventory


def read_as_accepted(path: str, problems: list[Problem]) -> object:
    """As ``--accepted`` does; a file without entries is fine, too."""
    return (read_accepted([path], problems),)


def quietly(stage: Callable[[], object]) -> None:
    """A stage may refuse what it is given, in the one way that there is."""
    try:
        stage()
    except FileErrors:
        return


@given(st.binary(max_size=300))
@in_folder
def test_any_bytes(tmp_path: Path, raw: bytes) -> None:
    """Bytes of any kind."""
    path = tmp_path / "f.yaml"
    path.write_bytes(raw)

    survives(path)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files(tmp_path: Path, data: st.DataObject) -> None:
    """Good files with pieces cut out, doubled, moved, or replaced by nasty ones."""
    raw = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(raw)))
        end = min(len(raw), start + data.draw(st.integers(0, 40)))
        piece = data.draw(
            st.sampled_from([b"", raw[start:end] * 2, b"\t", b"- ", b": ", b"[", b"{", b"}", b"'"])
            | st.sampled_from([b"&a ", b"*a", b"!!int ", b"\xff", b"\x00", b"<<: ", b"0", b"\n"])
            | st.binary(max_size=4)
        )
        raw = raw[:start] + piece + raw[end:]
    path = tmp_path / "f.yaml"
    path.write_bytes(raw)

    survives(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["matrix", "inventory"])
@given(body=st.dictionaries(KEYS, VALUES, max_size=8))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_structure(tmp_path: Path, kind: str, body: dict[str, object]) -> None:
    """Known keys in every wrong place, with values of every wrong type."""
    path = tmp_path / "f.yaml"
    path.write_text(json.dumps({**body, "schema": f"netprobe.{kind}/1"}))

    survives(path)


@pytest.mark.slow
@given(
    requirement=st.dictionaries(KEYS, VALUES, max_size=6),
    setting=st.dictionaries(st.sampled_from(["type", "values", "default"]), VALUES),
    changes=st.dictionaries(st.sampled_from(["override", "waive", "extends", "roles"]), VALUES),
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wrong_inside(
    tmp_path: Path,
    requirement: dict[str, object],
    setting: dict[str, object],
    changes: dict[str, object],
) -> None:
    """A matrix that is right but for one requirement, one setting, and what it changes."""
    path = tmp_path / "f.yaml"
    body: dict[str, object] = {
        "schema": "netprobe.matrix/1",
        "extends": str(GOOD / "base.yaml"),
        "requirements": [{"id": "x", "from": "node", "to": "node", "tcp": [1], **requirement}],
        "settings": {"cni": setting, "new": setting},
        **changes,
    }
    path.write_text(json.dumps(body))

    survives(path)


@pytest.mark.slow
@given(st.lists(st.text(max_size=20) | st.sampled_from(["cni=", "base:cni=x", "peer-port=²"])))
def test_any_set(sets: list[str]) -> None:
    """Any text after --set."""
    matrices = load_matrices([str(GOOD / "base.yaml")])

    quietly(lambda: choose(matrices, Inventory(()), sets))


@given(st.lists(st.text(max_size=20), max_size=3), st.lists(st.text(max_size=20), min_size=1))
def test_any_names(matrices: list[str], inventories: list[str]) -> None:
    """Any text after --matrix and -i, where no such file is."""
    names = [f"./nowhere/{text}.yaml" for text in inventories]

    with pytest.raises(FileErrors):
        load_request([*matrices, "./nowhere.yaml"], names, [])
