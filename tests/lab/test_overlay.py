"""Tunnels of the kernel between hosts whose port is open, and what ``--rehearse`` says of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab, unprivileged
from tests.lab.overlays import FAMILIES, LARGE, PORT, OverlayPair, Truth, overlays

pytestmark = [pytest.mark.lab, pytest.mark.slow]

GOOD, DEAD = Truth(True, True, True), Truth(False, False, False)
NO_TCP, NO_LARGE = Truth(True, False, False), Truth(True, True, False)
# The inner TCP checksum of VXLAN over IPv4 and IPv6 becomes another one.
SPOIL = (
    "meta nfproto ipv4 udp dport 8472 @th,312,8 6 @th,528,16 set 0xdead",
    "meta nfproto ipv6 udp dport 8472 @th,288,8 6 @th,688,16 set 0xdead udp checksum set 0",
)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


def told(pair: OverlayPair, *words: str) -> dict[tuple[str, int], tuple[object, ...]]:
    """Verdict, reason and places of each tunnel; the row itself passes everywhere."""
    done = pair.run("--rehearse", "-o", "json", *words)
    rows = [one["verdict"] for one in done.results if one["requirement"] == "vxlan"]
    assert rows
    assert {*rows} == {"pass"}, done.stdout
    return {
        key: (one["verdict"], one["reason"], tuple(one["where"]))
        for key, one in overlays(done).items()
    }


PASS = ("pass", "tunnel-transfer", ())
BROKEN = ("blocked", "overlay-broken", ("path",))
OFFLOAD = ("blocked", "overlay-offload", ("source",))


def everywhere(what: tuple[object, ...]) -> dict[tuple[str, int], tuple[object, ...]]:
    return {(host, family): what for host in "ab" for family in FAMILIES}


def test_a_card_that_forgets_inner_checksums(lab: Lab) -> None:
    """Its tunnels over IPv4 carry no TCP, though the port is open: the finding names the card, its
    driver and the remedy; over IPv6, where this card is healthy, there is none."""
    pair = OverlayPair(lab, "bad")
    done = pair.run("--rehearse", "--from", "a", "-o", "json")
    found = overlays(done)
    verdicts = {family: one["verdict"] for (_, family), one in found.items()}
    assert verdicts == {4: "blocked", 6: "pass"}
    assert {one["verdict"] for one in done.results if one["requirement"] == "vxlan"} == {"pass"}
    bad = found["a", 4]
    assert (bad["reason"], bad["where"]) == ("overlay-offload", ["source"])
    assert (bad["device"], bad["driver"]) == ("card", "tun")
    remedy = "ethtool -K card tx-udp_tnl-segmentation off tx-udp_tnl-csum-segmentation off"
    assert remedy in bad["because"]
    (finding,) = done.document["findings"]
    assert f"On a run {remedy} (netprobe has not done it)" in finding["advice"]
    assert done.status == 1


@pytest.mark.full
def test_a_card_at_the_other_end(lab: Lab) -> None:
    """Seen from the healthy host, the place is the destination: its card spoils the answers."""
    pair = OverlayPair(lab, "bad")
    assert pair.look(4) == NO_TCP
    assert pair.look(4, by_cpu=True) == GOOD
    assert pair.look(6) == GOOD
    found = told(pair)
    assert found == {
        ("a", 4): OFFLOAD, ("a", 6): PASS, ("b", 6): PASS,
        ("b", 4): ("blocked", "overlay-offload", ("destination",)),
    }  # fmt: skip


# Rules of a host for what comes in: those of ordinary firewalls, and filters of what is inside.
DROP_REST = (
    "ct state established,related accept", "meta l4proto icmpv6 accept", "udp dport 8472 accept",
    "drop",
)  # fmt: skip
INNER_ECHO = ("meta nfproto ipv4 udp dport 8472 @th,312,8 1 drop",)
NO_ECHO_TOO = "overlay-broken, too: no echo request passes"
NO_LARGE_TOO = "overlay-broken, too: TCP segments of full size do not pass"


@pytest.mark.full
@pytest.mark.parametrize(
    ("rules", "warning"),
    [(DROP_REST, ""), (INNER_ECHO, NO_ECHO_TOO), (LARGE[:1], NO_LARGE_TOO)],
    ids=["rest", "echo", "large"],
)
def test_a_bad_card_behind_a_firewall(lab: Lab, rules: tuple[str, ...], warning: str) -> None:
    """Whatever a firewall drops besides: the finding names the card, its driver and the remedy, and
    a warning says what the firewall does to the tunnel."""
    one, findings = _look_behind(lab, "bad", rules)
    assert (one["reason"], one["device"], one["driver"]) == ("overlay-offload", "card", "tun")
    assert [text.startswith(warning) for text in one["warnings"]] == [True] * bool(warning)
    (finding,) = findings
    assert "On a run ethtool -K card tx-udp_tnl-segmentation off" in finding["advice"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("rules", "reason"),
    [(DROP_REST, "tunnel-transfer"), (INNER_ECHO, "overlay-broken"), (LARGE[:1], "overlay-broken")],
    ids=["rest", "echo", "large"],
)
def test_a_healthy_card_behind_a_firewall(lab: Lab, rules: tuple[str, ...], reason: str) -> None:
    """The twin names no card: its tunnel passes, or the firewall alone breaks it."""
    one, findings = _look_behind(lab, "good", rules)
    assert (one["reason"], one.get("device"), one["warnings"]) == (reason, None, [])
    assert len(findings) == (reason != "tunnel-transfer")


def _look_behind(
    lab: Lab, card: str, rules: tuple[str, ...]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Give the result of the tunnel to a host with these rules, and the findings."""
    pair = OverlayPair(lab, card)
    lines = "\n".join(("type filter hook input priority 0;", *rules))
    pair.b.nft(f"table inet lab {{ chain input {{\n{lines}\n}}\n}}")
    done = pair.run("--rehearse", "--from", "a", "-o", "json")
    assert {one["verdict"] for one in done.results if one["requirement"] == "vxlan"} == {"pass"}
    return overlays(done)["a", 4], done.document["findings"]


