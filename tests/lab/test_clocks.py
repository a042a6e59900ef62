"""Time as hosts get it: real chronyd, one with another clock; chronyd -Q tells the truth."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab
from tests.lab.opening import open_lab
from tests.lab.services import place, shift_clock

# By host: its address, chronyd's configuration, and how far faketime shifts its clock, in s.
SERVERS: dict[str, tuple[str, str, float]] = {
    "good": ("10.93.2.1", "local stratum 3\n", 0),
    "unsynchronised": ("10.93.2.2", "", 0),
    "ahead": ("10.93.2.3", "local stratum 3\n", 2.5),
    "behind": ("10.93.2.4", "local stratum 3\n", -3600),
    "little": ("10.93.2.5", "local stratum 3\n", 0.3),
    "alone": ("10.93.2.6", "local stratum 10\n", 0),
}
LATE = "10.93.2.7"
# As far as an agent that is late to read an answer lets it be told.
HOUR = r"3,(599\.[89]|600\.[0-2])"
# It has the time of netprobe's own host, and every answer leaves 1.2 s after it was ready.
LATE_SERVER = """
import socket, struct, sys, threading, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((sys.argv[1], 123))
def answer(data, sender):
    now = time.time() + 2208988800
    stamp = struct.pack(">II", int(now) % 2**32, int(now % 1 * 2**32))
    time.sleep(1.2)
    sock.sendto(b"\\x24\\x02\\x06\\xe8" + bytes(20) + data[40:48] + stamp * 2, sender)
while True:
    threading.Thread(target=answer, args=sock.recvfrom(512)).start()
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A node, and a time server of each kind."""
    with open_lab(Lab(), "chronyd", "faketime") as lab:
        router = lab.router("r", "10.93.0.1")
        lab.host("node", router, "10.93.1.1")
        for name, (address, settings, shift_s) in SERVERS.items():
            host = lab.host(name, router, address)
            own = f"pidfile {lab.folder}/{name}.pid\nbindaddress {address}\n"
            config = lab.write(f"{name}.conf", f"{settings}allow all\ncmdport 0\n{own}")
            config.chmod(0o644)
            before = shift_clock(f"{shift_s:+}s") if shift_s else ()
            host.spawn(
                *before, "chronyd", "-d", "-x", "-u", "root", "-f", str(config),
                stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            host.wait_until_listening(place("udp", address, 123))
        host = lab.host("late", router, LATE)
        host.spawn(sys.executable, "-c", LATE_SERVER, LATE)
        host.wait_until_listening(place("udp", LATE, 123))
        yield lab


def run(lab: Lab, *words: str) -> tuple[Finished, dict[str, tuple[str, str, str]]]:
    """Verdict, sentence and warnings by server."""
    servers = (*SERVERS, "late")
    roles = {"node": ["node"], **{name: ["external-ntp"] for name in servers}}
    inventory = lab.inventory(roles, without_agent=servers)
    chosen = ("-m", "deckhouse-nodes", "-i", str(inventory), "--only", "ntp")
    done = netprobe("run", *chosen, "-o", "json", *words)
    return done, {
        one["destination"]: (one["verdict"], one["because"], "\n".join(one["warnings"]))
        for one in done.results
        if one["requirement"] == "ntp"
    }


def test_clocks_before_the_installation(lab: Lab) -> None:
    """All flows pass; of a clock that is off, or a server without time, a warning says what and
    how; the server that is an hour behind all others has a result of its own."""
    done, found = run(lab)

    assert done.status == 1
    (apart,) = [one for one in done.results if one["requirement"] == "clock"]
    assert (apart["source"], apart["verdict"], apart["reason"]) == (
        "behind", "blocked", "clock-apart",
    )  # fmt: skip
    assert re.search(
        rf"the clock of the time server behind is {HOUR} s behind the clock of", apart["because"]
    )
    assert {verdict for verdict, _, _ in found.values()} == {"pass"}
    warnings = {name: text for name, (_, _, text) in found.items() if text}
    assert set(warnings) == {"unsynchronised", "ahead", "behind", "alone"}
    assert "not synchronised itself (stratum 0)" in warnings["unsynchronised"]
    assert re.search(
        r"the clock of node is 2\.[3-7] s behind that of ahead \(10\.93\.2\.3\)", warnings["ahead"]
    )
    assert re.search(rf"the clock of node is {HOUR} s ahead of that of behind", warnings["behind"])
    assert "has stratum 10" in warnings["alone"]
    assert "late" not in warnings, "its answer to the first packet is not timed from another one"


def test_a_server_without_time_fails_a_live_run(lab: Lab) -> None:
    """Nobody can set his clock by it; the source's own clock is no fault of the flow."""
    done, found = run(lab, "--live")

    assert done.status == 1
    assert [name for name, one in found.items() if one[0] == "blocked"] == ["unsynchronised"]
    finding, _apart = done.document["findings"]
    assert finding["title"] == "unsynchronised has no time to give (1 flow)"
    assert "chronyc sources" in finding["advice"]


