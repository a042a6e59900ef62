"""Titles and advice of findings: sentences that a firewall team can act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netprobe.judge.cut_off import host_of_link
from netprobe.judge.naming import FULL, Naming, addressed, group_by_wire, sides, unique
from netprobe.judge.places import common_places
from netprobe.judge.rehearsed import word_remedy
from netprobe.model.reasons import find_reason
from netprobe.model.result import FILTERED, Place, Result

TemplateWords = Mapping[str, str | int | None]

_AT: dict[Place, str] = {
    "path": "on the path",
    "destination": "by the destination's own firewall",
    "return-path": "on the way back",
    "source": "by the source's own firewall",
    "host": "by a host that may be down",
    "service": "by the service",
}


def _word_exposed(members: Sequence[Result]) -> str:
    """Say what a port does that must not answer: a quiet service takes what comes."""
    if all(member.reason == "no-response" for member in members):
        return "must be closed to others, and takes what they send"
    return "must not answer, and does"


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
        return "exposed", f"{what} of {naming.names(destinations)} {_word_exposed(members)}"
    reason = find_reason(first.reason)
    cut_off = host_of_link(first) if everything else None
    if cut_off is not None:
        return (
            "host",
            f"{cut_off} is cut off: nothing that was probed gets to it or from it: {what}",
        )
    if reason.title:
        return reason.kind, reason.title.format_map(_title_words(members, first, naming))
    if first.where == ("source",):
        return "source", f"{naming.names(sources)} itself stops {naming.sent(members)}"
    between = naming.between(members)
    both = ", in both directions" if sides(members) is not None else ""
    flows = f"everything that was probed {between}" if everything else f"{what} {between}"
    both += f": {what}" if everything else ""
    if not everything and len(group_by_wire(members)) > 1:
        flows += " (each where it is required)"
    routers = _list_routers(members)
    if routers and first.where == ("path",):
        verb = (reason.router_does or ("rejects", "reject"))[len(routers) > 1]
        return "router", f"{' and '.join(routers)} {verb} {flows}{both}"
    if first.state == "closed" and first.where == ("service",):
        return "missing", _word_missing(first, f"{what} of {naming.names(destinations)}")
    place = f" {reason.by}" if reason.by else _word_place(common_places(members))
    kind = _kind_of_finding(sources, destinations)
    return kind, f"{flows} is {_word_end(members)}{place}{both}"


def _word_missing(first: Result, what: str) -> str:
    """Word that no service has the port on the address that was probed."""
    if _is_on_loopback(first):
        return f"{first.holder} holds {what} on loopback only"
    return f"nothing listens on {what}"


def _is_on_loopback(result: Result) -> bool:
    """Tell whether a service that must be there is, but for its own host alone."""
    refused = result.state == "closed" and result.where == ("service",)
    return refused and result.holder is not None and find_reason(result.reason).shares != "holder"


def _title_words(members: Sequence[Result], first: Result, naming: Naming) -> TemplateWords:
    return {
        **_mtu_words(first),
        "what": naming.ports(members),
        "ends": naming.names(unique(member.destination for member in members)),
        "sources": naming.names(unique(member.source for member in members)),
        "hosts": addressed(members),
        "sent": naming.sent(members),
        "between": naming.between(members),
        "address": first.address,
        "addresses": naming.names(unique(member.address for member in members)),
        "holder": first.holder,
        "next_hop": first.next_hop,
        "router": first.rejected_by,
        "carriers": _name_carriers(_list_routers(members)),
        "driver": f" (driver {first.driver})" if first.driver else "",
    }


def _mtu_words(first: Result) -> TemplateWords:
    """Give what a path carries and needs; records of older versions have no needed MTU."""
    needed = first.needed_mtu_bytes
    sender = "the interfaces send" if first.protocol == "tcp" else "the overlay needs"
    return {
        "path": first.path_mtu_bytes,
        "needed": needed or "the overlay's",
        "needs": "" if needed is None else f" ({sender} {needed})",
    }


def _list_routers(members: Sequence[Result]) -> list[str]:
    return unique(one.rejected_by for one in members if one.rejected_by is not None)


def _name_carriers(routers: Sequence[str]) -> str:
    return f"{' and '.join(routers)} {'carries' if len(routers) == 1 else 'carry'}"


def _word_end(members: Sequence[Result]) -> str:
    """Say in one word what became of the packets."""
    ends: set[str] = {find_reason(member.reason).end for member in members}
    filtered = all(member.state in FILTERED for member in members)
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


def advice(members: Sequence[Result], first: Result, *, everything: bool = False) -> str:
    """Advice for the places that are still possible, worded by ``first`` of the members.

    People order firewall rules by it, so it names every port and every host.
    """
    words = _words_for_templates(members, first)
    places = common_places(members)
    templates = _choose_templates(first, places)
    if everything and "path" in places and _word_end(members) == "dropped":
        templates.append(_NO_WORD)
    if everything and first.where == ("path",) and _may_be_a_route(first):
        templates.append(_BY_ROUTE)
    if _BY_PLACE["destination"] in templates and places == ("destination",):
        words, templates = _split_answers(members, words)
    cut_off = host_of_link(first) if everything else None
    if cut_off is not None:
        words, templates = {**words, "cut_off": cut_off}, [_CUT_OFF]
    return " ".join(template.format_map(words) for template in templates)


def _split_answers(
    members: Sequence[Result], words: TemplateWords
) -> tuple[TemplateWords, list[str]]:
    """Word what the destination's firewall must let in apart from the answers that it keeps."""
    out = [one for one in members if one.got_there]
    into = [one for one in members if not one.got_there]
    told = {**words, "rule": FULL.rules(into), "answers": FULL.rules(out)}
    return told, [_BY_PLACE["destination"]] * bool(into) + [_ANSWERS_OUT] * bool(out)


