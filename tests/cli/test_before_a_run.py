"""What people do before the first run: ``init``, ``check``, ``plan``, ``check --hosts``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.command import netprobe

# They start whole commands, some of them many.
pytestmark = pytest.mark.slow

TINY = ("-m", "./tiny.yaml")


def test_check_reads_what_its_help_says(folder: Path) -> None:
    """Without FILES the inventory is the one that a run would read."""
    plain = netprobe("check", cwd=folder)
    (folder / "inventory.yaml").write_text("schema: netprobe.inventory/1\nhosts: {}\n")
    bad = netprobe("check", cwd=folder)
    named = netprobe("check", cwd=folder / "..", NETPROBE_INVENTORY=f"{folder}/inventory.yaml")

    assert "./inventory.yaml" in re.sub(r"\s+", "", netprobe("check", "-h", cwd=folder).stdout)
    assert (plain.returncode, bad.returncode, named.returncode) == (0, 2, 2), plain.stderr
    assert plain.stdout.startswith("inventory.yaml: inventory, 2 hosts, no problems\n")
    assert "inventory.yaml:2:1: there is no host in it" in bad.stderr
    assert "inventory.yaml:2:1: there is no host in it" in named.stderr


def test_check_of_a_matrix_reads_the_inventory_too(folder: Path) -> None:
    """With --matrix both are held against each other, as a run would do, also one of FILES."""
    inventory = folder / "inventory.yaml"
    inventory.write_text(inventory.read_text().replace("[node]", "[nod]"))
    with_matrix = netprobe("check", *TINY, cwd=folder)
    alone = netprobe("check", "tiny.yaml", cwd=folder)
    named = inventory.rename(folder / "named.yaml")
    given = netprobe("check", named.name, *TINY, cwd=folder)
    without = netprobe("check", *TINY, cwd=folder)

    assert with_matrix.returncode == 2
    assert 'inventory.yaml:3:3: host "here" has no role of tiny' in with_matrix.stderr
    assert given.returncode == 2
    assert 'named.yaml:3:3: host "here" has no role of tiny' in given.stderr
    assert (alone.returncode, without.returncode) == (0, 0)
    assert "inventory" not in alone.stdout + without.stdout


def test_check_without_anything(tmp_path: Path) -> None:
    """Where there is nothing to read, the ways to give something are told."""
    done = netprobe("check", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr.startswith("netprobe: nothing to check: give FILES; or for an inventory")
    assert "-i FILE" in done.stderr
    assert "./inventory.yaml" in done.stderr


def test_addresses_that_init_wrote(tmp_path: Path) -> None:
    """An inventory that nobody edited can be planned, with a note, and never be probed."""
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(netprobe("init", "-m", "dce", cwd=tmp_path).stdout)
    plan = netprobe("plan", "-m", "dce", "--count", cwd=tmp_path)
    run = netprobe("run", "-m", "dce", cwd=tmp_path)
    lines = run.stderr.splitlines()

    assert (plan.returncode, run.returncode) == (0, 2)
    assert "that `netprobe init` wrote: `netprobe run` refuses them" in plan.stderr
    assert len(lines) == inventory.read_text().count("    address: ")
    assert re.match(
        r'inventory\.yaml:\d+:3: host "node-0" still has the address 192\.0\.2\.1 that `netprobe '
        r"init` wrote, expected its own, or no such host$",
        lines[0],
    )
    assert run.stdout == ""


def test_an_inventory_that_was_edited_in_part(tmp_path: Path) -> None:
    """A host by a new name with the old address is still an example, an edited one is not."""
    text = netprobe("init", "-m", "dce", cwd=tmp_path).stdout
    head = text[: text.index("hosts:\n")]
    hosts = (
        "hosts:\n"
        "  node-0: {address: 192.0.2.1, roles: [node], vantage: none}\n"
        "  n1: {address: 192.0.2.2, roles: [node]}\n"
        "  n2: {address: 10.255.255.1, roles: [node]}\n"
    )
    (tmp_path / "inventory.yaml").write_text(head + hosts)
    run = netprobe("run", "-m", "dce", cwd=tmp_path)
    plan = netprobe("plan", "-m", "dce", cwd=tmp_path)

    assert run.returncode == 2
    assert [re.findall('"(.*?)"', line)[0] for line in run.stderr.splitlines()] == ["node-0", "n1"]
    assert "note: node-0, n1 still have the addresses that `netprobe init` wrote" in plan.stdout


def test_a_lab_may_use_documentation_addresses(tmp_path: Path) -> None:
    """Hosts that are no example of init, and are not reached at such an address, are real."""
    (tmp_path / "inventory.yaml").write_text(
        "schema: netprobe.inventory/1\nhosts:\n"
        "  here: {address: 127.0.0.1, roles: [node], vantage: local}\n"
        "  lab: {address: 192.0.2.1, roles: [registry], vantage: none}\n"
    )
    run = netprobe("run", "-m", "dce", "--to", "here", cwd=tmp_path)

    assert run.returncode == 3, run.stderr
    assert "init" not in run.stdout + run.stderr


def test_check_hosts_tells_how_long_it_took(folder: Path) -> None:
    """Each host's start has its time, also one that failed: a slow host is seen."""
    inventory = folder / "inventory.yaml"
    text = inventory.read_text().replace("/no/such/program", 'sh, -c, "sleep 1.2; exit 1"')
    inventory.write_text(text + "  vip: {address: 127.0.0.8, roles: [node], vantage: none}\n")
    done = netprobe("check", "--hosts", *TINY, cwd=folder)
    words = netprobe("check", "--hosts", *TINY, "-o", "json", cwd=folder).stdout
    hosts = {one["name"]: one["start_s"] for one in json.loads(words)["hosts"]}
    table = [re.split(r"\s{2,}", line.strip()) for line in done.stdout.splitlines()[:4]]
    times = {row[0]: row[table[0].index("TIME")] for row in table[1:]}

    assert done.returncode == 3
    assert times["vip"] == "-"
    assert re.fullmatch(r"\d+\.\d s", times["here"])
    assert float(times["gone"].removesuffix(" s")) >= 1.2
    assert hosts["vip"] is None
    assert 0 <= hosts["here"] < hosts["gone"]
    assert hosts["gone"] >= 1.2


