"""``netprobe request`` and ``run --retry`` of its JSON, as a user types them."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netprobe.cli.main import status_of
from tests.cli.command import netprobe
from tests.ports import free_ports

# They start whole commands.
pytestmark = pytest.mark.slow

GOOD = free_ports("127.0.0.1", socket.SOCK_STREAM, 3)
MENDED, BROKEN = GOOD + 1, GOOD + 2

MATRIX = f"""\
schema: netprobe.matrix/1
name: services
title: Services
document: {{title: The handbook, publisher: We}}
local: true
roles:
  node: {{description: any node}}
requirements:
  - {{id: good, from: node, to: node, tcp: [{GOOD}], purpose: Runs}}
  - {{id: mended, from: node, to: node, tcp: [{MENDED}], purpose: Runs later, row: Table 1}}
  - {{id: broken, from: node, to: node, tcp: [{BROKEN}], purpose: Never runs}}
"""
INVENTORY = """\
schema: netprobe.inventory/1
hosts:
  here: {address: 127.0.0.1, roles: [node], vantage: local}
  there: {address: 10.9.9.9, roles: [node], vantage: none}
"""
FILES = ("-m", "./services.yaml")
PLAN_WORDS = (
    *("-m", "x", "-i", "x", "--set", "a=b", "--role", "a=b", "--limit", "x"),
    *("--from", "x", "--to", "x", "--protocol", "tcp"),
)


@pytest.fixture
def servers() -> Iterator[list[socket.socket]]:
    """A place for the services that a test starts."""
    started: list[socket.socket] = []
    yield started
    for server in started:
        stop(server)


def stop(server: socket.socket) -> None:
    """Close it; who waits in accept does not wake up by a close alone."""
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def serve(port: int, address: str = "127.0.0.1") -> socket.socket:
    """Accept connections at a port of loopback."""
    server = socket.create_server((address, port))

    def accept() -> None:
        try:
            while True:
                server.accept()[0].close()
        except OSError:
            return

    threading.Thread(target=accept, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run in it, whose two failures look as if a router had refused them."""
    folder = tmp_path_factory.mktemp("request")
    (folder / "services.yaml").write_text(MATRIX)
    (folder / "inventory.yaml").write_text(INVENTORY)
    server = serve(GOOD)
    words = ("--live", "--from", "here", "--to", "here", "-o", "json=run.json")
    done = netprobe("run", *FILES, *words, cwd=folder)
    stop(server)
    assert done.returncode == 1, done.stderr
    run = json.loads((folder / "run.json").read_text())
    for result in run["results"]:
        if result["verdict"] == "blocked":
            result |= {"state": "filtered", "reason": "admin-prohibited", "where": ["path"],
                       "rejected_by": "192.0.2.1"}  # fmt: skip
    (folder / "run.json").write_text(json.dumps(run))
    return folder


def read(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text())


def test_ask_and_retry(before: Path, servers: list[socket.socket]) -> None:
    """Only what was asked for is probed again, and every rule is told: done, or not done."""
    words = ("-o", "markdown", "-o", "json=fw.json", "-o", "nftables=fw.nft")
    asked = netprobe("request", "run.json", *words, "--undo", "nftables=undo.sh", cwd=before)
    assert asked.returncode == 0, asked.stderr
    request = read(before / "fw.json")

    assert request["schema"] == "netprobe.request/1"
    assert [rule["who"] for rule in request["rules"]] == ["192.0.2.1, which refuses it"]
    assert request["rules"][0]["needs"][0]["document"] == "The handbook"
    assert f"tcp {MENDED}-{BROKEN}" in asked.stdout
    assert "(services, mended; row: Table 1; document: The handbook)" in asked.stdout
    assert stat.S_IMODE(os.stat(before / "fw.json").st_mode) == 0o600
    assert request["id"] in (before / "undo.sh").read_text()

    servers.append(serve(MENDED))
    retry = ("--live", "--retry", "fw.json", "-o", "text", "-o", "json=again.json")
    done = netprobe("run", *FILES, *retry, cwd=before)
    again = read(before / "again.json")

    assert done.returncode == 1, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("RETRIED: what fw.json asks for (its run begun 20")
    assert first.endswith("2 failed before: 1 pass now, 1 still blocked or exposed")
    assert "\nFIXED (1 flow)\n" in done.stdout
    assert "not done: R1 of the request: 1 blocked, 1 pass of 2 flows" in done.stdout
    assert [one["requirement"] for one in again["results"]] == ["mended", "broken"]
    assert (again["changes"]["fixed"], again["planned_flows"]) == (1, 2)

    servers.append(serve(BROKEN))
    last = netprobe("run", *FILES, "--live", "--retry", "fw.json", cwd=before)
    assert last.returncode == 0, last.stderr
    assert "done: R1 of the request" in last.stdout