def test_a_host_whose_clock_is_minutes_ahead(lab: Lab) -> None:
    """It is named, held against the other hosts and the server; no flow changes its verdict. It can
    be accepted, and is asked again, as any result is."""
    for name in ("other", "shifted"):
        if name not in lab.namespaces:
            lab.host(name, lab["r"], {"other": "10.93.1.2", "shifted": "10.93.1.3"}[name])
    roles = {"node": ["node"], "other": ["node"], "shifted": ["node"], "good": ["external-ntp"]}
    late: dict[str, object] = {
        "vantage": {"command": [*lab["shifted"].enter, *shift_clock("+420s")]}
    }
    inventory = lab.inventory(roles, without_agent=("good",), overrides={"shifted": late})
    chosen = ("run", "-m", "deckhouse-nodes", "-i", str(inventory), "--only", "ntp", "-o", "json")
    done = netprobe(*chosen)
    first = lab.write("first.json", done.stdout)
    entries = netprobe(
        "accept", str(first), "--finding", "1", "--reason", "known", "--owner", "team",
        "--ticket", "CHG-7", "--until", "never",
    )  # fmt: skip
    accepted = lab.write("accepted.yaml", entries.stdout)
    check = netprobe(
        "check", "--accepted", str(accepted), "-m", "deckhouse-nodes", "-i", str(inventory)
    )
    same = netprobe(*chosen, "--accepted", str(accepted))
    again = netprobe(*chosen, "--retry", str(first))

    assert done.status == 1, done.stdout
    assert (entries.status, check.status, same.status) == (0, 0, 0), check.stderr + same.stderr
    assert [one["verdict"] for one in again.results] == [one["verdict"] for one in done.results]
    (apart,) = [one for one in done.results if one["requirement"] == "clock"]
    assert apart["source"] == "shifted"
    assert apart["because"].startswith("the clock of shifted is 4")
    assert all(name in apart["because"] for name in ("node", "other", "the time server good"))
    others = [one for one in done.results if one["requirement"] == "ntp"]
    assert {one["verdict"] for one in others} == {"pass"}
    assert len(others) == 3


def test_a_server_that_ignores_one_host(lab: Lab) -> None:
    """chronyd lets one node ask and not the other, which is blocked; `service` stays a place."""
    address = "10.93.2.8"
    nodes = {"asker": "10.93.1.4", "ignored": "10.93.1.5"}
    for name, own in nodes.items():
        lab.host(name, lab["r"], own)
    host = lab.host("choosy", lab["r"], address)
    own = f"pidfile {lab.folder}/choosy.pid\nbindaddress {address}\n"
    allowed = nodes["asker"]
    config = lab.write("choosy.conf", f"local stratum 3\nallow {allowed}\ncmdport 0\n{own}")
    config.chmod(0o644)
    host.spawn(
        "chronyd", "-d", "-x", "-u", "root", "-f", str(config),
        stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    host.wait_until_listening(place("udp", address, 123))
    roles = {"asker": ["node"], "ignored": ["node"], "choosy": ["external-ntp"]}
    chosen = ("-m", "deckhouse-nodes", "--only", "ntp", "-o", "json")

    both = netprobe("run", *chosen, "-i", str(lab.inventory(roles, without_agent=("choosy",))))
    del roles["asker"]
    alone = netprobe("run", *chosen, "-i", str(lab.inventory(roles, without_agent=("choosy",))))

    verdicts = {one["source"]: one["verdict"] for one in both.results}
    assert verdicts == {"asker": "pass", "ignored": "blocked"}
    (result,) = [one for one in both.results if one["source"] == "ignored"]
    assert {"path", "service"} <= {*result["where"]}
    assert "in this run it answered asker: something on the way stops ignored" in result["because"]
    (result,) = alone.results
    assert result["verdict"] == "inconclusive"
    assert "in this run it answered nobody" in result["because"]


@pytest.mark.full
@pytest.mark.parametrize("name", ["good", "ahead"])
def test_the_offset_is_the_one_that_chronyd_measures(lab: Lab, name: str) -> None:
    """An independent client measures the same shift."""
    address, _, shift_s = SERVERS[name]
    pid = f"pidfile {lab.folder}/asking-{name}.pid"
    asking = ["chronyd", "-Q", "-d", "-t", "8", f"server {address} iburst", "cmdport 0", pid]
    done = subprocess.run(
        [*lab["node"].enter, *asking], capture_output=True, text=True, check=False
    )
    wrong = re.search(r"clock wrong by (-?[\d.]+) seconds", done.stderr)

    assert wrong is not None
    assert abs(float(wrong[1]) - shift_s) < 0.1
