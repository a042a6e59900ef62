"""Titles and advice of findings: sentences that a firewall team can act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netprobe.judge import mtu
from netprobe.judge.name_rows import ROWS
from netprobe.judge.naming import FULL, Naming, addressed, group_by_wire, sides, unique
from netprobe.judge.places import common_places
from netprobe.model.result import Place, Result

_NEXT_HOP = "{next_hop}, the next hop of {sources}, answers nothing: {sent}"
# Kind and title of a finding by its reason, where the reason says it all.
_TITLES = {
    # The network lets it through, and the two ends will not understand each other.
    "tls-not-expected": ("service", "{what} of {ends} speaks TLS where plaintext is expected"),
    "plaintext-not-tls": ("service", "{what} of {ends} does not speak TLS, which is expected"),
    "name-not-resolved": ("name", "{sources} cannot resolve {address}"),
    "port-taken": ("taken", "port taken: {holder} holds {what} of {ends}"),
    "other-run": ("other-run", "another netprobe run is active on {ends}: it holds {what}"),
    "host-down": ("host", "{hosts} is down or not reachable at all"),
    "address-here": ("machine", "{sources} has the address of {hosts} itself"),
    "other-machine": ("machine", "another machine answers for {hosts}"),
    "foreign-answer": ("machine", "another machine answers for {hosts}"),
    "unproved-machine": ("machine", "another machine seems to answer for {hosts}"),
    "next-hop-down": ("next-hop", _NEXT_HOP),
    "next-hop-silent": ("next-hop", _NEXT_HOP),
    "clock-server": ("clock", "{ends} has no time to give"),
    "bad-link": ("bundle", "one link of a bundle loses a part of {what} from {sources} to {ends}"),
    "nothing-listens": ("missing", "nothing listens on {what} of {ends}"),
    **{
        row.reason: ("names", "{ends} answers {what}, and names of the installation do not resolve")
        for row in ROWS.values()
        if row.reason is not None
    },
    "name-other-address": ("names", "{ends} gives names of the installation other addresses"),
}
# What a router says of packets for which it has no way.
_REFUSALS = {"net-unreach": "has no route for", "routing-loop": "is in a routing loop for"}
# What became of the packets; all other words are those of rejections.
_ENDS = {"no-response": "dropped", "reset": "reset"}
_AT: dict[Place, str] = {
    "path": "on the path",
    "destination": "by the destination's own firewall",
    "return-path": "on the way back",
    "source": "by the source's own firewall",
    "host": "by a host that may be down",
    "service": "by the service",
}
# Findings though neither blocked nor exposed.
TELLING_REASONS = frozenset(("tls-not-expected", "plaintext-not-tls", "other-run"))

# Who has the address, or that nobody has: one cause for all ports and sources.
OF_ADDRESS = frozenset(
    ("host-down", "address-here", "other-machine", "foreign-answer", "unproved-machine")
)


def kind_and_title(
    members: Sequence[Result], first: Result, naming: Naming, *, everything: bool = False
) -> tuple[str, str]:
    """The common factor of the members, and one line that says it; ``first`` speaks for them.

    ``everything``: nothing that was probed gets through between these hosts.
    """
    sources = unique(member.source for member in members)
    destinations = unique(member.destination for member in members)
    what = naming.ports(members)
    if first.verdict == "exposed":
        return "exposed", f"{what} of {naming.names(destinations)} must not answer, and does"
    if first.reason in _TITLES:
        kind, title = _TITLES[first.reason]
        return kind, title.format(
            what=what, ends=naming.names(destinations), sources=naming.names(sources),
            address=first.address, holder=first.holder, hosts=addressed(members),
            next_hop=first.next_hop, sent=naming.sent(members),
        )  # fmt: skip
    if first.where == ("source",):
        return "source", f"{naming.names(sources)} itself stops {naming.sent(members)}"
    between = naming.between(members)
    if first.reason in mtu.TITLES:
        return "mtu", mtu.title(first, between)
    both = ", in both directions" if sides(members) is not None else ""
    flows = f"everything that was probed {between}" if everything else f"{what} {between}"
    both += f": {what}" if everything else ""
    if not everything and len(group_by_wire(members)) > 1:
        flows += " (each where it is required)"
    routers = _list_routers(members)
    if routers and first.where == ("path",):
        verb = _REFUSALS.get(first.reason, "rejects" if len(routers) == 1 else "reject")
        return "router", f"{' and '.join(routers)} {verb} {flows}{both}"
    if first.state == "closed" and first.where == ("service",):
        return "missing", f"nothing listens on {what} of {naming.names(destinations)}"
    place = _word_place(common_places(members))
    kind = _kind_of_finding(sources, destinations)
    return kind, f"{flows} is {_word_end(members)}{place}{both}"


def _list_routers(members: Sequence[Result]) -> list[str]:
    return unique(one.rejected_by for one in members if one.rejected_by is not None)


def _word_end(members: Sequence[Result]) -> str:
    """Say in one word what became of the packets."""
    ends = {_ENDS.get(member.reason, "rejected") for member in members}
    filtered = all(member.state == "filtered" for member in members)
    return ends.pop() if len(ends) == 1 and filtered else "blocked"


def _word_place(places: Sequence[Place]) -> str:
    """Say where in few words, where no more than two places are left."""
    if not 0 < len(places) <= 2:
        return " at a place that is not narrowed down"
    return " " + " or ".join(_AT[place] for place in sorted(places, key=_RANK.index))


def _kind_of_finding(sources: Sequence[str], destinations: Sequence[str]) -> str:
    if len(sources) == 1 and len(destinations) == 1:
        return "pair"
    if len(destinations) == 1:
        return "destination"
    return "source" if len(sources) == 1 else "zone"


def advice(members: Sequence[Result], first: Result) -> str:
    """Advice for the places that are still possible, worded by ``first`` of the members.

    People order firewall rules by it, so it names every port and every host.
    """
    if first.reason in mtu.TITLES:
        return mtu.advice(first, FULL.between(members))
    words = _words_for_templates(members, first)
    templates = _choose_templates(first, common_places(members))
    return " ".join(template.format_map(words) for template in templates)


def _words_for_templates(members: Sequence[Result], first: Result) -> Mapping[str, str]:
    destination = FULL.names(unique(member.destination for member in members))
    ports = FULL.ports(members)
    itself = destination == first.address
    return {
        "ports": ports,
        "rule": FULL.rules(members),
        "sent": FULL.sent(members),
        "source": FULL.names(unique(member.source for member in members)),
        "destination": destination,
        "ends": addressed(members),
        "address": first.address,
        "alive": "runs" if itself else f"runs and has the address {first.address}",
        "router": " and ".join(_list_routers(members)) or "the firewall on the way",
        "holder": first.holder or "the process that holds the port",
        "next_hop": first.next_hop or "its next hop",
    }


def _choose_templates(first: Result, places: Sequence[Place]) -> list[str]:
    if first.verdict == "exposed":
        return [_EXPOSED]
    by_reason = _BY_REASON.get((first.reason, first.where))
    if by_reason is not None:
        return [by_reason]
    return [_BY_PLACE[place] for place in sorted(places, key=_RANK.index)]


_EXPOSED = "Bind the service on {destination} to loopback only, or close {ports} in its firewall."
_OTHER_MACHINE = (
    "Find out who has {address} beside {destination} and give one of them another address, or "
    "correct the inventory."
)
_UNPROVED_MACHINE = (
    "Find out what answers for {address}: correct the inventory's address of {destination} or the "
    "way onto it, or take the address off another machine."
)
_BY_REASON: dict[tuple[str, tuple[Place, ...]], str] = {
    **{
        (row.reason, ("service",)): "Mend the records or the server as said above, on "
        "{destination}; dig @{address} NAME on {source} shows the same."
        for row in ROWS.values()
        if row.reason is not None
    },
    (
        "clock-server",
        ("service",),
    ): "Mend the time source of {destination} (chronyc sources there), "
    "or give hosts another server.",
    ("name-not-resolved", ("source",)): "Create the DNS record of {address}, or correct the "
    "resolver of {source}.",
    ("port-taken", ("service",)): "On {destination}, stop {holder}, or move it to another port. If "
    "it is what the row is for, list its program in the matrix (process: [NAME]).",
    ("bad-link", ("path", "return-path")): "Try each link of the bundles between {source} and "
    "{destination} (LAG members, equal-cost routes) by itself: one of them, or the firewall behind "
    "it, drops what it gets.",
    ("other-run", ("service",)): "Wait for the other run to end, and run again.",
    ("nothing-listens", ("service",)): "Start the service at {ports} of {destination}, or correct "
    "its address in the inventory.",
    ("net-unreach", ("path",)): "Give {router} a route to {ends}.",
    ("routing-loop", ("path",)): "Mend the routes to {ends} on {router} and its neighbours: they "
    "send these packets round in a loop.",
    ("host-down", ("host", "path")): "Check that {destination} {alive}, and the routers before it.",
    ("next-hop-down", ("path", "source")): "Check that {next_hop} runs, and on {source} the route "
    "to {ends} and its cable.",
    ("next-hop-silent", ("path", "source")): "On {source}, see the route to {ends}: {next_hop} "
    "forwards nothing that anybody answers.",
    ("address-here", ("source",)): "Take {address} off {source}, or give one of the two another "
    "address.",
    ("other-machine", ("path",)): _OTHER_MACHINE,
    ("foreign-answer", ("path", "service")): _OTHER_MACHINE,
    ("unproved-machine", ("path",)): _UNPROVED_MACHINE,
    ("unproved-machine", ("destination", "path", "service")): _UNPROVED_MACHINE,
    ("no-carrier", ("path", "source")): "Check the cable of {source} and the port at its other "
    "end.",
    ("no-buffers", ("source",)): "On {source}, raise net.ipv4.neigh.default.gc_thresh3 (ipv6 "
    "likewise), or see which queue drops (tc -s qdisc).",
    ("reverse-path-filter", ("destination",)): "On {destination}, route the answers to {source} "
    "out by the device that the requests come in by, or set its rp_filter to 2 (loose).",
    ("local-firewall", ("source",)): "Allow {sent} in the firewall of {source} itself.",
    ("no-route", ("source",)): "Give {source} a route to {ends}.",
    ("no-response", ("source",)): "Let the answers to {sent} in on {source} itself: its firewall, "
    "conntrack and rp_filter.",
}
_BY_PLACE: dict[Place, str] = {
    "path": "Allow {rule} on {router}.",
    "destination": "Allow {rule} in the firewall of {destination} itself.",
    "return-path": "Let the answers of {destination} back to {source}: routes and firewalls of the "
    "way back.",
    "source": "Let {rule} out and the answers in on {source} itself: firewall and routing table.",
    "host": "Check that {destination} {alive}.",
    "service": "Check what listens on {destination} and on which address.",
}
# The likeliest place first.
_RANK: tuple[Place, ...] = ("path", "destination", "return-path", "service", "host", "source")
