"""The verdict tables: symptom, protocol, listener and witness → verdict, with a sentence a row.

The first row that matches wins. ``tests/judge`` walks every combination: each has a row, and each
row is reached. ``make docs`` prints docs/verdicts.md from here.
"""

from __future__ import annotations

from typing import Final, Literal, cast

from msgspec import Struct

from netprobe.model.decision import Patterns, patterns
from netprobe.model.result import Place, Proof, State, Verdict

Symptom = Literal[
    "nonce", "foreign", "reflected", "service", "some-service", "other", "silent", "closed",
    "reset-after-open", "echo", "unasked", "intercepted", "sent",
    "reset", "reset-full-ttl", "reset-forged", "reset-genuine", "reset-here", "reset-blind",
    "reset-unproved", "reset-of-dead-host", "reset-of-lost-host", "data-rejected",
    "port-unreach", "proto-unreach", "refusal-unproved", "rejected-in-its-name", "rejected-there",
    "rejected-by-destination", "rejected-by-router", "rejected-by-source", "rejected-by-somebody",
    "router-no-route", "routing-loop", "host-down", "host-known-down", "no-neighbour", "no-route",
    "router-gives-up", "router-gave-up", "next-hop-down", "next-hop-silent", "no-carrier",
    "address-here", "answered-here", "other-machine", "held-twice", "unproved-machine",
    "bad-link",
    "stuck", "silence", "silence-maybe-stuck", "no-room",
    "name-not-resolved", "no-permission", "no-address", "unknown-failure",
    "machine-busy", "served-late",
    "tls", "plaintext", "tunnel",
    "proxy-denies", "proxy-fails", "proxy-odd", "proxy-unreached",
]  # fmt: skip
PROTOCOLS: Final = ("tcp", "udp", "icmp", "ipproto")
# Of a service that holds the port (``judge.holder``) - live: it is there rightly, or nobody can say
# otherwise · taken: before the installation, and it is another one · hidden: the agent may not see
# whether it is the right one · other-run: an agent of another run of netprobe. Of a port on which
# nobody listens - bound: yet the kernel gives it to nobody else · free: before the installation,
# when nothing should answer · closed: a translation may rightly take what comes for it.
# Without an agent there - unwatched: before the installation, when nothing should answer · unknown.
LISTENERS: Final = (
    "ours", "live", "taken", "hidden", "other-run", "loopback", "bound", "free", "closed",
    "unwatched", "unknown",
)  # fmt: skip
# socket: it reached a socket of our agent · captured: a recorder there saw it, no socket did ·
# not-captured: the recorder never saw it · unseen: no socket saw it, no recorder ran · none: no
# agent looked · no-way-back: the destination cannot answer · reverse-path: its recorder saw it on a
# device whose reverse-path filter drops it · answer-arrived: (silence only) the source's
# recorder saw the answer come. Of what must not answer - answered: the same address answered on
# other ports · stopped: its own firewall drops it, by its kernel's counters · let-in: a recorder
# there saw it, and by the counters its IP layer drops none of it
WITNESSES: Final = (
    "socket", "captured", "not-captured", "unseen", "none", "no-way-back", "reverse-path",
    "answer-arrived",
)  # fmt: skip


# Compared by identity: each look-up hashes the table.
class VerdictRow(Struct, frozen=True, eq=False):
    """One line of a verdict table, by (symptom, protocol, listener, witness).

    ``because`` may use the names of ``judge.words``; ``{icmp}`` in ``reason`` is the ICMP word.
    """

    patterns: Patterns
    verdict: Verdict
    state: State
    reason: str
    proof: Proof
    where: tuple[Place, ...]
    because: str


def _read_table(*rows: tuple[str, str, str, str]) -> tuple[VerdictRow, ...]:
    """Rows as tables write them.

    ``symptoms | protocols | listeners | witnesses``, ``verdict state reason proof``, the places,
    and the sentence.
    """
    return tuple(_read_row(*row) for row in rows)


def _read_row(key: str, conclusion: str, where: str, because: str) -> VerdictRow:
    verdict, state, reason, proof = conclusion.split()
    # The tables are literals, and tests/judge checks every word of them against the model's.
    return VerdictRow(
        patterns(key), cast(Verdict, verdict), cast(State, state), reason, cast(Proof, proof),
        cast(tuple[Place, ...], tuple(sorted(where.split()))), because,
    )  # fmt: skip


