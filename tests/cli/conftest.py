"""A folder with a small matrix and inventory on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ports import wait_for_lock

MATRIX = """\
schema: netprobe.matrix/1
name: tiny
title: A tiny matrix
local: true
roles:
  node: {description: any node}
settings:
  web-port: {type: port, default: 18080}
requirements:
  - {id: web, from: node, to: node, tcp: [{setting: web-port}, "18100-18120"], purpose: Web}
  - {id: dgram, from: node, to: node, udp: [18053], purpose: Datagrams, row: Table 2}
"""

INVENTORY = """\
schema: netprobe.inventory/1
hosts:
  here: {address: 127.0.0.1, roles: [node], vantage: local}
  gone: {address: 127.0.0.9, roles: [node], vantage: {command: [/no/such/program]}}
"""


@pytest.fixture(scope="session", autouse=True)
def _ports_to_itself() -> Iterator[None]:
    """Keep the matrix's ports from another run of the tests on this machine."""
    with wait_for_lock("cli"):
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with tiny.yaml and inventory.yaml in it."""
    (tmp_path / "tiny.yaml").write_text(MATRIX)
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    return tmp_path
