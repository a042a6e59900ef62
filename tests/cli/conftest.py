"""A folder with a small matrix and inventory on loopback."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.ports import free_ports

# Ports of this test process: a single one, and a range of 21.
WEB = free_ports("127.0.0.1", socket.SOCK_STREAM, 60)
FIRST, LAST, DGRAM = WEB + 20, WEB + 40, WEB + 50

MATRIX = f"""\
schema: netprobe.matrix/1
name: tiny
title: A tiny matrix
local: true
roles:
  node: {{description: any node}}
settings:
  web-port: {{type: port, default: {WEB}}}
requirements:
  - {{id: web, from: node, to: node, tcp: [{{setting: web-port}}, "{FIRST}-{LAST}"], purpose: Web}}
  - {{id: dgram, from: node, to: node, udp: [{DGRAM}], purpose: Datagrams, row: Table 2}}
"""

INVENTORY = """\
schema: netprobe.inventory/1
hosts:
  here: {address: 127.0.0.1, roles: [node], vantage: local, zone: rack-1}
  gone: {address: 127.0.0.9, roles: [node], vantage: {command: [/no/such/program]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with tiny.yaml and inventory.yaml in it."""
    (tmp_path / "tiny.yaml").write_text(MATRIX)
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    return tmp_path