_OPEN_WORDS = "other silent closed reset-after-open unasked"
# Whatever spoke in the destination's name.
_ANSWERS = f"service some-service echo foreign reflected {_OPEN_WORDS} tls plaintext intercepted"
_RESETS = "reset reset-full-ttl reset-blind reset-genuine reset-forged"
# Whatever a holder lets through, or keeps quiet about.
_TOLD = "some-service other tls plaintext"
_ANSWERED = "silent closed reset-after-open unasked tunnel"
_SILENT = "silence silence-maybe-stuck sent"
_HELD = "live taken hidden other-run"
_NO_MATTER = "captured unseen none socket"
_NOBODY = "closed free bound loopback"
_TAKEN = (
    "the port is taken: {owner} holds it before the installation, and nothing shows that it is the "
    "service of this row"
)
_HIDDEN = (
    "{owner} holds the port, and whether it is the service of this row the agent may not see: "
    "{get_root_there}"
)
_UNKNOWN_HOLDER = (
    "something holds the port before the installation, nothing shows that it is the service of "
    "this row, and no agent on {destination} tells which program it is{shown}"
)
_OTHER_RUN = (
    "another netprobe run is active on {destination}: {owner} holds the port; run again when it "
    "has ended"
)

# What was seen says nothing of the network; mostly nothing was sent.
_UNABLE: Final = (
    ("no-permission | * | * | *", "not-tested unknown no-permission none", "source",
     "{source}'s agent has no permission to send {protocol}; {get_root_here}"),
    ("no-address | * | * | *", "not-tested unknown no-source-address none", "source",
     "{source} does not have the source address that the inventory gives"),
    ("unknown-failure | * | * | *", "not-tested unknown {failure} none", "source",
     "{source}'s kernel answered {failure}, which says nothing of the network"),
    ("machine-busy | * | * | *", "inconclusive unknown machine-busy none",
     "destination host path return-path source",
     "no answer, but {source}, {destination} or the way to their agents stood still for so long "
     "that one could have been missed, and again when it was asked once more: a machine is too "
     "busy, or was stopped"),
    ("served-late | * | * | *", "inconclusive unknown machine-busy none", "destination source",
     "our listener on {destination} got the request, and had its answer ready only when {source} "
     "had waited in vain and given up: a machine is too busy, and that says nothing of a "
     "firewall"),
)  # fmt: skip

