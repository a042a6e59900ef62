"""Where files of ``--evidence`` go, what they say, and what happens where they cannot."""

from __future__ import annotations

import io
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.judge.findings import fold
from netprobe.model.codec import finding_to_json, keep_findings
from netprobe.model.result import HostReport
from netprobe.model.story import EndPackets, FlowPacket, FlowPackets
from netprobe.report.record.evidence import MOST_FLOWS, open_folder
from netprobe.report.run.text import write_text
from tests.report.samples import BLOCKED, report_of

RECORDING = (
    HostReport(name="master-0", state="agent", privileged=True),
    HostReport(name="master-1", state="agent", privileged=True),
)

# An IPv4 SYN from 10.0.0.1 to 10.0.0.2.
SYN = bytes.fromhex(
    "450000280000400040060000" "0a0000010a000002" "0400192b00000007000000005002ffff00000000"
)  # fmt: skip


def flows(*, sure: bool = True) -> FlowPackets:
    """The blocked flow of the samples: its SYN left, and did not come."""
    assert BLOCKED.port is not None
    ports = ((BLOCKED.port, BLOCKED.port),)
    packet = FlowPacket(BLOCKED.port, 1_763_800_000_123_456_789, "eth0", True, 40, SYN)
    return FlowPackets(
        BLOCKED.address, BLOCKED.protocol, ports, ports,
        EndPackets(BLOCKED.source, True, (packet,)), EndPackets(BLOCKED.destination, sure),
    )  # fmt: skip