def test_request_before_any_packet(tmp_path: Path) -> None:
    """--from-plan asks for all that is required, by role."""
    (tmp_path / "services.yaml").write_text(MATRIX.replace("local: true\n", ""))
    (tmp_path / "inventory.yaml").write_text(INVENTORY.replace("127.0.0.1", "10.9.9.8"))
    inventory = (tmp_path / "inventory.yaml").read_text().replace("vantage: none", "vantage: local")
    (tmp_path / "inventory.yaml").write_text(inventory)
    words = ("--from-plan", *FILES, "-o", "csv=fw.csv", "-o", "json=fw.json")
    done = netprobe("request", *words, cwd=tmp_path)
    rules = read(tmp_path / "fw.json")["rules"]

    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith(": 1 rule for 6 flows\n")
    assert [(rule["ports"], rule["who"]) for rule in rules] == [
        ([[GOOD, BROKEN]], "the firewall on the way")
    ]
    assert "10.9.9.8;10.9.9.9,here;there,10.9.9.8;10.9.9.9" in (tmp_path / "fw.csv").read_text()


def test_retry_of_a_request_from_a_plan(tmp_path: Path, servers: list[socket.socket]) -> None:
    """Just what was asked for is probed, and rules are told done; there is nothing to compare."""
    (tmp_path / "services.yaml").write_text(MATRIX.replace("local: true\n", ""))
    (tmp_path / "inventory.yaml").write_text(INVENTORY.replace("10.9.9.9", "127.0.0.2"))
    ask = ("--from-plan", *FILES, "--by", "requirement", "-o", "json=fw.json")
    only = ("--only", "mended", "--only", "broken")
    asked = netprobe("request", *ask, *only, cwd=tmp_path)
    itself = ("--from", "here", "--to", "here")
    nothing = netprobe("request", "--from-plan", *FILES, *itself, "-o", "json=no.json",
                       cwd=tmp_path)  # fmt: skip
    servers.append(serve(MENDED, "127.0.0.2"))
    words = ("--live", "--retry", "fw.json", "-o", "text", "-o", "json=again.json")
    done = netprobe("run", *FILES, *words, cwd=tmp_path)
    refused = netprobe("run", *FILES, "--retry", "no.json", cwd=tmp_path)

    # Nothing can run on the other host, so that its flows are asked for and never probed.
    assert asked.stderr.endswith(": 2 rules for 4 flows; 1 not probed\n")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("RETRIED: what fw.json asks for (made from a plan at 20")
    assert "done: R1 of the request" in done.stdout
    assert "not done: R2 of the request: 1 blocked of 1 flow" in done.stdout
    again = read(tmp_path / "again.json")
    assert [one["requirement"] for one in again["results"]] == ["mended", "broken"]
    assert "changes" not in again
    assert "no rule to ask for: the plan requires nothing" in nothing.stderr
    assert refused.returncode == 2
    assert refused.stderr == (
        "netprobe: --retry no.json: this request asks for nothing; run without --retry\n"
    )


