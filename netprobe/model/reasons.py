"""What a reason means: one table that judge, findings, requests and reports read.

A row says how a finding is named, what became of the packets, whether a firewall rule can be the
cause or can mend it, what findings with this reason have in common, and what to do at which places.
Titles and advice may use the words that ``judge.advice`` fills in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from netprobe.model.reason import Reason, Team
from netprobe.model.rehearsal_reasons import OF_REHEARSALS
from netprobe.model.result import Finding, Place


def owner_of(finding: Finding) -> Team:
    """Give who must act for a finding: who keeps all the places that are left."""
    known = find_reason(finding.speaker.reason).owner
    owners = {_KEEPERS[place] for place in finding.where}
    return known or (owners.pop() if len(owners) == 1 else "unclear")


def find_reason(word: str) -> Reason:
    """Give what a reason means.

    Proxies and kernels have more words than a table can list (``proxy-407``), and so have records
    of later versions.
    """
    if word in REASONS:
        return REASONS[word]
    return _OF_PROXY if word.startswith("proxy-") else _OTHER


_KEEPERS: Final[Mapping[Place, Team]] = {
    "path": "network", "return-path": "network", "source": "hosts", "destination": "hosts",
    "host": "hosts", "service": "hosts",
}  # fmt: skip
_OTHER: Final = Reason()
# A proxy is asked in the destination's place: what is stopped is another flow.
_OF_PROXY: Final = Reason(rule_causes=False, rule_mends=False)
_SERVICE: Final[tuple[Place, ...]] = ("service",)
_SOURCE: Final[tuple[Place, ...]] = ("source",)
_PATH: Final[tuple[Place, ...]] = ("path",)
_NEAR: Final[tuple[Place, ...]] = ("path", "source")
_OTHER_MACHINE = (
    "Find out who has {address} beside {destination} and give one of them another address, or "
    "correct the inventory."
)
_UNPROVED_MACHINE = (
    "Find out what answers for {address}: correct the inventory's address of {destination} or the "
    "way onto it, or take the address off another machine."
)
_TAKEN_ON_THE_WAY = (
    "Find what takes {rule} on the way, a proxy or an address translation that answers for "
    "{address}, and let it reach {destination}."
)
_SILENT_NEXT_HOP = "{next_hop}, the next hop of {sources}, answers nothing: {sent}"
_LET_ICMP = (
    "Let ICMP fragmentation-needed (IPv6: packet-too-big) through on the way {between}, or "
    "raise the MTU of the link on the way to {needed} bytes, or "
)
_LOWER_MSS = _LET_ICMP + (
    "let the router there lower the MSS of TCP connections so that their packets have at most "
    "{path} bytes."
)
_LOWER_POD_MTU = _LET_ICMP + (
    "lower the MTU of the pod network so that its packets with the overlay's headers have at most "
    "{path} bytes."
)


def _make_machine_reason(advice: str, *places: tuple[Place, ...], verb: str = "answers") -> Reason:
    return Reason(
        kind="machine",
        title=f"another machine {verb} for {{hosts}}",
        rule_causes=False,
        rule_mends=False,
        shares="machine",
        advice=dict.fromkeys(places, advice),
        owner="unclear",
    )


def _make_name_reason(title: str) -> Reason:
    return Reason(
        kind="names",
        title=title,
        advice={
            _SERVICE: "Mend the records or the server as said above, on {destination}; "
            "dig @{address} NAME on {source} shows the same."
        },
    )


_NAMES_FAIL = _make_name_reason(
    "{ends} answers {what}, and names of the installation do not resolve"
)

REASONS: Final[Mapping[str, Reason]] = {
    # --- the flow gets through, or the destination answers ---
    "nonce-answer": Reason(),
    "seen-at-destination": Reason(),
    "syn-ack": Reason(),
    "udp-response": Reason(),
    "echo-reply": Reason(),
    "proxy-tunnel": Reason(),
    "full-size": Reason(),
    # --- what answers is something else ---
    "false-open": Reason(
        advice=dict.fromkeys((_PATH, _NEAR), _TAKEN_ON_THE_WAY),
        in_doubt="Find what answers in the destination's place, a proxy, a firewall that accepts "
        "connections itself or an address translation, and let it pass these flows on; then run "
        "again.",
    ),
    "reflected": Reason(),
    "redirected": Reason(
        kind="taken",
        title="a translation on {ends} takes {what}",
        rule_causes=False,
        rule_mends=False,
        advice={
            ("destination",): "On {destination}, find what takes {ports} (nft list ruleset, "
            "iptables -t nat -S, published ports of containers), and remove it or move the row."
        },
    ),
    "tls-not-expected": Reason(
        kind="service",
        title="{what} of {ends} speaks TLS where plaintext is expected",
        always_found=True,
    ),
    "plaintext-not-tls": Reason(
        kind="service",
        title="{what} of {ends} does not speak TLS, which is expected",
        always_found=True,
    ),
    "clock-server": Reason(
        kind="clock",
        title="{ends} has no time to give",
        advice={
            _SERVICE: "Mend the time source of {destination} (chronyc sources there), or give "
            "hosts another server."
        },
    ),
    "clock-apart": Reason(
        source_is="its clock",
        kind="clock",
        title="the clock of {sources} is minutes from the others'",
        rule_causes=False,
        rule_mends=False,
        shares="reason",
        advice={
            _SOURCE: "Set the clock of {source} (chronyc makestep), and see what it follows "
            "(chronyc sources): TLS and tokens fail by it."
        },
    ),
    "name-not-found": _NAMES_FAIL,
    "name-without-address": _NAMES_FAIL,
    "name-server-failure": _NAMES_FAIL,
    "name-server-refuses": _NAMES_FAIL,
    "name-unanswered": _NAMES_FAIL,
    "name-cut-off": _NAMES_FAIL,
    "name-odd-answer": _NAMES_FAIL,
    "name-other-address": _make_name_reason(
        "{ends} gives names of the installation other addresses"
    ),
    # --- who holds the port ---
    "nothing-listens": Reason(
        advice={
            _SERVICE: "Start the service at {ports} of {destination}, or correct its address in "
            "the inventory."
        },
    ),
    "port-in-use": Reason(of_port=True),
    "port-taken": Reason(
        kind="taken",
        title="port taken: {holder} holds {what} of {ends}",
        rule_causes=False,
        rule_mends=False,
        shares="holder",
        of_port=True,
        advice={
            _SERVICE: "On {destination}, stop {holder}, or move it to another port. If it is what "
            "the row is for, list its program in the matrix (process: [NAME])."
        },
    ),
    "holder-hidden": Reason(rule_mends=False, shares="holder", of_port=True),
    "loopback-holder": Reason(rule_mends=False, shares="holder", of_port=True),
    "unknown-holder": Reason(rule_mends=False, of_port=True),
    "other-run": Reason(
        kind="other-run",
        title="another netprobe run is active on {ends}: it holds {what}",
        rule_mends=False,
        shares="holder",
        always_found=True,
        advice={_SERVICE: "Wait for the other run to end, and run again."},
        owner="ourselves",
    ),
    # --- what the agents say ---
    "agents-disagree": Reason(rule_mends=False, shares="reason"),
    # --- what packets meet ---
    "no-response": Reason(
        end="dropped",
        advice={
            _SOURCE: "Let the answers to {sent} in on {source} itself: its firewall, conntrack "
            "and rp_filter."
        },
    ),
    "reset": Reason(end="reset"),
    "local-firewall": Reason(advice={_SOURCE: "Allow {sent} in the firewall of {source} itself."}),
    "bad-link": Reason(
        kind="bundle",
        title="one link of a bundle loses a part of {what} from {sources} to {ends}",
        end="dropped",
        rule_causes=False,
        rule_mends=False,
        advice={
            ("path", "return-path"): "Try each link of the bundles between {source} and "
            "{destination} (LAG members, equal-cost routes) by itself: one of them, or the "
            "firewall behind it, drops what it gets."
        },
    ),
    "reverse-path-filter": Reason(
        end="dropped",
        by="by the destination's reverse-path filter",
        rule_causes=False,
        rule_mends=False,
        advice={
            ("destination",): "On {destination}, route the answers to {source} out by the device "
            "that the requests come in by, or set its rp_filter to 2 (loose)."
        },
    ),
    "mtu-too-small": Reason(
        kind="mtu",
        title="{carriers} only {path} bytes {between}{needs}",
        router_is="the link behind {router}",
        rule_causes=False,
        rule_mends=False,
        shares="link",
        advice={
            _PATH: "Raise the MTU of the link behind {router} to {needed} bytes, or lower the MTU "
            "of the pod network so that its packets with the overlay's headers have at most "
            "{path} bytes."
        },
    ),
    "mtu-black-hole": Reason(
        kind="mtu",
        title="packets above {path} bytes vanish {between}{needs}",
        end="dropped",
        rule_causes=False,
        rule_mends=False,
        shares="link",
        advice={
            _PATH: _LOWER_MSS,
            ("return-path",): _LOWER_MSS,
            ("destination", "path"): _LOWER_POD_MTU,
            ("destination", "path", "return-path"): _LOWER_POD_MTU,
        },
    ),
    "mtu-not-measured": Reason(
        in_doubt="Mend what stops the other flows between these hosts, and run again: sizes are "
        "tried where small packets are answered."
    ),
    **OF_REHEARSALS,
    "no-buffers": Reason(
        rule_mends=False,
        advice={
            _SOURCE: "On {source}, raise net.ipv4.neigh.default.gc_thresh3 (ipv6 likewise), or "
            "see which queue drops (tc -s qdisc)."
        },
    ),
    # --- routes and machines ---
    "no-route": Reason(
        source_is="its routing table",
        kind="source",
        title="{sources} has no route to {ends}",
        advice={_SOURCE: "Give {source} a route to {hosts}."},
    ),
    "no-carrier": Reason(
        advice={_NEAR: "Check the cable of {source} and the port at its other end."}
    ),
    "next-hop-down": Reason(
        kind="next-hop",
        title=_SILENT_NEXT_HOP,
        shares="next-hop",
        advice={
            _NEAR: "Check that {next_hop} runs, and on {source} the route to {hosts} and its cable."
        },
    ),
    "next-hop-silent": Reason(
        kind="next-hop",
        title=_SILENT_NEXT_HOP,
        end="dropped",
        rule_causes=False,
        rule_mends=False,
        shares="next-hop",
        advice={
            _NEAR: "On {source}, see the route to {hosts}: {next_hop} forwards "
            "nothing that anybody answers."
        },
    ),
    "name-not-resolved": Reason(
        source_is="its name servers",
        kind="name",
        title="{sources} cannot resolve {addresses}",
        shares="name",
        advice={
            _SOURCE: "Create the DNS record of {addresses}, or correct the resolver of {source}."
        },
    ),
    "no-resolver": Reason(
        source_is="its name servers",
        kind="resolver",
        title="no configured name server of {sources} resolves names",
        rule_causes=False,
        rule_mends=False,
        shares="resolver",
        advice={
            _SOURCE: "On {source}, correct resolv.conf, or mend the name servers there and the way "
            "to them; dig @SERVER NAME on {source} shows the same."
        },
    ),
    "net-unreach": Reason(
        router_does=("has no route for", "have no route for"),
        router_is="{router} has no route",
        rule_causes=False,
        shares="router",
        advice={_PATH: "Give {router} a route to {hosts}."},
    ),
    "routing-loop": Reason(
        router_does=("is in a routing loop for", "are in a routing loop for"),
        router_is="a routing loop at {router}",
        rule_causes=False,
        shares="router",
        advice={
            _PATH: "Mend the routes to {hosts} on {router} and its neighbours: they send these "
            "packets round in a loop."
        },
    ),
    "host-down": Reason(
        kind="host",
        title="{hosts} is down or not reachable at all",
        shares="address",
        advice={("host", "path"): "Check that {destination} {alive}, and the routers before it."},
    ),
    "address-here": Reason(
        kind="machine",
        title="{sources} has the address of {hosts} itself",
        shares="address",
        advice={_SOURCE: "Take {address} off {source}, or give one of the two another address."},
    ),
    "answered-here": Reason(),
    "other-machine": _make_machine_reason(_OTHER_MACHINE, _PATH),
    "foreign-answer": _make_machine_reason(_OTHER_MACHINE, ("path", "service")),
    "unproved-machine": _make_machine_reason(
        _UNPROVED_MACHINE, _PATH, ("destination", "path", "service"), verb="seems to answer"
    ),
    # --- ICMP errors whose words say it all ---
    "host-unreach": Reason(),
    "proto-unreach": Reason(),
    "port-unreach": Reason(),
    "net-prohibited": Reason(),
    "host-prohibited": Reason(),
    "admin-prohibited": Reason(),
    "time-exceeded": Reason(),
    "policy-fail": Reason(),
    "reject-route": Reason(rule_mends=False),
    # --- nothing was sent, or nobody looked ---
    "no-permission": Reason(),
    "no-source-address": Reason(),
    "machine-busy": Reason(rule_mends=False),
}