def _words_for_templates(members: Sequence[Result], first: Result) -> TemplateWords:
    destination = FULL.names(unique(member.destination for member in members))
    ports = FULL.ports(members)
    itself = destination == first.address
    return {
        **_mtu_words(first),
        "ports": ports,
        "rule": FULL.rules(members),
        "sent": FULL.sent(members),
        "source": FULL.names(unique(member.source for member in members)),
        "destination": destination,
        "hosts": addressed(members),
        "between": FULL.between(members),
        "address": first.address,
        "addresses": FULL.names(unique(member.address for member in members)),
        "alive": "runs" if itself else f"runs and has the address {first.address}",
        "router": " and ".join(_list_routers(members)) or "the firewall on the way",
        "holder": first.holder or "the process that holds the port",
        "next_hop": first.next_hop or "its next hop",
        "commands": _word_commands(members),
    }


def _word_commands(members: Sequence[Result]) -> str:
    """Say on which hosts which offloads are to be switched off."""
    hosts: dict[str, dict[str, None]] = {}
    for one in members:
        host = one.destination if one.where == ("destination",) else one.source
        hosts.setdefault(word_remedy(one.device), {})[host] = None
    return "; ".join(f"On {FULL.names([*some])} run {word}" for word, some in hosts.items())


def _may_be_a_route(result: Result) -> bool:
    """Tell whether a router refuses by a word that firewalls and routes have in common."""
    return result.state == "filtered" and result.reason == "host-unreach"


def _choose_templates(first: Result, places: Sequence[Place]) -> list[str]:
    if first.verdict == "exposed":
        return [_EXPOSED_ON_THE_WAY if first.where == ("path",) else _EXPOSED]
    if _is_on_loopback(first):
        return [_ON_LOOPBACK]
    by_reason = find_reason(first.reason).advice.get(first.where)
    if by_reason is not None:
        return [by_reason]
    return [_BY_PLACE[place] for place in sorted(places, key=_RANK.index)]


_EXPOSED = "Bind the service on {destination} to loopback only, or close {ports} in its firewall."
_EXPOSED_ON_THE_WAY = (
    "Find what answers {ports} for {addresses} on the way, a proxy or an address translation, and "
    "let it refuse or drop that {between}."
)
_ON_LOOPBACK = (
    "If {holder} is the service, let it listen on {address} of {destination}, too; if it is not, "
    "start the service there."
)
_ANSWERS_OUT = "Let the answers to {answers} out in the firewall of {destination} itself."
_CUT_OFF = (
    "Check the link of {cut_off}: its device and cable, and the port and VLAN at the other end."
)
# Nothing gets through, and nobody says why: a firewall's silence is that of a router.
_NO_WORD = "If no firewall there drops it, a router there has no route for it, or forwards nothing."
_BY_ROUTE = "If no firewall there rejects it, a route there has the type unreachable."
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
