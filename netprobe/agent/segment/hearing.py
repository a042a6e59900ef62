"""Listens for routers that share virtual addresses: VRRP, CARP and HSRP. Nothing is sent."""

from typing import Dict, List, Tuple

from ..net.bpf import (
    ANY_BIT,
    IPV6_HEADER,
    LD_HALF,
    LDX_CONSTANT,
    LDX_IP_HEADER,
    FilterStep,
)

READ_BYTES = 2048
MOST = 64
LOOPBACK = "lo"
# The groups of VRRP and CARP, HSRP, HSRPv2; and of VRRP and HSRP over IPv6.
GROUPS_4 = tuple(b"\x01\0\x5e\0\0" + last for last in (b"\x12", b"\x02", b"\x66"))
GROUPS_6 = tuple(b"\x33\x33\0\0\0" + last for last in (b"\x12", b"\x66"))
# Where the protocol stands, and the words that find the transport header.
_HEADERS: Dict[int, Tuple[int, List[FilterStep], Tuple[int, int]]] = {
    4: (9, [(LD_HALF, 6, None, None), (ANY_BIT, 0x1FFF, "no", None)], (LDX_IP_HEADER, 0)),
    6: (6, [], (LDX_CONSTANT, IPV6_HEADER)),
}
