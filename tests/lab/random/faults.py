"""Do a fault to an estate that stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.lab.netlab import Lab, wait_for
from tests.lab.random.build import Built, relay, serve
from tests.lab.random.estate import (
    Behind,
    Custom,
    Cut,
    Dead,
    Duplicate,
    Estate,
    FewSyns,
    Firewall,
    FirstSyn,
    Flow,
    Held,
    Loss,
    Narrow,
    Relay,
    Route,
    Translation,
    router_name,
)

BITS = {4: 32, 6: 128}
_QUIET = (
    "icmp type destination-unreachable icmp code frag-needed drop",
    "icmpv6 type packet-too-big drop",
)


@contextmanager
def built(estate: Estate) -> Iterator[Built]:
    """The estate with its faults; gone afterwards."""
    with Lab() as lab:
        standing = Built(lab, estate)
        # A dead host takes no routes and no addresses any more.
        for fault in sorted(estate.faults, key=lambda one: isinstance(one, Dead)):
            DO[type(fault)](standing, fault)
        yield standing


def _filter(built: Built, fault: Firewall) -> None:
    built.filter(fault.machine, fault.hook, _rule(built.estate, fault))


def _lose(built: Built, fault: Loss) -> None:
    lost = f"numgen random mod 100 < {fault.percent} drop"
    built.table(fault.machine, "filter", "forward", -10, [lost])


def _kill(built: Built, fault: Dead) -> None:
    built.lab[fault.machine].ip("link set eth0 down")


def _translate(built: Built, fault: Translation) -> None:
    words = _match(built.estate, fault.flow, fault.scope, answers=False)
    ip = "ip" if fault.flow.family == 4 else "ip6"
    if fault.served and fault.to and fault.flow.port:
        wildcard = "0.0.0.0" if fault.flow.family == 4 else "::"
        place = (fault.flow.protocol, wildcard, fault.port or fault.flow.port)
        serve(built.lab[fault.to], [place])
    if fault.to is None:
        return built.table(fault.machine, "nat", "postrouting", 100, [f"{words} masquerade"])
    if fault.to == fault.machine:
        return built.table(
            fault.machine, "nat", "prerouting", -100, [f"{words} redirect to :{fault.port}"]
        )
    to = built.address(fault.to, fault.flow.family)
    to = f"[{to}]" if fault.flow.family == 6 and fault.port else to
    target = f"{to}:{fault.port}" if fault.port else to
    return built.table(fault.machine, "nat", "prerouting", -100, [f"{words} dnat {ip} to {target}"])


def _misroute(built: Built, fault: Route) -> None:
    flow, part = fault.flow, built.lab[fault.machine]
    end = built.estate[flow.source if fault.answers else flow.destination]
    to = f"{end.address(flow.family)}/{BITS[flow.family]}"
    if fault.action.startswith("via "):
        if flow.family == 6 and fault.machine in (flow.source, flow.destination):
            to = "default"  # an IPv6 host takes a shorter route when a gateway is dead
        part.ip(f"route replace {to} via {_wrong_gateway(built, fault)}")
    elif fault.action != "none":
        part.ip(f"route replace {fault.action} {to}")
    elif fault.machine in (flow.source, flow.destination):
        default = "default" if flow.family == 4 else "::/0"
        part.run("ip", f"-{flow.family}", "route", "del", default, check=False)
    else:
        # As if no table had it: the same error, and other addresses of the network keep theirs.
        part.run("ip", f"-{flow.family}", "rule", "add", "pref", "100", "to", to, "unreachable")


def _wrong_gateway(built: Built, fault: Route) -> str:
    family, name = fault.flow.family, fault.action.removeprefix("via ")
    if name.startswith("r"):
        return built.end(int(fault.machine[1:]), int(name[1:]), family)
    if name != "dead":
        return built.address(name, family)
    some = built.lab[fault.machine].address(family)
    return some.rpartition("." if family == 4 else ":")[0] + (".77" if family == 4 else ":77")


def _narrow(built: Built, fault: Narrow) -> None:
    for router in built.estate.links[fault.link]:
        name = router_name(router)
        built.lab[name].ip(f"link set l{fault.link} mtu {fault.mtu}")
        if fault.quiet:
            built.table(name, "filter", "output", -20, list(_QUIET))


def _duplicate(built: Built, fault: Duplicate) -> None:
    family = fault.flow.family
    address = built.estate[fault.flow.destination].address(family)
    built.lab[fault.machine].ip(f"address add {address}/{BITS[family]} dev lo nodad"
                               if family == 6 else f"address add {address}/32 dev lo")  # fmt: skip
    if fault.router:
        via = built.estate[fault.machine].address(family)
        built.lab[fault.router].ip(f"route replace {address}/{BITS[family]} via {via}")


def _cut(built: Built, fault: Cut) -> None:
    if fault.machine:
        segment = built.estate[fault.machine].segment
        switch = built.lab.namespaces.get(f"sw{segment}")
        router = built.lab[router_name(built.estate.segments[segment])]
        part, device = (switch, f"to-{fault.machine}") if switch else (router, f"s{segment}")
    else:
        part, device = built.lab[router_name(built.estate.links[fault.link][0])], f"l{fault.link}"
    part.ip(f"link set {device} down")
    far = built.lab[fault.machine or router_name(built.estate.links[fault.link][1])]
    shown = "eth0" if fault.machine else device
    wait_for(lambda: "NO-CARRIER" in far.run("ip", "-o", "link", "show", shown), "no carrier")


def _match(estate: Estate, flow: Flow, scope: str, *, answers: bool) -> str:
    """The packets of a flow, or of its answers, in nft's words."""
    ip = "ip" if flow.family == 4 else "ip6"
    source, far = (estate[name].address(flow.family) for name in (flow.source, flow.destination))
    words = (
        f"{ip} saddr {far} {ip} daddr {source}"
        if answers
        else f"{ip} saddr {source} {ip} daddr {far}"
    )
    if scope == "address":
        return words
    if flow.protocol == "icmp":
        kind = "icmp" if flow.family == 4 else "icmpv6"
        return f"{words} {kind} type {'echo-reply' if answers else 'echo-request'}"
    if scope == "protocol":
        return f"{words} meta l4proto {flow.protocol}"
    return f"{words} {flow.protocol} {'sport' if answers else 'dport'} {flow.port}"


