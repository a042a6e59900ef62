"""The files that CI servers read, written by whole commands."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.command import netprobe

pytestmark = pytest.mark.slow

MATRIX = """\
schema: netprobe.matrix/1
name: services
title: Services
roles: {node: {description: any node}}
requirements:
  - {id: api, from: node, to: node, tcp: [4711], purpose: Runs}
"""

INVENTORY = """\
schema: netprobe.inventory/1
hosts:
  here: {address: 192.0.2.1, roles: [node], vantage: {command: [sh, -c, "exit 7"]}}
  there: {address: 192.0.2.2, roles: [node], vantage: {command: [sh, -c, "exit 7"]}}
"""


def test_a_report_is_written_where_agents_fail(tmp_path: Path) -> None:
    """CI must not show the results of the run before."""
    (tmp_path / "services.yaml").write_text(MATRIX)
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    words = ("-o", "junit=run.xml", "-o", "markdown=run.md", "-o", "json=run.json", "-o", "github")

    done = netprobe("run", "-m", "./services.yaml", *words, cwd=tmp_path)

    assert done.returncode == 3, done.stderr
    cases = ElementTree.parse(tmp_path / "run.xml").findall("*/testcase")
    fates = {case.attrib["name"]: [child.tag for child in case] for case in cases}
    assert fates == {
        "the run came to its end": [],
        "every agent worked": ["error"],
        "not tested on purpose": ["skipped"],
        "node -> here tcp 4711": ["error"],
        "node -> there tcp 4711": ["error"],
    }
    (agents,) = ElementTree.parse(tmp_path / "run.xml").findall("*/testcase/error[1]")[:1]
    assert agents.attrib["message"].startswith("here: no agent: ")
    assert "; there: no agent: " in agents.attrib["message"]
    assert (tmp_path / "run.md").read_text().startswith("# NOTHING WAS TESTED")
    assert done.stdout.startswith("::warning title=netprobe::NOTHING WAS TESTED")

    again = netprobe("report", "run.json", "-o", "junit=again.xml", cwd=tmp_path)

    assert again.returncode == 3
    assert (tmp_path / "again.xml").read_bytes() == (tmp_path / "run.xml").read_bytes()