ALLOWED: Final = _read_table(
    # --- answers -----------------------------------------------------------------------------
    # Its listener notes what it answers. Where nobody could ask it any more, the answer stands.
    ("nonce | * | ours | unseen", "inconclusive unknown agents-disagree none",
     "destination source",
     "{source}'s agent says that our listener on {destination} answered, and {destination}'s agent "
     "that nothing came there: one of the two does not tell the truth"),
    ("nonce | * | * | *", "pass open nonce-answer nonce", "",
     "our listener on {destination} answered the nonce"),
    # --- what the destination's recorder says did not come, somebody else answered ---------------
    (f"{_OPEN_WORDS} | tcp | ours | not-captured", "blocked open false-open none", "path source",
     "the connection opened, but {destination}'s packet recorder never saw the data that followed: "
     "something on the way drops packets with data, or opens connections for {address}"),
    # A proxy that hands it on connects by itself: a holder gets what a recorder cannot know.
    (f"{_ANSWERS} | * | live hidden | not-captured", "inconclusive open false-open none", "path",
     "something answers for {address}, but {destination}'s packet recorder never saw the request: "
     "a proxy or an address translation on the way takes it, and whether it hands it on to {owner} "
     "is not known"),
    (f"{_ANSWERS} | * | taken | not-captured", "blocked open port-taken none", "path service",
     f"{_TAKEN}; and something on the way answers for {{address}}: {{destination}}'s packet "
     "recorder never saw the request"),
    (f"{_ANSWERS} | * | * | not-captured", "blocked open false-open none", "path source",
     "something answers for {address}, but {destination}'s packet recorder never saw the request: "
     "a proxy or an address translation on the way takes it"),
    (f"{_RESETS} | * | * | not-captured", "blocked filtered reset none", "path source",
     "refused, but {destination}'s packet recorder never saw the request: a firewall on the way "
     "forges the reset, or a translation sends the request elsewhere"),
    ("port-unreach proto-unreach refusal-unproved rejected-there rejected-by-destination | * | * | "
     "not-captured",
     "blocked filtered {icmp} none", "path source",
     "{icmp} from {offender}, but {destination}'s packet recorder never saw the request: a "
     "translation on the way sends it elsewhere, and hides who rejects it"),
    ("service | tcp | * | *", "pass open syn-ack service", "",
     "the service answered: {said}{holder}"),
    ("service | * | * | *", "pass open udp-response service", "",
     "the service answered: {said}{holder}"),
    ("echo | * | * | *", "pass open echo-reply service", "", "an echo reply came back"),
    # --- a port that somebody else holds -------------------------------------------------------
    (f"{_TOLD} | * | taken | *", "blocked open port-taken none", "service", f"{_TAKEN}: {{said}}"),
    (f"{_ANSWERED} | * | taken | *", "blocked open port-taken none", "service", _TAKEN),
    (f"{_TOLD} | * | hidden | *", "inconclusive open holder-hidden none", "service",
     f"{_HIDDEN}: {{said}}"),
    (f"{_ANSWERED} | * | hidden | *", "inconclusive open holder-hidden none", "service", _HIDDEN),
    (f"{_TOLD} {_ANSWERED} | * | other-run | *", "not-tested open other-run none", "service",
     _OTHER_RUN),
    ("some-service unasked tunnel | * | unwatched | *",
     "inconclusive open unknown-holder handshake", "service", _UNKNOWN_HOLDER),
    ("some-service | * | * | *", "pass open syn-ack service", "",
     "the service answered: {said}{holder}"),
    # --- other answers -----------------------------------------------------------------------
    ("foreign | * | * | *", "blocked open foreign-answer none", "path service",
     "{answered_by} answered instead of {destination}: an address translation or a shared address "
     "sends this flow elsewhere"),
    ("reflected | * | * | *", "inconclusive open reflected none", "path service",
     "our own bytes came back: something reflects what it gets, and it is not our listener"),
    # Hashes over addresses and ports choose a link, so each source port always meets the same one.
    ("bad-link | * | * | *", "blocked filtered bad-link none", "path return-path",
     "{said}, and the others get through: one link of a bundle (ECMP, LAG) between {source} and "
     "{destination} drops what it gets"),
    ("address-here | * | * | *", "blocked unreachable address-here none", "source",
     "{source} has {address} itself, which is {destination}'s: nothing that it sends there leaves "
     "it"),
    ("other-machine | * | * | *", "blocked unreachable other-machine none", "path",
     "{said} answers {source} for {address}, instead of {destination}"),
    ("held-twice | * | * | *", "blocked unreachable other-machine none", "path",
     "{said}: two machines have the address, and what {source} sends may come to the wrong one"),
    ("unproved-machine | * | * | not-captured", "blocked unreachable unproved-machine none",
     "path", "{said}, and {destination}'s packet recorder never saw the request: another machine "
     "answers in its name"),
    ("unproved-machine | * | ours | *", "blocked unreachable unproved-machine none",
     "destination path service", "{said}, and what answers there is not our listener on "
     "{destination}: another machine, or {destination}'s own firewall behind a translation"),
    ("unproved-machine | * | * | *", "inconclusive unknown unproved-machine none",
     "path service", "{said}, and nothing shows that what answers there is {destination}: it may "
     "be another machine"),
    ("sent | * | ours | socket", "pass open seen-at-destination witness", "",
     "{destination}'s agent received the probe on its own socket"),
    (f"{_OPEN_WORDS} | * | ours | answer-arrived", "blocked filtered no-response none", "source",
     "the connection opened, and our listener's answer came to {source}'s interface: its own "
     "firewall drops it"),
    (f"{_OPEN_WORDS} | * | ours | socket", "blocked filtered no-response none",
     "destination return-path source",
     "the connection opened and our listener on {destination} got the request, but its answer "
     "never came back: something drops packets with data"),
    ("other | * | ours | captured", "blocked open redirected none", "destination",
     "{destination}'s packet recorder saw the request arrive, our listener there never got it, and "
     "something else answered: a translation there takes it (REDIRECT, DNAT, a container's "
     "published port)"),
    (f"{_OPEN_WORDS} | * | ours | captured", "blocked filtered no-response none", "destination",
     "the connection opened, and {destination}'s packet recorder saw the request arrive, but our "
     "listener there never got it: a translation there takes it, or its own firewall drops packets "
     "with data"),
    (f"{_OPEN_WORDS} | * | ours | *", "inconclusive open false-open none",
     "destination path service source",
     "something answered, but our listener on {destination} never got the request: a proxy, a "
     "virtual address or a translation answers for it, or something drops packets with data"),
    ("other | tcp | * | *", "inconclusive open syn-ack handshake", "service",
     "the port is open, but it is not the expected service: {said}{holder}"),
    ("tls | * | * | *", "inconclusive open tls-not-expected handshake", "service",
     "the port is open, but it speaks TLS where plaintext is expected: {said}{holder}"),
    ("plaintext | * | * | *", "inconclusive open plaintext-not-tls handshake", "service",
     "the port is open, but it does not speak TLS, which is expected: {said}{holder}"),
    ("other | * | * | *", "inconclusive open udp-response none", "service",
     "something answered, but it is not the expected service: {said}{holder}"),
    ("silent closed reset-after-open | tcp | * | *", "inconclusive open syn-ack handshake",
     "path service",
     "the connection opened, but the service did not answer when it was asked who it is{holder}"),
    ("unasked | tcp udp | free bound | *", "inconclusive open false-open none",
     "destination path service",
     "something answered, but nothing listens on {destination} before the installation{note}: a "
     "translation there, or something on the way answers for it"),
    ("unasked | udp | closed loopback | *", "pass open udp-response handshake", "",
     "an answer came although no socket of {destination} listens on that address: an address "
     "translation (NodePort, hostPort, VIP) takes it"),
    ("unasked | udp | * | *", "pass open udp-response handshake", "",
     "the port answered{holder}: the flow gets through both ways; who it is was not asked"),
    ("silent closed reset-after-open unasked | udp icmp ipproto | * | *",
     "inconclusive open udp-response none", "service",
     "something answered, but nothing of use{holder}"),
    ("unasked | tcp | live | *", "pass open syn-ack handshake", "",
     "the connection opened{holder}; nothing was sent"),
    ("unasked | tcp | closed loopback | *", "pass open syn-ack handshake", "",
     "the connection opened although no socket of {destination} listens on that address: an "
     "address translation (NodePort, hostPort, VIP) takes it"),
    ("unasked | tcp | * | *", "pass open syn-ack handshake", "",
     "something accepted the connection; nothing was sent"),
    # --- through a proxy ---------------------------------------------------------------------
    ("tunnel | * | * | *", "pass open proxy-tunnel handshake", "", "{said}"),
    ("proxy-denies | * | * | *", "blocked filtered {failure} none", "path",
     "{said}: the proxy does not let it through"),
    # Whether the proxy, a firewall behind it or the destination is at fault, only its log tells.
    ("proxy-fails | * | * | *", "inconclusive unknown {failure} none",
     "destination host path service", "{said}: the proxy did not get there, or did not try"),
    ("proxy-odd | * | * | *", "inconclusive unknown {failure} none", "path",
     "{said}: what answers is no HTTP proxy, or none that answers"),
    ("proxy-unreached | * | * | *", "blocked filtered {failure} none", "path source",
     "{said}: the proxy cannot be reached"),
    # --- refusals ----------------------------------------------------------------------------
    ("intercepted | * | * | *", "inconclusive open false-open none", "path",
     "something answers for {address}: {said}"),
    ("reset-here | * | * | *", "blocked filtered local-firewall none", "source",
     "refused, but no packet left {source}: its own firewall resets it"),
    ("answered-here | * | * | *", "blocked unreachable answered-here none", "source",
     "something on {source} itself answers for {address}: no packet to it left {source}"),
    (f"{_RESETS} | * | ours {_HELD} | captured", "blocked filtered reset none", "destination",
     "refused although {listening}, and {destination}'s packet recorder saw the request arrive: "
     "{destination}'s own firewall resets it"),
    (f"{_RESETS} | * | ours | socket", "blocked filtered reset none", "path return-path",
     "refused although our listener on {destination} accepted the connection: a firewall on the "
     "way resets it"),
    ("reset-forged | * | * | *", "blocked filtered reset none", "path source",
     "refused by a reset that came from nearer than {address}: a firewall on the way forges it"),
    ("reset-of-dead-host | * | * | *", "blocked filtered reset none", "host path",
     "refused in the name of {address}, and nobody on its network answers for it: {asker} is there "
     "and gets no answer to its ARP or neighbour requests; something on the way makes the reset"),
    ("reset-of-lost-host | * | * | *", "inconclusive closed reset none", "host path",
     "refused, but {router}, a router on the way, gave {address} up for other probes of {source}: "
     "something on the way may have made the reset"),
    (f"reset-genuine | * | ours {_HELD} | *", "blocked filtered reset none",
     "destination path source",
     "refused although {listening}, by a reset from the destination's own distance: its own "
     "firewall resets it, or a translation on the way leads elsewhere"),
    (f"reset reset-full-ttl reset-blind reset-unproved | * | ours {_HELD} | *",
     "blocked filtered reset none",
     "destination path source", "refused although {listening}: a firewall resets it"),
    ("reset reset-full-ttl reset-blind reset-genuine | * | loopback | *",
     "inconclusive closed reset none", "service",
     "refused: on {destination} {owner} holds the port, and no socket does on {address}"),
    ("port-unreach | * | loopback | *", "inconclusive closed port-unreach none", "service",
     "refused: on {destination} {owner} holds the port, and no socket does on {address}"),
    ("reset reset-full-ttl reset-blind reset-genuine port-unreach | * | bound | *",
     "inconclusive closed port-in-use none", "service",
     "refused: nothing listens there, yet {destination}'s kernel gives the port to nobody else: a "
     "process has bound it, or a connection has it as its own"),
    ("reset-blind | * | * | *", "inconclusive closed reset none", "destination path source",
     "refused, but this host's kernel is older than 5.8 and cannot say by whom: the destination or "
     "a firewall"),
    ("reset-full-ttl | * | * | *", "inconclusive closed reset none", "destination path service",
     "refused, by a reset whose TTL no router has lowered, although the way to {address} goes "
     "through a gateway: that gateway may have made it, and nothing else tells what answers of "
     "{address} look like"),
    ("reset-unproved | * | * | *", "inconclusive closed reset none", "destination path",
     "refused, but nothing that only {address} itself sends was ever heard of it, and {said}, a "
     "router on the way, refuses other packets to it: that one may have made the reset"),
    ("refusal-unproved | tcp | * | *", "inconclusive closed reset none", "destination path",
     "refused in the name of {address}, but {doubt}: a translation on the way may hide who "
     "refuses"),
    ("refusal-unproved | * | * | *", "inconclusive closed {icmp} none", "destination path",
     "{icmp} in the name of {address}, but {doubt}: a translation on the way may hide who "
     "refuses"),
    ("reset reset-genuine | * | closed free | *", "pass closed reset refusal", "",
     "{destination} refused it itself, and its agent says that nothing listens there{note}"),
    ("reset-genuine | * | * | *", "pass closed reset refusal", "",
     "{address} refused it, by a reset from its own distance, and nothing is known to listen "
     "there; without an agent there, a rejecting firewall of the destination would look the same"),
    ("reset | * | * | *", "pass closed reset refusal", "",
     "{address} refused it, and nothing is known to listen there; without an agent there, a "
     "rejecting firewall would look the same"),
    (f"port-unreach | * | ours {_HELD} | *", "blocked filtered port-unreach none",
     "destination path",
     "port-unreachable from {address} although {listening}: its own firewall rejects it, or a "
     "translation on the way leads elsewhere"),
    (f"proto-unreach | * | ours {_HELD} | *", "blocked filtered proto-unreach none",
     "destination path",
     "protocol-unreachable from {address} although {listening}: its own firewall rejects it, or a "
     "translation on the way leads elsewhere"),
    ("port-unreach | * | closed free | *", "pass closed port-unreach refusal", "",
     "{destination} answered port-unreachable, and its agent says that nothing listens "
     "there{note}"),
    ("port-unreach | * | * | *", "pass closed port-unreach refusal", "",
     "{address} answered port-unreachable, and nothing is known to listen there; without an agent "
     "there, a rejecting firewall of the destination would look the same"),
    ("proto-unreach | * | * | *", "pass closed proto-unreach refusal", "",
     "{address} answered protocol-unreachable: the packet arrived, and nothing handles the "
     "protocol there yet"),
    ("rejected-in-its-name | * | * | *", "blocked filtered {icmp} none",
     "destination host path",
     "{icmp} from {offender}, the destination's own address: its own firewall rejects it, or "
     "another host or a router does, and a translation on the way replaces the sender's address"),
    ("rejected-there | * | * | *", "blocked filtered {icmp} none", "destination",
     "{icmp} from {offender}, which is the destination itself: its own firewall rejects it"),
    ("rejected-by-destination | * | * | captured socket", "blocked filtered {icmp} none",
     "destination",
     "{icmp} from {offender}, which is the destination itself: its own firewall rejects it"),
    ("rejected-by-destination | * | * | *", "blocked filtered {icmp} none", "destination path",
     "{icmp} from {offender}, the destination's own address: its own firewall rejects it, or a "
     "router or another host does, and a translation on the way replaces the sender's address"),
    ("rejected-by-router | * | * | *", "blocked filtered {icmp} none", "path",
     "{icmp} from {offender}, a router on the way"),
    ("rejected-by-source | * | * | *", "blocked filtered local-firewall none", "source",
     "{icmp} from {source}'s own address: its own firewall rejects it"),
    ("rejected-by-somebody | * | * | *", "blocked filtered {failure} none", "destination path",
     "{failure}, but this host's kernel does not say by whom"),
    ("data-rejected | * | * | *", "blocked filtered {failure} none", "destination path source",
     "the connection opened, and an ICMP error ended it when data was sent ({failure}); the kernel "
     "does not say whose"),
    ("router-no-route | * | * | *", "blocked unreachable net-unreach none", "path",
     "{icmp} from {offender}: that router has no route to {address}"),
    ("routing-loop | * | * | *", "blocked unreachable routing-loop none", "path",
     "{icmp} from {offender}: the packets to {address} used up their TTL there, so routers send "
     "them round in a loop"),
    ("host-down | * | * | *", "blocked unreachable host-down none", "host",
     "nobody on its network answers for {address}: {asker} is there and gets no answer to its ARP "
     "or neighbour requests; the host is down, or the address is not on it"),
    ("host-known-down | * | * | *", "blocked unreachable host-down none", "host",
     "{look}; nobody on its network answers for {address}: {asker} is there and gets no answer to "
     "its ARP or neighbour requests"),
    ("router-gives-up | * | * | *", "blocked unreachable host-down none", "host path",
     "{offender}, a router on the way, gave {address} up after {elapsed} ({icmp}): its next hop "
     "there does not answer; that is the host, which is down or has no link, or another router"),
    ("router-gave-up | * | * | *", "blocked unreachable host-down none", "host path",
     "{look}; {router}, a router on the way, gave {address} up for other probes of {source}: its "
     "next hop there does not answer; that is the host, which is down or has no link, or another "
     "router"),
    ("next-hop-down | * | * | *", "blocked unreachable next-hop-down none", "path source",
     "nothing got out of {source}: its next hop to {address} is {next_hop}, which does not answer "
     "its ARP or neighbour requests; that router is down, or the route or the cable of {source} is "
     "wrong"),
    ("no-carrier | * | * | *", "blocked unreachable no-carrier none", "path source",
     "nothing got out of {source}: its {said}, by which it reaches {address}, has no link: the "
     "cable, or the other end of it"),
    ("no-neighbour | * | * | *", "blocked unreachable host-unreach none", "destination path",
     "{destination} has {address} and is up, but {source} on the same network gets no answer to "
     "its ARP or neighbour requests: the network between them does not carry them (isolated ports, "
     "another VLAN), or a neighbour table is full"),
    ("no-route | * | * | *", "blocked unreachable no-route none", "source",
     "{source}'s own routing table has no way to {address} ({failure})"),
    ("stuck | * | * | *", "blocked filtered local-firewall none", "source",
     "no packet left {source}: its own firewall drops it ({look})"),
    ("no-room | * | * | *", "blocked filtered no-buffers none", "source",
     "no packet left {source}: its kernel has no room for it (ENOBUFS): {said}"),
    ("name-not-resolved | * | * | *", "blocked unknown name-not-resolved none", "source",
     "{source} cannot resolve {address}: {said}"),
    *_UNABLE,
    # --- silence -----------------------------------------------------------------------------
    *(("next-hop-silent | " + key, "blocked filtered next-hop-silent none", "path source",
       "{look}; the next hop of {source} to {address} is {next_hop}, and nothing at or behind it "
       "ever answered{neighbours}") for key in (
           "tcp icmp | * | *", "* | ours | *", "* | * | not-captured")),
    ("next-hop-silent | * | * | *", "inconclusive open|filtered next-hop-silent none",
     "destination host path return-path service source",
     "{look}; the next hop of {source} to {address} is {next_hop}, and nothing at or behind it "
     "ever answered{neighbours}"),
    ("silence silence-maybe-stuck | * | * | answer-arrived", "blocked filtered no-response none",
     "source",
     "{look}; yet the answer came to {source}'s interface: its own firewall or kernel (rp_filter, "
     "conntrack) drops it"),
    ("silence silence-maybe-stuck | * | * | no-way-back", "blocked filtered no-response none",
     "path return-path", "{look}; {destination} cannot answer"),
    ("sent | * | * | no-way-back", "inconclusive open|filtered no-response none", "return-path",
     "{look}; {destination} cannot answer, also not with an error message"),
    # RFC 3704: the filter comes before the destination's firewall and sockets.
    ("silence silence-maybe-stuck sent | * | * | reverse-path",
     "blocked filtered reverse-path-filter none", "destination",
     "{look}; {destination}'s packet recorder saw it arrive on {filtered_at}, where the "
     "reverse-path filter (rp_filter) is strict, but the route back leaves by {way_out}: its "
     "kernel drops it"),
    ("silence silence-maybe-stuck | tcp | ours | socket", "blocked filtered no-response none",
     "destination return-path source",
     "{look}; the request reached {destination}'s listener, and the answer never came back"),
    ("silence sent | udp | ours | socket", "blocked filtered no-response none",
     "return-path source",
     "{look}; the datagram reached {destination}'s listener, and its answer never came back"),
    # A reset or an ICMP error that comes back to a SYN-ACK ends the connection before it
    # can be looked at (tcp_req_err): that nothing is left at the socket proves nothing.
    ("silence silence-maybe-stuck | tcp | ours | captured", "blocked filtered no-response none",
     "destination return-path source",
     "{look}; {destination}'s packet recorder saw it arrive, but its kernel knows no connection: "
     "its own firewall drops it{or_refused}"),
    ("silence silence-maybe-stuck sent | * | ours | captured", "blocked filtered no-response none",
     "destination",
     "{look}; {destination}'s packet recorder saw it arrive, but no socket there got it: its own "
     "firewall drops it"),
    ("silence-maybe-stuck | tcp | * | not-captured", "blocked filtered no-response none",
     "path source", "{look}; {destination}'s packet recorder never saw it"),
    ("silence silence-maybe-stuck sent | tcp udp ipproto | * | not-captured",
     "blocked filtered no-response none", "path",
     "{look}; {destination}'s packet recorder never saw it"),
    ("silence silence-maybe-stuck | tcp | ours | unseen none", "blocked filtered no-response none",
     "destination path return-path source",
     "{look}; {destination}'s kernel knows no connection from {source}: it never got there, "
     "or something on the way back refuses the answer"),
    ("silence sent | tcp udp ipproto | ours | unseen none socket",
     "blocked filtered no-response none", "destination path",
     "{look}; our listener on {destination} never got it"),
    ("silence | icmp | * | captured", "blocked filtered no-response none",
     "destination return-path source",
     "{look}; {destination}'s packet recorder saw the echo request arrive, and no reply came back"),
    ("silence | icmp | * | not-captured", "blocked filtered no-response none", "path source",
     "{look}; {destination}'s packet recorder never saw the echo request"),
    ("silence sent | icmp | unknown | *", "blocked filtered no-response none",
     "destination host path return-path source", "{look}"),
    ("silence silence-maybe-stuck sent | icmp | * | *", "blocked filtered no-response none",
     "destination path return-path source", "{look}"),
    (f"silence silence-maybe-stuck | tcp | {_HELD} | captured", "blocked filtered no-response none",
     "destination return-path service source",
     "{look}; {destination}'s packet recorder saw it arrive{holder}"),
    (f"silence silence-maybe-stuck | tcp | {_HELD} | *", "blocked filtered no-response none",
     "destination path return-path service source", "{look}{holder}"),
    (f"silence silence-maybe-stuck | tcp | {_NOBODY} | captured",
     "blocked filtered no-response none", "destination return-path source",
     "{look}; {destination}'s packet recorder saw it arrive"),
    (f"silence silence-maybe-stuck | tcp | {_NOBODY} | *", "blocked filtered no-response none",
     "destination path return-path source", "{look}; a free port would have refused it"),
    ("silence silence-maybe-stuck sent | tcp | * | *", "blocked filtered no-response none",
     "destination host path return-path source", "{look}"),
    # A holder that keeps quiet is in the way all the same.
    (f"{_SILENT} | udp ipproto | taken | {_NO_MATTER}", "blocked open|filtered port-taken none",
     "service", f"{{look}}; {_TAKEN}"),
    (f"{_SILENT} | udp ipproto | hidden | {_NO_MATTER}",
     "inconclusive open|filtered holder-hidden none", "service", f"{{look}}; {_HIDDEN}"),
    (f"{_SILENT} | udp ipproto | other-run | {_NO_MATTER}",
     "not-tested open|filtered other-run none", "service", f"{{look}}; {_OTHER_RUN}"),
    ("silence silence-maybe-stuck sent | udp ipproto | live | captured",
     "inconclusive open|filtered no-response none", "destination",
     "{look}; {destination}'s packet recorder saw it arrive{holder}, but a recorder sees packets "
     "before the firewall"),
    ("silence silence-maybe-stuck sent | udp ipproto | * | captured",
     "inconclusive open|filtered no-response none", "destination return-path source",
     "{look}; {destination}'s packet recorder saw it arrive, but it sees packets before the "
     "firewall"),
    ("silence silence-maybe-stuck sent | udp ipproto | live | *",
     "inconclusive open|filtered no-response none", "destination path return-path service source",
     "{look}{holder}: a service that keeps quiet and a drop look the same"),
    (f"silence silence-maybe-stuck sent | udp ipproto | {_NOBODY} | *",
     "inconclusive open|filtered no-response none", "destination path return-path source",
     "{look}; a drop, or a dropped error message on the way back{note}"),
    ("silence silence-maybe-stuck sent | udp ipproto | * | *",
     "inconclusive open|filtered no-response none",
     "destination host path return-path service source",
     "{look}: without an agent at {destination}, a service that keeps quiet and a drop look the "
     "same"),
)  # fmt: skip

