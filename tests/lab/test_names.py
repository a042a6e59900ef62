"""Names as hosts ask for them: real BIND and dnsmasq, real fragments; dig tells the truth."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.lab.cli import Finished, netprobe
from tests.lab.name_world import (
    API,
    APPS,
    BIG,
    BIND,
    MASQ,
    NOBODY,
    OLD_API,
    OLD_BIND,
    OTHER_API,
    SIX,
    WILD,
    WORKERS,
    ZONE,
    NameWorld,
)
from tests.lab.opening import open_lab

FRAGMENTS = "ip frag-off & 0x3fff != 0 drop"
NO_TCP = "tcp dport 53 drop"
# A name for each code, by the setting that asks for it.
CODES = {
    "api-hostname": f"nope.{ZONE}",
    "api-int-hostname": f"empty.{ZONE}",
    "oauth-hostname": "x.closed.test",
    "registry-hostname": "x.broken.test",
    "apps-hostname": f"*.apps.{ZONE}",
}
GOOD = {"api-hostname": f"api.{ZONE}", "api-int-hostname": f"big.{ZONE}"}


@pytest.fixture(scope="module")
def world() -> Iterator[NameWorld]:
    """The lab, with the programs that it needs."""
    with open_lab(NameWorld(), "named", "dnsmasq", "dig") as lab:
        yield lab


def by_protocol(done: Finished, source: str = "w1") -> dict[tuple[str, str], Mapping[str, Any]]:
    """The results by destination and protocol."""
    return {
        (one["destination"], one["protocol"]): one
        for one in done.results
        if one["source"] == source
    }


def warned(done: Finished, destination: str, protocol: str = "udp", source: str = "w1") -> str:
    """All warnings of a flow that must pass, as one text."""
    result = by_protocol(done, source)[destination, protocol]
    assert result["verdict"] == "pass", result["because"]
    return "\n".join(result["warnings"])


def test_codes_are_told_apart(world: NameWorld) -> None:
    """NXDOMAIN, no address, REFUSED and SERVFAIL are warnings before the installation."""
    for name, code in (("api", "NXDOMAIN"), ("oauth", "REFUSED"), ("registry", "SERVFAIL")):
        assert f"status: {code}" in world.dig("w1", BIND, CODES[f"{name}-hostname"])

    done = world.run_names({"bind": BIND}, CODES)

    assert done.status == 0
    for protocol in ("udp", "tcp"):
        said = warned(done, "bind", protocol).split("\n")
        assert [one.partition("; to do: ")[0] for one in said] == [
            f"bind ({BIND}) says NXDOMAIN for nope.{ZONE}: it does not exist there (before the "
            "installation that is normal, with --live it is a failure)",
            f"bind ({BIND}) knows empty.{ZONE}, and has no address for it (before the "
            "installation that is normal, with --live it is a failure)",
            f"bind ({BIND}) says REFUSED for x.closed.test: it does not serve this host, or "
            "not this name (with --live it is a failure)",
            f"bind ({BIND}) says SERVFAIL for x.broken.test: it could not find out itself (with "
            "--live it is a failure)",
        ]
        assert "create its record before hosts need it, or correct the setting api-host" in said[0]


def test_names_that_are_missing_fail_a_live_run(world: NameWorld) -> None:
    """The flow stays what it is: the finding says that the service does not know the names."""
    done = world.run_names({"bind": BIND}, CODES, "--live")

    assert done.status == 1
    result = by_protocol(done)["bind", "udp"]
    assert (result["verdict"], result["reason"], result["where"]) == (
        "blocked", "name-not-found", ["service"],
    )  # fmt: skip
    for word in ("NXDOMAIN for nope", "REFUSED for x.closed", "SERVFAIL for x.broken", "empty."):
        assert word in result["because"]
    (finding,) = done.document["findings"]
    assert finding["title"] == (
        "bind answers tcp 53; udp 53, and names of the installation do not resolve (2 flows)"
    )
    assert f"dig @{BIND} NAME on w1" in finding["advice"]


def test_a_server_that_was_not_updated(world: NameWorld) -> None:
    """Of two servers one has an older serial and another address than the inventory."""
    assert OLD_API in world.dig("w1", OLD_BIND, f"api.{ZONE}", "+short")

    done = world.run_names({"bind": BIND, "old": OLD_BIND}, {"api-hostname": f"api.{ZONE}"})

    said = warned(done, "old")
    assert f"old ({OLD_BIND}) says {OLD_API} for api.{ZONE}; the inventory has {API}" in said
    assert f"old ({OLD_BIND}) has serial 6 of {ZONE}, and {BIND} has 7" in said
    assert "the inventory has" not in warned(done, "bind")
    assert f"bind ({BIND}) says {API} for api.{ZONE}, and {OLD_BIND} says {OLD_API}" in warned(
        done, "bind"
    )


def test_fragments_that_vanish(world: NameWorld) -> None:
    """An answer above the MTU comes over TCP and in small, and not over UDP in full size."""
    big = f"big.{ZONE}"
    whole = world.dig("w1", BIND, big, "+bufsize=4096", "+ignore", "+short")
    assert len(whole.split()) == len(BIG)
    with world.rules(FRAGMENTS):
        assert "timed out" in world.dig("w1", BIND, big, "+bufsize=4096", "+ignore")
        done = world.run_names({"bind": BIND}, {"api-int-hostname": big})

    said = warned(done, "bind")
    assert f"bind ({BIND})'s answer of 1,644 bytes for {big} does not come over UDP" in said
    assert "let IP fragments from" in said
    assert warned(done, "bind", "tcp") == ""


@pytest.mark.full
def test_a_name_with_ipv6_alone(world: NameWorld) -> None:
    """It has an address; where the inventory has another for it, that is what is said."""
    name = f"six.{ZONE}"
    assert world.dig("w1", BIND, name, "+short").split() == []
    assert world.dig("w1", BIND, name, "AAAA", "+short").split() == [SIX]

    done = world.run_names({"bind": BIND}, {"registry-hostname": name}, "--live")
    assert done.status == 0
    assert warned(done, "bind") == warned(done, "bind", "tcp") == ""

    done = world.run_names({"bind": BIND}, {"api-hostname": name}, "--live")
    result = by_protocol(done)["bind", "udp"]
    assert (result["verdict"], result["reason"]) == ("blocked", "name-other-address")
    assert f"says {SIX} for {name}; the inventory has {API}" in result["because"]


@pytest.mark.full
def test_good_names_say_nothing(world: NameWorld) -> None:
    """Right answers, a large one too, leave no warning, also with --live; nor do no names."""
    done = world.run_names({"bind": BIND}, GOOD, "--live")
    assert done.status == 0
    assert warned(done, "bind") == warned(done, "bind", "tcp") == ""

    nameless = world.run_names({"wild": WILD, "old": OLD_BIND}, {})
    assert nameless.status == 0
    assert warned(nameless, "wild") == warned(nameless, "old", "tcp") == ""


@pytest.mark.full
def test_silence_is_no_nxdomain(world: NameWorld) -> None:
    """A forwarder behind the server is dead: it answers other questions, and this one never."""
    assert "timed out" in world.dig("w1", MASQ, "api.silent.test")

    done = world.run_names({"masq": MASQ}, {"api-hostname": "api.silent.test"})
    assert f"masq ({MASQ}) answers other questions, and not the one for api.silent" in warned(
        done, "masq"
    )
    live = world.run_names({"masq": MASQ}, {"api-hostname": "api.silent.test"}, "--live")
    assert by_protocol(live)["masq", "udp"]["reason"] == "name-unanswered"


@pytest.mark.full
def test_cut_off_and_no_tcp(world: NameWorld) -> None:
    """An answer that is cut off is asked for over TCP; where that is dropped both say so."""
    big = f"big.{ZONE}"
    assert " tc " in world.dig("w1", MASQ, big, "+bufsize=4096", "+ignore").replace(";", " ")
    settings = {"api-int-hostname": big}
    assert "cuts its answer" not in warned(world.run_names({"masq": MASQ}, settings), "masq")
    with world.rules(NO_TCP):
        done = world.run_names({"masq": MASQ}, settings)

    assert by_protocol(done)["masq", "tcp"]["reason"] == "no-response"
    said = warned(done, "masq")
    assert f"masq ({MASQ}) cuts its answer for {big} off over UDP (1,228 bytes came)" in said
    assert f"allow tcp 53 to masq ({MASQ})" in said


@pytest.mark.full
def test_split_horizon(world: NameWorld) -> None:
    """Two sources get different answers of one server, and both are told who gets which."""
    name = f"split.{ZONE}"
    assert (API in world.dig("w1", BIND, name), OTHER_API in world.dig("w2", BIND, name)) == (
        True, True,
    )  # fmt: skip
    done = world.run_names({"bind": BIND}, {"api-int-hostname": name}, workers=("w1", "w2"))

    for source, own, other, theirs in (
        ("w1", API, "w2", OTHER_API),
        ("w2", OTHER_API, "w1", API),
    ):
        said = warned(done, "bind", source=source)
        assert (
            f"says {own} for {name} to this host, and {theirs} to {other} (split horizon)" in said
        )


@pytest.mark.full
def test_wildcard_that_swallows_everything(world: NameWorld) -> None:
    """Where any name is answered, an answer proves nothing; a wildcard that is meant is none."""
    assert APPS in world.dig("w1", WILD, f"whatever.{ZONE}", "+short")

    done = world.run_names({"wild": WILD}, {"api-int-hostname": f"api.{ZONE}"})
    assert f"answers {APPS} for any name in {ZONE}, so that its answer for api.{ZONE} proves" in (
        warned(done, "wild")
    )

    meant = {"apps-hostname": f"*.apps.{ZONE}", "oauth-hostname": f"oauth.apps.{ZONE}"}
    assert warned(world.run_names({"bind": BIND}, meant), "bind") == ""


@pytest.mark.full
def test_a_firewall_before_the_name_servers_is_one_finding(world: NameWorld) -> None:
    """That the host resolves no names comes of it; a host beside it that gets through has none."""
    with world.rules(f"ip saddr {WORKERS['w1']} meta l4proto {{ tcp, udp }} th dport 53 drop"):
        assert "timed out" in world.dig("w1", BIND, f"api.{ZONE}")
        done = world.run_names(
            {"bind": BIND}, {"api-hostname": f"api.{ZONE}"}, workers=tuple(WORKERS)
        )

    found = done.document["findings"]
    assert len(found) == 1, [(one["title"], one["where"], one["members"]) for one in found]
    (finding,) = found
    assert finding["title"] == (
        "tcp 53; udp 53 from w1 to bind is dropped at a place that is not narrowed down, and no "
        "names resolve on w1 (3 flows)"
    )
    assert finding["where"] == ["destination", "path", "return-path"]
    assert warned(done, "bind", source="w2") == ""


@pytest.mark.full
def test_the_hosts_own_resolv_conf(world: NameWorld) -> None:
    """Its servers are asked too: one that the inventory does not know, and one that is dead."""
    world.set_resolvers("w1", MASQ, NOBODY)
    try:
        done = world.run_names({"old": OLD_BIND}, {"api-hostname": f"api.{ZONE}"})
    finally:
        world.set_resolvers("w1", BIND)

    said = warned(done, "old")
    assert (
        f"the resolv.conf of the source names {MASQ}, which is no name server of the inventory"
        in said
    )
    assert (
        f"the resolv.conf of the source names {NOBODY}, which answers no question at all over udp"
        in said
    )
    assert f"old ({OLD_BIND}) says {OLD_API} for api.{ZONE}, and {MASQ} of its resolv.conf" in said


def test_a_host_whose_only_name_server_is_dead(world: NameWorld) -> None:
    """The flows pass, and the host is blocked once, with the names that it has no address for."""
    world.set_resolvers("w1", NOBODY)
    try:
        done = world.run_names(
            {"bind": BIND}, {"api-hostname": f"api.{ZONE}"}, workers=tuple(WORKERS)
        )
        world.set_resolvers("w1", NOBODY, MASQ)
        helped = world.run_names({"bind": BIND}, {"api-hostname": f"api.{ZONE}"})
        world.set_resolvers("w1", NOBODY)
        world.set_hosts("w1", f"{API} api.{ZONE}")
        own = world.run_names({"bind": BIND}, {"api-hostname": f"api.{ZONE}"})
    finally:
        world.set_resolvers("w1", BIND)
        world.set_hosts("w1")

    assert done.status == 1, done.stdout
    (fault,) = [one for one in done.results if one["requirement"] == "resolver"]
    assert (fault["source"], fault["verdict"], fault["reason"]) == ("w1", "blocked", "no-resolver")
    assert f"({NOBODY} answers nothing)" in fault["because"]
    assert fault["because"].endswith(f"an address of api.{ZONE}")
    others = [one for one in done.results if one["requirement"] != "resolver"]
    assert {one["verdict"] for one in others} == {"pass"}
    assert len(others) == 4
    assert (helped.status, own.status) == (0, 0)


def test_a_firewall_that_drops_one_hosts_questions(world: NameWorld) -> None:
    """The other host is answered by the same server: so the silence is blocked."""
    with world.rules(f"ip saddr {WORKERS['w2']} ip daddr {MASQ} udp dport 53 drop"):
        done = world.run_names({"masq": MASQ}, {}, workers=tuple(WORKERS))

    assert done.status == 1
    assert warned(done, "masq") == warned(done, "masq", "tcp", "w2") == ""
    result = by_protocol(done, "w2")["masq", "udp"]
    assert (result["verdict"], result["reason"]) == ("blocked", "no-response")
    assert {"path", "service"} <= {*result["where"]}
    assert "in this run it answered w1: something on the way stops w2" in result["because"]


def test_a_server_that_fails_for_everything(world: NameWorld) -> None:
    """It must run before the installation, and its answers are of no use: no pass; nor are they
    to the host that has no other name server."""
    done = world.run_names({"bind": BIND}, {"api-hostname": "x.broken.test"})

    (fault,) = [one for one in done.results if one["requirement"] == "resolver"]
    assert f"({BIND} says SERVFAIL to all that it was asked)" in fault["because"]
    result = by_protocol(done)["bind", "udp"]
    assert (result["verdict"], result["reason"]) == ("inconclusive", "name-server-failure")


@pytest.mark.full
def test_questions_with_edns_are_dropped(world: NameWorld) -> None:
    """A firewall that lets plain questions through, and none with an EDNS record."""
    # The header's count of additional records is the only one that differs.
    with world.rules("udp dport 53 @th,144,16 != 0 drop"):
        assert "timed out" in world.dig("w1", BIND, f"api.{ZONE}")
        assert API in world.dig("w1", BIND, f"api.{ZONE}", "+noedns", "+short")
        done = world.run_names({"bind": BIND}, {"api-hostname": f"api.{ZONE}"})

    said = warned(done, "bind")
    assert f"bind ({BIND}) answers plain questions for api.{ZONE}, and none with EDNS" in said


@pytest.mark.full
def test_a_run_without_a_coordinator_asks_no_names(world: NameWorld) -> None:
    """What to ask next depends on the answers: the flow passes, and a warning says so."""
    inventory = world.write_inventory({"bind": BIND}, {"api-hostname": f"nope.{ZONE}"}, ("w1",))
    bundle, out = world.folder / "names.pyz", world.folder / "results"
    chosen = ("-m", "hypershift-hcp", "-i", str(inventory), "--only", "worker-dns-udp")
    assert netprobe("bundle", *chosen, "--no-listen", "-o", str(bundle)).status == 0
    out.mkdir()
    world["w1"].run(sys.executable, str(bundle), "--host", "w1", "--out", str(out))
    files = [str(path) for path in out.iterdir()]

    assert warned(netprobe("merge", str(bundle), *files, "-o", "json"), "bind") == (
        "no name was asked for: in batch mode nobody speaks with the service that answered"
    )