def test_the_part_of_one_place(
    before: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--at keeps the rules of a place or a router; --by keeps requirements apart."""
    made = before / "part.json"
    command = ["request", f"{before}/run.json", "-o", f"json={made}"]
    for at, count in (("192.0.2.1", 1), ("path", 1), ("destination", 0)):
        assert status_of([*command, "--at", at]) == 0
        request = read(made)
        assert (len(request["rules"]), len(request["results"])) == (count, 2 * count)
    assert capsys.readouterr().err.endswith(
        "no rule to ask for: none is for destination, the rules are for 192.0.2.1; 1 not probed\n"
    )
    assert status_of([*command, "--at", "192.0.2.9"]) == 2
    assert capsys.readouterr().err == (
        "netprobe: --at 192.0.2.9: no rule is for this router, the rules are for 192.0.2.1\n"
    )
    # What the environment says is meant for other verbs.
    monkeypatch.setenv("NETPROBE_ONLY", "good")
    assert status_of([*command, "--by", "requirement"]) == 0
    assert len(read(made)["rules"]) == 2


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "no FILE: give the record or JSON report of a run, or --from-plan"),
        (("--from-plan", "run.json"), "--from-plan takes no FILE: give --matrix and --inventory"),
        (("run.json", "--until", "soon"), "--until soon: expected YYYY-MM-DD or permanent"),
        (("run.json", "--ticket", "x"), "--ticket x: expected KEY=VALUE"),
        (("run.json", "--at", "paht"), "--at paht: expected path, destination, source or a router"),
        (
            ("run.json", "-o", "cisco"),
            "-o cisco: no such format, expected one of markdown, text",
        ),
        (("run.json", "--undo", "csv"), "--undo csv: expected one of nftables, iptables"),
        (("run.json", "--until", "2020-01-01"), "--until 2020-01-01: that day is over, expected 2"),
        (("run.json", "--only", "mended"), "--only: only for --from-plan; run.json is asked for"),
        (
            ("run.json", *PLAN_WORDS),
            "--matrix, --inventory, --set, --role, --limit, --from, --to, --protocol: only for",
        ),
        (("run.json", "--undo", "nftables"), "-o and --undo both write to standard output; name a"),
        (("run.json", "-o", "csv=a", "--undo", "ufw=./a"), "-o and --undo both write to ./a; name"),
        (("run.json", "-o", "csv", "--ticket", "id=5"), "--ticket id=5: there is a field id alre"),
        (
            ("run.json", "--ticket", "Owner=a", "--ticket", "Owner=b"),
            "--ticket Owner=b: there is a field Owner already, choose another",
        ),
    ],
)
def test_wrong_words(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str) -> None:
    """One line says what is wrong and what to do; exit 2."""
    assert status_of(["request", *words]) == 2
    assert capsys.readouterr().err.startswith(f"netprobe: {line}")


@pytest.mark.parametrize(
    ("formats", "into", "line"),
    [
        ("nftables", "nftabels=inet/filter", "no format nftabels takes a place, expected one of n"),
        ("csv", "csv=x", "no format csv takes a place, expected one of nftables, iptables, cisco"),
        ("nftables", "iptables=FORWARD", "iptables is not among -o and --undo"),
        ("csv ufw", "inet/filter", "of csv, ufw none is left that takes a place, but nftables, ip"),
        ("nftables", "filter", "nftables expects FAMILY/TABLE or FAMILY/TABLE/CHAIN, such as inet"),
        ("nftables", "inet/9", "nftables expects FAMILY/TABLE or FAMILY/TABLE/CHAIN, such as inet"),
        ("nftables", "foo/a/b", "nftables expects FAMILY/TABLE or FAMILY/TABLE/CHAIN, such as in"),
        ("nftables", "inet/a/b;flush ruleset", "nftables expects FAMILY/TABLE or FAMILY/TABLE/CH"),
        ("iptables", "X; reboot", "iptables expects the name of a chain, such as FORWARD"),
        ("iptables", "iptables=-F", "iptables expects the name of a chain, such as FORWARD"),
        ("cisco-asa", "two words", "cisco-asa expects the name of an access list, such as OUTSID"),
        ("paloalto", "inside", "paloalto expects FROM/TO, two zones, such as inside/dmz"),
        ("fortios", "a/b/c", "fortios expects FROM/TO, two zones, such as inside/dmz"),
        ("calico", "calico=", "calico expects a selector, such as role == 'node'"),
        ("nftables paloalto", "inet/filter/forward", "paloalto expects FROM/TO, two zones, such"),
    ],
)
def test_wrong_places(
    capsys: pytest.CaptureFixture[str], formats: str, into: str, line: str
) -> None:
    """--into is read before anything is written into a firewall's language."""
    words = [word for name in formats.split() for word in ("-o", f"{name}=./{name}.txt")]

    assert status_of(["request", "run.json", *words, "--into", into]) == 2
    assert capsys.readouterr().err.startswith(f"netprobe: --into {into}: {line}")


def test_places(before: Path) -> None:
    """Each format gets its own, and what names none is for the others; selectors hold signs."""
    names = ("nftables", "iptables", "calico", "paloalto")
    words = [word for name in names for word in ("-o", f"{name}={before}/{name}.into")]
    places = ("calico=role=='x'", "IN-9", "paloalto=a/b", "nftables=inet/filter/eth0/in")
    into = [word for place in places for word in ("--into", place)]
    assert status_of(["request", f"{before}/run.json", *words, *into]) == 0

    for name, text in zip(
        names,
        ("insert rule inet filter eth0/in ", " -I IN-9 ", "\"role=='x'\"", " from a to b "),
        strict=True,
    ):
        assert text in (before / f"{name}.into").read_text()


def test_a_request_is_no_run(before: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other verbs refuse a request by its schema; --retry names it among what it takes."""
    plan, torn = before / "plan.json", before / "torn.json"
    torn.write_text('{"schema": "netprobe.request/1", "results": []}')
    plan.write_text('{"schema": "netprobe.plan/1"}')
    run = ["run", "-m", f"{before}/services.yaml", "-i", f"{before}/inventory.yaml"]
    for words, line in (
        (["report", str(torn)], "schema is 'netprobe.request/1', expected"),
        ([*run, "--resume", str(torn)], "schema is 'netprobe.request/1', expected"),
        ([*run, "--retry", str(plan)], "or a request (netprobe.request/1)"),
        ([*run, "--retry", str(torn)], 'the key "started_at" is missing'),
    ):
        assert status_of(words) == 2
        assert line in capsys.readouterr().err


def test_without_the_library_for_workbooks(
    before: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing is said before anything is written, with what to install."""
    monkeypatch.setattr("netprobe.cli.request.find_spec", lambda name: None)
    made = before / "a.xlsx"

    assert status_of(["request", f"{before}/run.json", "-o", f"xlsx={made}"]) == 2
    assert "netprobe-matrix[xlsx]" in capsys.readouterr().err
    assert not made.exists()
