"""``--evidence DIR``: one pcapng a finding, with the packets that both ends kept of its flows."""

from __future__ import annotations

import ipaddress
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from glob import escape, glob

from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.files import replacing
from netprobe.model import ports as port_sets
from netprobe.model.names import names_text
from netprobe.model.plan import ABOUT_HOSTS
from netprobe.model.ports import Ports
from netprobe.model.result import Finding, HostReport, Result
from netprobe.model.story import EndPackets, FlowPacket, FlowPackets
from netprobe.protocols.packets.pcapng import PcapPacket, write_pcapng

NAME = "finding-{:02}.pcapng"
# A finding may fold thousands of flows: who reads packets wants some of each kind.
MOST_FLOWS = 50
MOST_NAMES = 6
TCP, UDP = 6, 17


class EvidenceFolder:
    """Takes packets during the run, and writes the files at its end.

    After that ``problems`` has one line for all files that could not be written for one reason.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._flows: dict[tuple[str, ...], list[FlowPackets]] = {}
        self._unwritten: dict[str, list[int]] = {}

    def add(self, result: Result) -> None:
        """Pass over a result: at the end findings have their packets."""

    def keep(self, found: FlowPackets) -> None:
        """Take the packets of some flows."""
        key = (found.source.host, found.destination.host, found.address, found.protocol)
        self._flows.setdefault(key, []).append(found)

    @property
    def problems(self) -> list[str]:
        """Say which findings lack their packets."""
        return [
            f"cannot write the packets of {_word_findings(numbers)} into {self._path}: {why}"
            for why, numbers in self._unwritten.items()
        ]

    def write_files(
        self, findings: Sequence[Finding], hosts: Sequence[HostReport]
    ) -> tuple[Finding, ...]:
        """Write a file for each finding that has packets, and name it there, else say why not."""
        recording = {one.name for one in hosts if one.state == "agent" and one.privileged}
        return tuple(self._write_one(one, recording) for one in findings)

    def _write_one(self, finding: Finding, recording: Set[str]) -> Finding:
        flows, left_out = self._flows_in(finding)
        # Requirements may share flows, whose packets are in the file once.
        packets = sorted({packet for one in flows for packet in _describe_packets(one)})
        if not packets:
            return replace(finding, no_evidence=_explain_absence(finding, recording))
        path = os.path.join(self._path, NAME.format(finding.number))
        try:
            with replacing(path) as temporary:
                write_pcapng(temporary, packets, _word_left_out(flows, left_out))
        except OSError as error:
            why = error.strerror or str(error)
            self._unwritten.setdefault(why, []).append(finding.number)
            return replace(finding, no_evidence=f"the file could not be written: {why}")
        return replace(finding, evidence=path)

    def _flows_in(self, finding: Finding) -> tuple[list[FlowPackets], int]:
        """Give some of the finding's flows, with packets of its ports only, and how many more."""
        found: dict[int, FlowPackets] = {}
        wanted: dict[int, list[Ports]] = {}
        for member in finding.members:
            for one in self._flows_of(member):
                found[id(one)] = one
                wanted.setdefault(id(one), []).append(member.ports)
        flows = [_cut_ports(one, port_sets.union(wanted[key])) for key, one in found.items()]
        some = [one for one in flows if one.source.packets or one.destination.packets]
        return some[:MOST_FLOWS], len(some[MOST_FLOWS:])

    def _flows_of(self, result: Result) -> Iterator[FlowPackets]:
        key = (result.source, result.destination, result.address, result.protocol)
        for one in self._flows.get(key, ()):
            if not result.ports or port_sets.intersect(one.ports, result.ports):
                yield one


def _cut_ports(flow: FlowPackets, wanted: Ports) -> FlowPackets:
    """Give the flows of these ports: others may be part of another finding."""
    if not wanted:
        return flow
    asked = port_sets.intersect(flow.asked, wanted)
    known = frozenset(port_sets.each(asked))
    source, destination = (
        replace(end, packets=tuple(one for one in end.packets if one.port in known))
        for end in (flow.source, flow.destination)
    )
    ports = port_sets.intersect(flow.ports, wanted)
    return replace(flow, ports=ports, asked=asked, source=source, destination=destination)