@pytest.mark.full
def test_a_card_that_makes_all_checksums(lab: Lab) -> None:
    """The twin of the bad card: all tunnels pass."""
    pair = OverlayPair(lab, "good")
    assert [pair.look(family) for family in FAMILIES] == [GOOD, GOOD]
    assert told(pair) == everywhere(PASS)


@pytest.mark.full
def test_a_router_that_lets_all_through(lab: Lab) -> None:
    """All tunnels pass, with a transfer as their proof."""
    pair = OverlayPair(lab)
    assert [pair.look(family) for family in FAMILIES] == [GOOD, GOOD]
    done = pair.run("--rehearse", "-o", "json")
    assert done.status == 0
    for one in overlays(done).values():
        assert (one["verdict"], one["proof"]) == ("pass", "nonce")
        assert one["because"].startswith("200,000 bytes of TCP went each way")


@pytest.mark.full
def test_a_router_that_spoils_inner_checksums(lab: Lab) -> None:
    """Echo requests pass and TCP does not, whoever makes the checksums: the path is broken."""
    pair = OverlayPair(lab)
    for host in (pair.a, pair.b):
        host.run("ethtool", "-K", "e0", "tx", "off")
    pair.forward(SPOIL[0])
    assert pair.look(4) == pair.look(4, by_cpu=True) == NO_TCP
    assert pair.look(6) == GOOD
    found = told(pair)
    assert {key: one for key, one in found.items() if key[1] == 4} == {
        ("a", 4): BROKEN, ("b", 4): BROKEN,
    }  # fmt: skip
    assert found["a", 6] == found["b", 6] == PASS


@pytest.mark.full
def test_a_router_that_drops_large_segments(lab: Lab) -> None:
    """Small segments pass and full ones do not: the answer says that."""
    pair = OverlayPair(lab)
    pair.forward(*LARGE)
    assert [pair.look(family) for family in FAMILIES] == [NO_LARGE, NO_LARGE]
    done = pair.run("--rehearse", "-o", "json")
    found = overlays(done)
    assert len(found) == 4
    for one in found.values():
        assert (one["verdict"], one["reason"], one["where"]) == (*BROKEN[:2], ["path"])
        assert "small TCP segments pass" in one["because"]


