"""`audit ports` and `check --registry` on the command line, without a host to look at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netprobe.cli.main import status_of
from netprobe.report.verbs.audit import audit_schema_text

INVENTORY = """schema: netprobe.inventory/1
hosts:
  vip: {address: 192.0.2.7, roles: [node], vantage: none}
"""
TWICE = """schema: netprobe.matrix/1
name: twice
title: Twice
roles: {node: {}}
requirements:
  - {id: a, from: node, to: node, tcp: [9500], owner: one}
  - {id: b, from: node, to: node, tcp: [9500], owner: two}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an inventory and a matrix, in which the command runs."""
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    (tmp_path / "twice.yaml").write_text(TWICE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_no_host_could_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    """Hosts that are declared as destinations only: exit 3, and the first line says so."""
    assert status_of(["audit", "ports", "-m", "openshift-host-ports"]) == 3
    told = capsys.readouterr().out
    assert told.startswith("NOT LOOKED AT: no host could be looked at\n")
    assert "vip (node): not looked at: the host is declared vantage: none" in told


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "no matrix: give --matrix NAME or FILE"),
        (["-m", "openshift-host-ports", "--pods", "none.json"],
         "none.json: there is no such file, expected what `kubectl get pods -A -o json` prints"),
        (["-m", "openshift-host-ports", "--pods", "inventory.yaml"],
         "inventory.yaml:1:1: this is no JSON"),
        (["-m", "openshift-host-ports", "--pods", "pods.json", "-o", "json=pods.json"],
         "that is --pods, which would be overwritten"),
        (["-m", "openshift-host-ports", "-o", "html"], "html"),
    ],
)  # fmt: skip
def test_requests_that_are_wrong(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """One line and exit 2."""
    (folder / "pods.json").write_text('{"items": []}')

    assert status_of(["audit", "ports", *words]) == 2
    assert line in capsys.readouterr().err


def test_a_registry_with_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, file, line and column; as FILES or with --matrix."""
    for words in (["./twice.yaml"], ["-m", "./twice.yaml"]):
        assert status_of(["check", "--registry", *words]) == 2
        assert "./twice.yaml:7:6: tcp 9500 has two owners, one and two" in capsys.readouterr().err


def test_a_registry_without_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0 and the notes; without a matrix there is nothing to check."""
    assert status_of(["check", "--registry", "-m", "openshift-host-ports"]) == 0
    assert "openshift-host-ports: exclusive: tcp 9101" in capsys.readouterr().out
    assert status_of(["check", "--registry"]) == 2


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """`netprobe schema audit`."""
    assert status_of(["schema", "audit"]) == 0
    text = capsys.readouterr().out
    assert text == audit_schema_text()
    assert json.loads(text)["title"] == "netprobe audit ports"
