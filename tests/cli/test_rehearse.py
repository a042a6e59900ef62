"""``--rehearse`` on the command line."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.cli.command import netprobe
from tests.ports import free_ports

ROW = {"id": "vxlan", "from": "node", "to": "node", "udp": [8472], "probe": "vxlan",
       "purpose": "p", "row": "r"}  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A matrix with an overlay between two hosts."""
    matrix, inventory = tmp_path / "m.yaml", tmp_path / "i.yaml"
    matrix.write_text(json.dumps({
        "schema": "netprobe.matrix/1", "name": "m", "title": "M", "roles": {"node": {}},
        "overlay-mtu": 1400, "requirements": [ROW],
    }))  # fmt: skip
    inventory.write_text(json.dumps({
        "schema": "netprobe.inventory/1",
        "hosts": {name: {"addresses": [address], "roles": ["node"], "vantage": "local"}
                  for name, address in (("a", "127.0.0.2"), ("b", "127.0.0.3"))},
    }))  # fmt: skip
    return ["-m", str(matrix), "-i", str(inventory)]


@pytest.mark.slow
def test_plan_shows_what_would_be_done(files: list[str]) -> None:
    """The flows of the rehearsal, and the notes with time and what is touched."""
    for option in ("--rehearse", "--rehearse=overlay"):
        done = netprobe("plan", option, *files, cwd=Path())
        assert done.returncode == 0
        assert done.stdout.count("vxlan/overlay") == 2
        assert "2 tunnels, about 1 s in all" in done.stdout
    assert "vxlan/overlay" not in netprobe("plan", *files, cwd=Path()).stdout


def test_an_unknown_rehearsal_is_a_wrong_request(files: list[str]) -> None:
    """Exit status 2, with the list; a word behind the option is not its value."""
    done = netprobe("plan", "--rehearse=quality", *files, cwd=Path())
    assert done.returncode == 2
    assert "no rehearsal 'quality', expected one of: overlay, balancer, segment" in done.stderr
    assert netprobe("plan", "--rehearse", "overlay", *files, cwd=Path()).returncode == 2


@pytest.mark.slow
def test_one_machine_is_skipped(files: list[str]) -> None:
    """Two names of one machine have no tunnel, and none is missed: all that was probed passes. The
    first line says what the run would do."""
    done = netprobe("run", "--rehearse", "-o", "json", *files, cwd=Path())
    document = json.loads(done.stdout)
    assert (document["planned_flows"], done.returncode) == (len(document["results"]), 0)
    skipped = [one for one in document["skipped"] if "/" in one["requirement"]]
    assert {one["reason"] for one in skipped} == {"both ends are one machine"}
    assert "changes hosts for a moment" in done.stderr.splitlines()[0]


@pytest.mark.slow
def test_a_bundle_rehearses_nothing(files: list[str], tmp_path: Path) -> None:
    """One line says that it is not possible there."""
    done = netprobe(
        "bundle", "--rehearse", "--no-listen", "-o", str(tmp_path / "b.pyz"), *files, cwd=Path()
    )
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if "--rehearse" in line]
    assert len(lines) == 1
    assert "not possible" in lines[0]


@pytest.mark.slow
def test_a_bundle_measures_nothing(files: list[str], tmp_path: Path) -> None:
    """One line says so; the plan says what a run would measure, and a wrong number is refused."""
    matrix = Path(files[1])
    row = ROW | {"quality": {"loss": "1%"}}
    matrix.write_text(json.dumps(json.loads(matrix.read_text()) | {"requirements": [row]}))
    done = netprobe(
        "bundle", "--quality", "--no-listen", "-o", str(tmp_path / "b.pyz"), *files, cwd=Path()
    )
    assert done.returncode == 0
    assert len([line for line in done.stderr.splitlines() if "--quality" in line]) == 1
    planned = netprobe("plan", "--quality", *files, cwd=Path())
    assert planned.stdout.count("vxlan/quality") == 2
    assert "2 flows of rows with `quality:`, 400 samples in all" in planned.stdout
    assert netprobe("plan", "--quality=5", *files, cwd=Path()).returncode == 2
    assert netprobe("plan", "--quality", "500", *files, cwd=Path()).returncode == 2


@pytest.mark.slow
def test_an_explanation_says_what_samples_cost(files: list[str]) -> None:
    """How many, and for how long, before they are sent; once, and not without the option."""
    port = free_ports("127.0.0.3", socket.SOCK_STREAM, 1)
    row = {"id": "api", "from": "node", "to": "node", "tcp": [port], "purpose": "p", "row": "r",
           "quality": {"loss": "1%"}}  # fmt: skip
    matrix = Path(files[1])
    matrix.write_text(json.dumps(json.loads(matrix.read_text()) | {"requirements": [row]}))
    for words, count in (((), 0), (("--quality=10",), 1)):
        done = netprobe("explain", *words, "a", "b", f"tcp/{port}", *files, cwd=Path())
        assert done.returncode == 0, done.stderr
        notes = [line for line in done.stderr.splitlines() if "note: --quality" in line]
        assert len(notes) == count, done.stderr
        assert all("1 flow of rows with `quality:`, 10 samples in all" in one for one in notes)
        assert "--quality" not in done.stdout


@pytest.mark.slow
def test_a_retry_takes_as_many_samples(files: list[str], tmp_path: Path) -> None:
    """What ten samples did not decide is asked again with ten."""
    port = free_ports("127.0.0.3", socket.SOCK_STREAM, 1)
    row = {"id": "api", "from": "node", "to": "node", "tcp": [port], "purpose": "p", "row": "r",
           "quality": {"loss": "1%", "required": True}}  # fmt: skip
    matrix = Path(files[1])
    matrix.write_text(json.dumps(json.loads(matrix.read_text()) | {"requirements": [row]}))
    earlier = tmp_path / "earlier.json"
    for word in ("--quality=10", f"--retry={earlier}"):
        done = netprobe("run", "-o", "json", word, "--from", "a", *files, cwd=Path())
        document = json.loads(done.stdout)
        (one,) = [one for one in document["results"] if one["requirement"] == "api/quality"]
        assert (one["reason"], one["quality"]["samples"]) == ("quality-undecided", 10)
        earlier.write_text(done.stdout)