@pytest.mark.full
def test_a_filter_of_network_ids(lab: Lab) -> None:
    """Nothing passes, and the row's own packets arrive: the filter is named as possible."""
    pair = OverlayPair(lab)
    pair.forward("udp dport 8472 @th,96,24 != { 0xfffffe, 0x000001 } drop")
    assert [pair.look(family, network=1) for family in FAMILIES] == [GOOD, GOOD]
    assert [pair.look(family) for family in FAMILIES] == [DEAD, DEAD]
    done = pair.run("--rehearse", "-o", "json")
    found = overlays(done)
    assert len(found) == 4
    for one in found.values():
        assert (one["verdict"], one["reason"]) == BROKEN[:2]
        assert "a filter for VXLAN network ids" in one["because"]


OTHER_PORT = 8469


@pytest.mark.full
def test_one_port_of_a_row_is_stopped(lab: Lab) -> None:
    """The tunnels on the row's other port pass, and those on this one wait for the finding: that is
    the network team's, and no flow is our own matter. A resumed run says the same."""
    pair = OverlayPair(lab)
    pair.forward("meta nfproto ipv4 udp dport 8472 drop")
    assert pair.look(4) == DEAD
    assert [pair.look(family, port=OTHER_PORT) for family in FAMILIES] == [GOOD, GOOD]
    row = {"udp": [OTHER_PORT, PORT]}
    done = pair.run("--rehearse", "-o", "json", row=row)
    earlier = str(lab.write("first.json", done.stdout))
    for again in (done, pair.run("--rehearse", "--resume", earlier, "-o", "json", row=row)):
        tunnels = [one for one in again.results if one["requirement"] == "vxlan/overlay"]
        told = {(one["port"], ":" in one["address"]): one["reason"] for one in tunnels}
        assert len(tunnels) == 8
        assert told == {
            (OTHER_PORT, False): "tunnel-transfer", (OTHER_PORT, True): "tunnel-transfer",
            (PORT, False): "row-stopped", (PORT, True): "tunnel-transfer",
        }  # fmt: skip
        (actor,) = again.document["overview"]["who"]
        assert (actor["owner"], actor["findings"], actor["untested"]) == ("network", [1], 2)