NODE_PORTS = """\
schema: netprobe.inventory/1
settings: {platform: agent, publishing: nodeport}
hosts:
  w: {address: 10.255.0.1, roles: [worker]}
  c: {address: 10.255.0.2, roles: [hcp], vantage: none}
"""


@pytest.mark.parametrize("matrix", ["hypershift-hcp", "okd-hcp"])
def test_plan_warns_of_node_ports(tmp_path: Path, matrix: str) -> None:
    """Before any packet the plan says which numbers are no node ports; given ones end that."""
    (tmp_path / "inventory.yaml").write_text(NODE_PORTS)
    words = ("-m", matrix)
    text = netprobe("plan", *words, cwd=tmp_path).stdout
    count = netprobe("plan", *words, "--count", cwd=tmp_path)
    found = json.loads(netprobe("plan", *words, "-o", "json", cwd=tmp_path).stdout)["warnings"]
    ports = ("apiserver-port=31443", "konnectivity-port=31091", "ignition-port=31844")
    given = [word for port in ports for word in ("--set", port)]
    mended = netprobe("plan", *words, *given, cwd=tmp_path).stdout
    alone = netprobe("plan", *words, "--set", "publishing=loadbalancer", cwd=tmp_path).stdout

    ids = {name for one in found for name in one["requirements"]}
    assert {"worker-kube-apiserver", "worker-konnectivity", "worker-ignition-proxy"} <= ids
    for port, name in ((6443, "apiserver"), (8091, "konnectivity"), (8443, "ignition")):
        way = f"--set {name}-port=PORT"
        assert sum(one["text"].startswith(f"{port} is the port of the ") for one in found) == 1
        assert sum(way in one["text"] for one in found) == 1
        for lines in (text, count.stderr):
            assert sum("warning: " in line and way in line for line in lines.splitlines()) == 1
    assert count.stdout.count("\n") == 1
    assert "-port=PORT" not in mended + alone
