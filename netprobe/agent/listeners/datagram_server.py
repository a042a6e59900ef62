"""The UDP and IP protocol side of the listeners: receive, check the nonce, answer from the address
that was asked, and note the errno of the answer."""

import socket
from typing import Any, List, Tuple

from ..net.binding import IP_PKTINFO, peer
from ..wire.failures import name_of
from .rounds import EVENT_BATCH, ListenerPort, PortServer

READ_BATCH = 16
MAX_DATAGRAM = 9216
ANCILLARY_BYTES = 128

Ancillary = List[Tuple[int, int, bytes]]


class DatagramServer(PortServer):
    """All UDP and raw listeners of an agent."""

    def serve_events(self) -> int:
        """Serve a batch, and give how many events there were."""
        events = self._epoll.poll(0, EVENT_BATCH)
        for fd, _event in events:
            if fd in self._ports:
                self._drain_port(self._ports[fd])
        return len(events)

    def _drain_port(self, port: ListenerPort) -> None:
        has_header = port.block.proto == "ipproto" and port.sock.family == socket.AF_INET
        try:
            for _ in range(READ_BATCH):
                data, ancillary, _, address = port.sock.recvmsg(MAX_DATAGRAM, ANCILLARY_BYTES)
                if has_header and data:
                    # IPv4 raw sockets are given the IP header too, IPv6 ones are not.
                    data = data[(data[0] & 15) * 4 :]
                _send_answer(port, data, address, _keep_asked_address(ancillary))
        except OSError:
            return  # nothing more to read; an ICMP error of an earlier answer is no arrival


def _send_answer(
    port: ListenerPort, data: bytes, address: Tuple[Any, ...], ancillary: Ancillary
) -> None:
    answer = port.round.arrived(port, data, peer(address))
    if answer is None:
        return
    reply, log = answer
    try:
        port.sock.sendmsg([reply], ancillary, 0, address)
    except OSError as error:
        log.failures[port.number] = name_of(error.errno)
    else:
        log.failures.pop(port.number, None)


def _keep_asked_address(ancillary: Ancillary) -> Ancillary:
    """Give the control message that makes the answer leave from the address that was asked."""
    for level, kind, data in ancillary:
        if level == socket.IPPROTO_IP and kind == IP_PKTINFO:
            # in_pktinfo: interface, local address, destination. Only the local address is wanted.
            return [(level, kind, b"\0\0\0\0" + data[4:8] + b"\0\0\0\0")]
        if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO:
            return [(level, kind, data[:16] + b"\0\0\0\0")]
    return []