def _rule(estate: Estate, fault: Firewall) -> str:
    """The nft rule of a firewall fault."""
    words = _match(estate, fault.flow, fault.scope, answers=fault.answers)
    if fault.data:
        words += " tcp flags & psh == psh"
    return _stop(words, fault.action, fault.flow.family)


def _stop(words: str, action: str, family: int) -> str:
    """Give the nft rule that drops or rejects what matches these words."""
    if action == "drop":
        return f"{words} drop"
    if action == "tcp-reset":
        return f"{words} meta l4proto tcp reject with tcp reset"
    return f"{words} reject with {'icmp' if family == 4 else 'icmpv6'} type {action}"


def _put_behind(built: Built, fault: Behind) -> None:
    """Add a rule about the packets of a flow as its translation leaves them."""
    made, flow = fault.translation, fault.translation.flow
    ip, family = "ip" if flow.family == 4 else "ip6", flow.family
    assert made.to is not None
    source = built.estate[flow.source].address(family)
    # What a router takes for itself has the address of the device that it came in by.
    to = "" if made.to == made.machine else built.address(made.to, family)
    port = made.port or flow.port
    ttl = fault.action.partition("ttl ")[2]
    side = "sport" if ttl else "dport"
    what = f" {flow.protocol} {side} {port}" if made.scope == "port" else ""
    if not ttl:
        words = f"{ip} saddr {source}{f' {ip} daddr {to}' if to else ''}{what}"
        return built.filter(fault.machine, fault.hook, _stop(words, fault.action, family))
    field = "ip ttl" if family == 4 else "ip6 hoplimit"
    words = f"{f'{ip} saddr {to} ' if to else ''}{ip} daddr {source}{what} {field} set {ttl}"
    return built.table(fault.machine, "filter", fault.hook, -150, [words])


def _drop_first_syns(built: Built, fault: FirstSyn) -> None:
    flow = fault.flow
    ip, kind = ("ip", "ipv4_addr") if flow.family == 4 else ("ip6", "ipv6_addr")
    to = built.estate[flow.destination].address(flow.family)
    who = f"{ip} saddr . tcp sport . tcp dport"
    built.lab[fault.machine].nft(
        f"""table inet first-syn-{flow.family}-{flow.port} {{
        set seen {{
            type {kind} . inet_service . inet_service; size 65535; flags dynamic,timeout
            timeout 60s
        }}
        chain c {{
            type filter hook forward priority -20;
            {ip} daddr {to} tcp dport {flow.port} tcp flags & (syn | ack) == syn \
                {who} != @seen add @seen {{ {who} }} drop
        }}
        }}"""
    )


def _relay(built: Built, fault: Relay) -> None:
    flow = fault.flow
    relay(built.lab[fault.machine], built.estate[flow.destination].address(flow.family), flow.port)
    words = _match(built.estate, flow, "port", answers=False)
    rule = f"{words} redirect to :{flow.port}"
    built.table(fault.machine, "nat", "prerouting", -100, [rule])


def _send_few_syns(built: Built, fault: FewSyns) -> None:
    built.lab[fault.machine].run("sysctl", "-qw", "net.ipv4.tcp_syn_retries=1")


def _hold(built: Built, fault: Held) -> None:
    """Start the service that holds a port."""
    flow = fault.flow
    loopback = {4: "127.0.0.1", 6: "::1"}
    wildcard = {4: "0.0.0.0", 6: "::"}
    own = built.address(flow.destination, flow.family)
    places = {"address": own, "wildcard": wildcard[flow.family], "loopback": loopback[flow.family]}
    where = places[fault.on]
    serve(built.lab[flow.destination], [(flow.protocol, where, flow.port)])


DO: dict[type, Callable[[Built, Any], None]] = {
    Firewall: _filter,
    Translation: _translate,
    Route: _misroute,
    Narrow: _narrow,
    Loss: _lose,
    Held: _hold,
    Duplicate: _duplicate,
    Dead: _kill,
    Cut: _cut,
    Behind: _put_behind,
    FirstSyn: _drop_first_syns,
    Relay: _relay,
    FewSyns: _send_few_syns,
    Custom: lambda built, fault: fault.do(built),
}
