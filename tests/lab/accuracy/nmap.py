"""The same cases asked with nmap, its states in netprobe's words, for comparison."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

from tests.lab.accuracy.cases import Case
from tests.lab.accuracy.expected import EVERYWHERE
from tests.lab.accuracy.running import Answers
from tests.lab.accuracy.topology import PORT, SOURCE, Chain, serve
from tests.lab.netlab import family_of

_SCANS = {
    "tcp": ("-sT", "-Pn", "-p", str(PORT)),
    "udp": ("-sU", "-Pn", "-p", str(PORT)),
    "icmp": ("-sn", "-PE", "--disable-arp-ping"),
}


def ask_nmap(chain: Chain, cases: list[Case], label: str) -> Answers:
    """nmap over a batch, as root in the source; a service stands where netprobe has its agent."""
    for part in ("destination", "neighbour"):
        with_agent = [
            chain.cases[case]
            for case in cases
            if case.listener == "agent" and chain.destination(case) is chain[part]
        ]
        serve(chain[part], with_agent)
    answers: Answers = {}
    for protocol in _SCANS:
        wanted = {chain.cases[case]: case for case in cases if protocol in case.protocols}
        for address, state in _states(chain, protocol, wanted).items():
            case = wanted[address]
            answers[case, protocol] = (address, _in_our_words(case, protocol, address, state))
    return answers


def _states(chain: Chain, protocol: str, addresses: Iterable[str]) -> dict[str, dict[str, str]]:
    """nmap's ``state`` element of every address; no element: nmap found the host down."""
    found: dict[str, dict[str, str]] = {}
    for family in (4, 6):
        wanted = [text for text in addresses if family_of(text) == family]
        if not wanted:
            continue
        words = ["-6"] if family == 6 else []
        text = chain["source"].run(
            "nmap", *words, "-n", "--reason", "-oX", "-", *_SCANS[protocol], *wanted
        )
        found.update({address: {"state": "down"} for address in wanted})
        for host in ElementTree.fromstring(text).iter("host"):
            address = host.find("address")
            state = host.find("ports/port/state") if protocol != "icmp" else host.find("status")
            if address is not None and state is not None:
                found[address.attrib["addr"]] = dict(state.attrib)
    return found


def _in_our_words(case: Case, protocol: str, address: str, state: dict[str, str]) -> dict[str, Any]:
    """A result as netprobe would print it, read in nmap's favour wherever that is possible.

    nmap names the sender of an ICMP error as ``reason_ip``; without it, every place is possible.
    """
    word = state["state"]
    sender = state.get("reason_ip")
    verdict = {"open": "pass", "up": "pass", "open|filtered": "inconclusive"}.get(word, "blocked")
    if word == "closed" and case.listener != "agent":
        verdict = "pass"
    where: list[str] = [] if verdict == "pass" else sorted(EVERYWHERE | {"host"})
    if sender and where:
        own = {address: "destination"} | dict.fromkeys(SOURCE, "source")
        where = [own.get(sender, "path")]
    return {
        "verdict": verdict, "state": word, "reason": state.get("reason", ""), "proof": "none",
        "where": where, "rejected_by": sender, "last_hop": None,
    }  # fmt: skip