# Words before an agent that may not make a tunnel, and what the answer says.
FORBIDDEN = {
    "no rights": (unprivileged(), "b: the agent lacks CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN"),
    "raw": (["setpriv", "--bounding-set=-net_raw"], "b: the agent lacks CAP_NET_RAW"),
    "admin": (["setpriv", "--bounding-set=-net_admin"], "b: the agent lacks CAP_NET_ADMIN"),
    "namespaces": (["setpriv", "--bounding-set=-sys_admin"], "b: the agent lacks CAP_SYS_ADMIN"),
    "user": (
        ["unshare", "--user", "--map-root-user"],
        "b: a VXLAN device: Operation not permitted",
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("lack", FORBIDDEN)
def test_an_agent_without_rights(lab: Lab, lack: str) -> None:
    """Its tunnels are not tested, with the right that it lacks, and nothing else is guessed."""
    words, said = FORBIDDEN[lack]
    done = OverlayPair(lab).run("--rehearse", "-o", "json", enter={"b": words})
    found = overlays(done)
    assert len(found) == 4
    for one in found.values():
        assert (one["verdict"], one["reason"]) == ("not-tested", "no-permission")
        assert said in one["because"]
    assert {one["verdict"] for one in done.results if one["requirement"] == "vxlan"} == {"pass"}
    assert done.status == 3


@pytest.mark.full
def test_a_host_without_namespaces(lab: Lab) -> None:
    """A host that allows no further network namespace has no tunnels tested, with the reason."""
    forbid = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"'
    words = ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"]
    found = overlays(OverlayPair(lab).run("--rehearse", "-o", "json", enter={"b": words}))
    assert len(found) == 4
    for one in found.values():
        assert (one["verdict"], one["reason"]) == ("not-tested", "no-tunnel")
        assert "b: a network namespace of its own: No space left" in one["because"]


@pytest.mark.full
def test_a_port_that_a_tunnel_of_the_kernel_holds(lab: Lab) -> None:
    """The platform's own tunnel keeps its port: its host's tunnels are skipped, and say why."""
    pair = OverlayPair(lab)
    pair.b.ip(f"link add flannel.1 type vxlan id 1 dstport 8472 local {pair.b.address(4)}",
              "link set flannel.1 up")  # fmt: skip
    done = pair.run("--rehearse", "-o", "json")
    found = overlays(done)
    skipped = [one for one in done.document["skipped"] if one["requirement"] == "vxlan/overlay"]
    assert {key for key in found if key[1] == 4} == set()
    assert {(one["source"], one["destination"]) for one in skipped} == {("a", "b"), ("b", "a")}
    words = "b: the kernel's tunnel flannel.1 holds UDP port 8472"
    assert {one["reason"] for one in skipped} == {words}
    assert done.document["complete"]


@pytest.mark.full
def test_without_the_option(lab: Lab) -> None:
    """Nothing is rehearsed in a run without ``--rehearse``."""
    done = OverlayPair(lab).run("-o", "json")
    assert {one["requirement"] for one in done.results} == {"vxlan", "path-mtu"}
    assert done.status == 0


@pytest.mark.full
def test_a_retry_plays_again(lab: Lab) -> None:
    """What failed in a rehearsal is rehearsed again, without being asked for, and passes now."""
    pair = OverlayPair(lab)
    pair.forward(*LARGE)
    first = pair.run("--rehearse", "-o", "json")
    earlier = lab.write("first.json", first.stdout)
    assert pair.router is not None
    pair.router.nft("flush ruleset")
    again = pair.run("--retry", str(earlier), "-o", "json")
    assert {one["verdict"] for one in overlays(again).values()} == {"pass"}
    assert len(overlays(again)) == 4
    assert again.status == 0


@pytest.mark.full
def test_the_explanation_of_a_tunnel(lab: Lab) -> None:
    """``explain --rehearse`` says first what is touched, shows the tunnel as a flow of its own, and
    its exit status counts."""
    pair = OverlayPair(lab)
    pair.forward(*LARGE)
    files = pair.write_files()
    done = netprobe("explain", "--rehearse", "a", pair.b.address(4), "udp/8472", *files)
    assert "changes hosts for a moment" in done.stderr.splitlines()[0]
    assert "UDP port 8472 (row vxlan of m) and a VXLAN device" in done.stderr.splitlines()[1]
    assert "PASS: udp 8472 from a to b" in done.stdout
    assert "BLOCKED: udp 8472 from a to b" in done.stdout
    assert "small TCP segments pass" in done.stdout
    assert done.status == 1


@pytest.mark.full
def test_tunnels_of_a_covering_plan(lab: Lab) -> None:
    """``--cover zones`` rehearses what it chooses, and goes on where tunnels fail."""
    pair = OverlayPair(lab)
    pair.forward(*LARGE)
    done = pair.run("--rehearse", "--cover", "zones", "-o", "json")
    found = overlays(done)
    assert found
    assert {(one["verdict"], one["reason"]) for one in found.values()} == {BROKEN[:2]}
    assert done.document["complete"]
    assert done.status == 1


@pytest.mark.full
def test_an_accepted_tunnel(lab: Lab) -> None:
    """A finding of a rehearsal can be accepted as any other, and no firewall rule is asked for."""
    done = OverlayPair(lab, "bad").run("--rehearse", "--from", "a", "-o", "json")
    run = str(lab.write("run.json", done.stdout))
    entry = ("--reason", "x", "--owner", "y", "--ticket", "T", "--until", "never")
    file = lab.write("a.yaml", netprobe("accept", run, "--finding", "1", *entry).stdout)
    assert netprobe("report", run, "--accepted", str(file)).status == 0
    assert "no rule will help" in netprobe("request", run).stdout


@pytest.mark.full
def test_who_lacks_what(lab: Lab) -> None:
    """``check --hosts --rehearse`` names the host without the rights, and no other one."""
    pair = OverlayPair(lab)
    files = pair.write_files(enter={"b": unprivileged()})
    done = netprobe("check", "--hosts", "--rehearse", "-o", "json", *files)
    costs = {one["name"]: " ".join(one["cost"]) for one in json.loads(done.stdout)["hosts"]}
    lacks = "the agent lacks CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN"
    assert f"vxlan/overlay cannot be rehearsed: {lacks}" in costs["b"]
    assert "rehearsed" not in costs["a"]
