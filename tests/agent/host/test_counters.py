"""What the kernel counts; which rules move which counter is shown in ``tests/lab``."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from netprobe.agent.core.agent import AgentCore
from netprobe.agent.core.loop import Loop
from netprobe.agent.host import counters
from netprobe.agent.host.counters import count_packets, tell_packet_counts
from netprobe.agent.wire.host_messages import PacketCounts, PacketCountsOrder

V4 = """Ip: Forwarding InReceives ForwDatagrams InUnknownProtos InDelivers OutRequests{more}
Ip: 2 100 7 2 80 50{values}
Tcp: RtoMin InSegs
Tcp: 200 33
"""
V6 = """Ip6InReceives                   	40
Ip6InDelivers                   	39
Ip6InUnknownProtos              	0
Ip6OutForwDatagrams             	0
Ip6OutRequests                  	9
{more}"""


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the agent reads; none of them is there yet."""

    def read(path: str) -> Any:
        return (tmp_path / Path(path).name).open()

    monkeypatch.setattr(counters, "open", read, raising=False)
    return tmp_path


def test_what_is_between_the_first_and_the_last_counter_was_stopped(proc: Path) -> None:
    """Not what was sent on, nor what reached a protocol that nobody handles."""
    (proc / "snmp").write_text(V4.format(more=" OutTransmits", values=" 54"))
    (proc / "snmp6").write_text(V6.format(more="Ip6OutTransmits 5\n"))

    assert count_packets(socket.AF_INET) == (11, 3, 33)
    assert count_packets(socket.AF_INET6) == (1, 4, 33)


def test_on_older_kernels_nothing_tells_what_did_not_leave(proc: Path) -> None:
    """The other counters do not mislead."""
    (proc / "snmp").write_text(V4.format(more="", values=""))
    (proc / "snmp6").write_text(V6.format(more=""))

    assert count_packets(socket.AF_INET) == (11, None, 33)
    assert count_packets(socket.AF_INET6) == (1, None, 33)


@pytest.mark.parametrize("text", [None, "", "Ip: InReceives\nIp: x\n", "Ip: InReceives\nIp: 1\n"])
def test_a_kernel_that_does_not_say_is_no_fault(proc: Path, text: str | None) -> None:
    """The answer comes, and has nothing in it."""
    if text is not None:
        (proc / "snmp").write_text(text)
    sent: list[object] = []

    class Core(AgentCore):
        def send(self, message: tuple[object, ...]) -> None:
            sent.append(message)

    tell_packet_counts(Core(Loop()), PacketCountsOrder(7, "10.0.0.1"))

    assert sent == [PacketCounts(7, None, None, None)]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_this_kernel_says_it(family: int) -> None:
    """Nobody needs a right."""
    stopped, _, segments = count_packets(family)

    assert stopped >= 0
    assert segments >= 0