_EXPOSED: Final = (
    "nonce foreign reflected service some-service other silent closed reset-after-open unasked tls "
    "plaintext tunnel bad-link"
)
DENIED_WITNESSES: Final = (*WITNESSES, "answered", "stopped", "let-in")
DENIED: Final = _read_table(
    (f"{_ANSWERS} | * | * | not-captured", "exposed open false-open none", "path",
     "the port must not answer other hosts, and something on the way answers for it: "
     "{destination}'s packet recorder never saw the request"),
    ("intercepted | * | * | *", "exposed open false-open none", "path",
     "the port must not answer other hosts, and something on the way answers for it: {said}"),
    (f"{_EXPOSED} | tcp | * | *", "exposed open syn-ack none", "destination",
     "the port must not answer other hosts, and it accepted a connection{holder}"),
    (f"{_EXPOSED} | * | * | *", "exposed open udp-response none", "destination",
     "the port must not answer other hosts, and it did{holder}"),
    ("echo | * | * | *", "exposed open echo-reply none", "destination",
     "the host must not answer, and it did"),
    (f"{_RESETS} reset-here reset-unproved | * | * | *",
     "pass closed reset refusal", "", "refused, as it must be"),
    ("reset-of-dead-host reset-of-lost-host | * | * | *", "inconclusive closed reset none",
     "host path",
     "refused in the name of {address}, which may not be reached at all: others get no answer from "
     "it, and something on the way may have made the reset, which says nothing of the port"),
    ("port-unreach proto-unreach refusal-unproved rejected-in-its-name rejected-there "
     "rejected-by-destination rejected-by-router rejected-by-source | * | * | *",
     "pass filtered {icmp} refusal", "",
     "{icmp} from {offender}: refused, as it must be"),
    ("rejected-by-somebody data-rejected | * | * | *", "pass filtered {failure} refusal", "",
     "{failure}: refused, as it must be"),
    ("router-no-route routing-loop router-gives-up router-gave-up host-down host-known-down "
     "no-neighbour next-hop-down next-hop-silent no-carrier no-route no-room "
     "name-not-resolved proxy-denies proxy-fails proxy-odd proxy-unreached | * | * | *",
     "inconclusive unreachable {failure} none", "host path source",
     "{address} cannot be reached at all, which says nothing of the port"),
    ("other-machine held-twice unproved-machine address-here answered-here | * | * | *",
     "inconclusive unreachable other-machine none", "path source",
     "another machine may answer for {address}, which says nothing of {destination}'s port"),
    # --- silence: a free port answers TCP and echo, and a quiet service is usual beside them ------
    (f"{_SILENT} | udp ipproto | * | socket", "exposed open no-response none", "destination",
     "the port must not answer other hosts, and {look}; but it came to a socket of {destination}"),
    (f"{_SILENT} | udp ipproto | * | answer-arrived", "exposed open udp-response none",
     "destination",
     "the port must not answer other hosts, and it did: {look}, but an answer came to {source}'s "
     "interface{holder}"),
    (f"{_SILENT} | udp ipproto | live taken hidden | let-in", "exposed open no-response none",
     "destination",
     "the port must not answer other hosts, and it takes what they send: {look}, but "
     "{destination}'s packet recorder saw it arrive{holder}"),
    (f"{_SILENT} | udp ipproto | * | stopped reverse-path", "pass filtered no-response none", "",
     "{look}; {destination} itself drops it"),
    (f"{_SILENT} | udp ipproto | * | not-captured", "pass filtered no-response none", "",
     "{look}; {destination}'s packet recorder never saw it, and the same address answered on other "
     "ports"),
    # A kernel may handle an IP protocol without a socket.
    (f"{_SILENT} | udp | free loopback bound | captured let-in answered",
     "pass filtered no-response none", "",
     "{look}; by {destination}'s agent nothing listens there"),
    (f"{_SILENT} | udp ipproto | * | captured let-in",
     "inconclusive open|filtered no-response none", "destination",
     "{look}; {destination}'s packet recorder saw it arrive{holder}, and it sees packets before "
     "the firewall: a quiet service and a drop look the same"),
    (f"{_SILENT} | udp ipproto | * | answered no-way-back",
     "inconclusive open|filtered no-response none", "destination host path return-path source",
     "{look}{holder}: a quiet service and a drop look the same"),
    ("silence silence-maybe-stuck sent stuck | * | * | answered",
     "pass filtered no-response none", "", "{look}; the same address answered on other ports"),
    ("silence silence-maybe-stuck sent stuck | * | * | *",
     "inconclusive open|filtered no-response none", "destination host path return-path source",
     "{look}; {address} answered nothing else either, so silence says nothing"),
    *_UNABLE,
)  # fmt: skip