@contextmanager
def file_limit(size_bytes: int) -> Iterator[None]:
    """No file may grow beyond this, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(("sure", "fate"), [(True, "never seen by"), (False, "nobody knows of")])
def test_a_packet_says_what_the_other_end_saw(tmp_path: Path, sure: bool, fate: str) -> None:
    """Only a recorder that lost nothing says that a packet did not come."""
    folder = open_folder(str(tmp_path))
    folder.keep(flows(sure=sure))
    folder.keep(replace(flows(), address="10.9.9.9"))
    (finding,) = folder.write_files(fold([BLOCKED]), RECORDING)

    assert finding.evidence == str(tmp_path / "finding-01.pcapng")
    written = (tmp_path / "finding-01.pcapng").read_bytes()
    assert written.count(SYN) == 1
    assert f"left {BLOCKED.source}; {fate} {BLOCKED.destination}".encode() in written
    assert f"{BLOCKED.source}/eth0".encode() in written


def test_a_file_says_what_is_not_in_it(tmp_path: Path) -> None:
    """Of each end; who counts the packets would take them for lost."""
    folder, found = open_folder(str(tmp_path)), flows()
    folder.keep(replace(found, destination=replace(found.destination, left_out=3)))
    for _ in range(MOST_FLOWS):
        folder.keep(replace(found, source=replace(found.source, left_out=1)))
    folder.write_files(fold([BLOCKED]), RECORDING)

    comment = (
        f"Only the first and the last packets: {BLOCKED.source} has {MOST_FLOWS - 1} more packets; "
        f"{BLOCKED.destination} has 3 more packets; 1 more sources, destinations or ranges of ports"
    )
    assert comment.encode() in (tmp_path / "finding-01.pcapng").read_bytes()


def test_a_file_has_no_packets_of_other_ports(tmp_path: Path) -> None:
    """They went alike, and are part of another finding; how many of its own were asked is said."""
    folder, found = open_folder(str(tmp_path)), flows()
    assert BLOCKED.port is not None
    (packet,) = found.source.packets
    other = replace(packet, port=BLOCKED.port + 1, data=SYN[:-1] + b"\x01")
    source = replace(found.source, packets=(packet, other))
    folder.keep(replace(found, ports=((BLOCKED.port, BLOCKED.port + 9),), source=source,
                        asked=((BLOCKED.port, BLOCKED.port + 1),)))  # fmt: skip
    wide = replace(BLOCKED, end_port=BLOCKED.port + 9)
    folder.write_files([*fold([BLOCKED]), replace(fold([wide])[0], number=2)], RECORDING)

    first, second = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert (first.count(SYN), first.count(other.data)) == (1, 0)
    assert (second.count(SYN), second.count(other.data)) == (1, 1)
    assert b"more flows" not in first
    assert b"8 more flows went alike and are not in this file" in second


@pytest.mark.parametrize(
    ("changes", "hosts", "why"),
    [
        ({}, (), "no packet recorder ran on master-0, master-1 (an agent there needs root)"),
        ({}, None, "the packet recorder of master-0, master-1 kept no packet of these flows"),
        ({"requirement": "clock", "reason": "clock-apart"}, None,
         "it is about the hosts themselves, not about packets of a flow"),
    ],
)  # fmt: skip
def test_a_finding_without_packets_says_why(
    tmp_path: Path, changes: dict[str, str], hosts: tuple[HostReport, ...] | None, why: str
) -> None:
    """In text and in files, which name no file with packets then."""
    failure = replace(BLOCKED, **changes)  # these are texts
    recording = RECORDING if hosts is None else hosts
    (finding,) = open_folder(str(tmp_path)).write_files(fold([failure]), recording)

    assert (finding.evidence, finding.no_evidence) == (None, why)
    assert list(tmp_path.iterdir()) == []
    shown = io.StringIO()
    write_text(report_of([failure], finding), shown)
    assert f"   packets   none: {why}\n" in shown.getvalue()
    assert finding_to_json(finding)["no_evidence"] == why
    kept = keep_findings([finding])
    assert fold([failure], kept=kept or ())[0].no_evidence == why


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """It names every finding whose file could not be written; no half of one stays."""
    folder = open_folder(str(tmp_path))
    folder.keep(flows())
    other = replace(BLOCKED, reason="reset", where=("path",))
    folder.keep(flows())
    with file_limit(100):
        findings = folder.write_files(fold([BLOCKED, other]), RECORDING)

    assert [one.evidence for one in findings] == [None, None]
    told = "the file could not be written: File too large"
    assert [one.no_evidence for one in findings] == [told, told]
    (problem,) = folder.problems
    assert (
        problem == f"cannot write the packets of findings 1 and 2 into {tmp_path}: File too large"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_too_large_keeps_no_other_from_being_written(tmp_path: Path) -> None:
    """The disk may have room for that one."""
    folder, few = open_folder(str(tmp_path)), flows()
    packets = tuple(replace(few.source.packets[0], time_ns=time) for time in range(100))
    many = replace(few, protocol="udp", source=replace(few.source, packets=packets))
    folder.keep(few)
    folder.keep(many)
    (second,) = fold([BLOCKED])
    found = (*fold([replace(BLOCKED, protocol="udp")]), replace(second, number=2))
    with file_limit(1000):
        findings = folder.write_files(found, RECORDING)

    assert [one.evidence for one in findings] == [None, str(tmp_path / "finding-02.pcapng")]
    assert folder.problems == [
        f"cannot write the packets of finding 1 into {tmp_path}: File too large"
    ]


def test_a_folder_of_an_earlier_run_is_refused(tmp_path: Path) -> None:
    """Nothing is written over; a new folder, or another one with files in it, is taken."""
    (tmp_path / "notes.txt").write_text("")
    open_folder(str(tmp_path))
    (tmp_path / "finding-07.pcapng").write_text("")
    with pytest.raises(
        RequestError, match=r"there is finding-07\.pcapng of an earlier run; choose"
    ):
        open_folder(str(tmp_path))
    file = tmp_path / "notes.txt"
    with pytest.raises(RequestError, match=f"--evidence {file}: that is a file, expected a folder"):
        open_folder(str(file))
    with pytest.raises(RequestError, match=f"below: there is no folder {file}"):
        open_folder(str(file / "below"))
    with pytest.raises(RequestError, match=f"--evidence {tmp_path}/a/b: there is no folder"):
        open_folder(str(tmp_path / "a" / "b"))
    assert not (tmp_path / "a").exists()
    with pytest.raises(RequestError, match='--evidence "": expected a folder'):
        open_folder("")