def open_folder(path: str) -> EvidenceFolder:
    """Make the folder, or take an empty one. Raises RequestError."""
    if not path:
        raise RequestError('--evidence "": expected a folder')
    if os.path.exists(path) and not os.path.isdir(path):
        raise RequestError(f"--evidence {path}: that is a file, expected a folder")
    above = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(above):
        raise RequestError(f"--evidence {path}: there is no folder {above}")
    try:
        if not os.path.isdir(path):
            os.mkdir(path, mode=0o700)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise RequestError(f"--evidence {path}: {error.strerror or error}") from error
    earlier = sorted(glob(os.path.join(escape(path), "finding-*.pcapng")))
    if earlier:
        raise RequestError(
            f"--evidence {path}: there is {os.path.basename(earlier[0])} of an earlier run; choose "
            "another folder"
        )
    return EvidenceFolder(path)


def _explain_absence(finding: Finding, recording: Set[str]) -> str:
    """Say why there are no packets of a finding."""
    if all(one.requirement in ABOUT_HOSTS for one in finding.members):
        return "it is about the hosts themselves, not about packets of a flow"
    able = sorted(finding.hosts & recording)
    if not able:
        lacking = names_text(sorted(finding.hosts), MOST_NAMES)
        return f"no packet recorder ran on {lacking} (an agent there needs root)"
    return f"the packet recorder of {names_text(able, MOST_NAMES)} kept no packet of these flows"


def _word_findings(numbers: Sequence[int]) -> str:
    """Word some findings: ``finding 2``, ``findings 2, 4 and 5``."""
    *first, last = map(str, numbers)
    return f"findings {', '.join(first)} and {last}" if first else f"finding {last}"


def _word_left_out(flows: Sequence[FlowPackets], more: int) -> str:
    """Tell what a file does not have: who counts packets must not take that for loss."""
    counts: Counter[str] = Counter()
    for flow in flows:
        for end in (flow.source, flow.destination):
            counts[end.host] += end.left_out
    said = [f"{host} has {count} more packets" for host, count in counts.items() if count]
    ports = sum(port_sets.count(one.ports) - port_sets.count(one.asked) for one in flows)
    if ports:
        said.append(f"{ports} more flows went alike and are not in this file")
    if more:
        said.append(f"{more} more sources, destinations or ranges of ports are not in this file")
    return "Only the first and the last packets: " + "; ".join(said) if said else ""


def _describe_packets(flow: FlowPackets) -> Iterator[PcapPacket]:
    for here, there in ((flow.source, flow.destination), (flow.destination, flow.source)):
        known = {_find_mark(packet): packet.outgoing for packet in there.packets}
        for packet in here.packets:
            yield PcapPacket(
                packet.time_ns, f"{here.host}/{packet.interface}", packet.outgoing, packet.length,
                packet.data, _word_fate(packet, here, there, known, flow.address),
            )  # fmt: skip


def _word_fate(
    packet: FlowPacket,
    here: EndPackets,
    there: EndPackets,
    known: dict[bytes, bool],
    address: str,
) -> str:
    """Tell what both recorders say: ``left worker-0; never seen by master-0``."""
    seen = known.get(_find_mark(packet)) is (not packet.outgoing)
    if packet.interface == "lo":
        return f"never left {here.host}"
    if packet.outgoing:
        fate = f"came to {there.host}" if seen else f"never seen by {there.host}"
        return f"left {here.host}; {_if_sure(fate, there, seen)}"
    sender = _sender_of(packet)
    if sender not in (None, address):
        return f"came to {here.host} from {sender}"
    fate = f"left {there.host}" if seen else f"never seen to leave {there.host}"
    return f"came to {here.host}; {_if_sure(fate, there, seen)}"


def _sender_of(packet: FlowPacket) -> str | None:
    """Give who sent an ICMP error; None for other packets, which are the ends' own."""
    data = packet.data
    is_6 = data[0] >> 4 == 6
    kinds, at = ((58, range(1, 5)), 40) if is_6 else ((1, (3, 11, 12)), (data[0] & 15) * 4)
    if data[6 if is_6 else 9] != kinds[0] or data[at] not in kinds[1]:
        return None
    return str(ipaddress.ip_address(data[8:24] if is_6 else data[12:16]))


def _if_sure(fate: str, there: EndPackets, seen: bool) -> str:
    return fate if seen or there.sure else f"nobody knows of {there.host}"


def _find_mark(packet: FlowPacket) -> bytes:
    """Give what address translation and routers leave as it is: numbers and payload."""
    data = packet.data
    is_6 = data[0] >> 4 == 6
    proto, header = (data[6], 40) if is_6 else (data[9], (data[0] & 15) * 4)
    # Of TCP the sequence numbers, of UDP what follows its header, else all behind type and sum.
    begin = header + (8 if proto == UDP else 4)
    return bytes((proto,)) + data[begin : begin + 8 if proto == TCP else None]
