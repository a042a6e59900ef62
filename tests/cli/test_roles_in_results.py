"""JSON and record of a real run know roles, zones and requirements, and fit their schema."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has no stubs

from netprobe.model.run import RunIndex
from netprobe.report.record.record import read_run
from tests.cli.command import netprobe
from tests.cli.conftest import DGRAM, FIRST, LAST, WEB

pytestmark = pytest.mark.slow


def test_json_and_record(folder: Path) -> None:
    """Both tell the same; a record of a run that crashed at once tells it, too."""
    words = ("-m", "./tiny.yaml", "--sample", "1", "--record", "r", "-o", "json=j")
    done = netprobe("run", *words, cwd=folder)
    document = json.loads((folder / "j").read_text())
    lines = (folder / "r").read_text().splitlines(keepends=True)
    (folder / "torn").write_text(lines[0])
    schema = Draft202012Validator(json.loads(netprobe("schema", "run", cwd=folder).stdout))

    assert done.returncode == 3
    for value in (document, *map(json.loads, lines)):
        assert list(schema.iter_errors(value)) == []
    hosts = {one["name"]: (one["roles"], one["zone"], one["state"]) for one in document["hosts"]}
    assert hosts == {"here": (["node"], "rack-1", "agent"), "gone": (["node"], None, "failed")}
    tcp, udp = document["requirements"]
    assert re.fullmatch("[0-9a-f]{12}", tcp.pop("question"))
    assert tcp == {
        "matrix": "tiny",
        "id": "web",
        "from": ["node"],
        "to": ["node"],
        "protocol": "tcp",
        "ports": [[WEB, WEB], [FIRST, LAST]],
        "purpose": "Web",
        "row": "",
        "optional": False,
        "expect": "allowed",
        "existing": False,
        "waive": None,
        "any_of": None,
    }
    assert (udp["protocol"], udp["ports"], udp["row"]) == ("udp", [[DGRAM, DGRAM]], "Table 2")
    for name in ("j", "r", "torn"):
        info, collector = read_run(str(folder / name))
        index = RunIndex(info)
        assert [index.roles(host) for host in ("here", "gone")] == [("node",), ("node",)]
        assert (index.zone("here"), index.zone("gone")) == ("rack-1", None)
        assert [one.id for one in info.requirements] == ["web", "dgram"]
        collector.close()
    assert {host.state for host in read_run(str(folder / "torn"))[0].hosts} == {"unknown"}


def test_hosts_that_are_checked_have_roles(folder: Path) -> None:
    """``check --hosts -o json`` prints hosts with the keys of a run."""
    words = ("-m", "./tiny.yaml", "--limit", "here", "-o", "json")
    done = netprobe("check", "--hosts", *words, cwd=folder)

    (host,) = json.loads(done.stdout)["hosts"]
    assert (host["roles"], host["zone"]) == (["node"], "rack-1")
